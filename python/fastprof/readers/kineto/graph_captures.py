"""Captures of CUDA and HIP graphs in traces of torch.profiler.

During a capture, a launch call adds its kernel to the graph: the trace records the call and no GPU
work. Calls of ROCm record name and grid of the kernel, calls of CUDA do not.
"""

from __future__ import annotations

import numpy as np

from fastprof._core._kineto import NONE
from fastprof.model.trace import Captured
from fastprof.readers.graph_captures import (
    Rows,
    capture_names,
    captured_in,
    graphs_of_calls,
    graphs_without_marks,
)
from fastprof.readers.kineto.event_columns import KinetoFile
from fastprof.readers.kineto.timeline import KinetoThreads


def captured_calls(
    file: KinetoFile, threads: KinetoThreads, wanted: bool
) -> tuple[Rows, Captured] | None:
    """The rows of the launch table that add work to a graph, in order of time, and that work.

    `launch` of the work indexes these rows. None if nothing was captured.

    wanted : the user gave the file as a capture; begin and end of captures may be missing
    """
    meaning_of_name = capture_names(file.names)
    if not wanted and not np.any(meaning_of_name < -1):
        return None
    events = file.tables["launches"]
    thread = threads.find(events["pid"], events["tid"])
    known = (events["start"] != NONE) & (thread >= 0)
    meaning = np.where(known, meaning_of_name[events["name"]], np.int32(-1))
    graph = graphs_of_calls(meaning, events["start"], thread, threads.process)
    if graph is None and not wanted:
        return None
    correlation = events["correlation"]
    worked = np.isin(correlation, file.tables["gpu"]["correlation"]) & (correlation >= 0)
    if graph is None:
        graph = graphs_without_marks(meaning, events["start"], worked)
    if graph is None:
        return None
    rows, number = captured_in(graph, worked, events["start"], correlation)
    return rows, Captured(
        launch=np.arange(len(rows), dtype=np.int32),
        graph=number,
        name=events["kernel"][rows],
        grid=events["grid"][rows],
        block=events["block"][rows],
        kind=meaning[rows],
    )
