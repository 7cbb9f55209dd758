"""The ranges and all API calls of an Nsight Systems export, with their times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastprof._core import _column
from fastprof._core._pools import alike
from fastprof._core._take import take, without
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Values, unknown
from fastprof.model.timeline import Recorded, RecordedCalls, RecordedRanges
from fastprof.readers import trace_columns
from fastprof.readers.nsys import all_calls as memory
from fastprof.readers.nsys import host_events, schema
from fastprof.readers.nsys import ranges as ranges_of
from fastprof.readers.nsys.launches import process_of
from fastprof.readers.nsys.pieces import Pieces
from fastprof.readers.nsys.schema import texts_of
from fastprof.readers.sqlite.connected import Connected
from fastprof.readers.sqlite.database import Database, TableColumns


def read(database: Database) -> Recorded:
    """Read the tables of ranges and API calls on two threads, each of which helps the other.

    Raises
    ------
    BadInputError
        The file is damaged, or lacks a table or column that all versions have.
    """
    pools = schema.NsysPools()
    with Connected(database) as second:
        ranges = ranges_of.RangeReading(database, schema.time_fields, domains=True)
        running = second.submit(ranges.pieces.read)
        calls = Pieces(database, schema.LAUNCHES, schema.call_fields, lambda: None)
        helping = second.submit(calls.help)
        calls.read(database)
        ranges.pieces.help(database)
        running.result()
        helping.result()
        calls.adopt(pools)
        ranges.pieces.adopt(pools)
        joining = second.submit(lambda _: ranges.pieces.together())
        columns = calls.together()
        np.maximum(columns["start"], columns["end"], out=columns["end"])
        rows = joining.result()
    is_name = _is_among(rows["eventType"], ranges.types[2])
    # Few exports name domains, and few events do.
    events = _domain_events(database, ranges, pools) if is_name.any() else None
    strings = texts_of(database, pools.strings)
    names = {} if events is None else _domain_names(events, pools, strings)
    threads = pools.threads.values()
    process = process_of(np.arange(len(threads), dtype=np.int32), pools, schema.PROCESS_SHIFT)
    syncs = host_events.syncs(database, pools)
    own, phase_domain = _ranges(ranges, rows, ~is_name, strings, threads, names)
    return Recorded(
        ranges=own,
        phase_domain=phase_domain,
        calls=RecordedCalls(
            start=columns["start"],
            end=columns["end"],
            thread=columns["globalTid"],
            name=columns["nameId"],
            correlation=columns["correlationId"],
        ),
        syncs=syncs,
        memory=memory.read(database),
        strings=strings,
        threads=(threads & schema.LOW_24_BITS).astype(np.int32),
        process_of_thread=process,
        processes=schema.process_ids(pools.processes.values()),
    )


def _domain_events(
    database: Database, reading: ranges_of.RangeReading, pools: schema.NsysPools
) -> TableColumns:
    """The events that name domains."""
    keep = _column.Among(reading.types[2])
    table, fields = ranges_of.table_of(database), schema.domain_fields(pools)
    return database.scan(table, fields, keep=keep, capacity=0)


DomainNames = dict[tuple[int, int], str]  # by thread id without its thread, and domain


def _domain_names(
    events: TableColumns, pools: schema.NsysPools, strings: list[str | None]
) -> DomainNames:
    texts, result = pools.labels.texts(), {}
    threads = take(pools.threads.values(), events["globalTid"]) >> schema.PROCESS_SHIFT
    keys = (threads, events["domainId"], events["text"], events["textId"])
    for process, domain, text, string in zip(*(key.tolist() for key in keys), strict=True):
        name = texts[text] if text >= 0 else strings[string] if string >= 0 else None
        if name is not None:
            result[process, domain] = name
    return result


def _ranges(
    reading: ranges_of.RangeReading,
    columns: TableColumns,
    keep: Bools,
    strings: list[str | None],
    threads: Int64,
    names: DomainNames,
) -> tuple[RecordedRanges, Values]:
    """The ranges, and the domains of those that ended on another thread, in order.

    keep : which rows are ranges
    threads : global thread ids
    """
    is_known = np.array([*(text is not None for text in strings), False], bool)
    has_name = (columns["text"] >= 0) | is_known[columns["textId"]]
    has_name &= keep & (columns["globalTid"] >= 0)
    moved = reading.moved(columns)
    phases = moved[has_name[moved]]
    has_name[moved] = False
    needed = ("start", "end", "globalTid", "domainId", "eventType")
    _, _, phase_thread, phase_domain, _ = trace_columns.in_order(dict(columns), phases, needed)
    others = np.flatnonzero(~has_name)
    kept = {name: without(columns[name], others) for name in needed}
    start, end, thread, domain, kind = trace_columns.in_order(kept, slice(None), needed)
    ranges = RecordedRanges(
        start=start,
        end=end,
        thread=thread,
        domain=_domains(threads, thread, domain, names),
        is_push_pop=_is_among(kind, reading.types[0]),
    )
    return ranges, _domains(threads, phase_thread, phase_domain, names)


def _is_among(values: Int32, few: Sequence[int]) -> Bools:
    """np.isin, faster for a few numbers."""
    result = np.zeros(len(values), bool)
    for number in few:
        result |= values == number
    return result


def _domains(threads: Int64, thread: Int32, number: Int64, names: DomainNames) -> Values:
    """The names of domains; of the default domain 0 and of unnamed ones, unknown."""
    if not names:
        return unknown(len(number))
    ids, first = alike([thread, number])
    process = take(threads, thread[first]) >> schema.PROCESS_SHIFT
    keys = zip(process.tolist(), number[first].tolist(), strict=True)
    return Values(ids, [names.get(key) for key in keys]).mapped(lambda name: name)
