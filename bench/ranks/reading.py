"""Time of `fastprof batch` and `fastprof ranks` on large files: python -m bench.ranks.reading DIR.

Writes the files of a data-parallel run unless DIR has some: a minute and 7 GB of memory for a file
of 10^6 kernels. Both commands run alternately; the medians are printed.
"""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.generate import size
from bench.ranks import kineto, nsys, programs
from bench.ranks.program import Communication, Compute
from bench.ranks.simulate import simulate

COMMANDS = ("batch", "ranks")


def write(directory: Path, form: str, n_ranks: int, n_kernels: int, bucket: int) -> None:
    """Write a file per rank, each with at least `n_kernels` kernels.

    Parameters
    ----------
    form : str
        `nsys` or `kineto`, not compressed.
    bucket : int
        Blocks of an all-reduce; a block has 11 kernels.
    """
    directory.mkdir(parents=True, exist_ok=True)
    program = programs.ddp(n_ranks, blocks=48, bucket=bucket)
    in_step = sum(isinstance(op, Compute | Communication) for op in program.step)
    gc.disable()  # millions of events, none of which refers to itself
    run = simulate(program, -(-n_kernels // in_step))
    if form == "nsys":
        nsys.write(run, directory)
    else:
        kineto.write(run, directory, compress=False)
    gc.enable()


def timed(command: str, directory: Path, jobs: int) -> tuple[float, float]:
    """Seconds and processor seconds of a command and its workers."""
    program = [sys.executable, "-m", "fastprof", command, "--no-progress", "-j", str(jobs)]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([*program, str(directory)], check=True, stdout=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used


def medians(directory: Path, jobs: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Median seconds and processor seconds of each command."""
    times: dict[str, list[tuple[float, float]]] = {command: [] for command in COMMANDS}
    for _ in range(rounds):
        for command in COMMANDS:
            times[command].append(timed(command, directory, jobs))
    return {
        command: (statistics.median(t[0] for t in some), statistics.median(t[1] for t in some))
        for command, some in times.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ranks.reading", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--form", choices=["nsys", "kineto"], default="nsys")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--kernels", type=size, default=1_000_000, help="of a file")
    parser.add_argument("--bucket", type=int, default=6, help="blocks of an all-reduce")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-j", "--jobs", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args(arguments)
    if not any(options.directory.glob("rank*")):
        write(options.directory, options.form, options.ranks, options.kernels, options.bucket)
    for jobs in options.jobs:
        result = medians(options.directory, jobs, options.rounds)
        for command, (seconds, used) in result.items():
            print(f"-j {jobs}  fastprof {command}{seconds:8.2f} s{used:8.2f} processor s")
        batch, ranks = (result[command] for command in COMMANDS)
        print(f"-j {jobs}  ratio{ranks[0] / batch[0]:18.2f}{ranks[1] / batch[1]:10.2f}", flush=True)


if __name__ == "__main__":
    main()
