"""Nsight Systems SQLite exports to a Recording."""

from __future__ import annotations

import numpy as np

from fastprof.model.trace import Activity, Kernels, Ranges, Recording
from fastprof.readers import cupti as gpu_work
from fastprof.readers import trace_columns
from fastprof.readers.nsys import host_events, metadata, schema
from fastprof.readers.nsys import launches as graph_captures
from fastprof.readers.nsys import launches as launches_of
from fastprof.readers.nsys import ranges as ranges_of
from fastprof.readers.nsys.all_calls import ReadingAll
from fastprof.readers.sqlite.connected import Connected
from fastprof.readers.sqlite.database import EXPORT_AGAIN, Database


def read(
    database: Database, copies: bool = False, captures: bool = False, host: bool = False
) -> Recording:
    """Read an export on two threads.

    The second thread reads ranges while the first reads kernels and API calls; then each helps the
    other.

    copies : also read memory copies and memsets
    captures : also read API calls that add work to a graph; requires `copies`
    host : also keep all API calls, and the payloads of ranges

    Raises
    ------
    BadInputError
        The file is damaged, or lacks a table or column that all versions have.
    """
    pools = schema.NsysPools()
    with Connected(database) as second:
        payloads = host_events.Payloads(database if host else None)
        fields = schema.ranges_with_payloads if payloads.schemas else schema.range_fields
        reading = ranges_of.RangeReading(database, fields)
        running = second.submit(reading.pieces.read)
        kernels = _read_kernels(database, pools, copies)
        nodes = launches_of.read_graph_nodes(database, pools, kernels)
        calls = (ReadingAll if host else launches_of.LaunchReading)(database, pools, kernels)
        helping = second.submit(calls.pieces.help)
        calls.pieces.read(database)
        reading.pieces.help(database)
        running.result()
        helping.result()
        calls.adopt(pools)
        reading.pieces.adopt(pools)
        finishing = second.submit(_finish_ranges, reading, pools, kernels)
        launches = calls.finish(pools, kernels, nodes)
        strings, warnings, (ranges, phases) = finishing.result()
    captured = None
    if captures:
        launches, captured = graph_captures.add(database, pools, kernels, launches, strings)
    threads = pools.threads.values()
    process_of_thread = launches_of.process_of(
        np.arange(len(threads), dtype=np.int32), pools, schema.PROCESS_SHIFT
    )
    shift, low = schema.PROCESS_SHIFT, schema.LOW_24_BITS
    kept = calls.host(database)
    if kept is not None and payloads.schemas:
        kept.payloads = payloads.decoded(payloads.rows(reading.with_payload), pools, strings)
    about, problems = metadata.read(
        database, [(number >> shift & low, number & low) for number in threads.tolist()]
    )
    return Recording(
        name=database.name,
        kernels=kernels,
        launches=launches,
        ranges=ranges,
        phases=phases,
        labels=pools.labels.texts(),
        strings=strings,
        threads=(threads & schema.LOW_24_BITS).astype(np.int32),
        process_of_thread=process_of_thread,
        processes=schema.process_ids(pools.processes.values()),
        warnings=warnings + problems,
        about=about,
        captured=captured,
        lost=launches_of.without_failed(database, calls.lost),
        host=kept,
    )


def _finish_ranges(
    database: Database, reading: ranges_of.RangeReading, pools: schema.NsysPools, kernels: Kernels
) -> tuple[list[str | None], list[str], tuple[Ranges, Ranges]]:
    """The texts of all string ids, warnings, and the ranges."""
    strings, warnings = trace_columns.read_strings(
        database, schema.STRINGS, schema.string_fields, pools.strings, kernels, EXPORT_AGAIN
    )
    return strings, warnings, reading.finish(pools, strings)


def _read_kernels(database: Database, pools: schema.NsysPools, copies: bool) -> Kernels:
    """GPU work in order of start; launch and origin are -1."""
    has_names = "demangledName" in database.tables.get(schema.KERNELS, ["demangledName"])
    name = "demangledName" if has_names else "shortName"
    kernels = gpu_work.scan(database, schema.KERNELS, schema.kernel_fields(pools, name))
    kernels.configs["name"] = kernels.configs.pop(name)
    graphs = gpu_work.scan(database, schema.GRAPHS, schema.graph_fields(pools))
    kinds = {Activity.KERNEL: kernels, Activity.GRAPH: graphs}
    if copies:
        for kind, table in ((Activity.MEMCPY, schema.COPIES), (Activity.MEMSET, schema.SETS)):
            kinds[kind] = gpu_work.scan(database, table, schema.copy_fields(pools))
    return gpu_work.kernels_of(kinds, "globalPid", schema.FIRST_MEMORY)
