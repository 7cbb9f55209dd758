"""What is measured: each contender does one whole job on an export or on its dict file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class ContenderError(Exception):
    """A contender did not do its job; the text says why."""


@dataclass(frozen=True)
class Files:
    """What a contender reads, and where it writes."""

    export: Path
    dict_file: Path
    output: Path


def interpreter(files: Files) -> None:
    """Nothing: its peak memory is what the interpreter and its modules need by themselves."""


def floor(files: Files) -> object:
    """Step the SELECTs that `open` steps, in C, and do nothing with the rows."""
    from fastprof.sources import nsys
    from fastprof.sources.database import Database

    with Database(files.export) as database:
        return nsys.floor(database)


def pages(files: Files) -> object:
    """Read the columns of the large tables from the file's pages, all rows, on one core."""
    from fastprof import _pools
    from fastprof.sources import nsys_schema
    from fastprof.sources.database import Database

    pools = nsys_schema.Pools()
    tables = {
        nsys_schema.KERNELS: nsys_schema.kernel_fields(pools),
        nsys_schema.LAUNCHES: nsys_schema.launch_fields(pools),
        nsys_schema.RANGES[0]: nsys_schema.range_fields(pools),
        nsys_schema.STRINGS: nsys_schema.string_fields(pools.strings, _pools.Names()),
    }
    with Database(files.export) as database:
        return [database.scan(table, fields) for table, fields in tables.items()]


def open_export(files: Files) -> object:
    import fastprof

    return fastprof.open(str(files.export))


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


INTERPRETER = "interpreter"
FLOOR = "floor"
PARSE = "parse"
CONTENDERS: dict[str, Callable[[Files], object]] = {
    FLOOR: floor,
    "pages": pages,
    "open": open_export,
    PARSE: parse,
    "prof --csv from trace": prof_export,
    "prof --csv from dict": prof_dict_file,
}
