"""What a trace of torch.profiler says of the capture of CUDA and HIP graphs.

While a stream is captured, a call that launches a kernel puts it into the graph: the trace has the
call and no GPU work. ROCm's calls carry the kernel's name and its grid, CUDA's do not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastprof._kineto import NONE
from fastprof.sources.graph_captures import capture_names, graphs_of_calls
from fastprof.sources.kineto_file import KinetoFile
from fastprof.sources.kineto_threads import Threads
from fastprof.trace import Captured

Rows = npt.NDArray[np.intp]


def captured_calls(file: KinetoFile, threads: Threads) -> tuple[Rows, Captured] | None:
    """Rows of the table of launches that put work into a graph, in order of time, and what they
    put there, with `launch` counting these rows; None where nothing was captured."""
    meaning_of_name = capture_names(file.names)
    if not np.any(meaning_of_name < -1):
        return None
    events = file.tables["launches"]
    thread = threads.find(events["pid"], events["tid"])
    known = (events["start"] != NONE) & (thread >= 0)
    meaning = np.where(known, meaning_of_name[events["name"]], np.int32(-1))
    graph = graphs_of_calls(meaning, events["start"], thread, threads.process)
    if graph is None:
        return None
    rows = np.flatnonzero((graph >= 0) & ~_did_work(file))
    rows = rows[np.argsort(events["start"][rows], kind="stable")]
    rows = rows[_first_of_each(events["correlation"][rows])]
    _, number = np.unique(graph[rows], return_inverse=True)
    return rows, Captured(
        launch=np.arange(len(rows), dtype=np.int32),
        graph=number.astype(np.int32),
        name=events["kernel"][rows],
        grid=events["grid"][rows],
        kind=meaning[rows],
    )


def _did_work(file: KinetoFile) -> npt.NDArray[np.bool_]:
    """Which calls started work on a GPU."""
    worked = file.tables["gpu"]["correlation"]  # of copies too, which may get no rows
    correlation = file.tables["launches"]["correlation"]
    return (correlation >= 0) & np.isin(correlation, worked)


def _first_of_each(correlation: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """The runtime's call where the driver's that it made has its number; those without a number."""
    first = np.zeros(len(correlation), bool)
    first[np.unique(correlation, return_index=True)[1]] = True
    return first | (correlation < 0)
