"""Recording to NestedRanges: which range encloses each range and each API call.

A *frame* is one occurrence of a range within its parent frame. Properly nested ranges have one
frame each; a range that crosses the end of another has several.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fastprof._core import _nest
from fastprof._system.classes import dataclass
from fastprof._system.threads import SecondThread
from fastprof.model.arrays import Int32, Int64
from fastprof.model.markers import Meaning, read, read_event
from fastprof.model.trace import NEVER, OF_EVENT, OF_TORCH, Recording, Trace, label_text
from fastprof.profile.callpath import autograd_threads
from fastprof.profile.callpath import autograd_threads as callers
from fastprof.profile.steps.marked import profiler_steps, step_marks, user_ranges


@dataclass()
class NestedRanges:
    """Ranges and their frames, without times.

    Parameters
    ----------
    label, seq, op_id, thread : [ranges] see `model.trace.Ranges`
    recorded_forward : [ranges] see `model.trace.Recording`
    meanings : [labels]
    frame_parent, frame_range : [frames] the parent frame, -1 for none, and the range
    frame_of_range : [ranges] the first frame of each range
    caller : [frames] see `callers.Inherited`
    """

    label: Int32
    seq: Int64
    op_id: Int64
    thread: Int32
    recorded_forward: Int32 | None
    meanings: list[Meaning]
    frame_parent: Int32
    frame_range: Int32
    frame_of_range: Int32
    caller: Int32 | None


@dataclass(frozen=True)
class Nesting:
    """Result of `nest`.

    Parameters
    ----------
    trace : the trace without its ranges
    frame_of_launch : [launches] the innermost frame around each API call, -1 for none; outside all
        ranges of a thread that another waits for, that of the waiting thread
    is_engine : [threads] whether a thread belongs to the autograd engine
    in_engine : [launches] whether a thread of the engine made it outside all ranges of its own
    """

    trace: Trace
    ranges: NestedRanges
    frame_of_launch: Int32
    is_engine: npt.NDArray[np.bool_]
    in_engine: npt.NDArray[np.bool_]


def nest(recording: Recording) -> Nesting:
    """Nest the ranges of a recording and find the innermost range around each API call.

    The result does not refer to the start and end of ranges. Memory is freed early if the caller
    keeps no reference to the recording.

    Cost: linear in launches, ranges and the number of crossings.
    """
    ranges, launches = recording.ranges, recording.launches
    with SecondThread(gives_back=False) as second:
        sweep = second.submit(
            _nest.sweep,
            ranges.start, ranges.end, ranges.thread,
            launches.start, launches.thread, len(recording.threads), recording.name,
        )  # fmt: skip
        launching = second.submit(autograd_threads.Launchers, recording)
        meanings = [_meaning(label) for label in recording.labels]
        users, marks = user_ranges(recording, meanings), step_marks(recording, meanings)
        frames, launchers = sweep.result(), launching.result()
    waited = autograd_threads.find(launchers, meanings, frames[3])
    inherited = callers.inherit(recording, meanings, waited, launchers, frames)
    frame_parent, frame_range, frame_of_range, frame_of_launch = inherited.frames
    trace = recording.without_ranges()
    trace.about = replace(trace.about, steps=profiler_steps(recording, meanings))
    trace.user_ranges, trace.step_marks = users, marks
    trace.open_ranges = int(np.count_nonzero(ranges.end == NEVER))
    return Nesting(
        trace=trace,
        ranges=NestedRanges(
            label=ranges.label,
            seq=ranges.seq,
            op_id=ranges.op_id,
            thread=ranges.thread,
            recorded_forward=recording.recorded_forward,
            meanings=meanings,
            frame_parent=frame_parent,
            frame_range=frame_range,
            frame_of_range=frame_of_range,
            caller=inherited.caller,
        ),
        frame_of_launch=frame_of_launch,
        is_engine=waited.is_engine,
        in_engine=inherited.in_engine,
    )


def _meaning(label: str) -> Meaning:
    if not label.startswith(OF_EVENT):
        return read(label_text(label), label.startswith(OF_TORCH))
    result = read_event(label[1:])
    return read(result, False) if isinstance(result, str) else result
