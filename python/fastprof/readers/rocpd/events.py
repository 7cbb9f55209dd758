"""The events that the rows of other tables of a run refer to: ids, categories and messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from fastprof._core import _column, _pools
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import RangeNames
from fastprof.readers.rocpd import schema
from fastprof.readers.rocpd.schema import Run
from fastprof.readers.sqlite.connected import BothThreads, joined
from fastprof.readers.sqlite.database import Database, Field, TableColumns, TableRows

CATEGORIES = "rocpd_info_category"  # of 4.1.0; other versions use the strings


class Events:
    """The events of a run.

    Attributes
    ----------
    categories : texts
    category : int32 [events], index into `categories`, -1 for none
    stack : int64 [events], the id of the call that caused the event, or is the event; 0 for none
    """

    def __init__(
        self, database: Database, threads: BothThreads, run: Run, labels: _pools.Names
    ) -> None:
        """labels : gets the messages"""
        keys, columns, self._names = _read(threads, run, labels)
        self._place: Int32 = columns["extdata"]  # of the message in `_names`
        self.category: Int32 = columns["category_id"]
        self.stack: Int64 = columns["stack_id"]
        self._keys: Int64 = keys.values()
        self.categories = _categories(database, run, keys)
        ids: Int64 = columns.pop("id")
        # Writers number events from 1.
        is_dense = len(ids) > 0 and ids[-1] - ids[0] == len(ids) - 1
        self._first = int(ids[0]) if is_dense and np.all(ids[1:] > ids[:-1]) else None
        if self._first is None:
            order = np.argsort(ids, kind="stable")
            self._order, self._ids = order.astype(np.int32), ids[order]

    def __len__(self) -> int:
        return len(self.stack)

    def rows(self, ids: Int64) -> Int32:
        """The row of each event by its id; -1 for none."""
        if self._first is not None:
            row = ids - self._first
            row[(ids < 0) | (row < 0) | (row >= len(self))] = -1
            return row.astype(np.int32)
        if not len(self):
            return np.full(len(ids), -1, np.int32)
        place = np.searchsorted(self._ids, ids)
        place[place == len(self)] = 0
        return np.where(self._ids[place] == ids, self._order[place], np.int32(-1))

    def numbers(self, chosen: Callable[[str | None], bool]) -> list[int]:
        """The ids of some categories in the file."""
        pairs = zip(self._keys.tolist(), self.categories, strict=True)
        return [number for number, text in pairs if chosen(text)]

    def names_of(self, row: Int32) -> RangeNames:
        """The messages of rows by the rows of their events, as names of ranges; -1 for none."""
        place = take(self._place, row)
        names = self._names
        return RangeNames(
            take(names.label, place), take(names.seq, place), take(names.op_id, place)
        )

    def stacks_of(self, row: Int32) -> Int64:
        """The calls of rows by the rows of their events; -1 for none."""
        stack = take(self.stack, row)
        stack[stack <= 0] = -1
        return stack


def _read(
    threads: BothThreads, run: Run, labels: _pools.Names
) -> tuple[_pools.Keys, TableColumns, RangeNames]:
    """The ids of categories, the events, and the messages that their column extdata indexes."""

    def fields() -> tuple[_Pools, list[Field]]:
        pools = _Pools(_pools.Keys(), _pools.Names())
        return pools, schema.event_fields(*pools)

    keys, n_names = _pools.Keys(), 0
    parts, names = [], []
    for pools, columns, own in threads.read(run.table(schema.EVENTS), fields, _told):
        columns["category_id"] = take(keys.adopt(pools.categories), columns["category_id"])
        own["extdata"] = take(labels.adopt(pools.messages), own["extdata"])
        columns["extdata"][columns["extdata"] >= 0] += n_names
        n_names += len(own["extdata"])
        parts.append(columns)
        names.append(own)
    of_events = joined(names)
    return keys, joined(parts), RangeNames(*(of_events[name] for name in _OF_NAMES))


class _Pools(NamedTuple):
    """What the columns of a piece refer to."""

    categories: _pools.Keys
    messages: _pools.Names


def _told(pools: _Pools, rows: TableRows) -> tuple[_Pools, TableColumns, TableColumns]:
    """The events of a piece, and the messages of the few that have one, which extdata indexes."""
    columns = rows.columns()
    told = np.flatnonzero(columns["extdata"] >= 0)
    own = {name: columns[name][told] for name in _OF_NAMES}
    columns["extdata"][told] = np.arange(len(told), dtype=np.int32)
    del columns["extdata_seq"], columns["extdata_op_id"]
    return pools, columns, own


_OF_NAMES: Final = ("extdata", "extdata_seq", "extdata_op_id")


def _categories(database: Database, run: Run, keys: _pools.Keys) -> list[str | None]:
    table = run.table(CATEGORIES)
    if table in database.tables:
        return texts_of(database, table, keys, "name")
    return texts_of(database, run.table(schema.STRINGS), keys)


def texts_of(
    database: Database, table: str, wanted: _pools.Keys, column: str = "string"
) -> list[str | None]:
    """The texts of ids, None for those that the table lacks."""
    texts = _pools.Names()
    columns = database.scan(
        table,
        schema.string_fields(wanted, texts, column),
        keep=_column.KnownKeys(wanted),
        capacity=len(wanted),
    )
    results: list[str | None] = [None] * len(wanted)
    text_of = texts.texts()
    for key, text in zip(columns["id"].tolist(), columns[column].tolist(), strict=True):
        if key >= 0 and text >= 0:
            results[key] = text_of[text]
    return results
