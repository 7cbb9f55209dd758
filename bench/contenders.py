"""What is measured: each contender does one whole job on an export or on its dict file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class ContenderError(Exception):
    """A contender did not do its job; the text says why."""


@dataclass(frozen=True)
class Files:
    """What a contender reads, and where it writes."""

    export: Path
    dict_file: Path
    output: Path


@dataclass(frozen=True)
class Contender:
    """A job, and how it is measured.

    Parameters
    ----------
    run : does the job; what it returns is kept while memory is measured
    job : open or parse, what it is compared with of the pure Python
    header : lines of its output that are no kernel's
    is_compiled : whether it is always done once off the clock first
    kernels_at_most : the size that it can bear
    """

    run: Callable[[Files], object]
    job: str = "parse"
    header: int = 0
    is_compiled: bool = True
    kernels_at_most: int | None = None

    def bears(self, n_kernels: int) -> bool:
        return self.kernels_at_most is None or n_kernels <= self.kernels_at_most


def interpreter(files: Files) -> None:
    """Nothing: its peak memory is what the interpreter and its modules need by themselves."""


def floor(files: Files) -> None:
    """Step the SELECTs that `open` steps, in C, and do nothing with the rows."""
    from fastprof.readers.nsys import reader
    from fastprof.readers.sqlite.database import Database

    with Database(files.export) as database:
        reader.floor(database)


def walk_on_two_cores(files: Files) -> None:
    """Read the columns of the large tables from the file's pages, and do nothing with them.

    Integers are decoded, texts hashed; no columns, no pools: the floor, below SQLite.
    """
    from fastprof._system.threads import SecondThread
    from fastprof.readers.nsys.schema import Pools
    from fastprof.readers.sqlite.database import Database

    pools = Pools()
    with Database(files.export) as database, SecondThread() as beside:
        pieces = iter(
            [
                (name, fields(pools), row_ids)
                for name, fields in _large_tables().items()
                for row_ids in database.pieces(name, 16)
            ]
        )

        def walk() -> None:
            for piece in pieces:  # each goes to one of the two threads
                database.floor_of_pages(*piece)

        other = beside.submit(walk)
        walk()
        other.result()


def pages(files: Files) -> object:
    """Read the columns of the large tables from the file's pages, all rows, on one core."""
    from fastprof.readers.nsys.schema import Pools
    from fastprof.readers.sqlite.database import Database

    pools = Pools()
    with Database(files.export) as database:
        columns = [database.scan(name, fields(pools)) for name, fields in _large_tables().items()]
    return columns[0]["start"]  # as many as kernels


def pages_on_two_cores(files: Files) -> object:
    """The same on two, each with pools of its own: kernels on one, and all else on both."""
    from fastprof._system.threads import SecondThread
    from fastprof.readers.nsys.pieces import Pieces
    from fastprof.readers.nsys.schema import KERNELS, Pools
    from fastprof.readers.sqlite.database import ALL_ROWS, Database, TableRows

    pools = Pools()
    with Database(files.export) as database, database.another() as other, SecondThread() as beside:
        large = _large_tables()
        kernels = TableRows(database, KERNELS, large.pop(KERNELS)(pools))
        tables = [Pieces(database, name, fields, lambda: None) for name, fields in large.items()]
        helping = [beside.submit(table.help, other) for table in reversed(tables)]
        kernels.read(database, ALL_ROWS)
        for table in tables:
            table.read(database)
        for each in helping:
            each.result()
        columns = [kernels.columns()]
        for table in tables:
            table.adopt(pools)
            columns.append(table.together())
    return columns[0]["start"]


def _large_tables() -> dict[str, Callable[[Any], Sequence[Any]]]:
    """What makes the fields of each, for pools."""
    from fastprof.readers.nsys import schema

    return {
        schema.KERNELS: schema.kernel_fields,
        schema.LAUNCHES: schema.launch_fields,
        schema.RANGES[0]: schema.range_fields,
        schema.STRINGS: lambda pools: schema.string_fields(pools.strings, pools.labels),
    }


def open_export(files: Files) -> object:
    import fastprof

    return fastprof.open(str(files.export))


def open_through_sqlite(files: Files) -> object:
    before = os.environ.get("FASTPROF_SCAN", "")
    os.environ["FASTPROF_SCAN"] = "sqlite"
    try:
        return open_export(files)
    finally:
        os.environ["FASTPROF_SCAN"] = before


def open_on_one_core(files: Files) -> object:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [min(cores)])  # of this thread, and of those that it starts
    try:
        return open_export(files)
    finally:
        os.sched_setaffinity(0, cores)


def parse(files: Files) -> None:
    command("parse", str(files.export), "-o", str(files.output))


def prof_export(files: Files) -> None:
    command("prof", "--csv", str(files.export), "-o", str(files.output))


def prof_dict_file(files: Files) -> None:
    command("prof", "--csv", str(files.dict_file), "-o", str(files.output))


def command(*arguments: str) -> None:
    """Run a fastprof command in this process."""
    import fastprof.cli

    code = fastprof.cli.main(list(arguments))
    if code:
        raise ContenderError(f"fastprof {arguments[0]} returned {code}")


def python_open(files: Files) -> object:
    from bench import baseline

    with baseline.without_collector():
        return baseline.open_export(files.export)


def python_parse(files: Files) -> None:
    from bench import baseline

    with baseline.without_collector():
        baseline.write_dict_lines(baseline.open_export(files.export), files.output)


def naive_parse(files: Files) -> None:
    from bench.naive import naive

    naive(files.export, files.output)


INTERPRETER = Contender(interpreter)
FLOOR, OPEN, PARSE = "floor", "open", "parse"
WALK, PAGES, PAGES_TWO_CORES = "walk, two cores", "pages", "pages, two cores"
OPEN_SQLITE, OPEN_ONE_CORE = "open through SQLite", "open on one core"
PYTHON = {"open": "python open", "parse": "python parse"}
NAIVE = "naive parse"
CONTENDERS = {
    FLOOR: Contender(floor, job="open"),
    WALK: Contender(walk_on_two_cores, job="open"),
    PAGES: Contender(pages, job="open"),
    PAGES_TWO_CORES: Contender(pages_on_two_cores, job="open"),
    OPEN: Contender(open_export, job="open"),
    OPEN_SQLITE: Contender(open_through_sqlite, job="open"),
    OPEN_ONE_CORE: Contender(open_on_one_core, job="open"),
    PARSE: Contender(parse),
    "prof --csv from trace": Contender(prof_export, header=1),
    "prof --csv from dict": Contender(prof_dict_file, header=1),
    PYTHON["open"]: Contender(python_open, job="open", is_compiled=False, kernels_at_most=10**6),
    PYTHON["parse"]: Contender(python_parse, is_compiled=False, kernels_at_most=10**6),
    NAIVE: Contender(naive_parse, is_compiled=False, kernels_at_most=10**5),
}
