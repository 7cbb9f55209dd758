"""Time and memory of every command on captures with n, 10 n, 100 n of one thing.

    python -m fuzz.growth                     # all shapes, the main commands, 10^3 and 10^4 units
    python -m fuzz.growth --every --sizes 1000,10000,100000  # all commands; takes hours
    python -m fuzz.growth --only threads --sizes 10000,100000

The exit code is 1 if a command takes RATIO times as long for ten times as many units, or PER_UNIT
bytes for one unit. KNOWN has what does.
"""

import argparse
import faulthandler
import os
import re
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from fuzz.answers import COMMANDS
from fuzz.many_units import SHAPES, write

RATIO = 20.0  # of the times for ten times as many units
PER_UNIT = 2000  # bytes of memory
FEWEST = 50_000  # units from which memory counts
SHORT = 0.5  # s; shorter times are not compared
SECONDS = 60
MEMORY = 8 << 30  # bytes
_WITH_TEXT = ("overview", "report", "layers", "ranges", "stats", "steps")  # else JSON only
MAIN = [["overview", "FILE"], ["report", "FILE"], ["whatif", "--json", "FILE"],
        ["layers", "--json", "FILE"], ["ranges", "--json", "FILE"]]  # fmt: skip
# Shapes that miss PER_UNIT: the bytes of a unit in the main command that takes the most, a little
# above what is measured. A capture of plain kernels takes up to 1300.
KNOWN: dict[str, int] = {
    "backward": 2450,  # two kernels a unit
    "collectives": 3000,  # calls of their own sizes
    "graphs": 2400,  # nsys: operators of their own names, in captures of their own
    "modules": 2300,
    "operators": 2250,
    "shapes": 2150,
}
MORE = [["prof", "FILE"], ["prof", "--csv", "FILE"], ["parse", "FILE"], ["info", "FILE"],
        ["lines", "--csv", "FILE"]]  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One command on one capture: CPU time of the user in s, peak memory in bytes."""

    n: int
    seconds: float
    memory: int
    ended: int  # the exit code, or minus the signal


def commands() -> list[list[str]]:
    """All commands that read a capture; FILE stands for it."""
    brief = [words for words in COMMANDS if len(words) > 2 or words[0] in _WITH_TEXT]
    return [*brief, *MORE]


def measured(words: Sequence[str], path: Path, n: int, seconds: float = SECONDS) -> Run:
    """Run a command on a capture in a process of its own."""
    argv = [str(path) if word == "FILE" else word for word in words]
    output = path.with_name("out")
    if words[0] in ("export", "report"):
        argv += ["-o", str(output)]
    child = os.fork()
    if child == 0:
        _serve(argv, path.with_name("printed"), seconds)
    _, status, usage = os.wait4(child, 0)
    return Run(n, usage.ru_utime, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status))


def _serve(argv: list[str], printed: Path, seconds: float) -> None:
    """Run the command in this child; it never returns."""
    code = 70
    try:
        with open(printed, "wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        faulthandler.register(signal.SIGXCPU, all_threads=False, chain=True)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        from fastprof import cli

        code = cli.main(argv)
        sys.stdout.flush()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 2
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def load() -> None:
    """Import what the commands import, so that children share it."""
    import fastprof.page  # noqa: F401
    from fastprof.analysis.registry import imported
    from fastprof.analysis.reports import all_reports

    for report in all_reports().values():
        imported(report.function)


def place(printed: Path) -> str:
    """Where a command was when it was killed, or its last line."""
    text = printed.read_text(errors="replace")
    frames = re.findall(r'/fastprof/([^"]*)", line (\d+) in (\w+)', text)
    return " < ".join(":".join(frame) for frame in frames[:3]) or text[-200:].strip()


def problem(runs: Sequence[Run], most: float = RATIO, most_bytes: float = PER_UNIT) -> str:
    """What breaks the bounds in the runs of a command on growing captures; empty if nothing.

    most : the ratio of the times for ten times as many units
    most_bytes : for one unit
    """
    if any(run.ended < 0 for run in runs):
        return "killed"
    if any(run.ended > 4 for run in runs):
        return "traceback"
    texts = []
    for small, large in pairwise(runs):
        ratio = large.seconds / max(small.seconds, SHORT)
        if ratio > most * large.n / small.n / 10:
            texts.append(f"time x {ratio:.0f}")
        if large.n < FEWEST:  # constants still matter
            continue
        per_unit = (large.memory - small.memory) / (large.n - small.n)
        if per_unit > most_bytes:
            texts.append(f"{per_unit:.0f} bytes a unit")
    return ", ".join(texts)


def main() -> int:
    """Run the command; the exit code is 1 if a bound is broken."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.growth", description=__doc__)
    parser.add_argument("--only", default="", help="shapes with this in their names")
    parser.add_argument("--command", default="", help="commands with this in their words")
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--every", action="store_true", help="all commands, not only the main ones")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU time of a command")
    parser.add_argument("--all", action="store_true", help="print all commands, not only slow ones")
    arguments = parser.parse_args()
    sizes = [int(text) for text in arguments.sizes.split(",")]
    load()
    n_broken = 0
    for shape in SHAPES:
        if arguments.only not in shape:
            continue
        with tempfile.TemporaryDirectory() as folder:
            paths = {n: written(shape, n, Path(folder)) for n in sizes}
            for words in commands() if arguments.every or arguments.command else MAIN:
                if arguments.command not in " ".join(words):
                    continue
                runs = []
                for n in sizes:
                    runs.append(measured(words, paths[n], n, arguments.seconds))
                    if runs[-1].ended < 0:
                        break
                what = problem(runs, RATIO, KNOWN.get(shape.split("/")[1], PER_UNIT))
                n_broken += bool(what)
                if what or arguments.all:
                    times = " ".join(f"{run.seconds:6.1f}" for run in runs)
                    memory = " ".join(f"{run.memory >> 20:5}" for run in runs)
                    print(f"{shape:22} {' '.join(words)[:48]:48} {times} s {memory} MB  {what}",
                          flush=True)  # fmt: skip
                    if runs[-1].ended < 0 or runs[-1].ended > 4:
                        print(f"    {place(Path(folder) / 'printed')}", flush=True)
    print(f"{n_broken} broken bounds")
    return int(n_broken > 0)


def written(shape: str, n: int, folder: Path) -> Path:
    """The capture, written by a child: the peak memory of later ones includes that of this one."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            write(shape, n, folder)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError(f"{shape}: not written")
    return next(folder.glob(f"{shape.replace('/', '-')}-{n}.*"))


if __name__ == "__main__":
    sys.exit(main())
