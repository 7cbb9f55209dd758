"""A second connection to an export, used by a second thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from fastprof._system.threads import SecondThread, Task
from fastprof.readers.sqlite.database import Database

Result = TypeVar("Result")


class Connected:
    """A second thread with its own connection to the database.

    Leaving the context early interrupts the running function.
    """

    def __init__(self, database: Database) -> None:
        self._stop = threading.Event()
        self._own = database.another(self._go_on)
        self._thread = SecondThread()

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Task[Result]:
        """Schedule function(connection, *arguments)."""
        return self._thread.submit(function, self._own, *arguments)

    def _go_on(self, table: str, rows: int, total: int) -> None:
        if self._stop.is_set():
            raise InterruptedError(f"reading {table} was stopped")

    def __enter__(self) -> Connected:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.__exit__(*exception)
        self._own.close()
