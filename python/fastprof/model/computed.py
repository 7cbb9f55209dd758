"""Computed: texts that are made when they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

__all__ = ["Computed"]


class Computed(Sequence[str]):
    """n texts; `make(i)` returns text i. Tables of a million rows show few of their texts."""

    def __init__(self, n: int, make: Callable[[int], str]) -> None:
        self._n, self._make = n, make

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._make(each) for each in range(*index.indices(self._n))]
        if not 0 <= index < self._n:
            raise IndexError(index)
        return self._make(index)
