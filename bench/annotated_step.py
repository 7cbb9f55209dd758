"""Measure what a step and a module call take longer before `fastprof run` records.

python -m bench.annotated_step

Calls with and without the recorder alternate in one process; the minima of blocks differ by what
the recorder adds. After the last recorded step torch's own functions are back: nothing is added.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch

BLOCKS, CALLS = 400, 200


def added(with_it: Callable[[], Any], without: Callable[[], Any]) -> float:
    """µs that a call of the first takes longer."""
    least = [float("inf")] * 2
    for _ in range(BLOCKS):
        for which, function in enumerate((with_it, without)):
            start = time.perf_counter()
            for _ in range(CALLS):
                function()
            least[which] = min(least[which], (time.perf_counter() - start) / CALLS)
    return (least[0] - least[1]) * 1e6


class Nothing(torch.optim.Optimizer):
    def __init__(self) -> None:
        super().__init__([torch.nn.Parameter(torch.zeros(1))], {})

    def step(self, closure: Any = None) -> None:
        pass


class Inner(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x


def begin(directory: str, **settings: Any) -> None:
    """Watch this process, as `fastprof run` does, without ever recording."""
    settings = {"directory": directory, "first": 1 << 40, "last": 1 << 41, **settings}
    os.environ["FASTPROF_RUN"] = json.dumps(settings)
    from fastprof.annotate.program import begin

    begin.begin()


def steps(directory: str) -> dict[str, float]:
    """µs that steps of optimizers take longer."""
    begin(directory)
    one, two = Nothing(), Nothing()
    plain = vars(Nothing)["step"].__wrapped__
    for _ in range(200):
        one.step()
    result = {"Optimizer.step": added(lambda: one.step(), lambda: plain(one))}
    for _ in range(200):
        two.step()
        one.step()
    both = added(lambda: (one.step(), two.step()), lambda: (plain(one), plain(two)))
    return {**result, "Optimizer.step, of two optimizers": both / 2}


def watched_steps(directory: str) -> dict[str, float]:
    """µs that a step of an optimizer takes longer with `--when`."""
    begin(directory, when="step > 1000s")
    optimizer = Nothing()
    plain = vars(Nothing)["step"].__wrapped__
    for _ in range(200):
        optimizer.step()
    return {"Optimizer.step, --when": added(lambda: optimizer.step(), lambda: plain(optimizer))}


def calls(directory: str) -> dict[str, float]:
    """µs that calls of modules take longer in a program without optimizer."""
    begin(directory)
    net, other = (torch.nn.Sequential(Inner()).eval() for _ in range(2))
    x = torch.zeros(1)
    with torch.no_grad():
        for _ in range(200):
            net(x)
        return {
            "outermost module, without optimizer": added(lambda: net(x), lambda: other(x)),
            "module inside it": added(lambda: net[0](x), lambda: other[0](x)),
        }


def measure(function: Callable[[str], dict[str, float]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        for name, microseconds in function(directory).items():
            print(f"{name:<40}{microseconds:>8.2f} µs", flush=True)


def main() -> None:
    torch.set_num_threads(1)
    for function in (steps, watched_steps, calls):
        process = multiprocessing.get_context("fork").Process(target=measure, args=(function,))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
