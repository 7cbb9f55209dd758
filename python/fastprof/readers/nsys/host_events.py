"""Host events of an Nsight Systems export beyond ranges and API calls, read on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from fastprof._core import _column
from fastprof._core._take import take
from fastprof.model.arrays import Int32, Int64
from fastprof.model.timeline import RecordedEvents, RecordedSyncs
from fastprof.readers.cupti.syncs import syncs_of
from fastprof.readers.nsys import payloads, schema
from fastprof.readers.nsys.strings import texts_of
from fastprof.readers.sqlite.database import Database

_SWITCHES: Final[list[str | None]] = ["out", "in"]  # by isSchedIn


def syncs(database: Database, pools: schema.Pools) -> RecordedSyncs:
    """CUPTI's records of synchronisation.

    Exports before 2025 number the types differently, by version: their kind is unknown.
    """
    columns = database.scan(schema.SYNCS, schema.sync_fields(pools))
    is_known = "eventSyncId" in database.tables.get(schema.SYNCS, ())
    return syncs_of(
        columns, columns["globalPid"], columns["deviceId"], columns["syncType"], is_known
    )


def os_calls(database: Database) -> RecordedEvents:
    """Calls of functions of the operating system's libraries."""
    pools = schema.Pools()
    columns = database.scan(schema.OS_CALLS, schema.os_call_fields(pools))
    # Rows that mark the start and the end of recording have no thread.
    has_thread = np.append(pools.threads.values() & schema.LOW_24_BITS > 0, False)
    rows = np.flatnonzero(has_thread[columns["globalTid"]])
    return RecordedEvents(
        start=columns["start"][rows],
        end=np.maximum(columns["start"], columns["end"])[rows],
        thread=columns["globalTid"][rows],
        name=columns["nameId"][rows],
        names=texts_of(database, pools.strings),
        threads=pools.thread_ids(),
    )


def cpu_samples(database: Database) -> RecordedEvents:
    """Samples of threads; the name is the innermost function, unknown without a call chain."""
    pools = schema.Pools()
    samples = database.scan(schema.SAMPLES, schema.sample_fields(pools))
    leaves = database.scan(
        schema.CALL_CHAINS, schema.call_chain_fields(pools), keep=_column.Among([0]), capacity=0
    )
    names = texts_of(database, pools.strings)
    return RecordedEvents(
        start=samples["start"],
        end=samples["start"],
        thread=samples["globalTid"],
        name=_symbols(samples["id"], leaves["id"], leaves["symbol"]),
        names=names,
        threads=pools.thread_ids(),
    )


def cpu_switches(database: Database) -> RecordedEvents:
    """When the operating system put a thread on a CPU (`in`), and took it off (`out`)."""
    pools = schema.Pools()
    columns = database.scan(schema.SWITCHES, schema.switch_fields(pools))
    return RecordedEvents(
        start=columns["start"],
        end=columns["start"],
        thread=columns["globalTid"],
        name=np.clip(columns["isSchedIn"], -1, 1).astype(np.int32),
        names=_SWITCHES,
        threads=pools.thread_ids(),
    )


READERS: Final[dict[str, Callable[[Database], RecordedEvents | None]]] = {
    "os_calls": os_calls,
    "cpu_samples": cpu_samples,
    "cpu_switches": cpu_switches,
    "payloads": payloads.read,
}


def _symbols(wanted: Int64, ids: Int64, symbols: Int32) -> Int32:
    """The symbol of each wanted id, -1 for none."""
    order = np.argsort(ids, kind="stable")
    place = np.searchsorted(ids[order], wanted)
    row = take(order.astype(np.int32), place.astype(np.int32))
    found = take(ids, row) == wanted
    return np.where(found, take(symbols, row), np.int32(-1))
