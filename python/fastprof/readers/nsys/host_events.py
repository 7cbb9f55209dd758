"""Host events of an Nsight Systems export beyond ranges and API calls, read on request.

NVTX ranges with a binary payload, decoded by the schemas of the export.

NCCL describes its calls so: communicator, message size, peer. `nsys export` writes payloads with
--include-blobs=true. A blob is a header of 32 bytes (domain, schema, payload size, end) and the
payload, with the fields that NVTX_PAYLOAD_SCHEMA_ENTRIES lists. Types are numbered as in NVTX's
nvToolsExtPayload.h.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from fastprof._core import _column
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof.model.arrays import Int32, Int64
from fastprof.model.timeline import RecordedEvents, RecordedSyncs
from fastprof.model.trace import NEVER, NO_TIME, label_text
from fastprof.readers.cupti import syncs_of
from fastprof.readers.nsys import schema
from fastprof.readers.nsys.ranges import event_types, table_of
from fastprof.readers.nsys.schema import texts_of
from fastprof.readers.sqlite.database import Database, TableColumns

_ENTRIES: Final = "NVTX_PAYLOAD_SCHEMA_ENTRIES"
_COLUMNS: Final = ("domainId", "schemaId", "type", "name", "offset", "arrayOrUnionDetail")
_HEADER: Final = struct.Struct("<IxxxxIxxxxQQ")
# Formats of the numeric types.
_FORMATS: Final = dict(enumerate("bBhHiIqQqQbBhHiIqQfd", start=1)) | {22: "Q", 23: "Q"}

Schemas = dict[tuple[int, int], list[tuple[str, int, str]]]  # name, offset, format


class Payloads:
    """The payloads of ranges in an export.

    Parameters
    ----------
    database : the export; None: nobody asks for them

    Attributes
    ----------
    schemas : empty if the export contains no payloads
    """

    def __init__(self, database: Database | None) -> None:
        self.schemas: Schemas = {}
        if database and schema.PAYLOAD in database.tables.get(table_of(database), ()):
            self.schemas = _schemas(database)

    @property
    def domains(self) -> list[int]:
        """The domains that have schemas."""
        return sorted({domain for domain, _ in self.schemas})

    def rows(self, columns: TableColumns) -> TableColumns:
        """The ranges whose domain has schemas; columns : those of `schema.ranges_with_payloads`"""
        rows = np.flatnonzero(columns[schema.PAYLOAD] >= 0)
        rows = rows[np.isin(columns["domainId"][rows], self.domains)]
        return {name: columns[name][rows] for name in (*_NAMED_BY, "start", "end", "globalTid")}

    def decoded(
        self, columns: TableColumns, pools: schema.NsysPools, strings: Sequence[str | None]
    ) -> RecordedEvents:
        """The ranges; their names are JSON: the payload's fields, and the range's name as `name`.

        Parameters
        ----------
        columns : those of `rows`
        pools : of the columns
        strings : the texts of the ids of `pools.strings`
        """
        name, first = alike([columns[key] for key in _NAMED_BY])
        payloads = pools.payloads.blobs()
        texts = pools.labels.texts() if (columns["text"] >= 0).any() else []
        names: list[str | None] = []
        for row in first.tolist():
            domain, text, string, blob = (int(columns[key][row]) for key in _NAMED_BY)
            result = _decoded(payloads[blob], domain, self.schemas)
            label = label_text(texts[text]) if text >= 0 else None
            if label is None and string >= 0:
                label = strings[string]
            names.append(None if result is None else json.dumps(result | {"name": label}))
        rows = np.flatnonzero(np.array([*(name is not None for name in names), False])[name])
        is_open = columns["end"] == NEVER
        return RecordedEvents(
            start=columns["start"][rows],
            end=np.maximum(columns["start"], np.where(is_open, NO_TIME, columns["end"]))[rows],
            thread=columns["globalTid"][rows],
            name=name[rows],
            names=names,
            threads=pools.thread_ids(),
        )


def payload_events(database: Database) -> RecordedEvents | None:
    """The ranges with payloads; None if the export contains none."""
    payloads, pools = Payloads(database), schema.NsysPools()
    if not payloads.schemas:
        return None
    # The domain is the filter column.
    fields = [*schema.payload_fields(pools), *schema.range_fields(pools)]
    keep = _column.Among(payloads.domains)
    columns = database.scan(table_of(database), fields, keep=keep, capacity=0)
    push_pop, start_end, _ = event_types(database)
    is_range = np.isin(columns["eventType"], push_pop + start_end)
    rows = payloads.rows({name: column[is_range] for name, column in columns.items()})
    return payloads.decoded(rows, pools, texts_of(database, pools.strings))


_NAMED_BY: Final = ("domainId", "text", "textId", schema.PAYLOAD)


def _schemas(database: Database) -> Schemas:
    """The numeric fields of each schema, by domain and schema; arrays are left out."""
    if not database.tables.get(_ENTRIES, {}).keys() >= set(_COLUMNS):
        return {}
    schemas: Schemas = {}
    for domain, number, kind, name, offset, array in database.rows(
        f"SELECT DISTINCT {', '.join(_COLUMNS)} FROM {_ENTRIES}"
    ):
        if kind in _FORMATS and not array and isinstance(name, str):
            fields = schemas.setdefault((domain, number), [])
            fields.append((name, offset or 0, f"<{_FORMATS[kind]}"))
    return schemas


def _decoded(blob: bytes, domain: int, schemas: Schemas) -> dict[str, Any] | None:
    """The fields of a payload; None if the blob has another layout."""
    if len(blob) < _HEADER.size:
        return None
    _, number, size, _ = _HEADER.unpack_from(blob)
    payload = blob[_HEADER.size :][:size]
    if (domain, number) not in schemas or len(payload) < size:
        return None
    return {
        name: struct.unpack_from(kind, payload, offset)[0]
        for name, offset, kind in schemas[domain, number]
        if 0 <= offset <= size - struct.calcsize(kind)
    }


_SWITCHES: Final[list[str | None]] = ["out", "in"]  # by isSchedIn


def syncs(database: Database, pools: schema.NsysPools) -> RecordedSyncs:
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
    pools = schema.NsysPools()
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
    pools = schema.NsysPools()
    samples = database.scan(schema.SAMPLES, schema.sample_fields(pools))
    leaves = database.scan(
        schema.CALL_CHAINS, schema.call_chain_fields(pools), keep=_column.Among([0]), capacity=0
    )
    symbol = _symbols(samples["id"], leaves["id"], leaves["symbol"])
    names = texts_of(database, pools.strings)
    return _instants(samples["start"], samples["globalTid"], symbol, names, pools)


def cpu_switches(database: Database) -> RecordedEvents:
    """When the operating system put a thread on a CPU (`in`), and took it off (`out`)."""
    pools = schema.NsysPools()
    columns = database.scan(schema.SWITCHES, schema.switch_fields(pools))
    name = np.clip(columns["isSchedIn"], -1, 1).astype(np.int32)
    return _instants(columns["start"], columns["globalTid"], name, _SWITCHES, pools)


def page_faults(database: Database) -> RecordedEvents:
    """Page faults of the CPU in unified memory (--cuda-um-cpu-page-faults=true).

    The thread is thread 0 of the process: nsys does not record which one.
    """
    pools = schema.NsysPools()
    columns = database.scan(schema.CPU_FAULTS, schema.fault_fields(pools))
    name = np.zeros(len(columns["start"]), np.int32)
    return _instants(columns["start"], columns["globalPid"], name, ["page fault"], pools)


def _instants(
    time: Int64, thread: Int32, name: Int32, names: list[str | None], pools: schema.NsysPools
) -> RecordedEvents:
    """Events without a length; name : index into names, -1 for none"""
    return RecordedEvents(time, time, thread, name, names, pools.thread_ids())


READERS: Final[dict[str, Callable[[Database], RecordedEvents | None]]] = {
    "os_calls": os_calls,
    "cpu_samples": cpu_samples,
    "cpu_switches": cpu_switches,
    "page_faults": page_faults,
    "payloads": payload_events,
}


def _symbols(wanted: Int64, ids: Int64, symbols: Int32) -> Int32:
    """The symbol of each wanted id, -1 for none."""
    order = np.argsort(ids, kind="stable")
    place = np.searchsorted(ids[order], wanted)
    row = take(order.astype(np.int32), place.astype(np.int32))
    result = take(ids, row) == wanted
    return np.where(result, take(symbols, row), np.int32(-1))
