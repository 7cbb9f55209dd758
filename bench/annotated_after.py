"""Measure whether a step takes longer after `fastprof run` has recorded its last step.

python -m bench.annotated_after [--blocks 300]

Processes forked from one, of which one has recorded steps, run blocks of steps in turns.
`plain again` tells how far two processes without the recorder differ.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import torch

FIRST, LAST = 10, 13  # recorded; then as many steps are timed, and all is undone
UNDONE = 100  # steps
A_BLOCK = 0.02  # s
AT_MOST = 0.01  # more time
PLAIN, AGAIN, AFTER = CONTENDERS = ("plain", "plain again", "after a recording")


def training() -> Callable[[], None]:
    """A short step: 0.2 ms."""
    net = torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.Linear(64, 8)
    )
    optimizer = torch.optim.AdamW(net.parameters(), foreach=True)
    x = torch.randn(16, 64)

    def step() -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    return step


def inference() -> Callable[[], None]:
    """A call of a model of 20 modules."""
    layers = [torch.nn.Linear(16, 16) if i % 2 else torch.nn.ReLU() for i in range(20)]
    net = torch.nn.Sequential(*layers).eval()
    x = torch.randn(1, 16)

    def step() -> None:
        with torch.no_grad():
            net(x)

    return step


def contender(pipe: Connection, make: Callable[[], Callable[[], None]], is_after: bool) -> None:
    """Answer each number of steps with the processor time of a step in s, until there is none."""
    with tempfile.TemporaryDirectory() as directory:
        if is_after:
            settings = {"directory": directory, "first": FIRST, "last": LAST}
            os.environ["FASTPROF_RUN"] = json.dumps(settings)
            from fastprof.annotate.program import begin

            begin.begin()
        torch.manual_seed(0)
        # With a thread, as torch.profiler starts one: a C library counts references faster without.
        threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()
        step = make()
        for _ in range(UNDONE):
            step()
        if is_after != any(name.startswith("trace") for name in os.listdir(directory)):
            raise RuntimeError("nothing was recorded")
        while n_steps := pipe.recv():
            start = time.process_time()
            for _ in range(n_steps):
                step()
            pipe.send((time.process_time() - start) / n_steps)


def measured(make: Callable[[], Callable[[], None]], n_blocks: int) -> dict[str, list[float]]:
    """Seconds of a step in each block, by contender."""
    context = multiprocessing.get_context("fork")
    pipes: dict[str, Connection] = {}
    processes: list[Any] = []
    for name in CONTENDERS:
        pipes[name], there = context.Pipe()
        processes.append(context.Process(target=contender, args=(there, make, name == AFTER)))
        processes[-1].start()
        there.close()  # a contender that fails ends the measurement

    def block(name: str, n_steps: int) -> float:
        pipes[name].send(n_steps)
        return float(pipes[name].recv())

    n_steps = max(1, round(A_BLOCK / block(PLAIN, 100)))
    result: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for number in range(n_blocks):
        for name in CONTENDERS if number % 2 else reversed(CONTENDERS):
            result[name].append(block(name, n_steps))
    for name, process in zip(CONTENDERS, processes, strict=True):
        pipes[name].send(0)
        process.join()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=300, help="of each contender (default 300)")
    n_blocks = parser.parse_args().blocks
    torch.set_num_threads(1)
    for make in (training, inference):
        result = measured(make, n_blocks)
        print(f"{make.__name__}, us a step")
        for name, seconds in result.items():
            ratios = [each / plain for each, plain in zip(seconds, result[PLAIN], strict=True)]
            more = median(ratios) - 1
            verdict = "within" if more <= AT_MOST else "ABOVE"
            print(
                f"  {name:<20}{min(seconds) * 1e6:>8.1f} least{median(seconds) * 1e6:>8.1f} median"
                f"{more:>+8.2%}: {verdict} {AT_MOST:.0%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
