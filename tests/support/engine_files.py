"""Traces of a serving engine with known times: iterations, ranges of the host, kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from support.kineto_files import KinetoFile

US: Final = 1000
H100: Final = [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0}]


class Part(NamedTuple):
    """An iteration: the name of its range, us that the host takes before, and us of GPU work."""

    name: str
    before: int
    attention: int = 10
    weights: int = 30


VLLM: Final = (
    Part("execute_context_2(600)_generation_0(0)", 100, 50, 150),
    Part("execute_context_0(0)_generation_2(2)", 100),
    Part("execute_context_0(0)_generation_2(2)", 140),
    Part("execute_context_1(100)_generation_2(2)", 100, 40, 100),
    Part("execute_context_0(0)_generation_3(3)", 100),
)


def engine_trace(parts: Sequence[Part] = VLLM, scheduler: str = "schedule: make") -> KinetoFile:
    """Iterations one after another, on one GPU.

    Before each, the host is for 3/4 of `before` in the range `scheduler`. It launches an attention
    and a product, which begin 4 us later, waits for them in a synchronisation, and samples: a
    kernel of 5 us.
    """
    trace = KinetoFile(deviceProperties=H100)
    time, corr = 0, 0
    for part in parts:
        trace.annotation(time * US, (time + part.before * 3 // 4) * US, scheduler)
        begin = time + part.before
        work = begin + 10
        for name, length in (("flash_fwd_kernel", part.attention), ("nvjet_tst", part.weights)):
            corr += 1
            trace.launch((begin + corr % 2 * 2) * US, (begin + corr % 2 * 2 + 1) * US, corr)
            trace.kernel(work * US, (work + length) * US, corr, name)
            work += length
        trace.annotation(begin * US, (begin + 6) * US, part.name)
        corr += 1
        trace.annotation((begin + 6) * US, (begin + 9) * US, "gpu_model_runner: sample")
        trace.launch((begin + 7) * US, (begin + 8) * US, corr)
        trace.kernel(work * US, (work + 5) * US, corr, "reduce_kernel")
        trace.launch((begin + 9) * US, (work + 6) * US, corr + 1000, name="cudaStreamSynchronize")
        time = work + 6
    return trace
