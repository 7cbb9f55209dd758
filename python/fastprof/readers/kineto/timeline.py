"""The ranges and all API calls of a trace of torch.profiler, with their times.

To parse the text takes nearly all of the time of reading: `open` keeps what is here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastprof._core._kineto import NONE
from fastprof.model.columns import unknown
from fastprof.model.timeline import Recorded, RecordedCalls, RecordedRanges, RecordedSyncs
from fastprof.model.trace import NEVER, Ranges
from fastprof.readers.kineto.event_columns import KinetoFile
from fastprof.readers.kineto.threads import KinetoThreads

# Kineto's names of CUPTI's types of synchronisation, in the order of SYNC_KINDS.
_SYNC_NAMES = ("Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync")


def recorded(file: KinetoFile, threads: KinetoThreads, ranges: Ranges) -> Recorded:
    """The events of ranges and API calls, runtime calls first."""
    events = file.tables["launches"]
    rows = api_calls(file)
    thread = threads.find(events["pid"][rows], events["tid"][rows])
    known = (events["start"][rows] != NONE) & (thread >= 0)
    rows, thread = rows[known], thread[known]
    start, duration = events["start"][rows], events["duration"][rows]
    return Recorded(
        ranges=RecordedRanges(
            start=ranges.start,
            end=ranges.end,
            thread=ranges.thread,
            domain=unknown(len(ranges)),
            is_push_pop=np.ones(len(ranges), bool),
        ),
        phase_domain=unknown(0),
        calls=RecordedCalls(
            start=start,
            end=np.where(duration == NONE, NEVER, start + np.maximum(duration, 0)),
            thread=thread,
            name=events["name"][rows],
            correlation=events["correlation"][rows],
        ),
        syncs=_syncs(file),
        strings=list(file.names),
        threads=threads.numbers,
        process_of_thread=threads.process,
        processes=threads.process_numbers.astype(np.int32),
    )


def api_calls(file: KinetoFile) -> npt.NDArray[np.intp]:
    """The rows of the launch table, those of driver calls last."""
    is_driver = np.array(["driver" in name.lower() for name in file.categories] + [False])
    return np.argsort(is_driver[file.tables["launches"]["category"]], kind="stable")


def _syncs(file: KinetoFile) -> RecordedSyncs:
    """CUPTI's records of synchronisation (`enable_cuda_sync_events`), without their process."""
    events = file.tables["syncs"]
    rows = np.flatnonzero(events["start"] != NONE)
    start, duration = events["start"][rows], events["duration"][rows]
    number = {name: kind for kind, name in enumerate(_SYNC_NAMES)}
    kinds = np.array([number.get(name, 0) for name in [*file.names, ""]], np.int32)
    return RecordedSyncs(
        start=start,
        end=np.where(duration == NONE, NEVER, start + np.maximum(duration, 0)),
        process=np.full(len(rows), -1, np.int32),
        device=events["device"][rows],
        stream=events["stream"][rows],
        kind=kinds[events["name"][rows]],
        correlation=events["correlation"][rows],
    )
