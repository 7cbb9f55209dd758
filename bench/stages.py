"""Show where open, parse and prof spend their time.

The functions of each stage are wrapped with a clock that pauses while a nested stage runs, so the
stages of a thread add up to its total. Stages on other threads have a column of their own; `wait`
is the first thread waiting for them. A wrapper costs a microsecond; none is called per kernel.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.contenders import CONTENDERS, OPEN, PARSE, PROF, Files

STAGES = {
    "scan": (
        "fastprof.readers.sqlite.database:Database.__init__",
        "fastprof.readers.sqlite.database:Database.rows",
        "fastprof.readers.sqlite.database:TableRows.read",
        "fastprof.readers.nsys.reader:read",
    ),
    "join": (
        "fastprof.readers.nsys.pieces:Pieces.together",
        "fastprof.readers.nsys.launches:LaunchReading.__init__",
        "fastprof.readers.nsys.launches:LaunchReading.finish",
        "fastprof.readers.nsys.ranges:RangeReading.finish",
    ),
    "wait": ("concurrent.futures:Future.result",),
    "nest": ("fastprof._core._nest:order", "fastprof._core._nest:sweep"),
    "path": ("fastprof._core._path:nodes", "fastprof._core._path:directions"),
    "link": (
        "fastprof.profile.callpath.attribution:_links",
        "fastprof._core._link:numbers",
        "fastprof._core._link:sub",
    ),
    "understand": ("fastprof.profile.callpath.nesting:_meaning",),
    "cost": (
        "fastprof.profile.lookups:find_calls",
        "fastprof.profile.lookups:cost",
        "fastprof.profile.from_trace:cover",
    ),
    "columns": (
        "fastprof.profile.source:ProfileSource.column",
        "fastprof.profile.from_trace:TraceSource.dict_line_columns",
        "fastprof.profile.costs:_shared",
    ),
    "write": (
        "fastprof.writers:write_rows",
        "fastprof.writers:write_report",
        "fastprof.writers.write_threads:write_all",
    ),
}
REST = "rest"
HELP = "show where open, parse and prof spend their time"
JOBS = (OPEN, PARSE, PROF)


class Clock:
    """Seconds of each stage without nested stages, on the first thread and on others."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys([*STAGES, REST], 0.0)
        self.others = dict.fromkeys(STAGES, 0.0)
        self._own = threading.local()
        self._of_thread = {threading.get_ident(): self.seconds}
        self.change(REST)

    def change(self, stage: str | None) -> str | None:
        """Switch this thread to another stage, or to none; return the previous one."""
        now, before = time.perf_counter(), getattr(self._own, "running", None)
        if before is not None:
            seconds = self._of_thread.get(threading.get_ident(), self.others)
            seconds[before] += now - self._own.since
        self._own.running, self._own.since = stage, now
        return before

    def run(self, stage: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        before = self.change(stage)
        try:
            return function(*args, **kwargs)
        finally:
            self.change(before)


@contextlib.contextmanager
def wrapped(clock: Clock) -> Iterator[None]:
    """Run the functions of all stages on the clock, inside the `with` block."""
    before: list[tuple[Any, str, Any]] = []
    try:
        for stage, places in STAGES.items():
            for place in places:
                owner, name = _owner(place)
                function = getattr(owner, name)
                before.append((owner, name, function))
                setattr(owner, name, _timed(clock, stage, function))
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def _owner(place: str) -> tuple[Any, str]:
    """The owner and the name of the attribute at `package.module:Class.name`."""
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    return functools.reduce(getattr, owners, importlib.import_module(module)), name


def _timed(clock: Clock, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
    # A Python function binds as a method, so it can replace compiled ones too.
    def run(*args: Any, **kwargs: Any) -> Any:
        return clock.run(stage, function, *args, **kwargs)

    return run


@dataclass(frozen=True)
class Times:
    """Seconds of each stage on the first thread (including REST) and on other threads."""

    seconds: dict[str, float]
    others: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


def stages(job: str, files: Files, repeat: int) -> Times:
    """The times of the fastest run of a job; the first run does not count."""
    found = []
    for _ in range(repeat + 1):
        clock = Clock()
        with wrapped(clock):
            result = CONTENDERS[job].run(files)
            clock.change(REST)
        del result
        files.output.unlink(missing_ok=True)
        found.append(Times(clock.seconds, clock.others))
    return min(found[1:], key=lambda times: times.total)


def table(found: dict[str, Times]) -> str:
    """Milliseconds of each stage of each job, their share of the total, and other threads."""
    lines = [f"{'ms':<12}" + "".join(f"{job:>23}{'others':>8}" for job in found)]
    for stage in (*STAGES, REST):
        cells = "".join(_cells(times, stage) for times in found.values())
        lines.append(f"{stage:<12}{cells}".rstrip())
    cells = "".join(f"{1e3 * times.total:>15.1f}{'':>16}" for times in found.values())
    return "\n".join([*lines, f"{'total':<12}{cells}".rstrip()])


def _cells(times: Times, stage: str) -> str:
    others = times.others.get(stage)
    own, share = 1e3 * times.seconds[stage], 100 * times.seconds[stage] / times.total
    return f"{own:>15.1f} {share:>5.1f} %" + (f"{1e3 * others:>8.1f}" if others else f"{'':>8}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="an Nsight Systems export")
    parser.add_argument(
        "--repeat",
        type=int,
        default=3,
        help="measured runs of each job, after a first one (default 3)",
    )


def run(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="fastprof-stages-") as directory:
        files = Files(options.file, Path(directory) / "dict", Path(directory) / "report")
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            result = {job: stages(job, files, options.repeat) for job in JOBS}
    print(table(result))
    return 0
