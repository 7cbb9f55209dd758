"""The ranges and all API calls of an Nsight Systems export, with their times."""

from __future__ import annotations

import numpy as np

from fastprof.model.timeline import Recorded, RecordedCalls
from fastprof.readers.nsys import ranges as ranges_of
from fastprof.readers.nsys import schema
from fastprof.readers.nsys.connected import Connected
from fastprof.readers.nsys.launches import process_of
from fastprof.readers.nsys.pieces import Pieces
from fastprof.readers.nsys.strings import texts_of
from fastprof.readers.sqlite.database import Database


def read(database: Database) -> Recorded:
    """Read the tables of ranges and API calls on two threads, each of which helps the other.

    Raises
    ------
    BadInputError
        The file is damaged, or lacks a table or column that all versions have.
    """
    pools = schema.Pools()
    with Connected(database) as second:
        ranges = ranges_of.Reading(database)
        running = second.submit(ranges.pieces.read)
        calls = Pieces(database, schema.LAUNCHES, schema.call_fields, lambda: None)
        helping = second.submit(calls.help)
        calls.read(database)
        ranges.pieces.help(database)
        running.result()
        helping.result()
    calls.adopt(pools)
    ranges.pieces.adopt(pools)
    columns = calls.together()
    strings = texts_of(database, pools.strings)
    own, _ = ranges.finish(pools, strings)
    threads = pools.threads.values()
    # Without process ids of kernels, `read` treats all as one process: ids are then unique.
    process = process_of(np.arange(len(threads), dtype=np.int32), pools, schema.PROCESS_SHIFT)
    return Recorded(
        ranges=own,
        calls=RecordedCalls(
            start=columns["start"],
            end=np.maximum(columns["start"], columns["end"]),
            thread=columns["globalTid"],
            name=columns["nameId"],
            correlation=columns["correlationId"],
        ),
        strings=strings,
        threads=(threads & schema.LOW_24_BITS).astype(np.int32),
        process_of_thread=process,
        processes=schema.process_ids(pools.processes.values()),
    )
