"""Rule: grids that leave multiprocessors of the GPU idle."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.advice.calls import (
    CallFinding,
    CallGroup,
    CallGroups,
    KernelPart,
    by_time,
)
from fastprof.analysis.advice.registry import call_rule
from fastprof.analysis.roofline.ideal import PRODUCTS
from fastprof.profile.program import WITH_OPERATORS

_SHORT: Final = 10_000  # ns of a kernel, below which the launch dominates
_NAME: Final = 60  # characters of a kernel's name
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
