"""What the programs share: their options, and the loop that is measured or recorded."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable

import torch

DEVICE = os.environ.get("BENCH_GPU_DEVICE", "cuda")  # another one tries the programs only


def options(flags: str, **numbers: int) -> argparse.Namespace:
    """The program's command line: flags, and options with a number and its default."""
    parser = argparse.ArgumentParser()
    for flag in flags.split():
        parser.add_argument("--" + flag, action="store_true")
    for name, default in {"steps": 26, **numbers}.items():
        parser.add_argument("--" + name, type=int, default=default)
    torch.manual_seed(0)
    return parser.parse_args()


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def milliseconds(step: Callable[[], object], n: int) -> float:
    """Time of one of n steps, between synchronisations."""
    synchronize()
    start = time.perf_counter()
    for _ in range(n):
        step()
    synchronize()
    return (time.perf_counter() - start) / n * 1e3


def run(step: Callable[[], object], options: argparse.Namespace, warm_up: int, n: int) -> None:
    """Run `options.steps` steps; with PLAIN set, print the time of a step instead.

    The line is JSON: milliseconds per step of three rounds of n steps, and the peak of memory.
    """
    if not os.environ.get("PLAIN"):
        milliseconds(step, options.steps)
        return
    milliseconds(step, warm_up)
    rounds = [milliseconds(step, n) for _ in range(3)]
    peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    print(json.dumps({"ms": rounds, "bytes": peak}), flush=True)
