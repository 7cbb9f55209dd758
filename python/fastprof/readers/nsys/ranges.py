"""The NVTX ranges of an Nsight Systems export. They are the largest table of most exports."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fastprof._core import _column, _pools
from fastprof._core._take import distinct, without
from fastprof.model.arrays import Int64, difference, unique
from fastprof.model.trace import Ranges
from fastprof.readers import trace_columns
from fastprof.readers.nsys import schema
from fastprof.readers.nsys.pieces import Pieces
from fastprof.readers.sqlite.database import Database, Field, TableColumns


def table_of(database: Database) -> str:
    """The name of the range table: the first known name with rows."""
    present = [table for table in schema.RANGES if table in database.tables]
    filled = [table for table in present if database.count(table)]
    return (filled or present or list(schema.RANGES))[0]


def event_types(database: Database) -> tuple[list[int], list[int], list[int]]:
    """The event types of push/pop ranges, start/end ranges and domain names in this export."""
    known = schema.PUSH_POP | schema.START_END | schema.DOMAIN
    if {"id", "name"} <= set(database.tables.get("ENUM_NSYS_EVENT_TYPE", [])):
        rows = database.rows("SELECT name, id FROM ENUM_NSYS_EVENT_TYPE")
        known |= {
            name: number for name, number in rows if name in known and isinstance(number, int)
        }
    push_pop, start_end, domain = (
        [known[name] for name in names]
        for names in (schema.PUSH_POP, schema.START_END, schema.DOMAIN)
    )
    return push_pop, start_end, domain


class RangeReading:
    """The range table while it is read.

    fields : the columns to read
    domains : also read the events that name domains

    Attributes
    ----------
    with_payload : the columns of ranges with a payload, if these are among the fields
    """

    def __init__(
        self,
        database: Database,
        fields: Callable[[schema.NsysPools], Sequence[Field]] = schema.range_fields,
        domains: bool = False,
    ) -> None:
        self.types = event_types(database)
        kept = self.types[0] + self.types[1] + (self.types[2] if domains else [])
        self.with_payload: TableColumns = {}
        self.pieces = Pieces(database, table_of(database), fields, lambda: _column.Among(kept))

    def finish(self, pools: schema.NsysPools, strings: list[str | None]) -> tuple[Ranges, Ranges]:
        """Sorted ranges, and separately those that ended on another thread. Call once."""
        columns = self.pieces.together()
        if schema.PAYLOAD in columns:
            self.with_payload = _with_payload(columns)
        _name_registered(columns, pools.labels, strings)
        moved = self.moved(columns)
        nowhere = [np.flatnonzero(columns[name] < 0) for name in ("globalTid", "text")]
        phases = trace_columns.ranges_in_order(
            dict(columns), difference(moved, np.concatenate(nowhere))
        )
        del columns["endGlobalTid"], columns["eventType"], columns["textId"]
        others = unique(np.concatenate([moved, *nowhere]))
        columns = {name: without(column, others) for name, column in columns.items()}
        return trace_columns.ranges_in_order(columns, slice(None)), phases

    def moved(self, columns: TableColumns) -> Int64:
        """The rows that ended on another thread."""
        end_thread = columns["endGlobalTid"]
        ended = np.flatnonzero(end_thread >= 0)
        ended = ended[np.isin(columns["eventType"][ended], self.types[1])]
        result: Int64 = ended[end_thread[ended] != columns["globalTid"][ended]]
        return result


def _with_payload(columns: TableColumns) -> TableColumns:
    """The ranges with a payload, taken out; the columns keep what all ranges have."""
    rows = np.flatnonzero(columns[schema.PAYLOAD] >= 0)
    result = {name: column[rows] for name, column in columns.items()}
    del columns[schema.PAYLOAD], columns["domainId"]
    return result


def _name_registered(
    columns: TableColumns, labels: _pools.Names, strings: Sequence[str | None]
) -> None:
    """Set the labels of ranges with registered strings, whose text is in StringIds."""
    rows = np.flatnonzero((columns["text"] < 0) & (columns["textId"] >= 0))
    used, place = distinct(columns["textId"][rows], len(strings))
    label, seq, op_id = _column.split_range_names(labels, [strings[index] for index in used])
    columns["text"][rows] = label[place]
    columns["text_seq"][rows] = seq[place]
    columns["text_op_id"][rows] = op_id[place]
