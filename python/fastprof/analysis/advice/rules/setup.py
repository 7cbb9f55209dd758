"""Rules on what a program does once or seldom: allocation, creation, loading and compilation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.idle_text import at, evidence_of, places_of, shares_of
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.host.states import SETUP, State
from fastprof.analysis.idle.causes import CAUSES
from fastprof.profile import program as kinds
from fastprof.profile.program import Program

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
