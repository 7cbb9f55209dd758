"""Names for types of NumPy arrays, and values by number, of which many are equal."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
UInt8 = npt.NDArray[np.uint8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Floats64 = npt.NDArray[np.float64]

Number = TypeVar("Number", bound=np.integer[Any])

_AT_A_TIME: Final = 4096  # parts


def joined(parts: Iterable[Sequence[npt.NDArray[Any]]]) -> list[npt.NDArray[Any]]:
    """The columns of at least one part, concatenated some parts at a time: a tiny array takes ten
    times the memory of its number.

    parts : arrays of the same columns
    """
    some, blocks = [], []
    for part in parts:
        some.append(part)
        if len(some) == _AT_A_TIME:
            blocks.append([*map(np.concatenate, zip(*some, strict=True))])
            some = []
    return [*map(np.concatenate, zip(*blocks, *some, strict=True))]


def unique(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The distinct numbers, ascending.

    Unlike `np.unique` and numpy's functions of sets, those of this module do without numpy.ma,
    whose import takes 10 ms.
    """
    ordered = np.sort(values, axis=None)
    is_first = np.empty(len(ordered), np.bool_)
    is_first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def among(values: npt.NDArray[Number], others: npt.NDArray[Number]) -> Bools:
    """Whether each number is one of `others`."""
    if not len(others):
        return np.zeros(len(values), np.bool_)
    sought = unique(others)
    place = np.searchsorted(sought, values)
    result: Bools = sought[np.minimum(place, len(sought) - 1)] == values
    return result


def difference(values: npt.NDArray[Number], others: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The distinct numbers, ascending, that are not among `others`."""
    result = unique(values)
    return result[~among(result, others)]


def union(values: npt.NDArray[Number], others: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The distinct numbers, ascending, of both arrays."""
    return unique(np.concatenate([values, others]))


def rows_by(values: npt.NDArray[Any]) -> Iterator[tuple[int, Int64]]:
    """Each distinct integer, ascending, and the rows that have it; linear in the rows."""
    if len(values) and (values == values[0]).all():
        yield int(values[0]), np.arange(len(values))
        return
    order = np.argsort(values, kind="stable")
    in_order = values[order]
    changes = np.flatnonzero(in_order[1:] != in_order[:-1]) + 1
    for rows in np.split(order, changes) if len(order) else ():
        yield int(values[rows[0]]), rows


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
