"""Computed: texts that are made when they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

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
