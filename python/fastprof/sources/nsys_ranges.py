"""The ranges of an Nsight Systems export: their names, and which belong to a thread.

They are most of what there is to read: a second core begins with them while the first reads the
kernels, and the first helps when it is done.
"""

from __future__ import annotations

import numpy as np

from fastprof import _column
from fastprof.sources import nsys_schema as schema
from fastprof.sources import steps
from fastprof.sources.database import Database
from fastprof.sources.nsys_pieces import Pieces
from fastprof.trace import Ranges


def table_of(database: Database) -> str:
    """The table of ranges, under the first of its names that has any rows."""
    present = [table for table in schema.RANGES if table in database.tables]
    filled = [table for table in present if database.count(table)]
    return (filled or present or list(schema.RANGES))[0]


def event_types(database: Database) -> tuple[list[int], list[int]]:
    """The event types of push/pop and of start/end ranges in this export."""
    known = schema.PUSH_POP | schema.START_END
    if {"id", "name"} <= set(database.tables.get("ENUM_NSYS_EVENT_TYPE", [])):
        rows = database.rows("SELECT name, id FROM ENUM_NSYS_EVENT_TYPE")
        known |= {
            name: number for name, number in rows if name in known and isinstance(number, int)
        }
    return [known[name] for name in schema.PUSH_POP], [known[name] for name in schema.START_END]


class Reading:
    """The columns of the range table, while they are read."""

    def __init__(self, database: Database) -> None:
        self.types = event_types(database)
        kept = self.types[0] + self.types[1]
        self.pieces = Pieces(
            database, table_of(database), schema.range_fields, lambda: _column.Among(kept)
        )

    def put_together(self, pools: schema.Pools) -> None:
        """When all is read: threads, strings and labels become indices of these pools."""
        self.columns = self.pieces.together(pools)
        self._labels = pools.labels

    def finish(self, strings: list[str | None]) -> tuple[Ranges, Ranges]:
        """Ranges in order, and apart from them those that ended on another thread; once."""
        columns = self.columns
        self._name_registered(strings)
        end_thread = columns["endGlobalTid"]
        ended = np.flatnonzero(end_thread >= 0)
        ended = ended[np.isin(columns["eventType"][ended], self.types[1])]
        moved = ended[end_thread[ended] != columns["globalTid"][ended]]
        nowhere = [np.flatnonzero(columns[name] < 0) for name in ("globalTid", "text")]
        phases = steps.ranges_in_order(dict(columns), np.setdiff1d(moved, np.concatenate(nowhere)))
        n = len(end_thread)
        del end_thread, columns["endGlobalTid"], columns["eventType"], columns["textId"]
        others = np.concatenate([moved, *nowhere])
        if not len(others):
            return steps.ranges_in_order(columns, slice(None)), phases
        kept = np.ones(n, bool)
        kept[others] = False
        return steps.ranges_in_order(columns, kept), phases

    def _name_registered(self, strings: list[str | None]) -> None:
        """Ranges whose text was registered have it in StringIds: give them their labels too."""
        columns = self.columns
        rows = np.flatnonzero((columns["text"] < 0) & (columns["textId"] >= 0))
        ids = columns["textId"][rows]
        used = np.unique(ids)
        texts = [strings[index] for index in used.tolist()]
        label, seq, op_id = _column.split_range_names(self._labels, texts)
        at = np.searchsorted(used, ids)
        columns["text"][rows] = label[at]
        columns["text_seq"][rows] = seq[at]
        columns["text_op_id"][rows] = op_id[at]

    def labels(self) -> list[str]:
        """The distinct range names."""
        return self._labels.texts()
