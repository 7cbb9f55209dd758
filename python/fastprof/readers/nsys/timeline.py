"""The ranges and all API calls of an Nsight Systems export, with their times."""

from __future__ import annotations

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Values
from fastprof.model.timeline import Recorded, RecordedCalls
from fastprof.model.trace import Ranges, label_text
from fastprof.readers import trace_columns
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
        ranges = ranges_of.Reading(database, schema.domain_fields, domains=True)
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
    threads = pools.threads.values()
    # Without process ids of kernels, `read` treats all as one process: ids are then unique.
    process = process_of(np.arange(len(threads), dtype=np.int32), pools, schema.PROCESS_SHIFT)
    own, domain, is_push_pop, phase_domain = _ranges(ranges, pools, strings, process)
    return Recorded(
        ranges=own,
        domain=domain,
        is_push_pop=is_push_pop,
        phase_domain=phase_domain,
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


def _ranges(
    reading: ranges_of.Reading, pools: schema.Pools, strings: list[str | None], process: Int32
) -> tuple[Ranges, Values, Bools, Values]:
    """The ranges, their domains, whether they were pushed and popped, and the domains of phases.

    process : [threads]
    """
    columns, moved, nowhere = reading.named(pools, strings)
    push_pop, _, names_domain = reading.types
    is_name = np.isin(columns["eventType"], names_domain)
    named = np.flatnonzero(is_name & (columns["globalTid"] >= 0) & (columns["text"] >= 0))
    process = take(process, columns["globalTid"])
    texts = pools.labels.texts()
    name_of = {
        (own, number): label_text(texts[label])
        for own, number, label in zip(
            *(each[named].tolist() for each in (process, columns["domainId"], columns["text"])),
            strict=True,
        )
    }
    columns["process"] = process
    further = ("domainId", "process", "eventType")
    keep = ~is_name
    keep[moved] = keep[nowhere] = False
    phases = np.setdiff1d(moved, nowhere)
    _, of_phases = trace_columns.ranges_with(dict(columns), phases, further)
    own, of_ranges = trace_columns.ranges_with(columns, np.flatnonzero(keep), further)
    domains = [_domains(each[1], each[0], name_of) for each in (of_ranges, of_phases)]
    return own, domains[0], np.isin(of_ranges[2], push_pop), domains[1]


def _domains(process: Int32, number: Int64, name_of: dict[tuple[int, int], str]) -> Values:
    """The names of domains; of the default domain 0 and of unnamed ones, unknown."""
    ids, first = alike([process, number])
    keys = zip(process[first].tolist(), number[first].tolist(), strict=True)
    return Values(ids, [name_of.get(key) for key in keys]).mapped(lambda name: name)
