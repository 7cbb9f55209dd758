"""Bytes of copies: joining, repeating, reordering, masking a triangle, conversions of types."""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.dtypes import Dtype, canonical_type, named, parts, result_type
from fastprof.ops.parameters import Int, Ints, Number, Size, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import broadcast, elements, flat, fresh, moved, tensor_bytes, texts


def copied(x: Tensor, *, exact: bool = True) -> Cost:
    """Cost of copying x to a new tensor."""
    return Cost(0, moved(x, fresh(x)), exact)


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
    Tensors concatenated into one of their common type.
    FLOPs: none.
    Bytes: each tensor read, the result written; backward the gradient read, those of the tensors
    written (torch uses views; this is the cost of a kernel, if one runs).

    Traces before 2023 do not record the tensors of a list. The size of the result is then counted
    as read, an estimate that holds for tensors of the same type.
    (tensors*, _): cat concat concatenate _cat stack _stack
    (tensors*): hstack vstack dstack column_stack row_stack flatten_dense_tensors
""")
def cat(
    tensors: Tensors | Unknown, *, direction: str, result: Tensor | Unknown = UNKNOWN
) -> Answer:
    if isinstance(tensors, Unknown):
        if isinstance(result, Unknown):
            raise CannotModel("neither the tensors of the list nor the result is in the capture")
        return Cost(0, moved(fresh(result), fresh(result)), exact=False), texts(result)
    if not tensors:
        raise CannotModel("no tensors")
    count = sum(elements(tensor.shape) for tensor in tensors)
    given = result.dtype if isinstance(result, Tensor) else None
    written = Tensor((count,), given or result_type(tensors))
    read = tensors if direction == "fprop" else map(fresh, tensors)
    return Cost(0, moved(*read, written)), texts(*tensors)


@operators("""
    Matrices along the diagonal of a zero matrix -> [all rows, all columns].
    FLOPs: none.
    Bytes: each matrix read, the result written.
    (tensors*): block_diag
""")
def block_diag(tensors: Tensors) -> Answer:
    if not tensors or any(len(tensor.shape) > 2 for tensor in tensors):
        raise CannotModel("expected tensors of at most two dimensions")
    rows = sum(tensor.shape[0] if len(tensor.shape) == 2 else 1 for tensor in tensors)
    columns = sum(tensor.shape[-1] if tensor.shape else 1 for tensor in tensors)
    written = Tensor((rows, columns), result_type(tensors))
    return Cost(0, moved(*tensors, written)), texts(*tensors)


@operators("""
    Tensors cut into chunks along dim and concatenated by chunk: first chunks, second chunks, ...
    FLOPs: none.
    Bytes: each tensor read, the result written with each padded to whole chunks.
    (tensors*, dim, chunks): _chunk_cat
    (tensors*, dim, chunks, out): fsdp::chunk_cat
""")
def chunk_cat(tensors: Tensors, dim: Int, chunks: Int, out: Tensor | None = None) -> Answer:
    params = texts(*tensors)
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
    return Cost(0, moved(*tensors, Tensor((count,), dtype))), params


table_row("""
    All elements of x, reordered, cut or with a triangle of zeros, as new tensors.
    FLOPs: none.
    Bytes: x read, the same amount written; backward the same for the gradient.
    (x, ...): roll flip fliplr flipud rot90 tril triu tril_ triu_ pixel_shuffle pixel_unshuffle
        channel_shuffle native_channel_shuffle view_copy permute_copy t_copy transpose_copy
        squeeze_copy unsqueeze_copy detach_copy alias_copy split_copy split_with_sizes_copy
        unbind_copy unsafe_split_copy _reshape_copy lift_fresh_copy _lazy_clone _conj_copy
        _neg_view_copy view_as_real_copy view_as_complex_copy torch.__deepcopy__
        fsdp::split_with_sizes_copy
""")("x", Traffic(0, "x x'", back=Traffic(0, "x' x'")))


table_row("""
    x in new memory.
    FLOPs: none.
    Bytes: x read and written (an expanded x read at its own size); backward none, the gradient is
    passed on.
    (x, ...): clone
""")("x", Traffic(0, "x x'", back=Traffic(0, "", "x")))


# Values of torch.contiguous_format and torch.preserve_format in traces.
_PLAIN: Final = frozenset({0, 1, "torch.contiguous_format", "torch.preserve_format"})


@operators("""
    x itself if it is contiguous, else a contiguous copy.
    FLOPs: none.
    Bytes: none if strides show that x is contiguous; else x read and written, an estimate if
    strides are unknown. Backward none, the gradient is passed on.

    If a kernel runs, there is a copy.
    (*): contiguous
""")
def contiguous(
    x: Tensor, memory_format: str | int | Unknown | None = None, *, direction: str
) -> Answer:
    plain = memory_format is None or memory_format in _PLAIN
    if direction == "bprop" or (plain and is_contiguous(x)):
        return Cost(0, 0), texts(x)
    return copied(x, exact=plain and is_contiguous(x) is False), texts(x)


@operators("""
    x in another shape: a view if its strides allow it, else a copy.
    FLOPs: none.
    Bytes: none if strides show that x is contiguous; else x read and written, an estimate, because
    other strides may also allow a view; backward an estimate: the gradient may be copied.

    If a kernel runs, there is a copy.
    (x, ...): reshape reshape_as flatten ravel
""")
def reshape(x: Tensor, *, direction: str) -> Answer:
    if direction == "fprop" and is_contiguous(x):
        return Cost(0, 0), texts(x)
    return copied(x if direction == "fprop" else fresh(x), exact=False), texts(x)


class More(NamedTuple):
    """Sizes that a Python call passes one by one, after the first."""

    second: int | None = None
    third: int | None = None
    fourth: int | None = None
    fifth: int | None = None
    sixth: int | None = None
    seventh: int | None = None
    eighth: int | None = None


def numbers_given(*given: Ints | Unknown | None) -> list[int] | None:
    """The numbers of an argument that is a list or several numbers; None if one is unknown."""
    numbers: list[int] = []
    for value in given:
        if isinstance(value, Unknown):
            return None
        if value is not None:
            numbers.extend((value,) if isinstance(value, int) else value)
    return numbers


def sizes_given(*given: Ints | Unknown | None) -> tuple[int, ...] | None:
    """The same of sizes; raises CannotModel when one is negative."""
    numbers = numbers_given(*given)
    if numbers is not None and any(number < 0 for number in numbers):
        raise CannotModel(f"invalid sizes {numbers}")
    return None if numbers is None else tuple(numbers)


@operators("""
    x repeated along each dimension -> [repeats[0] * x.shape[0], ..].
    FLOPs: none; backward an addition for each element of the repetition.
    Bytes: x read, the repetition written; backward its gradient read, that of x written.
    (x, sizes, second, third, fourth, fifth, sixth, seventh, eighth): torch.repeat
    (x, sizes, second, third, fourth, fifth, sixth, seventh, eighth, dims=sizes): torch.tile
    (x, sizes, ...): aten::repeat
    (x, sizes): aten::tile
""")
def repeat(x: Tensor, more: More, sizes: Ints | Unknown | None = None, *, direction: str) -> Answer:
    times = sizes_given(sizes, *more)
    count = None if times is None else elements(x.shape) * elements(times)
    return _repeated(x, count, direction), texts(x)


def _repeated(x: Tensor, count: int | None, direction: str) -> Cost:
    repetition = flat(count, x.dtype)
    if direction == "fprop":
        return Cost(0, moved(x, repetition))
    return Cost(None if count is None else count * parts(x.dtype), moved(repetition, fresh(x)))


@operators("""
    Each element of x (or slice along dim) repeated by a number or by a tensor of counts.
    FLOPs: none; backward an addition for each element of the repetition.
    Bytes: x (and the tensor of repeats) read, the repetition written; backward its gradient read,
    that of x written.

    The values of a tensor of repeats are not recorded; the cost is then unknown unless the output
    size is given.
    (x, repeats, dim, output_size=output_size): torch.repeat_interleave
    (x, repeats, dim, output_size): aten::repeat_interleave
""")
def repeat_interleave(
    x: Tensor,
    repeats: Tensor | int | Unknown | None = None,
    dim: Int | None = None,
    output_size: Size = None,
    *,
    direction: str,
) -> Answer:
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
    return cost + Cost(0, read), texts(x)


def _size_along(x: Tensor, dim: int) -> int:
    if not -len(x.shape) <= dim < len(x.shape):
        raise CannotModel(f"no dimension {dim} in {x.shape}")
    return x.shape[dim]


def converted(x: Tensor, dtype: str | None, direction: str) -> Cost:
    """Cost of reading x in its type and writing it in another; backward reversed."""
    return Cost(0, moved(x if direction == "fprop" else fresh(x), Tensor(x.shape, dtype)))


def _perhaps(x: Tensor, dtype: str | None, direction: str) -> Answer:
    # A call that copies only if the type, which is known, or the device, which is not, changes.
    cost = converted(x, dtype, direction)
    changes = dtype is not None and canonical_type(x.dtype) not in (None, dtype)
    return Cost(0, cost.bytes, changes), texts(x)


@operators("""
    A source, broadcast, written over x, in the type of x.
    FLOPs: none.
    Bytes: source read, x written, each in its own type; backward the gradient read in the type of x
    and written in that of the source.
    (x, src=source, ...): torch.copy_
    (x, source, ...): aten::copy_ aten::copy
""")
def copy_(x: Tensor, source: Tensor | Number, *, direction: str) -> Answer:
    if not isinstance(source, Tensor):
        return Cost(0, moved(fresh(x))), texts(x)
    if broadcast(x.shape, source.shape) != x.shape:
        raise CannotModel(f"{source.shape} does not broadcast to {x.shape}")
    read = source if direction == "fprop" else fresh(source)
    return Cost(0, moved(read, fresh(x))), texts(x, source)


table_row("""
    A source written over x, in the type of x.
    FLOPs: none.
    Bytes: source read, x written, each in its own type.
    (source, x, ...): aten::_copy_from
    (source, x): aten::_copy_from_and_resize
""")("source, x", lambda source, x: copy_(x, source, direction="fprop"))


@operators("""
    x in another type, or on another device, in new memory.
    FLOPs: none, a conversion moves data.
    Bytes: x read, the copy written, each in its own type; backward reversed.
    (x, dtype, _, _, _, _, _): aten::_to_copy
    (x, _, _): aten::_to_copy
""")
def to_copy(x: Tensor, dtype: Dtype = None, *, direction: str) -> Answer:
    result = canonical_type(x.dtype) if dtype is None else named(dtype)
    return converted(x, result, direction), texts(x)


@operators("""
    x in another type or on another device; x itself if nothing changes.
    FLOPs: none, a conversion moves data.
    Bytes: x read, the copy written, each in its own type; backward reversed.

    An estimate unless the types differ: if a kernel runs, there is a copy.
    (x, target, second, _, _, dtype, device): torch.to
    (x, first, second, third, ...): aten::to
""")
def to(
    x: Tensor,
    target: Tensor | str | int | Unknown | None = None,
    second: Dtype | bool = None,
    dtype: Dtype = None,
    device: str | int | Unknown | None = None,
    first: Tensor | Dtype = None,
    third: Dtype | bool = None,
    *,
    direction: str,
) -> Answer:
    other = next((tensor for tensor in (target, first) if isinstance(tensor, Tensor)), None)
    if other is not None:
        return _perhaps(x, canonical_type(other.dtype), direction)
    # Python: to(dtype), to(device, dtype); a number is a device. ATen: to(dtype, non_blocking, ..),
    # to(device, dtype, non_blocking, ..), to(dtype, layout, device, ..).
    of_device = isinstance(third, bool) and not isinstance(second, bool)
    asked = [dtype, second if of_device else first, target if isinstance(target, str) else None]
    if third is None and first is None:
        asked.append(second)
    given = [each for each in asked if each is not None and not isinstance(each, bool)]
    names = [named(tensor) for tensor in given if not isinstance(tensor, Tensor)]
    result = next((name for name in names if name is not None), None)
    unclear = any(isinstance(each, Unknown) for each in (*given, target))
    if result is None and not unclear:
        result = canonical_type(x.dtype)
    return _perhaps(x, result, direction)


@operators("""
    x in another type; x itself if it has that type. Without an argument, the name of its type.
    FLOPs: none, a conversion moves data.
    Bytes: x read, the copy written, each in its own type; backward reversed.
    (x, dtype, ...): torch.type
    (x, other): type_as
""")
def torch_type(
    x: Tensor, dtype: Dtype = None, other: Tensor | None = None, *, direction: str
) -> Answer:
    if other is not None:
        return _perhaps(x, canonical_type(other.dtype), direction)
    if dtype is None:
        return Cost(0, 0), texts(x)
    return _perhaps(x, named(dtype), direction)


_METHODS: Final = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    "cfloat": "complex64",
    "cdouble": "complex128",
}
_CASTS: Final = {
    f"_cast_{name.capitalize()}": _METHODS[name]
    for name in ("double", "float", "half", "long", "int", "short", "char", "byte")
}


def _as(x: Tensor, *, dtype: str, direction: str) -> Answer:
    if canonical_type(x.dtype) == dtype:
        return Cost(0, 0), texts(x)
    return _perhaps(x, dtype, direction)


for _name, _dtype in (*_METHODS.items(), *_CASTS.items()):
    table_row(f"""
        x as {_dtype}; x itself if it has that type.
        FLOPs: none, a conversion moves data.
        Bytes: x read, the copy written, each in its own type; none if x has the type; backward
        reversed.
        (x, ...): {"torch." if _name in _METHODS else "aten::"}{_name}
    """)(_as, dtype=_dtype)


table_row("""
    x on another device; x itself if it is there.
    FLOPs: none.
    Bytes: x read and written, an estimate: the device is not recorded.
    (x, ...): cpu cuda
""")("x", lambda x, direction: _perhaps(x, canonical_type(x.dtype), direction))


@operators("""
    x in autocast's type; x itself if it has that type.
    FLOPs: none, a conversion moves data.
    Bytes: x read, the copy written, each in its own type; backward reversed.

    An estimate unless the types differ: if a kernel runs, there is a copy.
    (x, ...): aten::_autocast_to_full_precision
    (x, _, _, dtype, ...): aten::_autocast_to_reduced_precision
""")
def autocast_to_full_precision(x: Tensor, dtype: Dtype = "float32", *, direction: str) -> Answer:
    return _perhaps(x, named(dtype), direction)


table_row("""
    Elements of x as numbers of Python: a copy to the host.
    FLOPs: none.
    Bytes: x read.
    (x): item torch.tolist torch.__float__ torch.__int__ torch.__index__ aten::_local_scalar_dense
""")("x", Traffic(0, "x"))
