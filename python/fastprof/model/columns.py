"""Compact columns with a value per kernel: numbers, repeated values, lists of numbers.

No column contains a Python object per kernel: each distinct text or tuple is stored once, and rows
contain indices. `array()` returns the column as a NumPy array; `chunks(size)` yields the Python
values of `size` rows at a time, None where unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core._take import distinct, objects, take, where
from fastprof._system.classes import dataclass
from fastprof._system.threads import computed_once

Objects = npt.NDArray[np.object_]
Rows = npt.NDArray[np.integer[Any]]

_ROWS_AT_ONCE = 1 << 14


class Ints:
    """Integers, shape [n] or [n, 3]; `none` stands for "unknown" (na)."""

    def __init__(self, values: npt.NDArray[Any], none: int = -1) -> None:
        self._values, self.none = values, none

    @property
    def values(self) -> npt.NDArray[Any]:
        """The numbers."""
        return self._values

    def __len__(self) -> int:
        return len(self.values)

    def at(self, row: int) -> Any:
        """The value of one row: int, tuple of 3 ints, or None."""
        if self.values.ndim == 2:
            first = int(self.values[row, 0])
            return None if first == self.none else tuple(int(x) for x in self.values[row])
        value = int(self.values[row])
        return None if value == self.none else value

    def take(self, rows: Rows) -> Ints:
        """Some rows, in this order."""
        return Ints(self.values[rows], self.none)

    def array(self) -> np.ma.MaskedArray[Any, Any]:
        """A read-only masked array of the same shape; unknown numbers are masked."""
        values = self.values.view()
        values.flags.writeable = False
        # The sum of an empty array is 0, but masked where the array has a mask.
        mask = values == self.none if values.size else np.ma.nomask
        return np.ma.MaskedArray(values, mask, fill_value=self.none)

    def known(self) -> npt.NDArray[Any]:
        """The known numbers, in one dimension."""
        values: npt.NDArray[Any] = self.values[self.values != self.none]
        return values

    def chunks(self, size: int) -> Iterator[list[Any]]:
        """The Python values: int, tuple of 3 ints, or None."""
        for first in range(0, len(self), size):
            yield self._objects(slice(first, first + size)).tolist()

    def _objects(self, rows: slice) -> Objects:
        values = self.values[rows]
        if values.ndim == 1:
            objects, unknown = values.astype(object), values == self.none
        else:
            objects, unknown = _tuples(values), values[:, 0] == self.none
        objects[unknown] = None
        return objects


class RepeatedInts(Ints):
    """Integers with few distinct values: row i is `distinct[ids[i]]`.

    Parameters
    ----------
    ids : int32 [n]
        Indices into `distinct`, never -1.
    distinct : int32 or int64, [m] or [m, 3]
    """

    def __init__(
        self, ids: npt.NDArray[np.int32], distinct: npt.NDArray[Any], none: int = -1
    ) -> None:
        self.ids, self.distinct, self.none = ids, distinct, none

    @computed_once
    def values(self) -> npt.NDArray[Any]:
        """As in Ints; computed on first use."""
        if self.distinct.ndim == 1:
            return take(self.distinct, self.ids)
        values: npt.NDArray[Any] = self.distinct[self.ids]
        return values

    def __len__(self) -> int:
        return len(self.ids)

    def chunks(self, size: int) -> Iterator[list[Any]]:
        """As in Ints; each distinct row becomes a Python value once."""
        distinct = Ints(self.distinct, self.none)._objects(slice(None))
        for first in range(0, len(self), size):
            yield distinct[self.ids[first : first + size]].tolist()


class Values:
    """Repeated values: row i is `values[ids[i]]`; id -1 is "unknown" (na). ids: int32 [n]."""

    def __init__(self, ids: npt.NDArray[np.int32], values: list[Any]) -> None:
        self._ids, self.values = ids, values

    @property
    def ids(self) -> npt.NDArray[np.int32]:
        """Indices into `values`, -1 for "unknown"."""
        return self._ids

    def __len__(self) -> int:
        return len(self.ids)

    def at(self, row: int) -> Any:
        """The value of one row, or None."""
        index = int(self.ids[row])
        return None if index < 0 else self.values[index]

    def take(self, rows: Rows | slice) -> Values:
        """Some rows, in this order."""
        return Values(self.ids[rows], self.values)

    def array(self) -> Objects:
        """An object array [n]; None where unknown."""
        return objects(list(self.values), self.ids)

    def chunks(self, size: int) -> Iterator[list[Any]]:
        """The values, or None."""
        distinct = self._distinct()
        for first in range(0, len(self), size):
            yield distinct[self.ids[first : first + size]].tolist()

    def _distinct(self) -> Objects:
        """The distinct values, and None at the end, which is index -1."""
        return np.fromiter((*self.values, None), object, len(self.values) + 1)

    def completed(self, value: Any) -> Values:
        """The column with a value where it is unknown."""
        if not (self.ids < 0).any():
            return self
        ids = np.where(self.ids < 0, np.int32(len(self.values)), self.ids)
        return Values(ids, [*self.values, value])

    def used(self) -> Values:
        """The column without the values of no row."""
        used, place = distinct(self.ids, len(self.values))
        if used and used[0] < 0:
            used, place = used[1:], place - np.int32(1)
        return Values(place, [self.values[number] for number in used])

    def fits(self, test: Callable[[Any], bool]) -> npt.NDArray[np.bool_]:
        """bool [n], whether the value of each row passes a test; False where unknown."""
        passes = np.fromiter(map(test, self.values), bool, len(self.values))
        return take(passes, self.ids, False)

    def where(self, test: Callable[[Any], bool]) -> npt.NDArray[np.int64]:
        """int64, the rows whose value passes a test, ascending."""
        shared = self.shared()
        return where(Values(shared.id_of_row, self.values).fits(test), shared.rows)

    def where_each(self, *tests: Callable[[Any], bool]) -> list[npt.NDArray[np.int64]]:
        """`where` of several tests, in one pass over the rows."""
        shared = self.shared()
        flags = [Values(shared.id_of_row, self.values).fits(test) for test in tests]
        rows = where(np.logical_or.reduce(flags), shared.rows)
        ids = shared.rows[rows]
        return [rows[take(flag, ids, False)] for flag in flags]

    def mapped(self, change: Callable[[Any], Any]) -> Values:
        """Apply a function to each distinct value; equal results get one id, None is "unknown"."""
        ids: dict[Any, int] = {}
        changed = [change(value) for value in self.values]
        id_of = [-1 if each is None else ids.setdefault(each, len(ids)) for each in changed]
        return SharedValues(self.ids, np.array(id_of, np.int32), list(ids))

    def shared(self) -> SharedValues:
        """The column as SharedValues."""
        return SharedValues(self.ids, np.arange(len(self.values), dtype=np.int32), self.values)


class SharedValues(Values):
    """Repeated values in rows that several columns share: row i is `values[id_of_row[rows[i]]]`.

    Parameters
    ----------
    rows : int32 [n]
        Indices into `id_of_row`, -1 for "unknown" (na).
    id_of_row : int32 [m]
        Indices into `values`, -1 for "unknown".
    """

    def __init__(
        self, rows: npt.NDArray[np.int32], id_of_row: npt.NDArray[np.int32], values: list[Any]
    ) -> None:
        self.rows, self.id_of_row, self.values = rows, id_of_row, values

    @property
    def ids(self) -> npt.NDArray[np.int32]:
        """As in Values; computed on each use: a profile has dozens of such columns."""
        return take(self.id_of_row, self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, row: int) -> Any:
        """The value of one row, or None."""
        index = int(self.rows[row])
        index = -1 if index < 0 else int(self.id_of_row[index])
        return None if index < 0 else self.values[index]

    def array(self) -> Objects:
        """An object array [n]; None where unknown."""
        return objects(self._distinct()[self.id_of_row].tolist(), self.rows)

    def take(self, rows: Rows | slice) -> Values:
        """As in Values; the distinct values remain shared."""
        return SharedValues(self.rows[rows], self.id_of_row, self.values)

    def fits(self, test: Callable[[Any], bool]) -> npt.NDArray[np.bool_]:
        """As in Values."""
        return take(Values(self.id_of_row, self.values).fits(test), self.rows, False)

    def chunks(self, size: int) -> Iterator[list[Any]]:
        """The values, or None."""
        yield from Values(self.rows, self._distinct()[self.id_of_row].tolist()).chunks(size)

    def mapped(self, change: Callable[[Any], Any]) -> SharedValues:
        """As in Values; the rows remain shared."""
        changed = Values(self.id_of_row, self.values).mapped(change)
        return SharedValues(self.rows, changed.ids, changed.values)

    def shared(self) -> SharedValues:
        """The column itself."""
        return self


def unknown(n_rows: int) -> Values:
    """A column whose values are all unknown."""
    return Values(np.full(n_rows, -1, np.int32), [])


class Lists:
    """Lists of numbers: row i is values[offsets[i]:offsets[i + 1]]. Both int64."""

    def __init__(self, offsets: npt.NDArray[np.int64], values: npt.NDArray[np.int64]) -> None:
        self.offsets, self.values = offsets, values

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def at(self, row: int) -> tuple[int, ...]:
        """The numbers of one row; may be empty."""
        return tuple(int(x) for x in self.values[self.offsets[row] : self.offsets[row + 1]])

    def take(self, rows: Rows) -> Lists:
        """Some rows, in this order."""
        begins, lengths = self.offsets[:-1][rows], np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        place = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], lengths)
        return Lists(offsets, self.values[place])

    def array(self) -> Objects:
        """An object array [n] of tuples of int."""
        out = objects([()], np.zeros(len(self), np.int32))
        some = np.flatnonzero(self.offsets[1:] != self.offsets[:-1])
        for first in range(0, len(some), _ROWS_AT_ONCE):
            rows = some[first : first + _ROWS_AT_ONCE]
            out[rows] = self._objects(rows)
        return out

    def chunks(self, size: int) -> Iterator[list[Any]]:
        """The tuples of int."""
        for first in range(0, len(self), size):
            yield self._objects(slice(first, first + size)).tolist()

    def _objects(self, rows: slice | npt.NDArray[np.intp]) -> Objects:
        """The tuples of some rows; lists of one length are converted together."""
        begins, ends = self.offsets[:-1][rows], self.offsets[1:][rows]
        lengths = ends - begins
        out = np.fromiter(repeat((), len(lengths)), object, len(lengths))
        by_length = np.argsort(lengths, kind="stable")
        cuts = np.flatnonzero(np.diff(lengths[by_length], prepend=0))
        for alike in np.split(by_length, cuts)[1:]:
            places = begins[alike, None] + np.arange(lengths[alike[0]])
            out[alike] = _tuples(self.values[places])
        return out


class Singles(Lists):
    """Lists of one number each, empty where it is unknown.

    Parameters
    ----------
    numbers : Ints [n]
    """

    def __init__(self, numbers: Ints) -> None:
        self.numbers = numbers

    @computed_once
    def offsets(self) -> npt.NDArray[np.int64]:
        """As in Lists; computed on first use."""
        offsets = np.zeros(len(self.numbers) + 1, np.int64)
        np.cumsum(self._known, out=offsets[1:])
        return offsets

    @computed_once
    def values(self) -> npt.NDArray[np.int64]:
        """As in Lists; computed on first use."""
        return self.numbers.values[self._known].astype(np.int64, copy=False)

    @property
    def _known(self) -> npt.NDArray[np.bool_]:
        known: npt.NDArray[np.bool_] = self.numbers.values != self.numbers.none
        return known

    def __len__(self) -> int:
        return len(self.numbers)


def _tuples(numbers: npt.NDArray[Any]) -> Objects:
    """The rows of a table of numbers as tuples."""
    return np.fromiter(map(tuple, numbers.tolist()), object, len(numbers))


def as_lists(column: Ints | Lists) -> Lists:
    """Numbers as lists of one number each, empty where unknown."""
    if isinstance(column, Lists):
        return column
    return Singles(column)


def first_numbers(numbers: Lists) -> npt.NDArray[np.int64]:
    """The first number of each list; -1: empty."""
    some = np.diff(numbers.offsets) > 0
    out = np.full(len(some), -1, np.int64)
    out[some] = numbers.values[numbers.offsets[:-1][some]]
    return out


@dataclass(frozen=True)
class SeqMarkers:
    """The torch ranges around each kernel; rows are formatted only when written.

    A cell lists each `HEAD[, seq = N][, op_id = M]TAIL` once, sorted by (seq, HEAD); ranges without
    a number come first.

    Parameters
    ----------
    frame_of_row : int32 [n]
        Innermost frame of the kernel; -1: none, an empty list.
    frame_parent, range_of_frame : int32 [frames]
        The enclosing frame, a smaller index (-1: root); the range of the frame.
    label_of_range : int32 [ranges]
    seq_of_range, op_id_of_range : int64 [ranges]
        -1: no number.
    is_torch : uint8 [labels]
        1 for the labels that belong in the list.
    heads, tails : lists of str [labels]
        Name of the range; the text after the numbers (`, sizes = [[2, 3]]`) or "".
    """

    frame_of_row: npt.NDArray[np.int32]
    frame_parent: npt.NDArray[np.int32]
    range_of_frame: npt.NDArray[np.int32]
    label_of_range: npt.NDArray[np.int32]
    seq_of_range: npt.NDArray[np.int64]
    op_id_of_range: npt.NDArray[np.int64]
    is_torch: npt.NDArray[np.uint8]
    heads: list[str]
    tails: list[str]

    def __len__(self) -> int:
        return len(self.frame_of_row)


Column = Ints | Values | Lists
