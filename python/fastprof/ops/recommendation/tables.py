"""Widths, rows and outputs of the embedding tables of one lookup.

fbgemm stores the tables of several features in one tensor. The number of indices per feature and
the rows they pick are values that no capture records. Source of the layout:
fbgemm_gpu/codegen/training/ in pytorch/FBGEMM.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final, NamedTuple

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel
from fastprof.ops.tensor import byte_count, elements

Size = int | Unknown | None

NO_POOLING: Final = 2  # fbgemm's PoolingMode: 0 sum, 1 mean
MEAN: Final = 1
_OUTPUT: Final = "float32"  # fbgemm's default `output_dtype`


class Tables(NamedTuple):
    """Sizes of one lookup.

    Parameters
    ----------
    weights : Tensor
        The elements of all tables in one memory.
    rows : int or None
        Rows of all tables; None if unknown.
    width : Fraction
        Elements of a row; the average if tables differ in width.
    indices : int
        Number of picked rows, with repetitions.
    output : Tensor
        Sums over the bags [bags, total of the widths], or the picked rows themselves.
    exact : bool
        Whether all rows have this width, and the output's type is known.
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
        """Upper bound on the elements of distinct picked rows."""
        known = [self.indices] if self.rows is None else [self.indices, self.rows]
        return round(min(known) * self.width)

    def element_bytes(self, count: int) -> int | None:
        """Bytes of `count` elements of the tables."""
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
    """The sizes of a lookup.

    Parameters
    ----------
    weights : tuple of Tensor
        On the device and in unified memory; all but one are empty.
    features : int or None
        Number of tables; None without pooling ("no bag").
    widths : (int, int)
        Sum of the tables' widths, and the largest; either may be unknown.
    momentum : Tensor or any other value
        The first state of the optimizer, with one element per row or per weight.
    result : Tensor or Unknown
        The output, if recorded.

    Raises
    ------
    CannotModel
        When the widths are unknown.
    """
    stored = max(weights, key=lambda each: elements(each.shape))
    size = elements(stored.shape)
    count = elements(indices.shape)
    pooled = pooling != NO_POOLING and features is not None
    of_features = features if features is not None and pooled else 1
    bags = max((elements(offsets.shape) - 1) // max(of_features, 1), 0) if pooled else count
    recorded = _recorded_output(result, bags)
    total, largest = (value if isinstance(value, int) else None for value in widths)
    if not pooled:
        total = largest = largest if recorded is None else recorded.shape[1]
    elif total is None and recorded is not None:
        total = recorded.shape[1]
    rows = _rows(size, momentum)
    if total is not None:
        width = Fraction(total, max(of_features, 1))
    elif rows:
        width = Fraction(size, rows)
    else:
        raise CannotModel("the widths of the tables are not in the capture")
    if rows is None and width and largest == width:
        rows = round(size / width)
    dtype = None if recorded is None else recorded.dtype
    output = Tensor((bags, round(width * of_features)), dtype or _OUTPUT)
    same = of_features == 1 or (largest is not None and largest == width)
    return Tables(stored, rows, width, count, output, same and dtype is not None)


def _recorded_output(result: Tensor | Unknown | None, bags: int) -> Tensor | None:
    # The recorded result, if it can be the output.
    if isinstance(result, Tensor) and len(result.shape) == 2 and result.shape[0] == bags:
        return result
    return None


def _rows(size: int, momentum: Any) -> int | None:
    # A state with one element per row determines the number of rows.
    if not isinstance(momentum, Tensor):
        return None
    count = elements(momentum.shape)
    return count if 0 < count < size else None
