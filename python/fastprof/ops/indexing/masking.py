"""FLOPs and bytes of masked fill, masked select and nonzero.

The number of elements selected by a mask is not recorded: if it determines the output, bytes are
unknown without the size of the result.
"""

from __future__ import annotations

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import broadcast, byte_count, elements, tensor_bytes, tensor_text
from fastprof.ops.traffic import texts


def masked(x: Tensor, mask: Tensor, direction: str) -> Cost:
    """x with one number where the mask, broadcast, is true; no arithmetic."""
    shape = broadcast(x.shape, mask.shape)
    written = byte_count(elements(shape), x.dtype)
    read = tensor_bytes(x) if direction == "fprop" else written
    return Cost(0, add_known(read, tensor_bytes(mask), written))


def _with_result(
    read: tuple[Tensor, ...], result: Tensor | Unknown, dtype: str | None
) -> int | None:
    if isinstance(result, Unknown):
        return None
    written = byte_count(elements(result.shape), result.dtype or dtype)
    return add_known(written, *map(tensor_bytes, read))


table_row("""
    x with one number where the mask, broadcast, is true.
    FLOPs: none.
    Bytes: x and mask read, the output written; backward gradient and mask read, the gradient of x
    written. In place, all of x is also read and written.
    (x, mask, ...): masked_fill masked_fill_
""")("x, mask", lambda x, mask, direction: (masked(x, mask, direction), texts(x, mask)))


@operators("""
    (x, mask, source): torch.masked_scatter masked_scatter_
    (x, mask, source, ...): aten::masked_scatter
""")
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor, *, direction: str) -> tuple[Cost, str]:
    """x with elements of a source, in order, where the mask, broadcast, is true.

    FLOPs: none (the mask's prefix sum is not counted).
    Bytes: x, mask and source read, the output written; backward gradient and mask read, the
    gradients of x and source written.

    An estimate: the source may have more elements than the mask selects.
    """
    cost, whole = masked(x, mask, direction), tensor_bytes(source)
    if direction == "bprop":
        whole = add_known(whole, whole)  # picked from the gradient, written
    return Cost(0, add_known(cost.bytes, whole), False), texts(x, mask, source)


@operators("aten::masked_scatter_backward")
def masked_scatter_backward(
    gradient: Tensor, mask: Tensor, sizes: Ints | Unknown
) -> tuple[Cost, str]:
    """Gradient of the source of a masked_scatter: the selected elements, then zeros.

    FLOPs: none.
    Bytes: mask and selected gradient read, a tensor of the source's sizes written.

    An estimate: the source may have more elements than the mask selects.
    """
    params = texts(gradient, mask)
    if isinstance(sizes, Unknown):
        return Cost(0, None), params
    shape = (sizes,) if isinstance(sizes, int) else sizes
    if any(size < 0 for size in shape):
        raise CannotModel(f"invalid shape {shape}")
    whole = byte_count(elements(shape), gradient.dtype)
    return Cost(0, add_known(tensor_bytes(mask), whole, whole), False), params


@operators("""
    torch.masked_select
    (x, mask, ...): aten::masked_select
""")
def masked_select(
    x: Tensor, mask: Tensor, *, result: Tensor | Unknown = UNKNOWN
) -> tuple[Cost, str]:
    """Elements of x where the mask is true, both broadcast -> [selected].

    FLOPs: none (the mask's prefix sum is not counted); the backward pass is not modelled.
    Bytes: x and mask read, the selected elements written; unknown if the size of the result is.
    """
    broadcast(x.shape, mask.shape)
    return Cost(0, _with_result((x, mask), result, x.dtype)), texts(x, mask)


@operators("aten::masked_select_backward")
def masked_select_backward(
    gradient: Tensor,
    x: Tensor,
    mask: Tensor,
) -> tuple[Cost, str]:
    """Gradient [selected] of a masked_select, scattered into zeros where the mask is true.

    FLOPs: none.
    Bytes: gradient and mask read, the gradient of the input written.
    """
    written = byte_count(elements(broadcast(x.shape, mask.shape)), gradient.dtype)
    moved = add_known(tensor_bytes(gradient), tensor_bytes(mask), written)
    return Cost(0, moved), texts(gradient, x, mask)


@operators("""
    (x, ...): nonzero torch.argwhere
    (x): aten::nonzero_numpy aten::argwhere
""")
def nonzero(x: Tensor, *, result: Tensor | Unknown = UNKNOWN) -> tuple[Cost, str]:
    """Indices of the nonzero elements of x -> int64 [found, dimensions].

    FLOPs: a comparison for each element.
    Bytes: x read, the indices written; unknown if the size of the result is.
    """
    return Cost(elements(x.shape), _with_result((x,), result, "int64")), tensor_text(x)


@operators("""
    (x, size=size): torch.nonzero_static
    (x, size, ...): aten::nonzero_static
""")
def nonzero_static(x: Tensor, size: int | Unknown) -> tuple[Cost, str]:
    """Indices of the first nonzero elements of x -> int64 [size, dimensions].

    FLOPs: a comparison for each element.
    Bytes: x read, the indices written.
    """
    if isinstance(size, Unknown):
        return Cost(elements(x.shape), None), tensor_text(x)
    if size < 0:
        raise CannotModel(f"invalid size {size}")
    written = byte_count(size * len(x.shape), "int64")
    return Cost(elements(x.shape), add_known(tensor_bytes(x), written)), tensor_text(x)
