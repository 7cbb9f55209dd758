"""Time and memory of what `fastprof ranks` does with many ranks: python -m bench.ranks.scale.

A process simulates the run and sends its records; this one gets them, as the head does from
workers, and computes the tables of the first screen.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

from bench.measure import peak_memory
from bench.ranks import faults, records
from bench.ranks.simulate import simulate
from fastprof.ranks.run.record import RecordedFile
from fastprof.ranks.run.result import RunData
from fastprof.ranks.run.text import lines_of, tables_of

MIB = 1 << 20


def send(to: Connection, n_ranks: int, steps: int, numbered: bool) -> None:
    """Simulate a run with faults and clocks of their own, and send its records."""
    injected: list[faults.AnyFault] = [
        faults.Gpu(rank=n_ranks // 3, factor=1.3),
        faults.Data(rank=n_ranks // 2 + 1, ns=4_000_000, steps=tuple(range(0, steps, 2))),
    ]
    for rank in range(0, n_ranks, 8):  # a host has eight GPUs and a clock
        clock = {"offset": rank * 37_000_000, "ppm": (rank % 7) * 5.0}
        injected += [faults.Clock(rank=rank + i, **clock) for i in range(8)]
    program = records.program_of(n_ranks)
    run = simulate(program, steps, faults=injected, only_communication=True, between=True)
    for recorded in records.files(run, numbered=numbered):
        to.send(recorded)


def received(source: Connection, n_ranks: int) -> Iterator[RecordedFile]:
    """The records, one rank after the other."""
    for _ in range(n_ranks):
        yield source.recv()


def measure(files: list[RecordedFile], until: str, clock: str) -> None:
    """Print seconds, processor seconds and peak memory of each stage."""
    run: Any = None

    def start() -> int:
        nonlocal run
        run = RunData(files, clock)
        return len(run)

    stages: dict[str, Callable[[], object]] = {
        "match, clocks, waits": start,
        "exposed": lambda: run.exposed,
        "steps": lambda: (run.step_numbers, run.step_times, run.mean_parts),
        "peers": lambda: run.peers,
        "causes": lambda: run.explained,
        "replay": lambda: run.replay,
        "cost of causes": lambda: run.cause_rows,
        "lines": lambda: lines_of(run),
        "tables": lambda: tables_of(run),
    }
    for name, stage in stages.items():
        begin, processor = time.perf_counter(), time.process_time()
        stage()
        seconds, used = time.perf_counter() - begin, time.process_time() - processor
        print(f"{name:28}{seconds:8.2f} s {used:8.2f} s {peak_memory() / MIB:8.0f} MiB", flush=True)
        if name == until:
            return
    print("\n".join(lines_of(run)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ranks.scale", description=__doc__)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=238, help="of 21 collectives")
    parser.add_argument("--unnumbered", action="store_true", help="match calls by order")
    parser.add_argument("--clock", choices=["estimated", "recorded"], default="estimated")
    parser.add_argument("--until", default="", help="the last stage")
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    source, to = spawn.Pipe(duplex=False)
    size = to, options.ranks, options.steps, not options.unnumbered
    sender = spawn.Process(target=send, args=size)
    sender.start()
    files = list(received(source, options.ranks))
    sender.join()
    measure(files, options.until, options.clock)


if __name__ == "__main__":
    main()
