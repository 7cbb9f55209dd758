"""API calls of an Nsight Systems export that captured work into a graph.

They launched nothing, so `read` skips them unless the export is given as a capture file. They do
not record kernel names.
"""

from __future__ import annotations

import numpy as np

from fastprof._core import _join
from fastprof.model.trace import Captured, Kernels, Launches
from fastprof.readers import trace_columns
from fastprof.readers.graph_captures import capture_names, captured_in, graphs_of_calls
from fastprof.readers.nsys import schema
from fastprof.readers.nsys.launches import process_of
from fastprof.readers.nsys.strings import texts_of
from fastprof.readers.sqlite.database import Database


def add(
    database: Database,
    pools: schema.Pools,
    kernels: Kernels,
    launches: Launches,
    strings: list[str | None],
) -> tuple[Launches, Captured | None]:
    """Merge captured calls into the launches, sorted by time, and return both.

    Updates the launch indices of kernels and appends names of calls to `strings`.

    kernels : with copies and memsets, to identify calls that were not captured
    """
    own = schema.Pools()
    calls = database.scan(schema.LAUNCHES, schema.launch_fields(own))
    names = texts_of(database, own.strings)
    threads = np.array([pools.threads.intern(key) for key in own.threads.values().tolist()] + [-1])
    thread = threads.astype(np.int32)[calls["globalTid"]]
    process_of_thread = process_of(
        np.arange(len(pools.threads), dtype=np.int32), pools, schema.PROCESS_SHIFT
    )
    meaning = capture_names(names)[calls["nameId"]]
    graph = graphs_of_calls(meaning, calls["start"], thread, process_of_thread)
    if graph is None:
        return launches, None
    process = np.append(process_of_thread, np.int32(-1))[thread]
    join = _join.Join(process, calls["correlationId"])
    join.offer(kernels.process, kernels.correlation)
    worked = join.rows(process, calls["correlationId"]) >= 0
    rows, number = captured_in(graph, worked, calls["start"], calls["correlationId"])
    n, nothing = len(launches), np.full(len(rows), -1, np.int32)
    columns = {
        "start": np.concatenate([launches.start, calls["start"][rows]]),
        "thread": np.concatenate([launches.thread, thread[rows]]),
        "name": np.concatenate([launches.name, calls["nameId"][rows] + np.int32(len(strings))]),
        "captured": np.arange(n + len(rows)) - n,
    }
    strings += names
    columns = trace_columns.launches_in_order(columns, kernels)
    at = columns.pop("captured")
    sizes = np.full((len(rows), 3), -1, np.int32)
    captured = Captured(nothing.copy(), number, nothing, sizes, sizes, meaning[rows])
    captured.launch[at[at >= 0]] = np.flatnonzero(at >= 0)
    return Launches(**columns), captured
