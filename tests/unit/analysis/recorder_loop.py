"""A loop whose Python functions torch.profiler slows down; argument: the directory of the trace."""

import sys
from pathlib import Path

import torch

import fastprof

CALLS = 400  # of a short function, before each operator


def short(value: int) -> int:
    return value


def step(values: torch.Tensor) -> None:
    for _ in range(10):
        for i in range(CALLS):
            short(i)
        values.add_(1.0)


def main() -> None:
    values = torch.zeros(8)
    path = Path(sys.argv[1], "recorded.json")
    with fastprof.capture(
        wait=12, warmup=1, active=4, backend="torch", path=path, with_stack=True
    ) as cap:
        for _ in range(17):
            step(values)
            cap.step()


if __name__ == "__main__":
    main()
