"""Columns, texts and mappings that are computed for what is read, on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

import numpy.typing as npt

from fastprof._system.threads import computed_once
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
        self._n, self._make, self._rows = n, make, rows

    @computed_once
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

    none = -1


class DerivedFloats(_Derived, Floats):
    """Numbers that a function computes, NaN for unknown."""


_AT_ONCE = 1 << 14


class Computed(Sequence[str]):
    """n texts; `make(indices)` returns some. Tables of a million rows show few of their texts."""

    def __init__(self, n: int, make: Callable[[Sequence[int]], list[str]]) -> None:
        self._n, self._make = n, make

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[str]:
        for first in range(0, self._n, _AT_ONCE):
            yield from self[first : first + _AT_ONCE]

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self._make(range(*index.indices(self._n)))
        if not 0 <= index < self._n:
            raise IndexError(index)
        return self._make([index])[0]


class Deferred(Mapping[str, Any]):
    """The mapping that a function returns; the function runs on first use."""

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make = make

    @computed_once
    def _found(self) -> Mapping[str, Any]:
        return self._make()

    def __getitem__(self, name: str) -> Any:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
