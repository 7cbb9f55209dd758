"""Views, which launch no kernel and have no cost, and their backward passes."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.dtypes import parts
from fastprof.ops.movement.copies import More, numbers_given, sizes_given
from fastprof.ops.parameters import Int, Ints
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements, flat, fresh, moved, texts

table_row("""
    x with other strides or dimensions, in the same memory.
    FLOPs: none.
    Bytes: none, forward and backward: no kernel runs.
    (x, ...): transpose permute t swapaxes swapdims movedim moveaxis adjoint mT mH numpy_T matrix_H
        squeeze unsqueeze transpose_ t_ squeeze_ unsqueeze_ swapaxes_ swapdims_ detach detach_ alias
        lift lift_fresh requires_grad_ resize_ resize_as_ set_ view_as_real view_as_complex conj
        _conj _neg_view atleast_1d atleast_2d atleast_3d
""")("x", Traffic(0, "", "x"), both=True)


@operators("""
    x in another shape, in the same memory.
    FLOPs: none.
    Bytes: none; backward the gradient read and written, an estimate: it is copied only if it is not
    contiguous.
    (x, ...): view view_as unflatten _unsafe_view _reshape_alias
""")
def view(x: Tensor, *, direction: str) -> Answer:
    if direction == "fprop":
        return Cost(0, 0), texts(x)
    return Cost(0, moved(fresh(x), fresh(x)), exact=False), texts(x)


table_row("""
    Pieces that make up x, in the same memory.
    FLOPs: none.
    Bytes: none; backward the gradients of the pieces read, that of x written.
    (x, ...): split split_with_sizes chunk unbind tensor_split hsplit vsplit dsplit unsafe_split
        unsafe_split_with_sizes unsafe_chunk
""")("x", Traffic(0, "", "x", back=Traffic(0, "x' x'")))


def _not_modelled(direction: str) -> Cost:
    if direction == "bprop":
        raise CannotModel("the elements of the view are not modelled")
    return Cost(0, 0)


table_row("""
    Some elements of x, in the same memory.
    FLOPs: none; backward unknown, because elements may overlap.
    Bytes: none; backward unknown.
    (x, ...): diagonal as_strided as_strided_ real imag aten::unfold
""")("x", lambda x, direction: (_not_modelled(direction), texts(x)))


table_row("""
    Tensors expanded to one shape, in the same memory.
    FLOPs: none.
    Bytes: none: no kernel runs; the backward pass is not modelled.
    (tensors*, ...): meshgrid broadcast_tensors
""")("tensors*", Traffic(0, "", "tensors"))


def _part_gradient(x: Tensor, count: int | None) -> Answer:
    # The gradient of the part read, that of x written: zeros except for the part.
    return Cost(0, moved(flat(count, x.dtype), fresh(x))), texts(x)


def _size_along(shape: tuple[int, ...], dim: Int) -> int | None:
    if isinstance(dim, Unknown):
        return None
    if not -len(shape) <= dim < len(shape):
        raise CannotModel(f"no dimension {dim} in {shape}")
    return shape[dim]


@operators("""
    One slice of x along dim, in the same memory.
    FLOPs: none.
    Bytes: none; backward the gradient of the slice read, that of x written.
    (x, dim, ...): select
""")
def select(x: Tensor, dim: Int, *, direction: str) -> Answer:
    along = _size_along(x.shape, dim)
    if direction == "fprop":
        return Cost(0, 0), texts(x)
    count = None if along is None else elements(x.shape) // along if along else 0
    return _part_gradient(x, count)


@operators("""
    `length` slices of x along dim, in the same memory.
    FLOPs: none.
    Bytes: none; backward the gradient of the slices read, that of x written.
    (x, dim, _, length): narrow
""")
def narrow(x: Tensor, dim: Int, length: Int, *, direction: str) -> Answer:
    along = _size_along(x.shape, dim)
    if direction == "fprop":
        return Cost(0, 0), texts(x)
    if along is None or isinstance(length, Unknown):
        return _part_gradient(x, None)
    if not 0 <= length <= along:
        raise CannotModel(f"invalid number of slices {length} in {x.shape}")
    return _part_gradient(x, elements(x.shape) // along * length if along else 0)


@operators("""
    Slices of x along dim from start to end, in the same memory.
    FLOPs: none.
    Bytes: none; backward the gradient of the slices read, that of x written.
    (x, dim, start, end, step): slice
""")
def slices(
    x: Tensor,
    dim: Int = 0,
    start: Int | None = None,
    end: Int | None = None,
    step: Int = 1,
    *,
    direction: str,
) -> Answer:
    if direction == "fprop":
        return Cost(0, 0), texts(x)
    along = _size_along(x.shape, dim)
    given = [each for each in (start, end, step) if isinstance(each, Unknown)]
    if along is None or given:
        return _part_gradient(x, None)
    if isinstance(step, Unknown) or step <= 0:
        raise CannotModel(f"invalid step {step}")
    length = len(range(*slice(start, end, step).indices(along)))
    return _part_gradient(x, elements(x.shape) // along * length if along else 0)


@operators("""
    x repeated along dimensions of size 1, in the same memory.
    FLOPs: none; backward an addition for each element of the repetition.
    Bytes: none; backward the gradient of the repetition read, that of x written.
    (x, sizes, second, third, fourth, fifth, sixth, seventh, eighth, size=sizes): torch.expand
        torch.broadcast_to
    (x, other): expand_as
    (x, sizes, ...): aten::expand
    (x, sizes): aten::broadcast_to
""")
def expand(
    x: Tensor,
    more: More,
    sizes: Ints | Unknown | None = None,
    other: Tensor | None = None,
    *,
    direction: str,
) -> Answer:
    if direction == "fprop":
        return Cost(0, 0), texts(x)
    count = _expanded(x, sizes, *more)
    if other is not None:
        count = elements(other.shape)
    if count == elements(x.shape):
        return Cost(0, 0), texts(x)
    flops = None if count is None else count * parts(x.dtype)
    return Cost(flops, moved(flat(count, x.dtype), fresh(x))), texts(x)


def _expanded(x: Tensor, *given: Ints | Unknown | None) -> int | None:
    # Number of elements of x expanded to the given sizes; -1 keeps x's size.
    numbers = numbers_given(*given)
    if numbers is None:
        return None
    missing = len(numbers) - len(x.shape)
    own = (None,) * missing + x.shape
    count = 1
    for wanted, size in zip(numbers, own, strict=False):
        if wanted < -1 or (wanted == -1 and size is None):
            raise CannotModel(f"{x.shape} does not expand to {numbers}")
        count *= size if wanted == -1 and size is not None else wanted
    return count


def _placed(gradient: Tensor, sizes: Ints | Unknown, *, flops: int) -> Answer:
    shape = sizes_given(sizes)
    written = flat(None if shape is None else elements(shape), gradient.dtype)
    each = flops * parts(gradient.dtype)
    return Cost(each * elements(gradient.shape), moved(gradient, written)), texts(gradient)


table_row("""
    Gradient of a part of a tensor, placed in zeros of the tensor's sizes.
    FLOPs: none.
    Bytes: the gradient read, a tensor of the sizes written.
    (gradient, sizes, ...): aten::select_backward aten::slice_backward aten::diagonal_backward
""")(_placed, flops=0)


table_row("""
    Gradient of overlapping windows along a dimension, summed.
    FLOPs: an addition for each element of the gradient.
    Bytes: the gradient read, a tensor of the sizes written.
    (gradient, sizes, ...): aten::unfold_backward
""")(_placed, flops=1)


table_row("""
    A copy of x with one part replaced by a source.
    FLOPs: none.
    Bytes: x and source read, the copy written; backward its gradient read, those of x and of the
    source written.
    (x, src=source, ...): torch.select_scatter torch.slice_scatter torch.diagonal_scatter
        torch.as_strided_scatter
    (x, source, ...): aten::select_scatter aten::slice_scatter aten::diagonal_scatter
        aten::as_strided_scatter
""")("x, source", Traffic(0, "x source x'", "x source", back=Traffic(0, "x' source x'")))
