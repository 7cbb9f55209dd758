"""FLOPs and bytes of picking elements along one dimension by an index.

The index and each picked element are read, the elements written. An element picked twice is read
twice, as in an embedding.
"""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import axis, replaced
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements, tensor_bytes
from fastprof.ops.traffic import texts

Dim = int | Unknown


def sized_index(count: int | None, dtype: str | None) -> int | None:
    """Bytes of `count` elements; None if the count or the type is unknown."""
    return None if count is None else byte_count(count, dtype)


def picked(x: Tensor, index_bytes: int | None, count: int | None) -> Cost:
    """Cost of picking `count` elements of x by an index."""
    rows = sized_index(count, x.dtype)
    return Cost(0, add_known(index_bytes, rows, rows))


def gradient_of_picked(x: Tensor, index_bytes: int | None, count: int | None) -> Cost:
    """Gradient of picked elements, summed in zeros of the shape of x; x is not read."""
    moved = add_known(
        index_bytes, sized_index(count, x.dtype), byte_count(elements(x.shape), x.dtype)
    )
    return Cost(count, moved)


@operators("""
    (x, _, index, ...): gather
    (x, index): torch.take
    (x, index, ...): aten::take
""")
def gather(x: Tensor, index: Tensor, *, direction: str) -> tuple[Cost, str]:
    """Elements of x picked along a dimension by index [..] -> the shape of index.

    FLOPs: none; backward an addition for each picked element.
    Bytes: index read, each picked element read and written; backward index and gradient read, the
    gradient of x written.
    """
    count, named = elements(index.shape), tensor_bytes(index)
    if direction == "fprop":
        return picked(x, named, count), texts(x, index)
    return gradient_of_picked(x, named, count), texts(x, index)


@operators("""
    (x, indices=index, dim): torch.take_along_dim
    (x, index, dim, ...): aten::take_along_dim
""")
def take_along_dim(
    x: Tensor, index: Tensor, dim: int | Unknown | None = None, *, direction: str
) -> tuple[Cost, str]:
    """Elements of x picked along dim by index, both broadcast along the other dimensions.

    FLOPs: none; backward an addition for each picked element.
    Bytes: index read, each picked element read and written; backward index and gradient read, the
    gradient of x written.
    """
    count: int | None = elements(index.shape)
    if isinstance(dim, int):
        place = axis(len(x.shape), dim)
        if len(x.shape) != len(index.shape):
            raise CannotModel(f"index {index.shape} does not fit {x.shape}")
        count = 1
        for i, (size, wanted) in enumerate(zip(x.shape, index.shape, strict=True)):
            if i != place and 1 not in (size, wanted) and size != wanted:
                raise CannotModel(f"index {index.shape} does not fit {x.shape}")
            count *= wanted if i == place or size == 1 else size
    elif isinstance(dim, Unknown) and x.shape != index.shape:
        count = None
    if direction == "fprop":
        return picked(x, tensor_bytes(index), count), texts(x, index)
    return gradient_of_picked(x, tensor_bytes(index), count), texts(x, index)


@operators("(gradient, x, _, index, _): aten::gather_backward")
def gather_backward(gradient: Tensor, x: Tensor, index: Tensor) -> tuple[Cost, str]:
    """Gradient of a gather, summed in zeros of the shape of x.

    FLOPs: an addition for each element of the gradient.
    Bytes: gradient and index read, the gradient of x written.
    """
    count = elements(index.shape)
    return gradient_of_picked(x, tensor_bytes(index), count), texts(gradient, index)


@operators("""
    torch.index_select
    (x, dim, index, ...): aten::index_select
""")
def index_select(x: Tensor, dim: Dim, index: Tensor, *, direction: str) -> tuple[Cost, str]:
    """Slices of x along dim picked by index [k] -> x's shape with k along dim.

    FLOPs: none; backward an addition for each picked element.
    Bytes: index read, each picked element read and written; backward index and gradient read, the
    gradient of x written.
    """
    count = replaced(x.shape, dim, elements(index.shape))
    if direction == "fprop":
        return picked(x, tensor_bytes(index), count), texts(x, index)
    return gradient_of_picked(x, tensor_bytes(index), count), texts(x, index)


@operators("(gradient, sizes, _, index): aten::index_select_backward")
def index_select_backward(
    gradient: Tensor, sizes: Ints | Unknown, index: Tensor
) -> tuple[Cost, str]:
    """Gradient of an index_select, summed in zeros of the given sizes.

    FLOPs: an addition for each element of the gradient.
    Bytes: gradient and index read, the gradient of the input written.
    """
    flops, params = elements(gradient.shape), texts(gradient, index)
    if isinstance(sizes, Unknown):
        return Cost(flops, None), params
    shape = (sizes,) if isinstance(sizes, int) else sizes
    if any(size < 0 for size in shape):
        raise CannotModel(f"invalid shape {shape}")
    x = Tensor(shape, gradient.dtype)
    return gradient_of_picked(x, tensor_bytes(index), flops), params
