"""Time a module call with layers, and a training step under profilers; write JSON to stdout.

Contenders take turns, round after round, in one process; the minimum processor time of each
counts. The network is a small UNet, so calls dominate a step, as on a fast GPU.
"""

from __future__ import annotations

import json
import sys
import time
import timeit
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

import fastprof

CALLS_A_ROUND = 4000
STEPS_A_ROUND = 6
CHANNELS, BLOCKS = 8, 24


class Same(nn.Module):
    """A module that does nothing."""

    def forward(self, x: Any) -> Any:
        return x


class Block(nn.Module):
    """Two convolutions with the normalisation and activation of a UNet."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, CHANNELS), nn.GroupNorm(4, CHANNELS)
        self.conv1 = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)
        self.conv2 = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)
        self.time = nn.Linear(16, CHANNELS)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(t))[:, :, None, None]
        return x + self.conv2(F.silu(self.norm2(h)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, CHANNELS, 3, padding=1)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.last = nn.Conv2d(CHANNELS, 3, 3, padding=1)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        h = self.first(x)
        for block in self.blocks:
            h = block(h, t)
        return self.last(h)


def module_calls() -> dict[str, Callable[[], float]]:
    """Seconds per call of a module that does nothing."""
    x = torch.ones(1)
    bare, always = Same(), Same()
    for module in (bare, always):
        module.register_forward_pre_hook(lambda module, args: None)
        module.register_forward_hook(
            lambda module, args, output: None, always_call=module is always
        )
    layered = nn.Sequential(Same())
    fastprof.annotate_layers(layered)
    calls = {"plain": Same(), "two hooks": bare, "always called": always, "fastprof": layered[0]}
    return {name: lambda each=each: timed(lambda: each(x)) for name, each in calls.items()}


def timed(call: Callable[[], Any]) -> float:
    return timeit.timeit(call, number=CALLS_A_ROUND, timer=time.thread_time) / CALLS_A_ROUND


def steps() -> dict[str, Callable[[], float]]:
    """Seconds per training step: plain, annotated, and under torch.profiler in several ways."""
    net, x, t = Net(), torch.randn(1, 3, 4, 4), torch.randn(1, 16)
    optimizer = torch.optim.Adam(net.parameters(), foreach=True)  # as on a GPU

    def step() -> None:
        optimizer.zero_grad()
        net(x, t).square().mean().backward()
        optimizer.step()

    def in_turn(recorded: dict[str, bool] | None, annotated: bool, layers: bool) -> float:
        with ExitStack() as on:
            if annotated:
                on.enter_context(fastprof.init())
            on.enter_context(fastprof.annotate_layers(net) if layers else nullcontext())
            if recorded is not None:
                cpu = [torch.profiler.ProfilerActivity.CPU]
                on.enter_context(
                    torch.profiler.profile(activities=cpu, record_shapes=True, **recorded)
                )
            step()
            return min(lasted(step) for _ in range(STEPS_A_ROUND))

    stack = {"with_stack": True, "with_modules": True}
    contenders: dict[str, tuple[dict[str, bool] | None, bool, bool]] = {
        "plain": (None, False, False),
        "annotated": (None, True, True),
        "profiler": ({}, False, False),
        "profiler, with_stack": (stack, False, False),
        "profiler, annotated": ({}, True, False),
        "and layers": ({}, True, True),
    }
    return {name: lambda how=how: in_turn(*how) for name, how in contenders.items()}


def lasted(call: Callable[[], Any]) -> float:
    start = time.thread_time()
    call()
    return time.thread_time() - start


def main() -> None:
    torch.set_num_threads(1)
    rounds = int(sys.argv[1])
    result = {}
    for title, running in {"module call": module_calls(), "training step": steps()}.items():
        least = dict.fromkeys(running, float("inf"))
        for _ in range(rounds):
            for name, time_it in running.items():
                least[name] = min(least[name], time_it())
        result[title] = least
    print(json.dumps(result))


if __name__ == "__main__":
    main()
