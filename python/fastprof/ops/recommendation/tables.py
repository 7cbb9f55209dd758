"""Embedding tables that one lookup reads together, to their widths, rows and outputs.

fbgemm lays the tables of several features in one tensor of elements; which feature has how many
indices, and which rows they pick, are values that no capture holds. Source of the layout:
fbgemm_gpu/codegen/training/ in pytorch/FBGEMM.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final, NamedTuple

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel
from fastprof.ops.tensor import byte_count, elements

__all__ = ["MEAN", "NO_POOLING", "Size", "Tables", "tables"]

Size = int | Unknown | None

NO_POOLING: Final = 2  # fbgemm's PoolingMode: 0 sum, 1 mean
MEAN: Final = 1
_OUTPUT: Final = "float32"  # what fbgemm writes by default (`output_dtype`)


class Tables(NamedTuple):
    """What one lookup reads and writes.

    Parameters
    ----------
    weights : Tensor
        The elements of all tables that lie in one memory.
    rows : int or None
        Rows of all tables, None when not known.
    width : Fraction
        Elements of a row; of tables with rows of different widths an average.
    indices : int
        Rows that are picked, each as often as it is.
    output : Tensor
        Sums over the bags [bags, total of the widths], or the picked rows themselves.
    exact : bool
        Whether all rows are as wide as `width`, and the output's type is known.
    """

    weights: Tensor
    rows: int | None
    width: Fraction
    indices: int
    output: Tensor
    exact: bool

    @property
    def picked(self) -> int:
        """Elements of all picked rows."""
        return round(self.indices * self.width)

    @property
    def touched(self) -> int:
        """Elements of the different rows that are picked, at most."""
        known = [self.indices] if self.rows is None else [self.indices, self.rows]
        return round(min(known) * self.width)

    def element_bytes(self, count: int) -> int | None:
        """Bytes of that many elements of the tables."""
        return byte_count(count, self.weights.dtype)


def tables(
    weights: tuple[Tensor, ...],
    features: int | None,
    widths: tuple[Size, Size],
    indices: Tensor,
    offsets: Tensor,
    pooling: int | Unknown | None,
    momentum: Any,
    result: Tensor | Unknown | None,
) -> Tables:
    """What a lookup does.

    Parameters
    ----------
    weights : tuple of Tensor
        On the device and in unified memory; all but one are empty.
    features : int or None
        Tables that are read, None where every index picks a row of its own ("no bag").
    widths : (int, int)
        Sum of the tables' widths, and the largest; either may be unknown.
    momentum : Tensor or any other value
        The first state of the optimizer, which has an element a row or an element an element.
    result : Tensor or Unknown
        The output, where the capture tells it.

    Raises
    ------
    CannotModel
        When no width is known.
    """
    stored = max(weights, key=lambda each: elements(each.shape))
    size = elements(stored.shape)
    count = elements(indices.shape)
    pooled = pooling != NO_POOLING and features is not None
    of_features = features if features is not None and pooled else 1
    bags = max((elements(offsets.shape) - 1) // max(of_features, 1), 0) if pooled else count
    told = _told(result, bags)
    total, largest = (value if isinstance(value, int) else None for value in widths)
    if not pooled:
        total = largest = largest if told is None else told.shape[1]
    elif total is None and told is not None:
        total = told.shape[1]
    rows = _rows(size, momentum)
    if total is not None:
        width = Fraction(total, max(of_features, 1))
    elif rows:
        width = Fraction(size, rows)
    else:
        raise CannotModel("the widths of the tables are not in the capture")
    if rows is None and width and largest == width:
        rows = round(size / width)
    dtype = None if told is None else told.dtype
    output = Tensor((bags, round(width * of_features)), dtype or _OUTPUT)
    same = of_features == 1 or (largest is not None and largest == width)
    return Tables(stored, rows, width, count, output, same and dtype is not None)


def _told(result: Tensor | Unknown | None, bags: int) -> Tensor | None:
    # The output, if what the capture tells can be that.
    if isinstance(result, Tensor) and len(result.shape) == 2 and result.shape[0] == bags:
        return result
    return None


def _rows(size: int, momentum: Any) -> int | None:
    # A state of one element a row tells their number.
    if not isinstance(momentum, Tensor):
        return None
    count = elements(momentum.shape)
    return count if 0 < count < size else None
