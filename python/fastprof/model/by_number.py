"""Values by number, of which many are equal."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fastprof.model.arrays import Int32, Int64

Value = TypeVar("Value")


def place_in(numbers: npt.NDArray[np.integer], number: int) -> int:
    """The index of a number in ascending ones.

    Raises
    ------
    KeyError
        It is none of them.
    """
    place = int(numbers.searchsorted(number))
    if place == len(numbers) or numbers[place] != number:
        raise KeyError(number)
    return place


class ByNumber(Mapping[int, Value]):
    """A mapping that takes 12 bytes a number, where a dict takes 84: a file may have many GPUs.

    Parameters
    ----------
    numbers : int64 [n], ascending, each once
    ids : int32 [n], indices into `distinct`
    distinct : the values
    """

    def __init__(self, numbers: Int64, ids: Int32, distinct: Sequence[Value]) -> None:
        self.numbers, self.ids, self.distinct = numbers, ids, distinct

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers.tolist())

    def __getitem__(self, number: int) -> Value:
        return self.distinct[int(self.ids[place_in(self.numbers, number)])]

    def values(self) -> ValuesView[Value]:
        """The values; no search for each number."""
        return _Values(self)

    def items(self) -> ItemsView[int, Value]:
        """The numbers and values; no search for each number."""
        return _Items(self)

    def __repr__(self) -> str:
        return repr(dict(self))


class _Values(ValuesView[Any]):
    _mapping: ByNumber[Any]

    def __iter__(self) -> Iterator[Any]:
        return map(self._mapping.distinct.__getitem__, self._mapping.ids.tolist())


class _Items(ItemsView[int, Any]):
    _mapping: ByNumber[Any]

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return zip(self._mapping, self._mapping.values(), strict=True)
