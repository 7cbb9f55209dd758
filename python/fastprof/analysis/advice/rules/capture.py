"""Rules on the capture, on what a program does once or seldom, and on the lengths of steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.advice.report import at, evidence_of, places_of, shares_of
from fastprof.analysis.host.states import SETUP, State
from fastprof.analysis.idle.causes import CAUSES
from fastprof.model.arrays import unique
from fastprof.model.numbers import quantity
from fastprof.profile import program as kinds
from fastprof.profile.program import CUDA, OTHER, SERVING, TORCH, WITH_OPERATORS, Program
from fastprof.profile.recording_hints import LOST, advice

_ENOUGH: Final = 0.95  # of the GPU time
_MARKS: Final = {
    TORCH: "mark steps: torch.profiler schedule with prof.step(), or --steps SOURCE",
    SERVING: "name the steps: --steps range:REGEX or anchor:REGEX",
    OTHER: "mark steps: a range around each one, or --steps SOURCE",
}
_LATER: Final = {
    TORCH: "start the recording later: schedule(wait=..., warmup=...)",
    OTHER: "start the recording later, or repeat the work more often",
}


def _depths(program: Program) -> tuple[str, ...]:
    """The depths that a program of its kind can have."""
    if program.kind in WITH_OPERATORS:
        return "launch", "range", "op", "shapes", "source line", "layer"
    return "launch", "range"


@rule("capture")
def capture(facts: Facts) -> Iterator[Finding]:
    """What the capture lacks for further findings."""
    profile, coverage = facts.profile, facts.profile.coverage_of_kernels
    if not coverage.total:
        return
    low = {
        depth: known / coverage.total
        for depth, known in coverage.known.items()
        if depth in _depths(facts.program) and known < _ENOUGH * coverage.total
    }
    gaps = advice(profile.about, profile.contents, coverage)
    remedies = [line for depth in (*low, "types") for line in gaps.get(depth, [])[:1]]
    evidence = [f"{depth} known of {share:.1%} of the GPU time" for depth, share in low.items()]
    if facts.steps.incomplete:
        evidence.insert(0, facts.steps.incomplete)
        remedies[:0] = gaps.get(LOST, [])
    if facts.has_times and not facts.has_steps:
        evidence.append("no steps")
        remedies.append(facts.program.choose(_MARKS))
    warm_up = [note for note in facts.steps.notes if note.startswith("means exclude the first")]
    if warm_up:
        evidence += warm_up
        remedies.append(facts.program.choose(_LATER))
    if not remedies:
        return
    yield Finding(
        what="The capture lacks what further findings need.",
        evidence="; ".join(evidence),
        remedy="; ".join(dict.fromkeys(remedies)),
        confidence="high",
        why="coverage of the GPU time",
    )


_SEVERAL: Final = 3  # steps; what lasts for fewer may be the start


@rule("alloc", least=0.02)
def alloc(facts: Facts) -> Iterator[Finding]:
    """The GPU waits for allocations, frees, creation, and loading and compilation of code."""
    by_cause = {cause: ns for cause in _SETUP if (ns := facts.idle.mean(cause))}
    if not by_cause:
        return
    most = max(by_cause, key=lambda cause: by_cause[cause])
    calls = places_of(facts, (most,), "call")
    does = _does(by_cause)
    yield Finding(
        what=f"The GPU waits while the host {does}.",
        where=shares_of(facts, _SETUP, "call", "line", "range"),
        evidence=evidence_of(facts, *by_cause),
        remedy=_uncached(facts, most) or _setup_remedy(facts.program, most, calls),
        confidence="high" if facts.has_steps else "low",
        why="the thread that launches the next work does so during this time"
        if facts.has_steps
        else "without steps, this includes the start of the program",
        idle_ns=by_cause,
        cause=f"The GPU waits {{time}} while the host {does}{at(facts, _SETUP, 'call')}.",
        effect=_effect(facts, most),
    )


_SETUP: Final = tuple(CAUSES[state] for state in SETUP)
_DOES: Final = dict(
    zip(
        _SETUP,
        ("compiles code", "loads code", "creates streams or contexts", "allocates memory",
         "frees memory"),
        strict=True,
    )
)  # fmt: skip
_LEAST_NAMED: Final = 0.01  # of the time of all causes


def _does(by_cause: Mapping[str, float]) -> str:
    """What the host does most: "loads code and frees memory"."""
    least = _LEAST_NAMED * sum(by_cause.values())
    causes = sorted(by_cause, key=lambda cause: -by_cause[cause])[:2]
    return " and ".join(_DOES[cause] for cause in causes if by_cause[cause] >= least)


def _effect(facts: Facts, most: str) -> str:
    """What remains to be seen: nobody saves the start of a program."""
    if not facts.has_steps:
        return "This may be start-up: record after the first steps, or mark steps with --steps."
    first_use = (State.COMPILATION, State.CODE_LOADING, State.CREATION)
    if most in {CAUSES[state] for state in first_use} and len(facts.rows) < _SEVERAL:
        return "This happens at first use: record later steps to see what remains."
    return ""


def _uncached(facts: Facts, cause: str) -> str:
    """The change if tensors of torch are allocated and freed one by one; "" if they are not."""
    if not facts.program.uses_torch or cause not in {CAUSES[State.ALLOC], CAUSES[State.FREE]}:
        return ""
    count = int(facts.profile.api.name.fits(_FREE.__contains__).sum())
    if count < max(_SELDOM, _ONE_BY_ONE * len(facts.profile)):
        return ""
    return (
        f"the caching allocator is off: the program frees memory {count} times, for "
        f"{len(facts.profile)} kernels and copies; unset PYTORCH_NO_CUDA_MEMORY_CACHING "
        "(PYTORCH_NO_HIP_MEMORY_CACHING)"
    )


_FREE: Final = frozenset({"cudaFree", "hipFree", "cudaFree_v3020"})
_ONE_BY_ONE: Final = 0.2  # of the kernels and copies
_SELDOM: Final = 50  # with fewer, the cache may just be emptied


def _setup_remedy(program: Program, cause: str, calls: list[str]) -> str:
    """The change for the cause that takes most, and the call that takes most of it."""
    first = calls[0] if calls else ""
    if cause == CAUSES[State.CREATION]:
        return "create streams and handles once, before the loop, and use them again"
    if cause == CAUSES[State.COMPILATION]:
        return program.choose(_COMPILED)
    if cause == CAUSES[State.CODE_LOADING]:
        return program.choose(_LOADED)
    if "Host" in first or "Register" in first:
        return program.choose(_PINNED)
    return program.choose(_FREED if "Free" in first else _ALLOCATED)


_COMPILED: Final[Mapping[str, str]] = {
    kinds.JAX: "jax.jit compiles for each new shape: pad inputs to a few sizes; "
    "jax_compilation_cache_dir keeps the result; record after the first steps",
    kinds.NUMBA: "cuda.jit compiles at the first call: give signatures, or cache=True; record "
    "after the first calls",
    kinds.CUPY: "kernels are compiled at first use and kept in ~/.cupy/kernel_cache: record a "
    "second run",
    kinds.OTHER: "code is compiled at its first use, and for new shapes: record after the first "
    "steps",
}
_LOADED: Final = {
    kinds.TORCH: "code is loaded at its first use: record after the first steps "
    "(schedule(warmup=2))",
    kinds.CUDA: "code is loaded at its first use: run each kernel once before the loop, or "
    "CUDA_MODULE_LOADING=EAGER loads all at the start",
    kinds.OTHER: "code is loaded at its first use: record after the first steps",
}
_PINNED: Final = {
    kinds.TORCH: "allocate pinned memory once, before the loop: DataLoader(pin_memory=True)",
    kinds.CUDA: "allocate or register pinned memory once, before the loop, and use it again",
    kinds.OTHER: "allocate pinned memory once, before the loop, and use it again",
}
_FREED: Final = {
    kinds.TORCH: "do not call torch.cuda.empty_cache() in the loop; against fragmentation, "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    kinds.CUDA: "cudaFree waits for the GPU: free after the loop and use memory again, or "
    "cudaMallocAsync and cudaFreeAsync from a pool",
    kinds.CUPY: "do not call free_all_blocks() in the loop: the memory pool keeps blocks",
    kinds.RAPIDS: "an RMM pool keeps memory: rmm.reinitialize(pool_allocator=True)",
    kinds.NUMBA: "keep device arrays from before the loop, and write results into them",
    kinds.OTHER: "free memory after the loop, and use it again",
}
_ALLOCATED: Final = {
    kinds.TORCH: "keep shapes equal, so that the caching allocator reuses its blocks; record after "
    "the first steps",
    kinds.CUDA: "allocate before the loop and use the memory again, or cudaMallocAsync from a pool "
    "(cudaMemPoolAttrReleaseThreshold keeps it)",
    kinds.CUPY: "cupy.cuda.MemoryPool, the default, reuses blocks of equal size: write results "
    "with out=",
    kinds.RAPIDS: "an RMM pool keeps memory: rmm.reinitialize(pool_allocator=True)",
    kinds.NUMBA: "cuda.device_array before the loop, and write results into it",
    kinds.JAX: "XLA_PYTHON_CLIENT_PREALLOCATE=true, the default, allocates once; donate_argnums "
    "reuses inputs",
    kinds.TENSORFLOW: "TF_GPU_ALLOCATOR=cuda_malloc_async, or no memory growth; record after the "
    "first steps",
    kinds.SERVING: "the engine allocates at its start: record after the first requests",
    kinds.OTHER: "allocate before the loop, and use the memory again",
}


_LONG: Final = 1.3  # medians
_LEAST_STEPS: Final = 3
_DIFFERS: Final = {
    TORCH: "loader, allocation, logging, garbage collection (gc.freeze() or gc.disable() in the "
    "loop)",
    SERVING: "the number of requests and tokens, prefill among decode steps (chunked prefill evens "
    "them out)",
    CUDA: "input, allocation, output of results",
    OTHER: "input, allocation, logging, garbage collection (gc.freeze() or gc.disable() in the "
    "loop)",
}


@rule("uneven-steps", needs=("times",))
def uneven_steps(facts: Facts) -> Iterator[Finding]:
    """Some steps take far longer than the median."""
    windows = facts.windows
    wall, step = windows.wall[facts.rows], windows.step[facts.rows]
    if len(unique(step)) < _LEAST_STEPS:
        raise CannotJudge("fewer than 3 whole steps: record more, or name them with --steps")
    median = float(np.median(wall))
    if wall.max() <= _LONG * median:  # most captures; np.percentile imports numpy.ma
        return
    late = float(np.percentile(wall, 95))
    if late <= _LONG * median:
        return
    long = unique(step[wall > _LONG * median])
    numbers = ", ".join(map(str, facts.steps.number[long][:5].tolist()))
    from fastprof.analysis.steps.report import steps

    outliers = steps(facts.profile, steps=facts.steps_source).lead
    causes = [
        line for line in outliers if line.startswith(("outlier:", "slow:")) and " over " in line
    ][:1]
    yield Finding(
        what=f"{len(long)} of {len(unique(step))} steps take over 1.3 times the median.",
        where=f"step {numbers}",
        evidence="; ".join(
            [
                f"median {quantity(round(median), 'ns')}, 95th percentile "
                f"{quantity(round(late), 'ns')}",
                *causes,
            ]
        ),
        remedy="fastprof steps shows what differs in these steps: "
        + facts.program.choose(_DIFFERS),
        confidence="medium",
    )
