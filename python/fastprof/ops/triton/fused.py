"""Kernels that torch.compile has fused, to FLOPs and bytes."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Call, Tensor
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.parameters import Tensors
from fastprof.ops.registry import op
from fastprof.ops.traffic import moved, texts
from fastprof.ops.triton.names import flops_of_an_element, read_name
from fastprof.ops.triton.space import iterations, product_flops, touched_bytes

__all__ = ["fused_kernel"]

# Kinds of kernels that go through one space of elements.
_ONE_SPACE: Final = frozenset({"poi", "red", "per"})
_SIZES: Final = ", ".join("_" * 16)  # sizes and other numbers follow the tensors


# "triton" stands for every triton_poi_*, triton_red_*, triton_per_*, triton_tem_* (registry).
@op(None, aten=(f"triton(tensors*, {_SIZES})",))
def fused_kernel(tensors: Tensors, *, call: Call) -> tuple[Cost, str]:
    """A kernel that torch.compile has generated, called with tensors and then its extents.

    FLOPs: those of each operator that its name tells, once for each element that it goes through
    (the product of its extents); of a template of a product a multiply-add for each output and
    inner element; unknown of kernels over lists of tensors.
    Bytes: each tensor once, whether it is read or written; of one that is larger than what the
    kernel goes through, as much as that, unless it holds two to four times as much: parts side by
    side, all of which are read.

    An estimate, and it says so. FLOPs are too low where an operator is fused several times, since
    the name has it once, and too high where it works on sums only. Bytes are too low by what is
    read and written in place, and where a kernel reads a tensor in several passes; too high where
    it touches only a part of a smaller one.
    """
    if not tensors:
        raise CannotModel("no tensor among the arguments")
    kind, operators = read_name(call.op)
    if kind not in _ONE_SPACE:
        flops = product_flops(tensors) if kind == "tem" else None
        return Cost(flops, moved(*tensors), exact=False), texts(*tensors)
    count = iterations(tensors, _numbers(call))
    flops = count * flops_of_an_element(operators)
    return Cost(flops, touched_bytes(tensors, count), exact=False), texts(*tensors)


def _numbers(call: Call) -> list[int]:
    # Those behind the last tensor.
    found: list[int] = []
    for each in call.args:
        if isinstance(each.value, Tensor):
            found.clear()
        elif type(each.value) is int and each.value > 0:
            found.append(each.value)
    return found
