"""Which calls end a step, among those that the program repeats."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

_LEARNED = 3  # calls of each object, when there are more objects than _FEW
_FEW = 8
_MOST_CALLS = 1 << 20


class RepeatedCall:
    """Finds the object whose calls end a step.

    Of several objects that a program calls in turn, such as the optimizers of a GAN, the one with
    the fewest calls ends a step; among equals, the one whose first call came last.

    Parameters
    ----------
    forgotten : () -> None, called before an object is freed
    """

    def __init__(self, forgotten: Callable[[], None]) -> None:
        self._forgotten = forgotten
        self._n_calls: dict[int, int] = {}  # by id, in order of the first call
        self._alive: dict[int, weakref.ref[Any]] = {}
        self._last: int | None = None  # fixed if there are many objects

    def __len__(self) -> int:
        return len(self._n_calls)

    def called(self, each: Any) -> bool:
        """Count a call of an object; return whether it ends a step."""
        key = id(each)
        if self._last is not None:
            return key == self._last
        n_calls = self._n_calls.get(key, 0) + 1
        self._n_calls[key] = n_calls
        if n_calls == 1:
            self._alive[key] = weakref.ref(each, lambda _: self._forget(key))
        if n_calls >= _MOST_CALLS:  # forget what is long past
            self._n_calls = dict.fromkeys(self._n_calls, 0)
        fewest = min(self._n_calls.values())
        ends = n_calls == fewest and next(
            k for k in reversed(self._n_calls) if self._n_calls[k] == fewest
        ) == key  # fmt: skip
        if ends and n_calls >= _LEARNED and len(self._n_calls) > _FEW:
            self._last = key
        return ends

    @property
    def calls(self) -> tuple[list[Any], list[int]]:
        """The objects that were called, in order of the first call, and their calls.

        None if the object whose calls end steps is fixed.
        """
        if self._last is not None:
            return [], []
        objects = [(ref(), self._n_calls[key]) for key, ref in self._alive.items()]
        kept = [(each, n_calls) for each, n_calls in objects if each is not None]
        return [each for each, _ in kept], [n_calls for _, n_calls in kept]

    def counted(self, n_calls: list[int]) -> None:
        """Take over the calls of the objects in `calls` that were counted elsewhere."""
        self._n_calls.update(zip(self._n_calls, n_calls, strict=False))

    def _forget(self, key: int) -> None:
        self._forgotten()
        self._n_calls.pop(key, None)
        self._alive.pop(key, None)
        if self._last == key:
            self._last = None
