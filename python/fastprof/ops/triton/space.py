"""The iteration space of a generated kernel, and the part of its tensors that it accesses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Final

from fastprof.model.call import Tensor
from fastprof.ops.cost import add_known
from fastprof.ops.tensor import byte_count, elements

# A buffer with this number of concatenated parts, such as from one product for several layers, is
# read entirely; of other larger buffers, a kernel reads a slice.
_MOST_PARTS: Final = 4


def iterations(tensors: Sequence[Tensor], sizes: Sequence[int]) -> int:
    """Number of elements a kernel iterates over: the product of its extents.

    Parameters
    ----------
    tensors : sequence of Tensor
    sizes : sequence of int
        The numbers after the tensors: dynamic sizes, then the extents (ynumel, xnumel, r0_numel).
        Empty if not recorded.

    Returns
    -------
    int
        The product of the trailing numbers that equals the size of a tensor; else the largest
        product that does not exceed the largest tensor; without numbers, the size of the largest
        tensor.
    """
    counts = {elements(each.shape) for each in tensors}
    largest = max(counts)
    products = [prod(sizes[start:]) for start in range(len(sizes))]
    if len(products) == 1:
        return products[0]
    exact = [each for each in products if each in counts]
    possible = [each for each in products if each <= largest]
    return next(iter(exact or possible), largest)


def touched_bytes(tensors: Sequence[Tensor], count: int) -> int | None:
    """Bytes of the tensors, each limited to `count` elements if that is a slice of it."""
    return add_known(*(byte_count(_touched(each, count), each.dtype) for each in tensors))


def _touched(tensor: Tensor, count: int) -> int:
    shape = tensor.shape
    if tensor.strides is not None and len(tensor.strides) == len(shape):
        shape = tuple(size for size, step in zip(shape, tensor.strides, strict=True) if step)
    held = 0 if 0 in tensor.shape else elements(shape)
    parts, left = divmod(held, max(count, 1))
    return held if held <= count or (not left and parts <= _MOST_PARTS) else count


def product_flops(tensors: Sequence[Tensor]) -> int | None:
    """FLOPs of a matrix-product template; None if its tensors do not form one.

    The operands are adjacent, [.., m, k] and [.., k, n]; a later tensor is [.., m, n].
    """
    for i, (left, right) in enumerate(pairwise(tensors)):
        a, b = left.shape, right.shape
        if len(a) != len(b) or len(a) not in (2, 3) or a[-1] != b[-2] or a[:-2] != b[:-2]:
            continue
        outputs = prod(a[:-1]) * b[-1]
        if any(elements(each.shape) == outputs for each in tensors[i + 2 :]):
            return 2 * outputs * a[-1]
    return None
