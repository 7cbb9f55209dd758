"""A second thread for compiled stages and numpy calls, which release the GIL."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


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
