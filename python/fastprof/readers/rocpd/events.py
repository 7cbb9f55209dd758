"""The events that the rows of other tables of a run refer to: ids, categories and messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

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
    category : int8 or int32 [events], index into `categories`, -1 for none
    messages : the names of ranges, of the few events that have one
    """

    def __init__(
        self, database: Database, threads: BothThreads, run: Run, labels: _pools.Names
    ) -> None:
        """labels : gets the messages"""
        keys, columns, ids, self.messages = _read(threads, run, labels)
        self.category: npt.NDArray[np.int8] | Int32 = columns["category_id"]
        self._message: Int32 = columns["extdata"]
        self._stack: Int64 = columns["stack_id"]  # or int32
        self._keys: Int64 = keys.values()
        self.categories = _categories(database, run, keys)
        self._ids = ids
        unordered = np.empty(0, np.int64) if isinstance(ids, range) else ids
        self._order = np.argsort(unordered, kind="stable")

    def __len__(self) -> int:
        return len(self._message)

    def rows(self, ids: Int64) -> Int32:
        """The row of each event by its id; -1 for none."""
        if isinstance(self._ids, range):
            row = ids - self._ids.start
            row[(ids < 0) | (row < 0) | (row >= len(self))] = -1
            return row.astype(np.int32)
        if not len(self):
            return np.full(len(ids), -1, np.int32)
        place = np.searchsorted(self._ids, ids, sorter=self._order)
        place[place == len(self)] = 0
        row = self._order[place]
        return np.where(self._ids[row] == ids, row, -1).astype(np.int32)

    def ids(self, row: Int32) -> Int64:
        """The id of each event by its row."""
        if isinstance(self._ids, range):
            return row.astype(np.int64) + self._ids.start
        return self._ids[row]

    def release(self) -> None:
        """Free the memory of what rows refer to, after the last table that does; `ids`, `numbers`
        and `messages` stay."""
        self.category = self._message = np.empty(0, np.int32)
        self._stack = np.empty(0, np.int64)

    def numbers(self, chosen: Callable[[str | None], bool]) -> list[int]:
        """The ids of some categories in the file."""
        pairs = zip(self._keys.tolist(), self.categories, strict=True)
        return [number for number, text in pairs if chosen(text)]

    def messages_of(self, row: Int32) -> Int32:
        """The messages of rows by the rows of their events, as indices into `messages`; -1 for
        none."""
        return take(self._message, row)

    def stacks_of(self, row: Int32) -> Int64:
        """The ids of calls that rows are, or that caused them, by the rows of their events; -1 for
        none. int32 if all of the run fit."""
        stack = take(self._stack, row)
        stack[stack <= 0] = -1
        return stack


class _Piece(NamedTuple):
    """Events of a piece of the table.

    Parameters
    ----------
    ids : a range if they are consecutive, as writers number events
    columns : category_id and extdata, which are indices, and stack_id, in few bytes
    names : of the few events with a message, which extdata indexes
    """

    categories: _pools.Keys
    messages: _pools.Names
    ids: range | Int64
    columns: TableColumns
    names: TableColumns


def _read(
    threads: BothThreads, run: Run, labels: _pools.Names
) -> tuple[_pools.Keys, TableColumns, range | Int64, RangeNames]:
    """The ids of categories, the events, their ids, and the messages that extdata indexes."""

    def fields() -> tuple[tuple[_pools.Keys, _pools.Names], list[Field]]:
        pools = _pools.Keys(), _pools.Names()
        return pools, schema.event_fields(*pools)

    keys, n_names = _pools.Keys(), 0
    pieces = threads.read(run.table(schema.EVENTS), fields, _reduced)
    for piece in pieces:
        place = np.append(keys.adopt(piece.categories), np.int32(-1))
        columns, names = piece.columns, piece.names
        columns["category_id"] = _narrow(place, len(keys), np.int8)[columns["category_id"]]
        names["extdata"] = take(labels.adopt(piece.messages), names["extdata"])
        columns["extdata"][columns["extdata"] >= 0] += n_names
        n_names += len(names["extdata"])
    ids = _joined_ids([piece.ids for piece in pieces])
    names = joined([piece.names for piece in pieces])
    columns = joined([piece.columns for piece in pieces])
    return keys, columns, ids, RangeNames(*(names[name] for name in _OF_NAMES))


def _reduced(pools: tuple[_pools.Keys, _pools.Names], rows: TableRows) -> _Piece:
    columns = rows.columns()
    ids: Int64 = columns.pop("id")
    numbers = range(int(ids[0]), int(ids[-1]) + 1) if len(ids) else range(0)
    is_range = numbers.stop - numbers.start == len(ids) and bool(np.all(ids[1:] > ids[:-1]))
    named = np.flatnonzero(columns["extdata"] >= 0)
    names = {name: columns[name][named] for name in _OF_NAMES}
    stack: Int64 = np.maximum(columns["stack_id"], 0)
    small = {
        "category_id": _narrow(columns["category_id"], len(pools[0]), np.int8),
        "stack_id": _narrow(stack, int(stack.max(initial=0)), np.int32),
        "extdata": np.full(len(ids), -1, np.int32),
    }
    small["extdata"][named] = np.arange(len(named), dtype=np.int32)
    return _Piece(*pools, numbers if is_range else ids, small, names)


def _narrow(values: npt.NDArray[Any], largest: int, dtype: type[np.integer[Any]]) -> Any:
    """The values as a smaller type if that holds the largest."""
    return values.astype(dtype) if largest <= int(np.iinfo(dtype).max) else values


def _joined_ids(pieces: Sequence[range | Int64]) -> range | Int64:
    result = pieces[0]
    for ids in pieces[1:]:
        if not (isinstance(ids, range) and isinstance(result, range) and ids.start == result.stop):
            return np.concatenate([np.asarray(ids, np.int64) for ids in pieces])
        result = range(result.start, ids.stop)
    return result


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
