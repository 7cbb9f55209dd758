"""Shape checks of matrix products, and the work of a plain product."""

from __future__ import annotations

from fastprof.model.call import Tensor
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.dtype_argument import asked_type
from fastprof.ops.dtypes import Dtype
from fastprof.ops.matrix.product import Product, forward, gradients
from fastprof.ops.tensor import broadcast, elements


def ranks(rank: int, *tensors: Tensor) -> None:
    """Check the number of dimensions.

    Raises
    ------
    CannotModel
        When a tensor has another rank.
    """
    for each in tensors:
        if len(each.shape) != rank:
            raise CannotModel(f"shape {each.shape} is not {rank}-d")


def inner_size(left: tuple[int, ...], axis: int, right: tuple[int, ...], other_axis: int) -> int:
    """The inner size k of both operands.

    Raises
    ------
    CannotModel
        When they differ.
    """
    if len(left) < -axis or len(right) < -other_axis or left[axis] != right[other_axis]:
        raise CannotModel(f"cannot multiply {left} and {right}")
    return left[axis]


def fits(addend: Tensor, shape: tuple[int, ...]) -> None:
    """Check that an addend broadcasts to the output.

    Raises
    ------
    CannotModel
        When it does not.
    """
    if broadcast(addend.shape, shape) != shape:
        raise CannotModel(f"{addend.shape} does not broadcast to the output {shape}")


def batched(left: Tensor, right: Tensor) -> Product:
    """A[.., m, k] @ B[.., k, n] with broadcast batch dimensions; a vector on the left is a row."""
    inner = inner_size(left.shape, -1, right.shape, -2)
    rows = left.shape[-2] if len(left.shape) > 1 else 1
    batch = elements(broadcast(left.shape[:-2], right.shape[:-2]))
    return Product(rows, right.shape[-1], inner, left, right, batch)


def plain(product: Product, direction: str, out_dtype: Dtype = None) -> Work:
    """The work of a plain product in one direction."""
    product = product._replace(written=asked_type(out_dtype))
    if direction == "fprop":
        return Work((forward(product),))
    return Work((*gradients(product),))
