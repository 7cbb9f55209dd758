"""FLOPs and bytes of number sequences: ranges, linear steps, triangle indices."""

from __future__ import annotations

from math import ceil, isfinite
from typing import Any, Final

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.arithmetic import POWER
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.dtypes import Dtype, chosen
from fastprof.ops.movement.creation import DEFAULT_TYPE, new_tensor
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements


@operators("""
    (row=rows, col=columns, offset, dtype): torch.tril_indices
    (rows, columns, offset, dtype, ...): aten::tril_indices
""")
def tril_indices(
    rows: int | Unknown,
    columns: int | Unknown,
    offset: int | Unknown = 0,
    dtype: Dtype = None,
) -> tuple[Cost, str]:
    """Indices of the lower triangle of a matrix [rows, columns] -> [2, n].

    FLOPs: none.
    Bytes: the indices written, int64 unless a type is given.
    """
    return _triangle(rows, columns, offset, dtype)


@operators("""
    (row=rows, col=columns, offset, dtype=dtype): torch.triu_indices
    (rows, columns, offset, dtype, ...): aten::triu_indices
""")
def triu_indices(
    rows: int | Unknown,
    columns: int | Unknown,
    offset: int | Unknown = 0,
    dtype: Dtype = None,
) -> tuple[Cost, str]:
    """Indices of the upper triangle of a matrix [rows, columns] -> [2, n].

    FLOPs: none.
    Bytes: the indices written, int64 unless a type is given.
    """
    # The upper triangle is the lower triangle of the transposed matrix.
    return _triangle(columns, rows, offset if isinstance(offset, Unknown) else -offset, dtype)


_LARGEST: Final = 1 << 16  # rows of the largest supported triangle


def _triangle(
    rows: int | Unknown, columns: int | Unknown, offset: int | Unknown, dtype: Dtype
) -> tuple[Cost, str]:
    if isinstance(rows, Unknown) or isinstance(columns, Unknown) or isinstance(offset, Unknown):
        return Cost(0, None), ""
    if not 0 <= rows <= _LARGEST or columns < 0:
        raise CannotModel(f"invalid triangle size {rows} by {columns}")
    places = sum(min(max(row + offset + 1, 0), columns) for row in range(rows))
    return Cost(0, byte_count(2 * places, chosen(dtype, "int64"))), ""


@operators("""
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
) -> tuple[Cost, str]:
    """Numbers from start to end with a step.

    FLOPs: 2 for each: a product and an addition.
    Bytes: the numbers written: int64 if start, end and step are integers, else by default of
    float32, an estimate.

    The additional end element of range is not counted.
    """
    # ATen: (end, ..), (start, end, ..), (start, end, step, ..), each followed by type, layout,
    # device and pin, or by an out tensor.
    given = (start, end, step, fourth, fifth, sixth, seventh)
    if any(isinstance(each, Tensor) and (each.shape or each.dtype) for each in given):
        raise CannotModel("no numbers in tensors")
    count = sum(not isinstance(each, str) or each != "absent" for each in given)
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
    if all(type(each) is int for each in (start, end, step)):
        return max(-int((start - end) // step), 0)
    steps = (end - start) / step
    if not isfinite(steps):
        raise CannotModel(f"invalid range from {start} to {end} by {step}")
    return max(ceil(steps), 0)


@operators("""
    (start, end, steps, dtype): torch.linspace
    (start, end, steps, dtype, ...): aten::linspace
""")
def linspace(
    steps: int | Unknown,
    start: Any = None,
    end: Any = None,
    dtype: Dtype = None,
) -> tuple[Cost, str]:
    """`steps` evenly spaced numbers from start to end.

    FLOPs: 2 for each: a product and an addition.
    Bytes: the numbers written, by default of float32, an estimate.
    """
    return _spaced(steps, dtype, 2)


@operators("""
    (start, end, steps, base, dtype): torch.logspace
    (start, end, steps, base, dtype, ...): aten::logspace
""")
def logspace(
    steps: int | Unknown,
    start: Any = None,
    end: Any = None,
    base: Any = None,
    dtype: Dtype = None,
) -> tuple[Cost, str]:
    """`steps` powers of a base with evenly spaced exponents.

    FLOPs: 22 for each: a product, an addition and a power.
    Bytes: the numbers written, by default of float32, an estimate.
    """
    return _spaced(steps, dtype, POWER + 2)


def _spaced(steps: int | Unknown, dtype: Dtype, flops: int) -> tuple[Cost, str]:
    if isinstance(steps, Unknown) or steps < 0:
        raise CannotModel(f"invalid number of steps {steps}")
    return new_tensor(steps, dtype, DEFAULT_TYPE, flops)
