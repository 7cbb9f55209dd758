"""Columns of tables that are computed for the rows that are read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy.typing as npt

from fastprof.model.columns import Ints, Rows
from fastprof.model.table import Floats

Numbers = npt.NDArray[Any]
Own = TypeVar("Own", bound="_Derived")


class _Derived:
    """Numbers that a function computes. Text shows few rows of large tables.

    Parameters
    ----------
    n : number of rows that the function knows
    make : returns the numbers of some rows
    rows : the rows of this column; None for all
    """

    def __init__(
        self, n: int, make: Callable[[Rows | slice], Numbers], rows: Rows | None = None
    ) -> None:
        self.__dict__.update(_n=n, _make=make, _rows=rows)

    _n: int
    _make: Callable[[Rows | slice], Numbers]
    _rows: Rows | None

    @cached_property
    def values(self) -> Numbers:
        """As in the other base class; computed on first use."""
        return self._make(slice(None) if self._rows is None else self._rows)

    def __len__(self) -> int:
        return self._n if self._rows is None else len(self._rows)

    def take(self: Own, rows: Rows) -> Own:
        """Some rows, in this order."""
        return type(self)(self._n, self._make, rows if self._rows is None else self._rows[rows])


class DerivedInts(_Derived, Ints):
    """Integers that a function computes, -1 for unknown."""


class DerivedFloats(_Derived, Floats):
    """Numbers that a function computes, NaN for unknown."""
