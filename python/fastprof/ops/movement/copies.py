"""Bytes of tensor copies: joining, repeating, reordering, masking a triangle."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.dtypes import parts
from fastprof.ops.parameters import Ints, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import byte_count, elements, result_type, tensor_bytes, tensor_text


def copied(x: Tensor) -> Cost:
    """Cost of copying x to a new tensor."""
    return Cost(0, add_known(tensor_bytes(x), byte_count(elements(x.shape), x.dtype)))


def is_contiguous(x: Tensor) -> bool | None:
    """Whether x is contiguous; None if its strides are unknown."""
    if x.strides is None or len(x.strides) != len(x.shape):
        return None
    expected = 1
    for size, step in zip(reversed(x.shape), reversed(x.strides), strict=True):
        if size != 1 and step != expected:
            return elements(x.shape) == 0
        expected *= size
    return True


@operators("""
    (tensors*, _): cat concat concatenate _cat stack _stack
    (tensors*): hstack vstack dstack column_stack row_stack flatten_dense_tensors
""")
def cat(
    tensors: Tensors | Unknown, *, direction: str, result: Tensor | Unknown = UNKNOWN
) -> tuple[Cost, str]:
    """Tensors concatenated into one of their common type.

    FLOPs: none.
    Bytes: each tensor read, the result written; backward the gradient read, those of the tensors
    written (torch uses views; this is the cost of a kernel, if one runs).

    Traces before 2023 do not record the tensors of a list. The size of the result is then counted
    as read, an estimate that holds for tensors of the same type.
    """
    if isinstance(tensors, Unknown):
        if isinstance(result, Unknown):
            raise CannotModel("neither the tensors of the list nor the result is in the capture")
        moved = byte_count(2 * elements(result.shape), result.dtype)
        return Cost(0, moved, False), tensor_text(result)
    if not tensors:
        raise CannotModel("no tensors")
    count = sum(elements(tensor.shape) for tensor in tensors)
    given = result.dtype if isinstance(result, Tensor) else None
    written = byte_count(count, given or result_type(tensors))
    if direction == "fprop":
        moved = add_known(written, *map(tensor_bytes, tensors))
    else:
        own = (byte_count(elements(tensor.shape), tensor.dtype) for tensor in tensors)
        moved = add_known(written, *own)
    return Cost(0, moved), ";".join(map(tensor_text, tensors))


@operators("(tensors*): block_diag")
def block_diag(tensors: Tensors) -> tuple[Cost, str]:
    """Matrices along the diagonal of a zero matrix -> [all rows, all columns].

    FLOPs: none.
    Bytes: each matrix read, the result written.
    """
    if not tensors or any(len(tensor.shape) > 2 for tensor in tensors):
        raise CannotModel("expected tensors of at most two dimensions")
    rows = sum(tensor.shape[0] if len(tensor.shape) == 2 else 1 for tensor in tensors)
    columns = sum(tensor.shape[-1] if tensor.shape else 1 for tensor in tensors)
    written = byte_count(rows * columns, result_type(tensors))
    moved = add_known(written, *map(tensor_bytes, tensors))
    return Cost(0, moved), ";".join(map(tensor_text, tensors))


@operators("""
    (tensors*, dim, chunks): _chunk_cat
    (tensors*, dim, chunks, out): fsdp::chunk_cat
""")
def chunk_cat(
    tensors: Tensors, dim: int | Unknown, chunks: int | Unknown, out: Tensor | None = None
) -> tuple[Cost, str]:
    """Tensors cut into chunks along dim and concatenated by chunk: first chunks, second chunks, ...

    FLOPs: none.
    Bytes: each tensor read, the result written with each padded to whole chunks.
    """
    params = ";".join(map(tensor_text, tensors))
    if isinstance(dim, Unknown) or isinstance(chunks, Unknown) or not tensors:
        return Cost(0, None), params
    if chunks <= 0 or any(not 0 <= dim < len(tensor.shape) for tensor in tensors):
        raise CannotModel(f"tensors do not cut into {chunks} chunks along {dim}")
    dtype = result_type(tensors) if out is None else out.dtype
    count = 0
    for tensor in tensors:
        size = tensor.shape[dim]
        rest = elements(tensor.shape[:dim]) * elements(tensor.shape[dim + 1 :])
        count += rest * -(-size // chunks) * chunks
    moved = add_known(byte_count(count, dtype), *map(tensor_bytes, tensors))
    return Cost(0, moved), params


@operators("""
    (x, ...): roll flip fliplr flipud rot90 tril triu tril_ triu_ pixel_shuffle pixel_unshuffle
        channel_shuffle native_channel_shuffle view_copy permute_copy t_copy transpose_copy
        squeeze_copy unsqueeze_copy detach_copy alias_copy split_copy split_with_sizes_copy
        unbind_copy unsafe_split_copy _reshape_copy lift_fresh_copy _lazy_clone _conj_copy
        _neg_view_copy view_as_real_copy view_as_complex_copy torch.__deepcopy__
        fsdp::split_with_sizes_copy
""")
def roll(x: Tensor, *, direction: str) -> tuple[Cost, str]:
    """All elements of x, reordered, cut or with a triangle of zeros, as new tensors.

    FLOPs: none.
    Bytes: x read, the same amount written; backward the same for the gradient.
    """
    if direction == "bprop":
        return copied(Tensor(x.shape, x.dtype)), tensor_text(x)
    return copied(x), tensor_text(x)


table_row("""
    x in new memory.
    FLOPs: none.
    Bytes: x read and written (an expanded x read at its own size); backward none, the gradient is
    passed on.
    (x, ...): clone
""")("x", lambda x, direction: (copied(x) if direction == "fprop" else Cost(0, 0), tensor_text(x)))


# Values of torch.contiguous_format and torch.preserve_format in traces.
_PLAIN: Final = frozenset({0, 1, "torch.contiguous_format", "torch.preserve_format"})


@operators("contiguous")
def contiguous(
    x: Tensor, memory_format: str | int | Unknown | None = None, *, direction: str
) -> tuple[Cost, str]:
    """x itself if it is contiguous, else a contiguous copy.

    FLOPs: none.
    Bytes: none if strides show that x is contiguous; else x read and written, an estimate if
    strides are unknown. Backward none, the gradient is passed on.

    If a kernel runs, there is a copy.
    """
    plain = memory_format is None or memory_format in _PLAIN
    if direction == "bprop" or (plain and is_contiguous(x)):
        return Cost(0, 0), tensor_text(x)
    return _possible(x, sure=plain and is_contiguous(x) is False), tensor_text(x)


def _possible(x: Tensor, sure: bool) -> Cost:
    cost = copied(x)
    return Cost(cost.flops, cost.bytes, sure)


@operators("(x, ...): reshape reshape_as flatten ravel")
def reshape(x: Tensor, *, direction: str) -> tuple[Cost, str]:
    """x in another shape: a view if its strides allow it, else a copy.

    FLOPs: none.
    Bytes: none if strides show that x is contiguous; else x read and written, an estimate, because
    other strides may also allow a view; backward an estimate: the gradient may be copied.

    If a kernel runs, there is a copy.
    """
    if direction == "fprop" and is_contiguous(x):
        return Cost(0, 0), tensor_text(x)
    return _possible(x if direction == "fprop" else Tensor(x.shape, x.dtype), False), tensor_text(x)


def sizes_given(*given: Ints | Unknown | None) -> tuple[int, ...] | None:
    """The numbers of an argument that is a list or several numbers; None if one is unknown."""
    numbers: list[int] = []
    for value in given:
        if isinstance(value, Unknown):
            return None
        if value is not None:
            numbers.extend((value,) if isinstance(value, int) else value)
    if any(number < 0 for number in numbers):
        raise CannotModel(f"invalid sizes {numbers}")
    return tuple(numbers)


@operators("""
    (x, sizes, second, third, fourth, fifth, sixth, seventh, eighth): torch.repeat
    (x, sizes, second, third, fourth, fifth, sixth, seventh, eighth, dims=sizes): torch.tile
    (x, sizes, ...): aten::repeat
    (x, sizes): aten::tile
""")
def repeat(
    x: Tensor,
    sizes: Ints | Unknown | None = None,
    second: int | None = None,
    third: int | None = None,
    fourth: int | None = None,
    fifth: int | None = None,
    sixth: int | None = None,
    seventh: int | None = None,
    eighth: int | None = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """x repeated along each dimension -> [repeats[0] * x.shape[0], ..].

    FLOPs: none; backward an addition for each element of the repetition.
    Bytes: x read, the repetition written; backward its gradient read, that of x written.
    """
    times = sizes_given(sizes, second, third, fourth, fifth, sixth, seventh, eighth)
    count = None if times is None else elements(x.shape) * elements(times)
    return _repeated(x, count, direction), tensor_text(x)


def _repeated(x: Tensor, count: int | None, direction: str) -> Cost:
    written = None if count is None else byte_count(count, x.dtype)
    if direction == "fprop":
        return Cost(0, add_known(tensor_bytes(x), written))
    flops = None if count is None else count * parts(x.dtype)
    return Cost(flops, add_known(written, byte_count(elements(x.shape), x.dtype)))


@operators("""
    (x, repeats, dim, output_size=output_size): torch.repeat_interleave
    (x, repeats, dim, output_size): aten::repeat_interleave
""")
def repeat_interleave(
    x: Tensor,
    repeats: Tensor | int | Unknown | None = None,
    dim: int | Unknown | None = None,
    output_size: int | Unknown | None = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """Each element of x (or slice along dim) repeated by a number or by a tensor of counts.

    FLOPs: none; backward an addition for each element of the repetition.
    Bytes: x (and the tensor of repeats) read, the repetition written; backward its gradient read,
    that of x written.

    The values of a tensor of repeats are not recorded; the cost is then unknown unless the output
    size is given.
    """
    count: int | None = None
    read: int | None = 0
    if isinstance(repeats, int):
        if repeats < 0:
            raise CannotModel(f"invalid number of repeats {repeats}")
        count = elements(x.shape) * repeats
    elif isinstance(repeats, Tensor):
        read = tensor_bytes(repeats)
        if isinstance(output_size, int) and output_size >= 0 and not isinstance(dim, Unknown):
            whole = elements(x.shape)
            along = whole if dim is None else _size_along(x, dim)
            count = whole // along * output_size if along else 0
    cost = _repeated(x, count, direction)
    return cost + Cost(0, read), tensor_text(x)


def _size_along(x: Tensor, dim: int) -> int:
    if not -len(x.shape) <= dim < len(x.shape):
        raise CannotModel(f"no dimension {dim} in {x.shape}")
    return x.shape[dim]
