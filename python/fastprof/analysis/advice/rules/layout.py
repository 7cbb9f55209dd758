"""Conversions: layouts of convolutions, casts of products, copies in the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from fastprof._system.regex import regex
from fastprof.analysis.advice.calls import (
    CallFinding,
    CallGroup,
    CallGroups,
    KernelPart,
    claimed_by,
)
from fastprof.analysis.advice.registry import call_rule
from fastprof.analysis.advice.rules.attention import unfused_attention
from fastprof.analysis.roofline.ideal import PRODUCTS
from fastprof.profile.program import SERVING, WITH_OPERATORS

_LAYOUTS: Final = r"nchwtonhwc|nhwctonchw|nchw2nhwc|nhwc2nchw"
_BY_NAME: Final = regex(_LAYOUTS, re.IGNORECASE)
_TRANSPOSE: Final = regex(rf"transpose|{_LAYOUTS}", re.IGNORECASE)
_MIOPEN: Final = "on ROCm also the environment variable PYTORCH_MIOPEN_SUGGEST_NHWC=1"
_NARROW: Final = frozenset({"fp16", "bf16", "fp8"})
_COPIES: Final = frozenset({"contiguous", "clone", "reshape", "copy_", "flatten"})
_CASTS: Final = frozenset(
    {"to", "_to_copy", "type", "type_as", "float", "half", "bfloat16", "double"}
)
_IN_MODEL: Final = frozenset({"forward", "backward", "recompute"})


@call_rule("layout", least=0.02, programs=WITH_OPERATORS)
def layout(calls: CallGroups) -> list[CallFinding]:
    """Transposes between NCHW and NHWC around convolutions."""
    members = _parts(calls, _is_transpose)
    if not members:
        return []
    groups, parts = members
    time = sum(part.ns for part in parts)
    own = {part.id for part in parts}
    of_conv = sum(
        part.ns
        for group in calls.groups
        for part in group.parts
        if "conv" in (group.op or part.kind) or part.id in own
    )
    return [
        CallFinding(
            "Convolutions convert their tensors between NCHW and NHWC",
            groups,
            {part.id: part.ns for part in parts},
            {
                "gpu_ns": time,
                "of all convolutions_share": time / of_conv,
                "kernels": _kernels(parts),
                "kernel": parts[0].kernel,
            },
            (
                "model.to(memory_format=torch.channels_last), and inputs likewise",
                *((_MIOPEN,) if (groups[0].device.capability or "").startswith("gfx") else ()),
            ),
            "high",
            "the library's kernels need NHWC",
            effect="Tensors in channels_last would save {saving}.",
        )
    ]


def _is_transpose(group: CallGroup, part: KernelPart) -> bool:
    """By the name of the kernel, of helpers of convolutions or where the operator is not known."""
    if group.op is None:
        return _BY_NAME.search(part.name) is not None
    return part.is_helper and "conv" in group.op and _TRANSPOSE.search(part.name) is not None


@call_rule("autocast-casts", least=0.02, programs=WITH_OPERATORS, needs=("ops",))
def autocast_casts(calls: CallGroups) -> list[CallFinding]:
    """Casts of the operands of 16-bit products, by autocast in each step.

    Not those of attention that one kernel replaces.
    """
    is_split = any(_NOCAST in part.name for group in calls.groups for part in group.parts)
    claimed = claimed_by(calls, unfused_attention)
    members = _parts(
        calls, lambda group, part: part.id not in claimed and _is_cast(is_split, group, part)
    )
    if not members:
        return []
    groups, parts = members
    time = sum(part.ns for part in parts)
    return [
        CallFinding(
            "Products cast their operands to 16 bits in each call",
            groups,
            {part.id: part.ns for part in parts},
            {"gpu_ns": time, "kernels": _kernels(parts), "kernel": parts[0].kernel},
            ("weights in the type of the activations",)
            if calls.program.kind == SERVING
            else (
                "keep weights and activations in 16 bits: model.to(torch.bfloat16)",
                "or one torch.autocast region around the forward pass, not one per layer",
            ),
            "medium",
            "casts of fp32 weights remain once a step if the weights stay in fp32",
        )
    ]


_NOCAST: Final = "gpu_kernel_impl_nocast"
_CONVERTS: Final = regex(
    r"LoadWithCast|(?:float|half)\w*_copy_kernel|templated_elementwise"
    r"|unrolled_elementwise(?!.*WithoutCast)"
)
_SECOND: Final = regex(r"lambda\(int\)(?:#| \(instance )[2-9]")


def _is_cast(is_split: bool, group: CallGroup, part: KernelPart) -> bool:
    """A copy kernel of torch to another type, in a call whose product is of a 16-bit type.

    is_split : see `_converts`
    """
    is_copy = part.is_helper and part.kind == "copy" and "elementwise" in part.name
    return (
        is_copy
        and _converts(part.name, is_split)
        and any(part.kind in PRODUCTS and part.compute_type in _NARROW for part in group.parts)
    )


def _converts(name: str, is_split: bool) -> bool:
    """Whether a copy kernel of torch converts: its types differ.

    is_split : the version of torch has kernels of their own for work without conversion. Earlier
        ones name the function that converts tensors that are not contiguous as the second.
    """
    if _NOCAST in name or _CONVERTS.search(name):
        return _NOCAST not in name
    if "vectorized_elementwise" in name:
        return False
    return is_split or _SECOND.search(name) is not None


@call_rule("copies-in-model", least=0.03, programs=WITH_OPERATORS, needs=("ops",))
def copies_in_model(calls: CallGroups) -> list[CallFinding]:
    """Copies that the model's code requests: contiguous, clone, reshape; and explicit casts."""
    copies = []
    for is_cast, ops in ((False, _COPIES), (True, _CASTS)):
        members = _parts(calls, partial(_is_copy, ops))
        if members:
            copies.append(_copies(calls, *members, is_cast))
    return copies


def _is_copy(ops: Collection[str], group: CallGroup, part: KernelPart) -> bool:
    return group.op in ops and part.kind == "copy" and group.phase in _IN_MODEL


def _copies(
    calls: CallGroups, groups: list[CallGroup], parts: list[KernelPart], is_cast: bool
) -> CallFinding:
    time = sum(part.ns for part in parts)
    remedy = ["keep one type through the layer" if is_cast else _STRIDES]
    if calls.program.uses_torch and not calls.program.is_compiled:
        what = "casts" if is_cast else "copies"
        remedy.append(f"torch.compile fuses {what} with their neighbours")
    ops = sorted({call_group.op for call_group in groups if call_group.op})
    return CallFinding(
        f"The model {'casts' if is_cast else 'copies'} tensors ({', '.join(ops)})",
        groups,
        {part.id: part.ns for part in parts},
        {
            "gpu_ns": time,
            "of all kernels_share": time / max(calls.kernel_ns, 1.0),
            "kernels": _kernels(parts),
        },
        tuple(remedy),
        "low",
        "some copies can be necessary: which layout the next operator needs is not known",
    )


_STRIDES: Final = "avoid the layout change: view, or an operator that accepts strides"


def _parts(
    calls: CallGroups, is_wanted: Callable[[CallGroup, KernelPart], bool]
) -> tuple[list[CallGroup], list[KernelPart]] | None:
    """The parts with a property and their groups, the most time first; None without."""
    times: dict[int, float] = {}
    parts = []
    for i, group in enumerate(calls.groups):
        for part in group.parts:
            if is_wanted(group, part):
                parts.append(part)
                times[i] = times.get(i, 0.0) + part.ns
    if not parts:
        return None
    order = sorted(times, key=lambda i: -times[i])
    return [calls.groups[i] for i in order], sorted(parts, key=lambda part: -part.ns)


def _kernels(parts: list[KernelPart]) -> float:
    """Kernels a step."""
    return sum(part.kernels for part in parts)
