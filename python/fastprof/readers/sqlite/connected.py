"""A second connection to a database, used by a second thread; large tables read on both."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from fastprof._system.memory import give_back
from fastprof._system.threads import SecondThread, Task
from fastprof.readers.sqlite.database import ALL_ROWS, Database, Field, TableColumns, TableRows

Result = TypeVar("Result")


class Connected:
    """A second thread with its own connection to the database.

    Leaving the context early interrupts the running function.
    """

    def __init__(self, database: Database) -> None:
        self._stop = threading.Event()
        self._own = database.another(self._go_on)
        self._thread = SecondThread(gives_back=False)  # attribute does

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


# Rows of a table that a second thread reads in less time than it takes to connect.
_FEW_ROWS = 20_000
# Enough that both threads end at about the same time, and that rows are converted in small parts.
_PIECES = 16
Pools = TypeVar("Pools")


class BothThreads:
    """Reads tables in pieces on two threads, the second of which connects for a large table.

    The first thread reads pieces from the first on, the second from the last on.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._second: Connected | None = None

    def read(
        self,
        table: str,
        fields: Callable[[], tuple[Pools, Sequence[Field]]],
        convert: Callable[[Pools, TableRows], Result],
    ) -> list[Result]:
        """The rows of a table in pieces, in the order of the file.

        fields : makes the fields of a piece, and the pools that they refer to
        convert : makes the result of a piece, on either thread
        """
        pieces, capacity = [ALL_ROWS], None
        if table in self._database.tables and self._database.count(table) >= _FEW_ROWS:
            pieces = self._database.pieces(table, _PIECES)
        if len(pieces) > 1:
            capacity = self._database.count(table) // len(pieces)
        waiting, results = deque(enumerate(pieces)), dict[int, Result]()

        def work(database: Database, following: Callable[[], tuple[int, tuple[int, int]]]) -> None:
            while True:
                try:
                    place, row_ids = following()
                except IndexError:
                    return
                pools, own = fields()
                rows = TableRows(database, table, own, capacity)
                rows.read(database, row_ids)
                results[place] = convert(pools, rows)

        if len(pieces) == 1:
            work(self._database, waiting.popleft)
            return [results[0]]
        if self._second is None:
            self._second = Connected(self._database)
        helping = self._second.submit(work, waiting.pop)
        work(self._database, waiting.popleft)
        helping.result()
        return [results[place] for place in range(len(pieces))]

    def __enter__(self) -> BothThreads:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._second is not None:
            self._second.__exit__(*exception)


def joined(pieces: Sequence[TableColumns]) -> TableColumns:
    """The columns of all pieces, one after the other; removes them from the pieces, to free their
    memory early."""
    if len(pieces) == 1:
        return pieces[0]
    names = list(pieces[0])
    give_back()
    result = {name: np.concatenate([columns.pop(name) for columns in pieces]) for name in names}
    give_back()
    return result
