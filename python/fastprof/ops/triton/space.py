"""Arguments of a generated kernel to how many elements it goes through, and what of its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Final

from fastprof.model.call import Tensor
from fastprof.ops.cost import add_known
from fastprof.ops.tensor import byte_count, elements

__all__ = ["iterations", "product_flops", "touched_bytes"]

# A buffer that holds so many parts side by side, as one product for several layers leaves it, is
# read as a whole; of one that is larger in another way a kernel reads a slice.
_MOST_PARTS: Final = 4


def iterations(tensors: Sequence[Tensor], sizes: Sequence[int]) -> int:
    """Elements that a kernel goes through: the product of its extents.

    Parameters
    ----------
    tensors : sequence of Tensor
    sizes : sequence of int
        The numbers behind the tensors: those of dynamic shapes, then the extents (ynumel, xnumel,
        r0_numel). Empty where the capture does not tell them.

    Returns
    -------
    int
        The product of as many of the last numbers as make the size of one of the tensors; where
        none do, that are no more than the largest has; the largest where there are no numbers.
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
    """Bytes of the tensors, of each no more than `count` elements where that is a slice of it."""
    return add_known(*(byte_count(_touched(each, count), each.dtype) for each in tensors))


def _touched(tensor: Tensor, count: int) -> int:
    shape = tensor.shape
    if tensor.strides is not None and len(tensor.strides) == len(shape):
        shape = tuple(size for size, step in zip(shape, tensor.strides, strict=True) if step)
    held = 0 if 0 in tensor.shape else elements(shape)
    parts, left = divmod(held, max(count, 1))
    return held if held <= count or (not left and parts <= _MOST_PARTS) else count


def product_flops(tensors: Sequence[Tensor]) -> int | None:
    """FLOPs of a template of a matrix product, None where its tensors do not look like one.

    The operands stand side by side, [.., m, k] and [.., k, n]; a later tensor is [.., m, n].
    """
    for i, (left, right) in enumerate(pairwise(tensors)):
        a, b = left.shape, right.shape
        if len(a) != len(b) or len(a) not in (2, 3) or a[-1] != b[-2] or a[:-2] != b[:-2]:
            continue
        outputs = prod(a[:-1]) * b[-1]
        if any(elements(each.shape) == outputs for each in tensors[i + 2 :]):
            return 2 * outputs * a[-1]
    return None
