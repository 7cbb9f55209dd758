"""A second connection to a database, used by a second thread; large tables read on both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

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
Pools = TypeVar("Pools")


class Halves:
    """Reads tables on two threads, the second of which connects for the first large table."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._second: Connected | None = None

    def read(
        self,
        table: str,
        fields: Callable[[], tuple[Pools, Sequence[Field]]],
        keep: Callable[[], Any] = lambda: None,
    ) -> list[tuple[Pools, TableRows]]:
        """The rows of a table, in one part or two.

        fields : makes the fields of a part, and the pools that they refer to
        keep : makes the row filter of a part
        """
        database = self._database
        if table not in database.tables or database.count(table) < _FEW_ROWS:
            return [_part(database, table, fields(), keep(), ALL_ROWS)]
        first, *others = database.pieces(table, 2)
        if self._second is None and others:
            self._second = Connected(database)
        running = [
            self._second.submit(_part, table, fields(), keep(), row_ids)
            for row_ids in others
            if self._second is not None
        ]
        part = _part(database, table, fields(), keep(), first)
        return [part, *(task.result() for task in running)]

    def __enter__(self) -> Halves:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._second is not None:
            self._second.__exit__(*exception)


def _part(
    database: Database,
    table: str,
    fields: tuple[Pools, Sequence[Field]],
    keep: Any,
    row_ids: tuple[int, int],
) -> tuple[Pools, TableRows]:
    pools, own = fields
    capacity = None if row_ids == ALL_ROWS else database.count(table) // 2
    rows = TableRows(database, table, own, capacity)
    rows.read(database, row_ids, keep)
    return pools, rows


def together(parts: Sequence[TableRows]) -> TableColumns:
    """The columns of all parts of a table, one after the other. Call once."""
    first, *others = parts
    begin = len(first)
    columns = first.columns(sum(map(len, others)))
    for rows in others:
        part = slice(begin, begin + len(rows))
        begin += len(rows)
        for name, values in rows.columns().items():
            columns[name][part] = values
    return columns
