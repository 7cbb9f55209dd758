"""By how much a recorder stretches a launch-bound step: before, during and after it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any


def _step_of(mode: str) -> Callable[[], None]:
    import torch
    from torch import nn

    if mode.startswith("fastprof"):
        import fastprof

        fastprof.init()
    torch.manual_seed(0)
    layers: list[Any] = []
    for _ in range(16):
        layers += [nn.Linear(256, 256), nn.LayerNorm(256), nn.ReLU()]
    model = nn.Sequential(*layers).cuda()
    if mode == "fastprof_layers":
        import fastprof

        fastprof.annotate_layers(model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    x, y = torch.randn(64, 256, device="cuda"), torch.randn(64, 256, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()

    return step


@contextlib.contextmanager
def _recorded(mode: str, facts: dict) -> Iterator[None]:
    """Record by one recorder; `facts` hears of what it did."""
    if mode.startswith("kineto"):
        from torch.profiler import ProfilerActivity, profile

        stacks = "stack" in mode
        kinds = [ProfilerActivity.CUDA] + ([] if "cuda" in mode else [ProfilerActivity.CPU])
        with profile(
            activities=kinds, record_shapes="shapes" in mode, with_stack=stacks, with_modules=stacks
        ):
            yield
    elif mode.startswith("cupti"):
        from cupti import cupti

        records = [0]

        def completed(activities: list) -> None:
            records[0] += len(activities)

        cupti.activity_register_callbacks(lambda: (8 << 20, 0), completed)
        names = ["CONCURRENT_KERNEL", "MEMCPY", "MEMSET"]
        names += ["RUNTIME", "DRIVER"] if "api" in mode else []
        for name in names:
            cupti.activity_enable(getattr(cupti.ActivityKind, name))
        yield
        start = time.perf_counter()
        cupti.activity_flush_all(0)
        facts.update(flush_s=time.perf_counter() - start, records=records[0])
        for name in names:
            cupti.activity_disable(getattr(cupti.ActivityKind, name))
    else:
        yield


def measure(mode: str) -> None:
    """Print one JSON line: milliseconds of a step before, during and after recording."""
    import torch

    step = _step_of(mode)

    def milliseconds(n: int) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            step()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / n * 1e3

    milliseconds(50)
    before = min(milliseconds(100) for _ in range(4))
    facts: dict[str, float] = {}
    with _recorded(mode, facts):
        milliseconds(3)
        during = min(milliseconds(10) for _ in range(3))
    after = min(milliseconds(100) for _ in range(3))
    result = {"before": before, "during": during, "after": after, "ratio": during / before}
    print(json.dumps(result | facts), flush=True)
