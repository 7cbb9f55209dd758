"""Products and attention on kernels for unaligned tensors, from the names of the kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from fastprof._system.regex import regex
from fastprof.analysis.advice.calls import (
    CallFinding,
    CallGroup,
    CallGroups,
    KernelPart,
    by_time,
    operands,
    sizes,
)
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.roofline.ideal import PRODUCTS

# Elements that fill 16 bytes, the longest access of a GPU.
_FULL: Final = {"fp32": 4, "tf32": 4, "fp16": 8, "bf16": 8, "fp8": 16, "int8": 16}
_ALIGNMENT: Final = regex(r"_align(\d+)(?!\d)")
_NOT_ALIGNED: Final = regex(r"fmha_cutlass[fb]_\w*(?:notaligned|unaligned)", re.IGNORECASE)
_BUILT_FOR: Final = regex(r"(?:cutlass|sm)_?(\d\d)(?!\d)_")
_SAVED: Final = 0.5  # of the time, where the cost is unknown
_SIZES: Final = 3  # most that a remedy names


@rule("unaligned-kernel", least=0.02)
def _unaligned(facts: Facts) -> Iterator[Finding]:
    """Products and attention on kernels for rows that are no multiple of 16 bytes."""
    yield from (each.finding(facts.calls) for each in unaligned(facts.calls))


def unaligned(calls: CallGroups) -> list[CallFinding]:
    """The kernels of tensor cores that load less than 16 bytes at once, by kind of work."""
    members: dict[str, list[tuple[CallGroup, KernelPart]]] = {}
    for group in calls.groups:
        for part in group.parts:
            if _is_unaligned(part):
                members.setdefault(part.kind, []).append((group, part))
    return [_finding(calls, kind, each) for kind, each in members.items()]


def _is_unaligned(part: KernelPart) -> bool:
    if part.kind not in PRODUCTS or part.is_helper or part.tc != "1":
        return False
    if _NOT_ALIGNED.search(part.name):
        return True
    aligned = _ALIGNMENT.search(part.name)
    full = _FULL.get(part.compute_type or "")
    return aligned is not None and full is not None and int(aligned[1]) < full


def _finding(
    calls: CallGroups, kind: str, members: list[tuple[CallGroup, KernelPart]]
) -> CallFinding:
    parts = sorted((part for _, part in members), key=lambda part: -part.ns)
    groups = by_time({id(group): group for group, _ in members}.values())
    time, has_cost = sum(part.ns for part in parts), all(part.has_ideal for part in parts)
    name = "Attention runs" if kind == "attention" else "Products run"
    return CallFinding(
        f"{name} on kernels for rows that are not a multiple of 16 bytes",
        groups,
        {part.id: _saved(part) for part in parts},
        {
            "gpu_ns": time,
            "of all kernels_share": time / max(calls.kernel_ns, 1.0),
            "kernel": _telling(parts[0]),
            **_older(parts[0], groups[0]),
        },
        (_padding(groups),),
        "medium",
        "aligned kernels are assumed to reach the practical roof"
        if has_cost
        else "the cost is unknown: aligned kernels are assumed to be twice as fast",
        effect="Padding would save {saving}.",
    )


def _saved(part: KernelPart) -> float:
    """ns a step: down to the practical roof, or half of the time where the cost is unknown."""
    return max(part.ns - part.ideal_ns, 0.0) if part.has_ideal else part.ns * _SAVED


def _telling(part: KernelPart) -> str:
    """The words of a name that tell the alignment."""
    words = [each for each in re.split(r"[<>(),:\s]+", part.name) if "align" in each]
    return words[0] if words else part.kernel


def _older(part: KernelPart, group: CallGroup) -> dict[str, str]:
    """For which older GPU a kernel was built, if its name tells one."""
    built, owned = _BUILT_FOR.search(part.name), group.device.capability or ""
    if built is None or not re.fullmatch(r"\d+\.\d", owned) or built[1] == owned.replace(".", ""):
        return {}
    return {"built for compute capability": f"{built[1][0]}.{built[1][1]} of a GPU of {owned}"}


def _padding(groups: list[CallGroup]) -> str:
    """The sizes to pad: those of the calls that are no multiple of 8."""
    odd = {
        size: None
        for group in groups
        for size in (
            *sizes(group.shape).values(),
            *(size for each in operands(group.shape) for size in each.shape),
        )
        if size > 8 and size % 8
    }
    if not odd:
        return (
            "pad the sizes of these tensors (length of keys and values, channels, vocabulary) to a "
            "multiple of 8, and mask the rest"
        )
    names = ", ".join(f"{size} to {-(-size // 8) * 8}" for size in list(odd)[:_SIZES])
    return f"pad {names}, and mask the rest"
