"""Measure what a step and a module call take longer before `fastprof run` records.

python -m bench.annotated_step

Calls with and without the recorder alternate in one process; the minima of blocks differ by what
the recorder adds. After the last recorded step torch's own functions are back: nothing is added.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

BLOCKS, CALLS = 400, 200
STEP_AT_MOST, CALL_AT_MOST = 2.0, 1.0  # µs


def added(with_it: Callable[[], Any], without: Callable[[], Any]) -> float:
    """µs that a call of the first takes longer."""
    return (_least(with_it, without) - _least(without, with_it)) * 1e6


def _least(function: Callable[[], Any], other: Callable[[], Any]) -> float:
    least = float("inf")
    for _ in range(BLOCKS):
        for _ in range(CALLS // 10):
            other()
        start = time.perf_counter()
        for _ in range(CALLS):
            function()
        least = min(least, (time.perf_counter() - start) / CALLS)
    return least


def measured(directory: str) -> dict[str, float]:
    """µs that calls take longer before a recording."""
    os.environ["FASTPROF_RUN"] = json.dumps(
        {"directory": directory, "first": 1 << 40, "last": 1 << 41}
    )
    import torch

    from fastprof.annotate.program.begin import begin

    begin()

    class Nothing(torch.optim.Optimizer):
        def __init__(self) -> None:
            super().__init__([torch.nn.Parameter(torch.zeros(1))], {})

        def step(self, closure: Any = None) -> None:
            pass

    class Inner(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x

    one, two, net, x = Nothing(), Nothing(), torch.nn.Sequential(Inner()), torch.zeros(1)
    plain = vars(Nothing)["step"].__wrapped__
    for _ in range(200):
        net(x)
        one.step()
    found = {"Optimizer.step": added(lambda: one.step(), lambda: plain(one))}
    for _ in range(200):
        two.step()
        one.step()
    found["Optimizer.step, of two optimizers"] = added(
        lambda: (one.step(), two.step()), lambda: (plain(one), plain(two))
    ) / 2  # fmt: skip
    found["call of a module, in training"] = added(lambda: net(x), lambda: _plain_call(net, x))
    return found


def _plain_call(net: Any, x: Any) -> Any:
    return net._wrapped_call_impl(x)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        for name, microseconds in measured(directory).items():
            print(f"{name:<40}{microseconds:>8.2f} µs")


if __name__ == "__main__":
    main()
