"""The rule on waits of the host for the GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.advice.report import at, evidence_of, places_of, shares_of
from fastprof.analysis.grouping import group, numbers, texts
from fastprof.analysis.host.waits import blocked_ns
from fastprof.analysis.keys import key_of
from fastprof.model.arrays import Int64
from fastprof.model.trace import NEVER
from fastprof.profile import program as kinds
from fastprof.profile.program import Program

_COPY, _SYNC = "blocking copy", "sync"
_PART: Final = 0.1  # of the idle time, from which a cause has its remedy
_MAINLY: Final = 0.5
_SMALL: Final = 1024  # bytes; smaller copies are of single values


@rule("sync", least=0.02)
def sync(facts: Facts) -> Iterator[Finding]:
    """The GPU waits because the host waited for it."""
    causes = (_SYNC, _COPY)
    by_cause = {cause: facts.idle.mean(cause) for cause in causes}
    if not any(by_cause.values()):
        return
    copies = _waiting_copies(facts) if by_cause[_COPY] >= _PART * sum(by_cause.values()) else None
    evidence = evidence_of(facts, *(cause for cause, ns in by_cause.items() if ns))
    waits = "waits for the GPU" + at(facts, causes, "line", "op", "call")
    where = shares_of(facts, causes, "op", "call", "line", "range")
    if copies is not None and by_cause[_COPY] >= _MAINLY * sum(by_cause.values()):
        waits, where = copies.waits, where or copies.where
    yield Finding(
        what=f"The host {waits} and launches nothing ahead, then the GPU waits.",
        where=where,
        evidence=evidence + (f"; it waits for {copies.text}" if copies is not None else ""),
        remedy=_remedy(facts, by_cause, copies),
        confidence="medium",
        why="the wait may be required; the time after it is idle because nothing is queued",
        idle_ns=by_cause,
        cause=f"The host {waits}: the GPU then waits {{time}} for new work.",
        effect="A host that does not wait would run ahead and save {saving}.",
    )


class _Copies(NamedTuple):
    """Copies that the host waits for: those of one direction and memory, with the longest waits.

    Parameters
    ----------
    direction : HtoD or DtoH, or another
    memory : pageable, pinned or ""
    share : of the time of all such waits
    bytes : median size
    begins_step : whether the host waits for them before it launches the first kernel of a step
    where : the operators and lines of most of them
    """

    direction: str
    memory: str
    share: float
    bytes: float
    begins_step: bool
    where: str

    @property
    def waits(self) -> str:
        """What the host does, in words."""
        what = {"HtoD": " of inputs", "DtoH": " of results"}.get(self.direction, "")
        return f"waits for copies{what}" + " at the start of a step" * self.begins_step

    @property
    def text(self) -> str:
        """In words."""
        memory = f" from or to {self.memory} memory" if self.memory else ""
        return f"copies {self.direction}{memory} {self.share:.0%}"


def _waiting_copies(facts: Facts) -> _Copies | None:
    """The copies that the host waits for longest; None if none is known."""
    profile = facts.profile
    rows = facts.kernels(kind="memcpy")
    ns = blocked_ns(profile, rows)
    rows, ns = rows[ns > 0], ns[ns > 0]
    if not len(rows):
        return None
    direction = texts(profile, "copy_direction").take(rows)
    memory = key_of(profile, "memory").take(rows).mapped(_memory)
    kinds = group([direction, memory], len(rows))
    waits = kinds.sums(ns)
    most = int(np.argmax(waits))
    row = int(kinds.first[most])
    own = rows[kinds.ids == most]
    sizes = numbers(profile, "copied")[own]
    return _Copies(
        direction.at(row) or "",
        memory.at(row) or "",
        float(waits[most] / max(waits.sum(), 1)),
        float(np.median(sizes)),
        facts.has_steps and _begins_step(facts, own) >= _MAINLY,
        "; ".join(
            f"{text} {share:.0%}"
            for name in ("op", "line")
            for text, share in facts.top(name, own, most=1)
        ),
    )


def _begins_step(facts: Facts, rows: Int64) -> float:
    """The share of some copies that are launched before all kernels of their step."""
    step, launched = facts.steps.of_kernel, numbers(facts.profile, "launch_start")
    first = np.full(len(facts.steps) + 1, NEVER, np.int64)
    is_kernel = ~key_of(facts.profile, "kind").fits(lambda kind: kind in ("memcpy", "memset"))
    np.minimum.at(first, step[is_kernel], launched[is_kernel])
    return float((launched[rows] < first[step[rows]]).mean())


def _memory(text: str) -> str:
    """`pageable` or `pinned` of `pageable -> device`; "" for others."""
    return next((name for name in ("pageable", "pinned") if name in text), "")


def _remedy(facts: Facts, by_cause: Mapping[str, float], copies: _Copies | None) -> str:
    """The changes for what waits: operators, copies, calls."""
    remedies, total = [], sum(by_cause.values())
    operators = places_of(facts, (_SYNC, _COPY), "op")
    if facts.program.uses_torch:
        remedies = [text for names, text in _OPERATORS if names & {*operators}]
    rest = {*operators} - _EXPLAINED
    if copies is not None and (rest or not remedies):
        remedies.append(_of_copies(facts.program, copies))
    if by_cause[_SYNC] >= _PART * total and (rest or not remedies):
        calls = places_of(facts, (_SYNC,), "call")
        if calls:
            remedies.append(f"{calls[0]}: {facts.program.choose(_of_call(calls[0]))}")
    return "; ".join(dict.fromkeys(remedies)) or _LATER


_ITEMS: Final = ".item(), print() and `if tensor:` wait: keep values on the GPU, log every N steps"
_OPERATORS: Final = (
    (
        {"item", "_local_scalar_dense", "is_nonzero"},
        _ITEMS,
    ),
    (
        {"nonzero", "index", "masked_select", "unique"},
        "shapes that depend on values wait: use torch.where instead of a mask",
    ),
)
_EXPLAINED: Final = frozenset().union(*(names for names, _ in _OPERATORS))
_LATER: Final = "wait only where the host reads a result, and launch the next work before"


def _of_copies(program: Program, copies: _Copies) -> str:
    """The change for copies that wait, by their direction and the host's memory."""
    if copies.direction == "DtoH":
        return program.choose(_VALUES if copies.bytes <= _SMALL else _RESULTS)
    return program.choose(_INPUTS_PINNED if copies.memory == "pinned" else _INPUTS)


_INPUTS: Final = {
    kinds.TORCH: "copy from pinned memory with .to(device, non_blocking=True)",
    kinds.CUDA: "cudaMemcpyAsync from pinned memory (cudaMallocHost or cudaHostRegister) on a "
    "stream of its own",
    kinds.CUPY: "copy from pinned memory (cupyx.empty_pinned) with array.set(..., stream=stream)",
    kinds.NUMBA: "cuda.to_device(..., stream=stream) from cuda.pinned_array, once; arrays of "
    "NumPy as arguments of a kernel are copied to the GPU and back at each call",
    kinds.JAX: "jax.device_put the next batch while the GPU computes",
    kinds.TENSORFLOW: "tf.data: prefetch_to_device copies the next batch while the GPU computes",
    kinds.INFERENCE: "copy from pinned memory with .to(device, non_blocking=True); what the next "
    "step needs, such as token ids, stays on the GPU",
    "vLLM": "--async-scheduling keeps token ids on the GPU and prepares the next inputs while it "
    "computes",
    "SGLang": "the overlap scheduler (no --disable-overlap-schedule) keeps token ids on the GPU "
    "and prepares the next inputs while it computes",
    kinds.SERVING: "keep token ids on the GPU from step to step; copy other inputs from pinned "
    "memory without a wait",
    kinds.OTHER: "copy from pinned memory, asynchronously",
}
_INPUTS_PINNED: Final = {
    **{kind: _INPUTS[kind] for kind in ("vLLM", "SGLang")},
    kinds.SERVING: "the memory is pinned already: copy without a wait; keep token ids on the GPU "
    "from step to step",
    kinds.TORCH: "the memory is pinned already, and the host waits for the copy: "
    ".to(device, non_blocking=True)",
    kinds.CUDA: "the memory is pinned already: cudaMemcpyAsync, and wait only before the host "
    "writes into it again",
    kinds.OTHER: "the memory is pinned already: copy asynchronously, and wait only before the host "
    "writes into it again",
}
_RESULTS: Final = {
    kinds.TORCH: "tensor.cpu() and .numpy() wait: keep results on the GPU, or copy them into "
    "pinned memory with non_blocking=True and read them a step later",
    kinds.CUDA: "copy results with cudaMemcpyAsync into pinned memory, launch the next work, and "
    "wait for an event before the host reads them",
    kinds.CUPY: "array.get() and cupy.asnumpy() wait: keep results on the GPU, or get(out=pinned, "
    "blocking=False)",
    kinds.NUMBA: "copy_to_host(stream=stream) into cuda.pinned_array, or keep results on the GPU; "
    "arrays of NumPy as arguments of a kernel are copied back at each call",
    kinds.JAX: "np.asarray, float() and block_until_ready wait: read results several steps later",
    kinds.TENSORFLOW: ".numpy() waits: keep results on the GPU, read them every N steps",
    kinds.RAPIDS: "to_pandas() and to_numpy() wait: keep results on the GPU",
    "vLLM": "each step reads its results: --async-scheduling overlaps this with the next step",
    "SGLang": "each step reads its results: the overlap scheduler (no --disable-overlap-schedule) "
    "overlaps this with the next step",
    kinds.SERVING: "each step reads its results: let the next step begin before",
    kinds.OTHER: "keep results on the GPU, or copy them into pinned memory and read them later",
}
_VALUES: Final = {
    **_RESULTS,
    kinds.TORCH: _ITEMS,
    kinds.CUDA: "the host reads single values, one wait each: decide on the GPU (conditional graph "
    "nodes, a loop inside one kernel), or read the value every N launches, with cudaMemcpyAsync "
    "into pinned memory",
    kinds.CUPY: "float(x), `if array:` and .get() of single values wait: keep them on the GPU, "
    "read them every N steps",
    kinds.RAPIDS: "results whose size depends on values wait: fewer and larger operations, larger "
    "partitions",
    kinds.OTHER: "the host reads single values, one wait each: keep them on the GPU, read them "
    "every N steps",
}


def _of_call(call: str) -> Mapping[str, str]:
    """The changes for a call that waits, by kind of program."""
    return next((texts for part, texts in _CALLS if part in call), _OTHER_CALLS)


_OTHER_CALLS: Final = {kinds.OTHER: _LATER}
_CALLS: Final = (
    (
        "EventSynchronize",
        {
            kinds.TORCH: "event.synchronize() blocks the host: stream.wait_event(event) lets the "
            "GPU wait, or read the result a step later",
            kinds.CUDA: "cudaStreamWaitEvent lets a stream wait in place of the host; times are "
            "read after the loop",
            kinds.OTHER: _LATER,
        },
    ),
    (
        "StreamSynchronize",
        {
            kinds.TORCH: "stream.synchronize(), or a library that reads a result: " + _LATER,
            kinds.CUDA: "wait for an event after the work that is read, not for all of the stream; "
            "launch the next work before",
            kinds.OTHER: _LATER,
        },
    ),
    (
        "Synchronize",
        {
            kinds.TORCH: "torch.cuda.synchronize() waits for all work: remove it, or call it only "
            "where times are read",
            kinds.CUDA: "kernels of a stream run in order without it: remove it, or wait for an "
            "event where the host reads a result",
            kinds.CUPY: "Device.synchronize() waits for all work: remove it, or wait for an event",
            kinds.NUMBA: "cuda.synchronize() waits for all work: remove it, or wait for an event",
            kinds.JAX: "block_until_ready(): call it after several steps",
            kinds.OTHER: "remove it, or wait only where the host reads a result",
        },
    ),
)
