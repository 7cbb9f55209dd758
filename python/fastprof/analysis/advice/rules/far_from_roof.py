"""Rules: kernels far from the roof without another finding, and grids that leave the GPU idle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from fastprof.analysis.advice.calls import (
    CallFinding,
    CallGroup,
    CallGroups,
    KernelPart,
    by_time,
    claimed_by,
    share_text,
    spread,
)
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import CLAIMING, call_rule, rule
from fastprof.analysis.roofline.ideal import PRODUCTS
from fastprof.profile.program import SERVING, WITH_OPERATORS, Program

_FAR: Final = 0.4  # of the practical roof
_SHARE: Final = 0.02  # of the GPU time
_FAR_OF_PRODUCTS: Final = 0.6  # of the practical roof, for products that take much of the time
_MUCH: Final = 0.1  # of the GPU time
_SHORT: Final = 10_000  # ns of a kernel, below which the launch dominates

_REMEDIES: Final = {
    "convolution": "torch.backends.cudnn.benchmark = True, or channels_last",
    "gemm": 'larger batches, or torch.compile(mode="max-autotune")',
    "attention": "another backend: torch.nn.attention.sdpa_kernel, or FlashAttention",
    "copy": "avoid the copy, or torch.compile",
}
_OTHER: Final = "torch.compile, or a fused operator"
# For programs that use torch.compile.
_AUTOTUNE: Final = 'the compilation\'s mode="max-autotune"'
_COMPILED: Final = {
    **_REMEDIES,
    "gemm": f"larger batches, or {_AUTOTUNE}",
    "copy": "avoid the copy",
}
_LARGER: Final = "more requests in a batch"
_OF_ENGINES: Final = {
    "attention": "another backend of the engine for attention",
    "gemm": "more requests in a batch; tuned kernels for these sizes, if the engine has them",
}
_BATCH_NORM: Final = "channels_last: model.to(memory_format=torch.channels_last)"
# Their work depends on the values of indices, which a trace does not record.
_UNJUDGED: Final = frozenset({"index", "sort", "memcpy", "memset"})
_NAME: Final = 60  # characters of a kernel's name


@rule("far-from-roof", least=0.02, programs=WITH_OPERATORS, needs=("shapes", "peaks"))
def far_from_roof(facts: Facts) -> Iterator[Finding]:
    """Operators far from the peak rates without a more specific finding."""
    calls = facts.calls
    claimed = claimed_by(calls, *CLAIMING)
    return (far_operator.finding(calls) for far_operator in far_operators(calls, claimed))


def far_operators(calls: CallGroups, claimed: Collection[int] = ()) -> list[CallFinding]:
    """Operators with much time and little of the roof.

    claimed : parts (`Part.id`) with another finding
    """
    operators: dict[tuple[str | None, str], list[tuple[CallGroup, list[KernelPart]]]] = {}
    for group in calls.groups:
        parts = [part for part in group.parts if part.id not in claimed]
        if group.op and _is_far(group, parts):
            operators.setdefault((group.device.name, group.op), []).append((group, parts))
    result = []
    for members in operators.values():
        own = [part for _, parts in members for part in parts]
        is_far = _ideal(own) < _FAR * _time(own)
        if _time(own) >= (_SHARE if is_far else _MUCH) * calls.ns:
            result.append(_finding(calls, members))
    return result


def _is_far(group: CallGroup, parts: list[KernelPart]) -> bool:
    """Whether the work of a call, without what has another finding, is far from the roof."""
    if not group.has_ideal or all(part.is_helper for part in parts):
        return False
    time, ideal = _time(parts), _ideal(parts)
    is_judged = group.kind not in _UNJUDGED and not any(part.kind in _UNJUDGED for part in parts)
    is_long = time >= _SHORT * sum(part.kernels for part in parts)
    far = _FAR_OF_PRODUCTS if group.kind in PRODUCTS else _FAR
    return is_judged and is_long and 0 < ideal < far * time


def _time(parts: Iterable[KernelPart]) -> float:
    return sum(part.ns for part in parts)


def _ideal(parts: Iterable[KernelPart]) -> float:
    return sum(part.ideal_ns for part in parts)


def _finding(calls: CallGroups, members: list[tuple[CallGroup, list[KernelPart]]]) -> CallFinding:
    parts = [part for _, some in members for part in some]
    groups = by_time(group for group, _ in members)
    time, ideal = _time(parts), _ideal(parts)
    longest = max(parts, key=lambda part: part.ns)
    evidence = {
        "gpu_ns": time,
        "of all kernels_share": time / max(calls.kernel_ns, 1.0),
        "attainable_ns": ideal,
        "kernel": longest.kernel,
    }
    sms = groups[0].device.sms
    if longest.blocks is not None and sms and longest.blocks < sms:
        evidence |= {"blocks": longest.blocks, "multiprocessors": sms}
    return CallFinding(
        f"The operator {groups[0].op} reaches {share_text(ideal, time)} of the practical roof",
        groups,
        spread(parts, time - ideal),
        evidence,
        (
            _remedy(calls.program, groups[0]),
            f"profile {longest.kernel[:_NAME]} with {_profiler(groups[0])}",
        ),
        "low",
        "the cause is not known from a trace",
        effect="At its roof, it would save {saving}.",
    )


def _remedy(program: Program, group: CallGroup) -> str:
    if "batch_norm" in (group.op or ""):
        return _BATCH_NORM
    is_compiled = any(part.kind == "triton-fused" for part in group.parts) or program.is_compiled
    if program.kind == SERVING:
        return _OF_ENGINES.get(group.kind, _LARGER)
    return (_COMPILED if is_compiled else _REMEDIES).get(
        group.kind, _AUTOTUNE if is_compiled else _OTHER
    )


def _profiler(group: CallGroup) -> str:
    is_amd = (group.device.capability or "").startswith("gfx")
    return "rocprof-compute" if is_amd else "Nsight Compute"


_SPREAD: Final = (
    "larger batches",
    "or a kernel that splits the inner size (split-K, flash decoding)",
)
_SPREAD_OWN: Final = (
    "more blocks: divide the work of a block among several, or process several inputs in a launch",
    "or run kernels that do not depend on each other on several streams",
)


@call_rule("small-grid", least=0.03, needs=("sms",))
def small_grid(calls: CallGroups) -> list[CallFinding]:
    """Products with fewer blocks than the GPU has multiprocessors; without PyTorch all kernels."""
    operators: dict[tuple[str | None, str | None], list[tuple[CallGroup, KernelPart]]] = {}
    for group in calls.groups:
        for part in group.parts:
            if _is_small(group, part, all_kinds=not calls.program.uses_torch):
                key = group.device.name, group.op or part.kernel
                operators.setdefault(key, []).append((group, part))
    return [_small(calls, members) for members in operators.values()]


def _is_small(group: CallGroup, part: KernelPart, all_kinds: bool) -> bool:
    is_judged = all_kinds and part.kind not in ("memcpy", "memset", "communication")
    is_judged |= part.kind in PRODUCTS and not part.is_helper
    sms = group.device.sms
    if not is_judged or part.blocks is None or not sms or "persist" in part.name.lower():
        return False
    return part.blocks <= sms // 2 and part.ns_per_kernel >= _SHORT


def _small(calls: CallGroups, members: list[tuple[CallGroup, KernelPart]]) -> CallFinding:
    sms = members[0][0].device.sms or 1
    time = sum(part.ns for _, part in members)
    blocks = max((part for _, part in members), key=lambda part: part.ns).blocks or 0
    groups = by_time({id(group): group for group, _ in members}.values())
    op, kernel = groups[0].op, members[0][1].kernel[:_NAME]
    return CallFinding(
        f"The {f'operator {op}' if op else f'kernel {kernel}'} runs on {blocks} of {sms} "
        "multiprocessors",
        groups,
        {part.id: part.ns * (1 - (part.blocks or 0) / sms) for _, part in members},
        {"gpu_ns": time, "of all kernels_share": time / calls.kernel_ns},
        _SPREAD if calls.program.kind in WITH_OPERATORS else _SPREAD_OWN,
        "medium",
        "a block runs on one multiprocessor; the others are idle unless kernels overlap",
    )
