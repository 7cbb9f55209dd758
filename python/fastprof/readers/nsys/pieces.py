"""A large table of an export, read in pieces by two cores.

One core reads pieces from the first on, the other helps from the last on, each into pools of its
own; these are put together in the order of the rows, so that what comes out does not depend on who
read what.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fastprof._core._take import take
from fastprof.model.trace import Int32
from fastprof.readers.nsys.schema import Pools
from fastprof.readers.sqlite.database import Columns, Database, Field, TableRows

# So many that both cores end at about the same time, and so few that beginning one costs nothing.
_PIECES = 16


class Pieces:
    """Those pieces of a table that are still to be read, and the columns of those that were.

    Parameters
    ----------
    fields : makes the fields to read, for pools; none of them is `together`
    keep : makes the filter of a piece
    capacity : about how many rows that keeps in all; None: nearly all
    """

    def __init__(
        self,
        database: Database,
        table: str,
        fields: Callable[[Pools], Sequence[Field]],
        keep: Callable[[], Any],
        capacity: int | None = None,
    ) -> None:
        self._table, self._fields, self._keep = table, fields, keep
        self._first, *others = database.pieces(table, _PIECES)
        self._waiting = deque(others)
        self._room = (database.count(table) if capacity is None else capacity) // (len(others) + 1)
        self._pools = Pools()
        self._rows = TableRows(database, table, fields(self._pools), capacity)
        self._helped: list[tuple[Pools, TableRows]] = []
        self._adopted: list[tuple[Mapping[str, Int32], TableRows]] = []

    def read(self, database: Database) -> None:
        """Read the first piece and those behind it, until there are no more."""
        self._rows.read(database, self._first, self._keep())
        for row_ids in _until_empty(self._waiting.popleft):
            self._rows.read(database, row_ids, self._keep())

    def help(self, database: Database) -> None:
        """Read the last piece and those before it, on another thread, until there are no more."""
        for row_ids in _until_empty(self._waiting.pop):
            pools = Pools()
            rows = TableRows(database, self._table, self._fields(pools), self._room)
            rows.read(database, row_ids, self._keep())
            self._helped.append((pools, rows))

    def adopt(self, pools: Pools) -> None:
        """Put what was read into these pools, when all is read and nobody else uses them."""
        read = [(self._pools, self._rows), *reversed(self._helped)]
        self._adopted = [(pools.adopt(own), rows) for own, rows in read]
        self._helped.clear()

    def together(self) -> Columns:
        """The columns of all rows, which refer to the pools that adopted them; once."""
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


def _refer(columns: Columns, rows: slice, place_of: Mapping[str, Int32]) -> None:
    """Make rows refer to other pools."""
    for name in place_of.keys() & columns.keys():
        columns[name][rows] = take(place_of[name], columns[name][rows])


def _until_empty(take: Callable[[], tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What `take` gives until there is nothing left; others may take meanwhile."""
    while True:
        try:
            taken = take()
        except IndexError:
            return
        yield taken
