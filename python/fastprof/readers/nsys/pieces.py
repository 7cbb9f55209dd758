"""A large table of an export, read in pieces by two threads.

One thread reads pieces from the first on, the other from the last on, each into its own pools.
Pools are merged in the order of rows, so the result is deterministic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fastprof._core._take import take
from fastprof.model.arrays import Int32
from fastprof.readers.nsys.schema import NsysPools
from fastprof.readers.sqlite.database import Database, Field, TableColumns, TableRows

# Enough that both threads end at about the same time; few enough that the overhead is negligible.
_PIECES = 16


class Pieces:
    """The unread pieces of a table, and the columns read so far.

    Parameters
    ----------
    fields : returns the fields to read into given pools; none has `together`
    keep : returns a row filter for a piece
    capacity : estimated number of rows after filtering; None: nearly all
    """

    def __init__(
        self,
        database: Database,
        table: str,
        fields: Callable[[NsysPools], Sequence[Field]],
        keep: Callable[[], Any],
        capacity: int | None = None,
    ) -> None:
        self._table, self._fields, self._keep = table, fields, keep
        self._first, *others = database.pieces(table, _PIECES)
        self._waiting = deque(others)
        self._room = (database.count(table) if capacity is None else capacity) // (len(others) + 1)
        self._pools = NsysPools()
        self._rows = TableRows(database, table, fields(self._pools), capacity)
        self._helped: list[tuple[NsysPools, TableRows]] = []
        self._adopted: list[tuple[Mapping[str, Int32], TableRows]] = []

    def read(self, database: Database) -> None:
        """Read pieces from the first on until none are left."""
        self._rows.read(database, self._first, self._keep())
        for row_ids in _until_empty(self._waiting.popleft):
            self._rows.read(database, row_ids, self._keep())

    def help(self, database: Database) -> None:
        """Read pieces from the last on, on another thread, until none are left."""
        for row_ids in _until_empty(self._waiting.pop):
            pools = NsysPools()
            rows = TableRows(database, self._table, self._fields(pools), self._room)
            rows.read(database, row_ids, self._keep())
            self._helped.append((pools, rows))

    def adopt(self, pools: NsysPools) -> None:
        """Merge the ids of all pieces into `pools`, after reading has ended."""
        read = [(self._pools, self._rows), *reversed(self._helped)]
        self._adopted = [(pools.adopt(own), rows) for own, rows in read]
        self._helped.clear()

    def together(self) -> TableColumns:
        """The columns of all rows, with ids of the merged pools. Call once."""
        (place_of, rows), *others = self._adopted
        begin = len(rows)
        columns = rows.columns(sum(len(helped) for _, helped in others))
        _refer(columns, slice(begin), place_of)
        for place_of, helped in others:
            part = slice(begin, begin + len(helped))
            begin += len(helped)
            for name, values in helped.columns().items():
                columns[name][part] = values
            _refer(columns, part, place_of)
        self._adopted.clear()
        return columns


def _refer(columns: TableColumns, rows: slice, place_of: Mapping[str, Int32]) -> None:
    """Replace ids of rows by those of other pools."""
    for name in place_of.keys() & columns.keys():
        columns[name][rows] = take(place_of[name], columns[name][rows])


def _until_empty(take: Callable[[], tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Results of `take` until it raises IndexError. Other threads may take concurrently."""
    while True:
        try:
            taken = take()
        except IndexError:
            return
        yield taken
