"""The three shapes a per-kernel column comes in: numbers, repeated values, lists of numbers.

A column never holds a Python object per kernel: texts and tuples are kept once each and the
kernels hold indices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Ints:
    """Numbers: int32 or int64, shape [n] or [n, 3]; `none` stands for "not known" (na)."""

    values: npt.NDArray[Any]
    none: int = -1

    def __len__(self) -> int:
        return len(self.values)

    def at(self, row: int) -> Any:
        """The value of one row: int, tuple of 3 ints, or None."""
        if self.values.ndim == 2:
            first = int(self.values[row, 0])
            return None if first == self.none else tuple(int(x) for x in self.values[row])
        value = int(self.values[row])
        return None if value == self.none else value


class RepeatedInts(Ints):
    """Numbers of few distinct rows: a row's is `distinct[ids[row]]`.

    Parameters
    ----------
    ids : int32 [n]
        Indices of `distinct`, none of them -1.
    distinct : int32 or int64, [m] or [m, 3]
    """

    ids: npt.NDArray[np.int32]
    distinct: npt.NDArray[Any]

    def __init__(
        self, ids: npt.NDArray[np.int32], distinct: npt.NDArray[Any], none: int = -1
    ) -> None:
        self.__dict__.update(ids=ids, distinct=distinct, none=none)

    @cached_property
    def values(self) -> npt.NDArray[Any]:
        """As of any Ints; made when it is first asked for."""
        made: npt.NDArray[Any] = self.distinct[self.ids]
        return made

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Values:
    """Repeated values: a row's is `values[ids[row]]`; id -1 is "not known" (na). ids: int32 [n]."""

    ids: npt.NDArray[np.int32]
    values: list[Any]

    def __len__(self) -> int:
        return len(self.ids)

    def at(self, row: int) -> Any:
        """The value of one row, or None."""
        index = int(self.ids[row])
        return None if index < 0 else self.values[index]

    def mapped(self, change: Callable[[Any], Any]) -> Values:
        """Each distinct value changed; equal ones become one, None is "not known"."""
        ids: dict[Any, int] = {}
        changed = [change(value) for value in self.values]
        id_of = [-1 if each is None else ids.setdefault(each, len(ids)) for each in changed]
        return Values(np.array([*id_of, -1], np.int32)[self.ids], list(ids))


def unknown(n_rows: int) -> Values:
    """A column of which nothing is known."""
    return Values(np.full(n_rows, -1, np.int32), [])


@dataclass(frozen=True)
class Lists:
    """Lists of numbers: row i holds values[offsets[i]:offsets[i + 1]]. Both int64."""

    offsets: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def at(self, row: int) -> tuple[int, ...]:
        """The numbers of one row, possibly none."""
        return tuple(int(x) for x in self.values[self.offsets[row] : self.offsets[row + 1]])


@dataclass(frozen=True)
class SeqMarkers:
    """The torch ranges around each kernel, made into texts only while rows are written.

    A cell lists `HEAD[, seq = N][, op_id = M]TAIL` once each, sorted by (seq, HEAD), those without
    a number first.

    Parameters
    ----------
    frame_of_row : int32 [n]
        Innermost frame of the kernel, -1: none, an empty list.
    frame_parent, range_of_frame : int32 [frames]
        Frame around the frame, less than it, -1 at a root; and the frame's range.
    label_of_range : int32 [ranges]
    seq_of_range, op_id_of_range : int64 [ranges]
        -1: no number.
    is_torch : uint8 [labels]
        1 for the labels that belong in the list.
    heads, tails : lists of str [labels]
        Name of the range, and what follows the numbers: `, sizes = [[2, 3]]` or nothing.
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


def first_rows(number: npt.NDArray[np.int32]) -> list[int]:
    """The first row of each number; they are given from 0 up as they appear."""
    firsts: list[int] = np.flatnonzero(
        np.diff(np.maximum.accumulate(number), prepend=np.int32(-1))
    ).tolist()
    return firsts


class Columns(Mapping[str, Any]):
    """Columns by key, each made when it is first asked for and kept from then on.

    makers : what makes the column of each key
    """

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        self._makers = makers
        self._made: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self._made:
            self._made[key] = self._makers[key]()
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __contains__(self, key: object) -> bool:
        return key in self._makers
