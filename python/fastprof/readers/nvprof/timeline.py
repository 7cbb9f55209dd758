"""The ranges and all API calls of an NVProf file, with their times."""

from __future__ import annotations

import numpy as np

from fastprof.model.columns import unknown
from fastprof.model.timeline import Recorded, RecordedCalls, RecordedRanges, RecordedSyncs
from fastprof.readers import trace_columns
from fastprof.readers.cupti import syncs_of
from fastprof.readers.nvprof import schema
from fastprof.readers.nvprof.call_names import CALL_NAMES
from fastprof.readers.nvprof.reader import name_calls, process_of_thread_in, read_ranges
from fastprof.readers.sqlite.database import Database


def read(database: Database) -> Recorded:
    """Read the markers and the API calls, runtime calls first.

    Raises
    ------
    BadInputError
        The file is damaged, or lacks a table or column that all versions have.
    """
    pools = schema.NvprofPools()
    names: dict[str, int] = {}
    parts = []
    for table, known in zip(schema.LAUNCHES, CALL_NAMES, strict=True):
        columns = database.scan(table, schema.call_fields(pools))
        columns["name"] = name_calls(columns.pop("cbid"), known, names)
        parts.append(columns)
    columns = trace_columns.joined(parts)
    ranges, phases = read_ranges(database, pools)
    return Recorded(
        ranges=RecordedRanges(
            start=ranges.start,
            end=ranges.end,
            thread=ranges.thread,
            domain=unknown(len(ranges)),
            is_push_pop=np.ones(len(ranges), bool),
        ),
        phase_domain=unknown(len(phases)),
        calls=RecordedCalls(
            start=columns["start"],
            end=np.maximum(columns["start"], columns["end"]),
            thread=columns["thread"],
            name=columns["name"],
            correlation=columns["correlationId"],
        ),
        syncs=_syncs(database),
        strings=list(names),
        threads=pools.threads.values() & schema.LOW_32_BITS,
        process_of_thread=process_of_thread_in(pools)[:-1],
        processes=pools.processes.values().astype(np.int32),
    )


def _syncs(database: Database) -> RecordedSyncs:
    """CUPTI's records of synchronisation. The file records neither their process nor device."""
    columns = database.scan(schema.SYNCS, schema.sync_fields())
    contexts = database.scan(schema.CONTEXTS, schema.context_fields())
    device_of = dict(
        zip(contexts["contextId"].tolist(), contexts["deviceId"].tolist(), strict=True)
    )
    used, place = np.unique(columns["contextId"], return_inverse=True)
    devices = np.array([device_of.get(context, -1) for context in used.tolist()], np.int64)
    nowhere = np.full(len(place), -1, np.int32)
    return syncs_of(columns, nowhere, devices[place], columns["type"])
