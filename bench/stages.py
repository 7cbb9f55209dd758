"""Where the time goes within open, parse and prof: `python -m bench stages FILE` -> a table.

The functions of each stage are wrapped from outside with a clock that stops while a stage inside
another runs, so that the figures of one thread add up to the whole. What a second thread reads is
told apart; the first waits for it under `wait`. A wrapper takes a microsecond, and none is called
for every kernel.
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
from pathlib import Path
from typing import Any

from bench.contenders import CONTENDERS, Files

# The functions of each stage. Of those that only some versions have, the ones that are there count.
STAGES = {
    "scan": (
        "fastprof.sources.database:Database.__init__",
        "fastprof.sources.database:Database.rows",
        "fastprof.sources.database:Database.scan",
        "fastprof.sources.nsys:read",
    ),
    "join": ("fastprof.sources.nsys:_read_launches",),
    "wait": ("concurrent.futures:Future.result",),
    "nest": ("fastprof._nest:order", "fastprof._nest:sweep"),
    "path": ("fastprof._path:nodes", "fastprof.attribute:_directions"),
    "link": ("fastprof.attribute:_links", "fastprof._link:numbers", "fastprof._link:sub"),
    "understand": ("fastprof.attribute:_meaning",),
    "cost": ("fastprof.assemble:find_calls", "fastprof.assemble:cost", "fastprof.assemble:cover"),
    "columns": (
        "fastprof.columns:Columns.__getitem__",
        "fastprof.assemble:_dict_columns",
        "fastprof.costs:Costs._shared",
    ),
    "write": ("fastprof.report:write_rows", "fastprof.report:write_report"),
}
REST, BESIDE = "rest", "second thread"
JOBS = ("open", "parse", "prof --csv from trace")


class Clock:
    """Seconds of each stage, those of stages inside it left out; of other threads, of all."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys([*STAGES, REST, BESIDE], 0.0)
        self._thread = threading.get_ident()
        self._running = REST
        self._since = time.perf_counter()

    def change(self, stage: str) -> str:
        """From now on another stage runs; which one did."""
        now, before = time.perf_counter(), self._running
        self.seconds[before] += now - self._since
        self._running, self._since = stage, now
        return before

    def run(self, stage: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != self._thread:
            return self._run_beside(function, *args, **kwargs)
        before = self.change(stage)
        try:
            return function(*args, **kwargs)
        finally:
            self.change(before)

    def _run_beside(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        begin = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            self.seconds[BESIDE] += time.perf_counter() - begin


@contextlib.contextmanager
def wrapped(clock: Clock) -> Iterator[None]:
    """Within it the functions of all stages run on the clock."""
    before: list[tuple[Any, str, Any]] = []
    try:
        for stage, places in STAGES.items():
            for place in places:
                owner, name = _owner(place)
                function = getattr(owner, name, None)
                if function is not None:
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


def stages(job: str, files: Files, repeat: int) -> dict[str, float]:
    """Seconds of each stage of a job, of its fastest run; the first run is not counted."""
    least: dict[str, float] = {}
    for turn in range(repeat + 1):
        clock = Clock()
        with wrapped(clock):
            result = CONTENDERS[job].run(files)
            clock.change(REST)
        del result
        files.output.unlink(missing_ok=True)
        if turn and (not least or whole(clock.seconds) < whole(least)):
            least = clock.seconds
    return least


def whole(seconds: dict[str, float]) -> float:
    return sum(seconds.values()) - seconds[BESIDE]


def table(found: dict[str, dict[str, float]]) -> str:
    """Milliseconds of each stage of each job, and its share of the whole."""
    lines = [f"{'ms':<15}" + "".join(f"{job:>26}" for job in found)]
    for stage in (*STAGES, REST):
        cells = "".join(
            f"{1e3 * seconds[stage]:>18.1f} {100 * seconds[stage] / whole(seconds):>5.1f} %"
            for seconds in found.values()
        )
        lines.append(f"{stage:<15}{cells}")
    for name, of in (("whole", whole), (BESIDE, lambda seconds: seconds[BESIDE])):
        cells = "".join(f"{1e3 * of(seconds):>18.1f}{'':>8}" for seconds in found.values())
        lines.append(f"{name:<15}{cells}")
    return "\n".join(lines)


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
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
