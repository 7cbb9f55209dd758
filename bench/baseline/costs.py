"""The op, params, tensor core use, FLOPs and bytes of each kernel, from its call.

A call's work has up to three parts, assigned to kernels by kind, then by layout. If no kernel of a
call is recognised, all kernels share the complete cost; otherwise, unrecognised kernels have no
cost. Kernels share the cost of a part in proportion to their time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from bench.baseline.calls import KernelCall
from bench.baseline.frames import Frame
from fastprof import ops

MOST_PARTS = 3
WHOLE, BESIDE = "whole", "beside"


@dataclass
class Share:
    """The part of its call that a kernel computes: its number, WHOLE or BESIDE."""

    call: KernelCall
    work: ops.Work | None
    info: ops.KernelInfo
    duration: int
    part: int | str = BESIDE
    is_sure: bool = True

    @property
    def is_main(self) -> bool:
        return self.part != BESIDE and self.parts[self.part].role != "bias"

    @property
    def parts(self) -> Sequence[ops.Part]:
        return self.work.parts[:MOST_PARTS] if self.work else ()

    @property
    def mains(self) -> list[ops.Part]:
        return [part for part in self.parts if part.role != "bias"]

    @property
    def op(self) -> str | None:
        own = self.parts[self.part].op if isinstance(self.part, int) else None
        return own or self.call.op

    @property
    def params(self) -> str:
        if self.work is None:
            return ops.tensors_text(self.call.call) if self.call.call else "na=na,"
        return self.parts[self.part if isinstance(self.part, int) else 0].params

    @property
    def cost(self) -> ops.Cost:
        """The cost of the part, which its kernels share."""
        if self.call.helper is not None:
            return ops.Cost(0, ops.work(self.call.helper, "fprop").cost.bytes)
        if self.work is None:
            return ops.Cost(None, None)
        if self.part == BESIDE:
            return ops.Cost(0, 0)
        if self.part != WHOLE:
            return self.parts[self.part].cost
        return sum((part.cost for part in self.mains), ops.Cost(0, 0))

    @property
    def tensor_cores(self) -> str | None:
        """`1` used, `0` possible but not used, `-` not applicable."""
        if self.info.tensor_core is not None:  # known from its name
            return "1" if self.info.tensor_core else "0"
        if self.call.call is None:
            return None
        if self.call.helper is not None:
            return "-"
        claimed, _ = claim(self.parts, self.info)
        return "-" if claimed is None or not self.parts[claimed].no_tensor_cores else None


def shares(
    calls: Sequence[KernelCall], names: Sequence[str | None], durations: Sequence[int]
) -> list[Share]:
    """The part of its call that each kernel computes."""
    work_of = cache(lambda call, direction: ops.work(call, direction))
    classify = cache(lambda name: ops.KernelInfo("other") if name is None else ops.classify(name))
    result = []
    for call, name, duration in zip(calls, names, durations, strict=True):
        work = work_of(call.work, call.direction) if call.work else None
        result.append(Share(call, work, classify(name), duration))
    together: defaultdict[Frame | None, list[Share]] = defaultdict(list)
    for share in result:
        if share.work is not None and share.call.helper is None:
            together[share.call.instance].append(share)
    for group in together.values():
        divide(group)
    return result


def claim(parts: Sequence[ops.Part], info: ops.KernelInfo) -> tuple[int | None, bool]:
    """The part that the name of a kernel indicates, or None, and whether that is certain."""
    fitting = [i for i, part in enumerate(parts) if not part.kernels or info.kind in part.kernels]
    if not fitting or info.auxiliary:
        return None, True
    layouts = [parts[i].layout for i in fitting]
    exact = [i for i in fitting if parts[i].layout is not None and parts[i].layout == info.layout]
    is_sure = len(fitting) == 1 or (bool(exact) and None not in layouts)
    return (exact or fitting)[0], is_sure


def divide(group: list[Share]) -> None:
    """Assign a part to each kernel of a call."""
    for share in group:
        claimed, share.is_sure = claim(share.parts, share.info)
        share.part = BESIDE if claimed is None else claimed
    is_recognised = any(share.is_main for share in group)
    has_unknown = any(share.info.kind == "other" for share in group)
    n_taken = group[0].call.n_taken
    if n_taken and n_taken >= len(group[0].mains):
        for share in group:
            share.part = BESIDE if share.is_main else share.part
        return
    for share in group:
        always = any(not part.optional for part in share.mains)
        if share.part == BESIDE and not (n_taken or is_recognised) and (always or has_unknown):
            share.part = WHOLE
    second_gradient(group)


def second_gradient(group: list[Share]) -> None:
    """Kernels that by unsure names all do the first gradient, or all the second: one does the
    other, a guess."""
    gradients = [
        share
        for share in group
        if share.part in (0, 1) and len(share.parts) > 1 and share.parts[1].role != "bias"
    ]
    unsure = [share for share in gradients if not share.is_sure]
    if len({share.part for share in gradients}) != 1:
        return
    is_settled = len(unsure) < len(gradients)
    if not is_settled and len(unsure) < 2:
        return
    for i, share in enumerate(unsure):
        if is_settled or (i > 0) == (share.part == 0):
            share.part = 1 - share.part


def shared(found: Sequence[Share], of: str) -> list[int | None]:
    """Each kernel's share of its part's `flops` or `bytes`; the shares add up to the part."""
    sums: defaultdict[object, int] = defaultdict(int)
    passed: defaultdict[object, int] = defaultdict(int)
    keys = [(share.call.instance, share.part) for share in found]
    for key, share in zip(keys, found, strict=True):
        sums[key] += max(share.duration, 1)
    out: list[int | None] = []
    for key, share in zip(keys, found, strict=True):
        total = getattr(share.cost, of)
        if total is None or total >= 1 << 63:
            out.append(None)
            continue
        before = total * passed[key] // sums[key]
        passed[key] += max(share.duration, 1)
        out.append(total * passed[key] // sums[key] - before)
    return out
