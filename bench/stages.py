"""Where the time goes within open, parse and prof: `python -m bench stages FILE` -> a table.

The functions of each stage are wrapped from outside with a clock that stops while a stage inside
another runs, so that the figures of one thread add up to the whole. What a second thread does is
told beside it; the first waits for it under `wait`. A wrapper takes a microsecond, and none is
called for every kernel.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.contenders import CONTENDERS, Files

STAGES = {
    "scan": (
        "fastprof.readers.sqlite.database:Database.__init__",
        "fastprof.readers.sqlite.database:Database.rows",
        "fastprof.readers.sqlite.database:TableRows.read",
        "fastprof.readers.nsys.reader:read",
    ),
    "join": (
        "fastprof.readers.nsys.pieces:Pieces.together",
        "fastprof.readers.nsys.launches:Reading.__init__",
        "fastprof.readers.nsys.launches:Reading.finish",
        "fastprof.readers.nsys.ranges:Reading.finish",
    ),
    "wait": ("concurrent.futures:Future.result",),
    "nest": ("fastprof._core._nest:order", "fastprof._core._nest:sweep"),
    "path": ("fastprof._core._path:nodes", "fastprof._core._path:directions"),
    "link": (
        "fastprof.profile.callpath.attribution:_links",
        "fastprof._core._link:numbers",
        "fastprof._core._link:sub",
    ),
    "understand": ("fastprof.profile.callpath.attribution:_meaning",),
    "cost": (
        "fastprof.profile.lookups:find_calls",
        "fastprof.profile.lookups:cost",
        "fastprof.profile.from_trace:cover",
    ),
    "columns": (
        "fastprof.profile.source:ProfileSource.column",
        "fastprof.profile.from_trace:TraceSource.dict_line_columns",
        "fastprof.profile.costs:Costs._shared",
    ),
    "write": (
        "fastprof.report:write_rows",
        "fastprof.report:write_report",
        "fastprof.report.write_threads:write_all",
    ),
}
REST = "rest"
JOBS = ("open", "parse", "prof --csv from trace")


class Clock:
    """Seconds of each stage, those of stages inside it left out; beside: on other threads."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys([*STAGES, REST], 0.0)
        self.beside = dict.fromkeys(STAGES, 0.0)
        self._own = threading.local()
        self._of_thread = {threading.get_ident(): self.seconds}
        self.change(REST)

    def change(self, stage: str | None) -> str | None:
        """From now on another stage runs on this thread, or none; which one did."""
        now, before = time.perf_counter(), getattr(self._own, "running", None)
        if before is not None:
            seconds = self._of_thread.get(threading.get_ident(), self.beside)
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
    """Within it the functions of all stages run on the clock."""
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
    """`package.module:Class.name` as what has the name, and the name."""
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    return functools.reduce(getattr, owners, importlib.import_module(module)), name


def _timed(clock: Clock, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
    # A plain function also where a compiled one stood, so that it is bound as a method is.
    def run(*args: Any, **kwargs: Any) -> Any:
        return clock.run(stage, function, *args, **kwargs)

    return run


@dataclass(frozen=True)
class Times:
    """Seconds of each stage: on the first thread, with the rest, and beside it on others."""

    seconds: dict[str, float]
    beside: dict[str, float]

    @property
    def whole(self) -> float:
        return sum(self.seconds.values())


def stages(job: str, files: Files, repeat: int) -> Times:
    """Those of a job, of its fastest run; the first run is not counted."""
    found = []
    for _ in range(repeat + 1):
        clock = Clock()
        with wrapped(clock):
            result = CONTENDERS[job].run(files)
            clock.change(REST)
        del result
        files.output.unlink(missing_ok=True)
        found.append(Times(clock.seconds, clock.beside))
    return min(found[1:], key=lambda times: times.whole)


def table(found: dict[str, Times]) -> str:
    """Milliseconds of each stage of each job, their share of the whole, and what ran beside."""
    lines = [f"{'ms':<12}" + "".join(f"{job:>23}{'beside':>8}" for job in found)]
    for stage in (*STAGES, REST):
        cells = "".join(_cells(times, stage) for times in found.values())
        lines.append(f"{stage:<12}{cells}".rstrip())
    cells = "".join(f"{1e3 * times.whole:>15.1f}{'':>16}" for times in found.values())
    return "\n".join([*lines, f"{'whole':<12}{cells}".rstrip()])


def _cells(times: Times, stage: str) -> str:
    beside = times.beside.get(stage)
    own, share = 1e3 * times.seconds[stage], 100 * times.seconds[stage] / times.whole
    return f"{own:>15.1f} {share:>5.1f} %" + (f"{1e3 * beside:>8.1f}" if beside else f"{'':>8}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench stages", description=__doc__)
    parser.add_argument("file", type=Path, help="an Nsight Systems export")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, after a first one")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the seconds to a file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fastprof-stages-") as directory:
        files = Files(options.file, Path(directory) / "dict", Path(directory) / "report")
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            found = {job: stages(job, files, options.repeat) for job in JOBS}
    print(table(found))
    if options.json:
        options.json.write_text(
            json.dumps({job: asdict(times) for job, times in found.items()}, indent=1) + "\n",
            encoding="utf-8",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
