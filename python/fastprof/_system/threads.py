"""A second core: functions that run on a thread of their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


class Beside:
    """Runs functions one after the other on another thread. Leaving waits for the one that runs.

    What they do at length should be without the GIL: compiled stages, numpy.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)

    def run(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Start function(*arguments) when what was started before is done."""
        return self._pool.submit(function, *arguments)

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown(cancel_futures=True)
