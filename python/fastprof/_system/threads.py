"""Threads for compiled stages and numpy calls, which release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import RLock
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
Value = TypeVar("Value")


def usable_cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class computed_once(Generic[Result]):
    """A cached property; other threads wait while one thread computes it.

    Properties that need each other in a circle would wait forever.
    """

    def __init__(self, make: Callable[[Any], Result]) -> None:
        self._make, self._name = make, ""
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Result:
        if instance is None:
            raise AttributeError(f"{self._name} is an attribute of instances")
        kept: dict[str, Any] = instance.__dict__
        with kept.setdefault(f"_lock_of_{self._name}", RLock()):
            if self._name not in kept:
                kept[self._name] = self._make(instance)
            found: Result = kept[self._name]
            return found


class SecondThread:
    """Runs functions on one other thread, in the order of submission.

    A context manager: leaving it cancels functions that have not started and waits for the one that
    runs.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Schedule function(*arguments)."""
        return self._pool.submit(function, *arguments)

    def __enter__(self) -> SecondThread:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown(cancel_futures=True)


def map_on_threads(
    function: Callable[[Value], Result], values: Sequence[Value], most: int = 4
) -> list[Result]:
    """The results of a function, called in the order of the values on several threads.

    most : the maximum number of threads; no more than cores
    """
    with ThreadPoolExecutor(min(most, usable_cores())) as pool:
        return list(pool.map(function, values))
