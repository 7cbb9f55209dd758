"""Views, which launch no kernel and have no cost, and their backward passes."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.movement.copies import copied, sizes_given
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import byte_count, elements, parts, tensor_bytes, tensor_text

table_row("""
    x with other strides or dimensions, in the same memory.
    FLOPs: none.
    Bytes: none, forward and backward: no kernel runs.
    (x, ...): transpose permute t swapaxes swapdims movedim moveaxis adjoint mT mH numpy_T matrix_H
        squeeze unsqueeze transpose_ t_ squeeze_ unsqueeze_ swapaxes_ swapdims_ detach detach_ alias
        lift lift_fresh requires_grad_ resize_ resize_as_ set_ view_as_real view_as_complex conj
        _conj _neg_view atleast_1d atleast_2d atleast_3d
""")("x", lambda x: (Cost(0, 0), tensor_text(x)), both=True)


@operators("""
    x in another shape, in the same memory.
    FLOPs: none.
    Bytes: none; backward the gradient read and written, an estimate: it is copied only if it is not
    contiguous.
    (x, ...): view view_as unflatten _unsafe_view _reshape_alias
""")
def view(x: Tensor, *, direction: str) -> Answer:
    if direction == "fprop":
        return Cost(0, 0), tensor_text(x)
    cost = copied(Tensor(x.shape, x.dtype))
    return Cost(0, cost.bytes, False), tensor_text(x)


@operators("""
    Pieces that make up x, in the same memory.
    FLOPs: none.
    Bytes: none; backward the gradients of the pieces read, that of x written.
    (x, ...): split split_with_sizes chunk unbind tensor_split hsplit vsplit dsplit unsafe_split
        unsafe_split_with_sizes unsafe_chunk
""")
def cut(x: Tensor, *, direction: str) -> Answer:
    if direction == "fprop":
        return Cost(0, 0), tensor_text(x)
    return copied(Tensor(x.shape, x.dtype)), tensor_text(x)


@operators("""
    Some elements of x, in the same memory.
    FLOPs: none; backward unknown, because elements may overlap.
    Bytes: none; backward unknown.
    (x, ...): diagonal as_strided as_strided_ real imag aten::unfold
""")
def part(x: Tensor, *, direction: str) -> Answer:
    if direction == "bprop":
        raise CannotModel("the elements of the view are not modelled")
    return Cost(0, 0), tensor_text(x)


table_row("""
    Tensors expanded to one shape, in the same memory.
    FLOPs: none.
    Bytes: none: no kernel runs; the backward pass is not modelled.
    (tensors*, ...): meshgrid broadcast_tensors
""")("tensors*", lambda tensors: (Cost(0, 0), ";".join(map(tensor_text, tensors))))


def _part_gradient(x: Tensor, count: int | None) -> Cost:
    # The gradient of the part read, that of x written: zeros except for the part.
    read = None if count is None else byte_count(count, x.dtype)
    return Cost(0, add_known(read, byte_count(elements(x.shape), x.dtype)))


def _size_along(shape: tuple[int, ...], dim: int | Unknown) -> int | None:
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
def select(x: Tensor, dim: int | Unknown, *, direction: str) -> Answer:
    along = _size_along(x.shape, dim)
    if direction == "fprop":
        return Cost(0, 0), tensor_text(x)
    count = None if along is None else elements(x.shape) // along if along else 0
    return _part_gradient(x, count), tensor_text(x)


@operators("""
    `length` slices of x along dim, in the same memory.
    FLOPs: none.
    Bytes: none; backward the gradient of the slices read, that of x written.
    (x, dim, _, length): narrow
""")
def narrow(x: Tensor, dim: int | Unknown, length: int | Unknown, *, direction: str) -> Answer:
    along = _size_along(x.shape, dim)
    if direction == "fprop":
        return Cost(0, 0), tensor_text(x)
    if along is None or isinstance(length, Unknown):
        return _part_gradient(x, None), tensor_text(x)
    if not 0 <= length <= along:
        raise CannotModel(f"invalid number of slices {length} in {x.shape}")
    return _part_gradient(x, elements(x.shape) // along * length if along else 0), tensor_text(x)


@operators("""
    Slices of x along dim from start to end, in the same memory.
    FLOPs: none.
    Bytes: none; backward the gradient of the slices read, that of x written.
    (x, dim, start, end, step): slice
""")
def slices(
    x: Tensor,
    dim: int | Unknown = 0,
    start: int | Unknown | None = None,
    end: int | Unknown | None = None,
    step: int | Unknown = 1,
    *,
    direction: str,
) -> Answer:
    if direction == "fprop":
        return Cost(0, 0), tensor_text(x)
    along = _size_along(x.shape, dim)
    given = [each for each in (start, end, step) if isinstance(each, Unknown)]
    if along is None or given:
        return _part_gradient(x, None), tensor_text(x)
    if isinstance(step, Unknown) or step <= 0:
        raise CannotModel(f"invalid step {step}")
    length = len(range(*slice(start, end, step).indices(along)))
    return _part_gradient(x, elements(x.shape) // along * length if along else 0), tensor_text(x)


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
    sizes: Ints | Unknown | None = None,
    second: int | None = None,
    third: int | None = None,
    fourth: int | None = None,
    fifth: int | None = None,
    sixth: int | None = None,
    seventh: int | None = None,
    eighth: int | None = None,
    other: Tensor | None = None,
    *,
    direction: str,
) -> Answer:
    if direction == "fprop":
        return Cost(0, 0), tensor_text(x)
    count = _expanded(x, sizes, second, third, fourth, fifth, sixth, seventh, eighth)
    if other is not None:
        count = elements(other.shape)
    if count == elements(x.shape):
        return Cost(0, 0), tensor_text(x)
    read = None if count is None else byte_count(count, x.dtype)
    flops = None if count is None else count * parts(x.dtype)
    moved = add_known(read, byte_count(elements(x.shape), x.dtype))
    return Cost(flops, moved), tensor_text(x)


def _expanded(x: Tensor, *given: Ints | Unknown | None) -> int | None:
    # Number of elements of x expanded to the given sizes; -1 keeps x's size.
    numbers: list[int] = []
    for value in given:
        if isinstance(value, Unknown):
            return None
        if value is not None:
            numbers.extend((value,) if isinstance(value, int) else value)
    missing = len(numbers) - len(x.shape)
    own = (None,) * missing + x.shape
    count = 1
    for wanted, size in zip(numbers, own, strict=False):
        if wanted < -1 or (wanted == -1 and size is None):
            raise CannotModel(f"{x.shape} does not expand to {numbers}")
        count *= size if wanted == -1 and size is not None else wanted
    return count


@operators("""
    Gradient of a part of a tensor, placed in zeros of the tensor's sizes.
    FLOPs: none.
    Bytes: the gradient read, a tensor of the sizes written.
    (gradient, sizes, ...): aten::select_backward aten::slice_backward aten::diagonal_backward
""")
def part_backward(gradient: Tensor, sizes: Ints | Unknown) -> Answer:
    shape = sizes_given(sizes)
    written = None if shape is None else byte_count(elements(shape), gradient.dtype)
    return Cost(0, add_known(tensor_bytes(gradient), written)), tensor_text(gradient)


@operators("""
    Gradient of overlapping windows along a dimension, summed.
    FLOPs: an addition for each element of the gradient.
    Bytes: the gradient read, a tensor of the sizes written.
    (gradient, sizes, ...): aten::unfold_backward
""")
def unfold_backward(gradient: Tensor, sizes: Ints | Unknown) -> Answer:
    cost, params = part_backward(gradient, sizes)
    return Cost(elements(gradient.shape) * parts(gradient.dtype), cost.bytes), params


@operators("""
    A copy of x with one part replaced by a source.
    FLOPs: none.
    Bytes: x and source read, the copy written; backward its gradient read, those of x and of the
    source written.
    (x, src=source, ...): torch.select_scatter torch.slice_scatter torch.diagonal_scatter
        torch.as_strided_scatter
    (x, source, ...): aten::select_scatter aten::slice_scatter aten::diagonal_scatter
        aten::as_strided_scatter
""")
def select_scatter(x: Tensor, source: Tensor, *, direction: str) -> Answer:
    own, part_bytes = byte_count(elements(x.shape), x.dtype), tensor_bytes(source)
    read = tensor_bytes(x) if direction == "fprop" else own
    return Cost(0, add_known(read, part_bytes, own)), f"{tensor_text(x)};{tensor_text(source)}"
