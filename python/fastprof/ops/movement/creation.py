"""Bytes of new, filled and counted tensors."""

from __future__ import annotations

from math import ceil, isfinite
from typing import Any, Final

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.axes import POWER
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.dtypes import SCALAR_TYPES, Dtype, canonical_type, chosen
from fastprof.ops.movement.copies import More, sizes_given
from fastprof.ops.parameters import Int, Ints, Number, Size
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import byte_count, elements, tensor_bytes, tensor_text

DEFAULT_TYPE: Final = "float32"  # torch's, unless changed by torch.set_default_dtype


def new_tensor(count: int | None, dtype: Dtype, default: str | None, flops: int = 0) -> Answer:
    """Cost of writing `count` elements; an estimate if the type is torch's default."""
    result = chosen(dtype, default)
    written = None if count is None else byte_count(count, result)
    made = None if flops and count is None else flops * (count or 0)
    params = "" if count is None else tensor_text(Tensor((count,), result))
    return Cost(made, written, dtype is not None), params


@operators("""
    x filled with one number.
    FLOPs: none.
    Bytes: x written (and the number read, if it is a tensor); backward zeros written.
    (x, value): fill_ torch.fill
    (x): zero_ torch.zero one_
    (x, value, ...): aten::fill
    (x, ...): aten::zero
""")
def fill(x: Tensor, value: Tensor | Number | Unknown | None = None, *, direction: str) -> Answer:
    read: int | None = 0
    if isinstance(value, Tensor) and canonical_type(value.dtype) and direction == "fprop":
        read = tensor_bytes(value)
    return Cost(0, add_known(byte_count(elements(x.shape), x.dtype), read)), tensor_text(x)


table_row("""
    The diagonal of x [m, n, ..] filled with one number; wrapping is not counted.
    FLOPs: none.
    Bytes: the diagonal written.
    (x, ...): fill_diagonal_
""")("x", lambda x: (Cost(0, byte_count(min(x.shape, default=1), x.dtype)), tensor_text(x)))


@operators("""
    A tensor of a given size filled with zeros or ones.
    FLOPs: none.
    Bytes: the tensor written.

    Without dtype, torch's default float32 is assumed, an estimate: programs may change it.
    (size, second, third, fourth, fifth, sixth, seventh, eighth, dtype): torch.zeros torch.ones
    (size, dtype, ...): aten::zeros aten::ones
""")
def zeros(more: More, size: Ints | Unknown | None = None, dtype: Dtype = None) -> Answer:
    shape = sizes_given(size, *more)
    return new_tensor(None if shape is None else elements(shape), dtype, DEFAULT_TYPE)


@operators("""
    A tensor of a given size filled with one number.
    FLOPs: none.
    Bytes: the tensor written.

    Without dtype, it has the number's type; for a float, torch's default float32 is assumed, an
    estimate: programs may change it.
    (size, fill_value=value, dtype=dtype): torch.full
    (size, value, dtype, ...): aten::full
""")
def full(size: Ints | Unknown, value: Number | Tensor | Unknown, dtype: Dtype = None) -> Answer:
    shape = sizes_given(size)
    count = None if shape is None else elements(shape)
    if dtype is None and not isinstance(value, (Tensor, Unknown)):
        cost, params = new_tensor(count, SCALAR_TYPES[type(value)], None)
        return Cost(0, cost.bytes, isinstance(value, int)), params
    default = value.dtype if isinstance(value, Tensor) else None
    return new_tensor(count, dtype, default)


@operators("""
    Memory for a new tensor.
    FLOPs: none.
    Bytes: none: nothing is written, no kernel runs.
    (...): empty empty_strided empty_like empty_permuted new_empty new_empty_strided
        _efficientzerotensor
""")
def empty() -> Answer:
    return Cost(0, 0), ""


@operators("""
    A tensor of the shape of x, filled with one number.
    FLOPs: none.
    Bytes: the tensor written; x is not read.
    (x, dtype=dtype): torch.zeros_like torch.ones_like
    (x, _, dtype=dtype): torch.full_like
    (x, dtype, _, _, _, _): aten::zeros_like aten::ones_like
    (x, _, dtype, _, _, _, _): aten::full_like
""")
def zeros_like(x: Tensor, dtype: Dtype = None) -> Answer:
    return Cost(0, byte_count(elements(x.shape), chosen(dtype, x.dtype))), tensor_text(x)


@operators("""
    A tensor of a given size and the type of x, filled with one number.
    FLOPs: none.
    Bytes: the tensor written; x is not read.
    (x, size, second, third, fourth, fifth, sixth, dtype): torch.new_zeros torch.new_ones
    (x, size, fill_value=_, dtype=dtype): torch.new_full
    (x, size, dtype, ...): aten::new_zeros aten::new_ones
    (x, size, _, dtype, ...): aten::new_full
""")
def new_zeros(x: Tensor, size: Ints | Unknown, more: More, dtype: Dtype = None) -> Answer:
    shape = sizes_given(size, *more)
    result = chosen(dtype, x.dtype)
    written = None if shape is None else byte_count(elements(shape), result)
    return Cost(0, written), tensor_text(x)


@operators("""
    A 0-dim tensor with one number.
    FLOPs: none.
    Bytes: one element written, by default of float32, an estimate.
    (value, dtype=dtype): torch.scalar_tensor
    (value, dtype, ...): aten::scalar_tensor
""")
def scalar_tensor(value: Number | Unknown, dtype: Dtype = None) -> Answer:
    return new_tensor(1, dtype, DEFAULT_TYPE)


@operators("""
    The matrix [rows, columns] with ones along its diagonal.
    FLOPs: none.
    Bytes: the matrix written, by default of float32, an estimate.
    (n=rows, m=columns, dtype): torch.eye
    (rows, second, third, fourth, fifth, sixth): aten::eye
""")
def eye(
    rows: Int,
    columns: Size = None,
    dtype: Dtype = None,
    second: Any = None,
    third: Any = "absent",
    fourth: Any = None,
    fifth: Any = None,
    sixth: Any = "absent",
) -> Answer:
    # ATen: (n, m) with an out tensor, else (n, dtype, layout, device, pin) and (n, m, dtype,
    # layout, device, pin).
    if any(
        isinstance(tensor, Tensor) and (tensor.shape or tensor.dtype) for tensor in (second, third)
    ):
        raise CannotModel("no tensor among the sizes")
    if third == "absent":
        columns = second if columns is None else columns
    elif sixth != "absent":
        columns, dtype = second, third
    elif second is not None:
        dtype = second
    if isinstance(rows, Unknown) or isinstance(columns, Unknown):
        return Cost(0, None), ""
    width = rows if columns is None else columns
    if type(width) is not int or rows < 0 or width < 0:
        raise CannotModel(f"invalid matrix size {rows} by {columns}")
    return new_tensor(
        rows * width, dtype if isinstance(dtype, str | int | Unknown) else None, DEFAULT_TYPE
    )


_LARGEST: Final = 1 << 16  # rows of the largest supported triangle


def _triangle(
    rows: Int, columns: Int, offset: Int = 0, dtype: Dtype = None, *, lower: bool
) -> Answer:
    if isinstance(rows, Unknown) or isinstance(columns, Unknown) or isinstance(offset, Unknown):
        return Cost(0, None), ""
    if not lower:  # the lower triangle of the transposed matrix
        rows, columns, offset = columns, rows, -offset
    if not 0 <= rows <= _LARGEST or columns < 0:
        raise CannotModel(f"invalid triangle size {rows} by {columns}")
    places = sum(min(max(row + offset + 1, 0), columns) for row in range(rows))
    return Cost(0, byte_count(2 * places, chosen(dtype, "int64"))), ""


table_row("""
    Indices of the lower triangle of a matrix [rows, columns] -> [2, n].
    FLOPs: none.
    Bytes: the indices written, int64 unless a type is given.
    (row=rows, col=columns, offset, dtype): torch.tril_indices
    (rows, columns, offset, dtype, ...): aten::tril_indices
""")(_triangle, lower=True)


table_row("""
    Indices of the upper triangle of a matrix [rows, columns] -> [2, n].
    FLOPs: none.
    Bytes: the indices written, int64 unless a type is given.
    (row=rows, col=columns, offset, dtype=dtype): torch.triu_indices
    (rows, columns, offset, dtype, ...): aten::triu_indices
""")(_triangle, lower=False)


@operators("""
    Numbers from start to end with a step.
    FLOPs: 2 for each: a product and an addition.
    Bytes: the numbers written: int64 if start, end and step are integers, else by default of
    float32, an estimate.

    The additional end element of range is not counted.
    (start, end, step, dtype=dtype): torch.arange torch.range
    (start, end, step, fourth, fifth, sixth, seventh): aten::arange aten::range
""")
def arange(
    start: Any,
    end: Any = None,
    step: Any = None,
    dtype: Dtype = None,
    fourth: Any = "absent",
    fifth: Any = "absent",
    sixth: Any = "absent",
    seventh: Any = "absent",
    *,
    result: Tensor | Unknown = UNKNOWN,
) -> Answer:
    # ATen: (end, ..), (start, end, ..), (start, end, step, ..), each followed by type, layout,
    # device and pin, or by an out tensor.
    given = (start, end, step, fourth, fifth, sixth, seventh)
    if any(isinstance(tensor, Tensor) and (tensor.shape or tensor.dtype) for tensor in given):
        raise CannotModel("no numbers in tensors")
    count = sum(not isinstance(value, str) or value != "absent" for value in given)
    if fourth != "absent":
        numbers = {5: 1, 6: 2, 7: 3}.get(count, 3)
        dtype = given[numbers] if count > 4 else None
        start, end, step = (*given[:numbers], None, None)[:3]
    if end is None:
        start, end = 0, start
    step = 1 if step is None else step
    if not all(type(each) in (int, float) for each in (start, end, step)):
        if isinstance(result, Tensor):
            return new_tensor(elements(result.shape), result.dtype or UNKNOWN, None, flops=2)
        raise CannotModel("the number of elements is not in the capture")
    if not all(map(isfinite, (start, end, step))) or not step:
        raise CannotModel(f"invalid range from {start} to {end} by {step}")
    whole = all(type(each) is int for each in (start, end, step))
    return new_tensor(_steps(start, end, step), _typed(dtype, whole), DEFAULT_TYPE, flops=2)


def _typed(dtype: Any, whole: bool) -> Dtype:
    if dtype is None:
        return "int64" if whole else None
    return dtype if isinstance(dtype, str | int | Unknown) else None


def _steps(start: float, end: float, step: float) -> int:
    if all(type(value) is int for value in (start, end, step)):
        return max(-int((start - end) // step), 0)
    steps = (end - start) / step
    if not isfinite(steps):
        raise CannotModel(f"invalid range from {start} to {end} by {step}")
    return max(ceil(steps), 0)


def _spaced(
    steps: Int,
    start: Any = None,
    end: Any = None,
    base: Any = None,
    dtype: Dtype = None,
    *,
    flops: int,
) -> Answer:
    if isinstance(steps, Unknown) or steps < 0:
        raise CannotModel(f"invalid number of steps {steps}")
    return new_tensor(steps, dtype, DEFAULT_TYPE, flops)


table_row("""
    `steps` evenly spaced numbers from start to end.
    FLOPs: 2 for each: a product and an addition.
    Bytes: the numbers written, by default of float32, an estimate.
    (start, end, steps, dtype): torch.linspace
    (start, end, steps, dtype, ...): aten::linspace
""")(_spaced, flops=2)


table_row("""
    `steps` powers of a base with evenly spaced exponents.
    FLOPs: 22 for each: a product, an addition and a power.
    Bytes: the numbers written, by default of float32, an estimate.
    (start, end, steps, base, dtype): torch.logspace
    (start, end, steps, base, dtype, ...): aten::logspace
""")(_spaced, flops=POWER + 2)
