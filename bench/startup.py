"""Measure start-up: `fastprof FILE` against importing its requirements, the screen against `open`.

Processor time, user and system, of whole processes that take turns; the minimum of the repetitions.
It differs less between runs than wall time on a busy machine, and ratios compare across machines.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.generate import generate

HELP = "measure the start-up of commands, and the first screen against open"
KERNELS = 2500  # an export of 1 MB
SMALL = 2_000_000  # bytes
IMPORTS_AT_MOST, OPENS_AT_MOST = 2.2, 0.4

IMPORTS = ("-c", "import numpy, apsw")
# One process: modules and caches are those of the second run.
SCREEN = """
import json, sys, time
import fastprof
times = []
for _ in range(int(sys.argv[2]) + 1):
    begin = time.process_time()
    profile = fastprof.open(sys.argv[1])
    opened = time.process_time()
    profile.overview().text()
    times.append((opened - begin, time.process_time() - opened))
print(json.dumps([min(each) for each in zip(*times[1:])]))
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", metavar="FILE", type=Path, nargs="*", help="default: a generated export of 1 MB"
    )
    parser.add_argument("--repeat", metavar="N", type=int, default=9)


def run(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        files = options.files or [Path(folder, "small.sqlite")]
        if not options.files:
            generate(files[0], KERNELS, seed=1)
        commands = [IMPORTS, *(("-m", "fastprof", os.fspath(file)) for file in files)]
        imports, *whole = least(commands, options.repeat)
        print(f"import numpy, apsw: {imports * 1e3:.0f} ms\n")
        print("fastprof(ms)  imports  open(ms)  screen(ms)  opens  file")
        met = True
        for file, seconds in zip(files, whole, strict=True):
            opened, screen = screen_of(file, options.repeat)
            print(
                f"{seconds * 1e3:12.0f}  {seconds / imports:7.2f}  {opened * 1e3:8.0f}  "
                f"{screen * 1e3:10.0f}  {screen / opened:5.2f}  {file.name}"
            )
            is_small = file.stat().st_size < SMALL
            met &= (
                seconds / imports <= IMPORTS_AT_MOST
                if is_small
                else screen / opened <= OPENS_AT_MOST
            )
        print(
            f"targets: {IMPORTS_AT_MOST:g} imports for files below {SMALL / 1e6:g} MB, "
            f"{OPENS_AT_MOST:g} opens for others: {'met' if met else 'MISSED'}"
        )
    return 0


def least(commands: list[tuple[str, ...]], repeat: int) -> list[float]:
    """The least processor time of each command of this Python, in seconds; they take turns."""
    for command in commands:  # modules are compiled, files are in the cache
        processor_time(command)
    rounds = [[processor_time(command) for command in commands] for _ in range(repeat)]
    return [min(times) for times in zip(*rounds, strict=True)]


def processor_time(words: tuple[str, ...]) -> float:
    """User and system time of a process that runs Python with these words, in seconds.

    Raises
    ------
    RuntimeError
        The process failed.
    """
    variables = {name: value for name, value in os.environ.items() if name not in UNCACHED}
    process = subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=variables,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{words}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


UNCACHED = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")


def screen_of(file: Path, repeat: int) -> tuple[float, float]:
    """Seconds of `open`, and of the first screen after it."""
    command = [sys.executable, "-c", SCREEN, os.fspath(file), str(repeat)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    opened, screen = json.loads(done.stdout)
    return opened, screen
