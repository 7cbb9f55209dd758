"""Kernels far from the roof without another finding, and grids that leave the GPU empty."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from fastprof.analysis.advice.calls import CallGroup, Calls, Part
from fastprof.analysis.advice.found import Found, by_time, calls_text, ms, share_text
from fastprof.analysis.ideal import PRODUCTS

__all__ = ["far_from_roof", "small_grid"]

_FAR: Final = 0.4  # of the practical roof
_SHARE: Final = 0.02  # of the GPU time
_SHORT: Final = 10_000  # ns of a kernel, below which the launch dominates

_REMEDIES: Final = {
    "convolution": "torch.backends.cudnn.benchmark = True, or channels_last",
    "gemm": "larger batches, or torch.compile(mode=\"max-autotune\")",
    "attention": "another backend: torch.nn.attention.sdpa_kernel, or FlashAttention",
    "copy": "avoid the copy, or torch.compile",
}
_OTHER: Final = "torch.compile, or a fused operator"
_TRITON: Final = 'torch.compile(mode="max-autotune")'
_BATCH_NORM: Final = "channels_last: model.to(memory_format=torch.channels_last)"
# Their work depends on the values of indices, which a trace does not record.
_UNJUDGED: Final = frozenset({"index", "sort", "memcpy", "memset"})
_NAME: Final = 60  # characters of a kernel's name


def far_from_roof(calls: Calls, claimed: Collection[int] = ()) -> list[Found]:
    """Operators with much time and little of the roof.

    claimed : parts (`Part.id`) with another finding
    """
    operators: dict[tuple[str | None, str, str], list[CallGroup]] = {}
    for group in calls.groups:
        if group.op and group.kind not in _UNJUDGED and group.has_ideal and group.ideal_ns > 0:
            key = group.device.name, group.op, group.kind
            operators.setdefault(key, []).append(group)
    found = []
    for (_, _, kind), groups in operators.items():
        far = [each for each in groups if _is_far(each, claimed)]
        time = sum(each.ns for each in far)
        if far and time >= _SHARE * calls.ns:
            found.append(_finding(calls, by_time(far), kind))
    return found


def _is_far(group: CallGroup, claimed: Collection[int]) -> bool:
    long = group.ns_per_kernel >= _SHORT
    free = not any(part.id in claimed for part in group.parts)
    return long and free and group.ideal_ns < _FAR * group.ns


def _finding(calls: Calls, groups: list[CallGroup], kind: str) -> Found:
    time, ideal = (sum(getattr(each, name) for each in groups) for name in ("ns", "ideal_ns"))
    part = max((part for each in groups for part in each.parts), key=lambda part: part.ns)
    n = sum(each.calls for each in groups)
    sms = groups[0].device.sms
    grid = ""
    if part.blocks is not None and sms and part.blocks < sms:
        grid = f"; {part.blocks} blocks on {sms} multiprocessors"
    return Found(
        f"{calls_text(n)} {groups[0].op} at {share_text(ideal, time)} of the practical roof: "
        f"{ms(time)}, attainable {ms(ideal)}{grid}",
        groups,
        {
            part.id: max(part.ns - part.ideal_ns, 0.0)
            for each in groups
            for part in each.parts
        },
        {
            "gpu_ns": time,
            "ideal_ns": ideal,
            "roof_share": ideal / time,
            "gpu_share": time / calls.ns,
            "kernel": part.kernel,
            "blocks": part.blocks,
        },
        (_remedy(groups[0], kind), f"profile {part.kernel[:_NAME]} with {_profiler(groups[0])}"),
        "low",
        "the cause is not known from a trace",
    )


def _remedy(group: CallGroup, kind: str) -> str:
    if any(part.kind == "triton-fused" for part in group.parts):
        return _TRITON
    return _BATCH_NORM if "batch_norm" in (group.op or "") else _REMEDIES.get(kind, _OTHER)


def _profiler(group: CallGroup) -> str:
    is_amd = (group.device.capability or "").startswith("gfx")
    return "rocprof-compute" if is_amd else "Nsight Compute"


def small_grid(calls: Calls) -> list[Found]:
    """Products with fewer blocks than the GPU has multiprocessors."""
    operators: dict[tuple[str | None, str | None], list[tuple[CallGroup, Part]]] = {}
    for group in calls.groups:
        for part in group.parts:
            if _is_small(group, part):
                operators.setdefault((group.device.name, group.op), []).append((group, part))
    return [_small(calls, members) for members in operators.values()]


def _is_small(group: CallGroup, part: Part) -> bool:
    is_product = part.kind in PRODUCTS and not part.is_helper
    sms = group.device.sms
    if not is_product or part.blocks is None or not sms or "persist" in part.name.lower():
        return False
    return part.blocks <= sms // 2 and part.ns_per_kernel >= _SHORT


def _small(calls: Calls, members: list[tuple[CallGroup, Part]]) -> Found:
    sms = members[0][0].device.sms or 1
    time = sum(part.ns for _, part in members)
    blocks = max((part for _, part in members), key=lambda part: part.ns).blocks or 0
    groups = by_time({id(group): group for group, _ in members}.values())
    op = groups[0].op or groups[0].kind
    return Found(
        f"{op}: {ms(time)} in kernels of at most {sms // 2} blocks on {sms} multiprocessors "
        f"(most time: {blocks} blocks)",
        groups,
        {
            part.id: part.ns * (1 - (part.blocks or 0) / sms)
            for _, part in members
        },
        {"gpu_ns": time, "blocks": blocks, "multiprocessors": sms},
        ("larger batches", "or a kernel that splits the inner size (split-K, flash decoding)"),
        "medium",
        "a block runs on one multiprocessor; the others are idle unless kernels overlap",
    )
