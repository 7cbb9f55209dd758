"""The contenders: each runs one complete job on an export or its dict file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class ContenderError(Exception):
    """A contender failed; the message gives the reason."""


@dataclass(frozen=True)
class Files:
    """The inputs and the output of a contender."""

    export: Path
    dict_file: Path
    output: Path


@dataclass(frozen=True)
class Contender:
    """A job, and how it is measured.

    Parameters
    ----------
    run : runs the job; its result stays alive while memory is measured
    job : the plain Python job to compare with, open or parse
    header : number of header lines in its output
    has_kernels : whether its result has a row or line for each kernel
    is_compiled : whether an untimed run always comes first
    kernels_at_most : the largest size to run it on
    """

    run: Callable[[Files], object]
    job: str = "parse"
    header: int = 0
    has_kernels: bool = True
    is_compiled: bool = True
    kernels_at_most: int | None = None

    def runs_on(self, n_kernels: int) -> bool:
        return self.kernels_at_most is None or n_kernels <= self.kernels_at_most


def interpreter(files: Files) -> None:
    """Do nothing: the peak memory is that of the interpreter and its modules."""


def floor(files: Files) -> None:
    """Step the SELECTs of `open` through SQLite in C and drop the rows."""
    from bench.floor import export

    export.step(files.export)


def walk(files: Files) -> None:
    """Read the large tables from the pages of the file, on two cores, and drop the rows."""
    from bench.floor import export

    export.walk(files.export)


def open_export(files: Files) -> object:
    import fastprof

    return fastprof.open(str(files.export), copies=False)


def open_through_sqlite(files: Files) -> object:
    before = os.environ.get("FASTPROF_SCAN", "")
    os.environ["FASTPROF_SCAN"] = "sqlite"
    try:
        return open_export(files)
    finally:
        os.environ["FASTPROF_SCAN"] = before


def open_on_one_core(files: Files) -> object:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [min(cores)])  # of this thread and the threads it starts
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


def report_of(*words: str) -> Callable[[Files], None]:
    """The job of a report's command, from the export."""
    return lambda files: command(*words, str(files.export), "-o", str(files.output))


def diff(files: Files) -> None:
    """Compare the export with itself: both are read."""
    command("diff", str(files.export), str(files.export), "-o", str(files.output))


def replay_of(name: str) -> Callable[[Files], object]:
    """A job of the replay, from the export."""

    def job(files: Files) -> object:
        from bench import replays

        return getattr(replays, name)(str(files.export))

    return job


def export_perfetto(files: Files) -> None:
    command("export", str(files.export), "--to", "perfetto", "-o", str(files.output))


def groupings(files: Files) -> object:
    """Open, a summary, and ten more by pairs of keys."""
    import fastprof

    profile = fastprof.open(str(files.export), copies=True)
    profile.summary()
    for by in GROUPINGS:
        profile.summary(by, where="op!=none")
    return profile


GROUPINGS = (
    *(("layer", "dir"), ("line", "op"), ("op", "shape"), ("kernel", "stream"), ("phase", "kind")),
    *(("layer", "line"), ("name", "dir"), ("shape", "phase"), ("kind", "layer"), ("op", "kernel")),
)


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
FLOOR, WALK, OPEN, PARSE, PROF = "floor", "walk", "open", "parse", "prof --csv from trace"
OPEN_SQLITE, OPEN_ONE_CORE = "open through SQLite", "open on one core"
PROF_DICT = "prof --csv from dict"
SUMMARY, LAYERS, ROOFLINE, STATS = "summary", "layers", "roofline", "stats"
STEPS, IDLE, OVERLAP, LAUNCHES = "steps", "idle", "overlap", "launches"
COPIES, MEMORY = "copies", "memory"
TIME_LINE = (STEPS, IDLE, OVERLAP, LAUNCHES, COPIES, MEMORY)
SUMMARIES, DIFF = "summary, 10 groupings", "diff, 2 exports"
GRAPH, REPLAYS, WHATIFS = "graph of the replay", "graph, 20 replays", "graph, 100 changes"
PERFETTO = "export perfetto"
REPORT = "report"
PYTHON = {"open": "python open", "parse": "python parse"}
NAIVE = "naive parse"
CONTENDERS = {
    FLOOR: Contender(floor, job="open"),
    WALK: Contender(walk, job="open"),
    OPEN: Contender(open_export, job="open"),
    OPEN_SQLITE: Contender(open_through_sqlite, job="open"),
    OPEN_ONE_CORE: Contender(open_on_one_core, job="open"),
    PARSE: Contender(parse),
    PROF: Contender(prof_export, header=1),
    PROF_DICT: Contender(prof_dict_file, header=1),
    SUMMARY: Contender(report_of("summary"), has_kernels=False),
    LAYERS: Contender(report_of("layers"), has_kernels=False),
    ROOFLINE: Contender(report_of("roofline"), has_kernels=False),
    STATS: Contender(report_of("stats"), has_kernels=False),
    **{name: Contender(report_of(name), has_kernels=False) for name in TIME_LINE},
    SUMMARIES: Contender(groupings, has_kernels=False),
    DIFF: Contender(diff, has_kernels=False),
    GRAPH: Contender(replay_of("graph"), job="open", has_kernels=False),
    REPLAYS: Contender(replay_of("replays"), job="open", has_kernels=False),
    WHATIFS: Contender(replay_of("changes"), job="open", has_kernels=False),
    PERFETTO: Contender(export_perfetto, has_kernels=False),
    REPORT: Contender(report_of("report"), has_kernels=False),
    PYTHON["open"]: Contender(python_open, job="open", is_compiled=False, kernels_at_most=10**6),
    PYTHON["parse"]: Contender(python_parse, is_compiled=False, kernels_at_most=10**6),
    NAIVE: Contender(naive_parse, is_compiled=False, kernels_at_most=10**5),
}
