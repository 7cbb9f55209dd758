"""Append the ranges and API calls of a capture file to the trace that replays its graphs.

The captures in the file can then be read like those in the trace itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np

from fastprof.errors import BadInputError
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import (
    NEVER,
    Appended,
    Captured,
    Launches,
    Ranges,
    Recording,
)

Text = TypeVar("Text", str, str | None)


def append_capture(recording: Recording, capture: Recording) -> None:
    """Append ranges, API calls, threads and captured graphs of `capture` to `recording`, in place.

    They get later times than all of `recording`, and processes of their own. Kernels are not
    appended.

    Raises
    ------
    BadInputError
        The combined time span does not fit into 64 bits.
    """
    trace = recording
    own, other = trace.ranges, capture.ranges
    shift = _shift(trace, capture)
    label = _merged(trace.labels, capture.labels)
    name = _merged(trace.strings, capture.strings)
    n_ranges, n_launches = len(own), len(trace.launches)
    n_threads, n_processes = len(trace.threads), len(trace.processes)
    trace.ranges = Ranges(
        start=np.concatenate([own.start, other.start + shift]),
        end=np.concatenate([own.end, _later(other.end, shift)]),
        thread=np.concatenate([own.thread, other.thread + np.int32(n_threads)]),
        label=np.concatenate([own.label, label[other.label]]),
        seq=np.concatenate([own.seq, other.seq]),
        op_id=np.concatenate([own.op_id, other.op_id]),
    )
    launches = capture.launches
    trace.launches = Launches(
        start=np.concatenate([trace.launches.start, launches.start + shift]),
        thread=np.concatenate([trace.launches.thread, _moved(launches.thread, n_threads)]),
        name=np.concatenate([trace.launches.name, name[launches.name]]),
    )
    trace.threads = np.concatenate([trace.threads, capture.threads])
    trace.process_of_thread = np.concatenate(
        [trace.process_of_thread, _moved(capture.process_of_thread, n_processes)]
    )
    trace.processes = np.concatenate([trace.processes, capture.processes])
    if trace.recorded_forward is not None or capture.recorded_forward is not None:
        trace.recorded_forward = np.concatenate(
            [
                _recorded_forward(trace, n_ranges),
                _moved(_recorded_forward(capture, len(other)), n_ranges),
            ]
        )
    if capture.captured is not None:
        trace.captured = _concatenated(
            trace.captured, capture.captured, n_launches, name, capture.name
        )
    n_own = n_ranges - trace.appended.ranges
    trace.appended = Appended(
        start=trace.ranges.start[n_own:].copy(),  # the times of other ranges are released
        end=trace.ranges.end[n_own:].copy(),
        thread=trace.ranges.thread[n_own:].copy(),
        threads=trace.appended.threads + len(capture.threads),
        processes=trace.appended.processes + len(capture.processes),
    )


def _shift(recording: Recording, capture: Recording) -> int:
    """The offset in ns that moves the times of `capture` after those of `recording`."""
    tables = [
        (recording.ranges.start, capture.ranges.start),
        (recording.launches.start, capture.launches.start),
    ]
    last = max((int(own[-1]) for own, _ in tables if len(own)), default=0)
    first = min((int(other[0]) for _, other in tables if len(other)), default=0)
    end = max((int(other[-1]) for _, other in tables if len(other)), default=0)
    shift = last + 1 - first
    if not -NEVER < shift < NEVER or end + shift >= NEVER:
        raise BadInputError(
            f"{capture.name}: expected times that fit into 64 bits of ns after those of "
            f"{recording.name}, found {first} to {end}; one of the files is "
            "damaged, record it again"
        )
    return shift


def _later(end: Int64, shift: int) -> Int64:
    """Range ends plus `shift`; NEVER stays NEVER."""
    return np.where(end >= NEVER - max(shift, 0), NEVER, end + shift)


def _merged(texts: list[Text], others: Iterable[Text]) -> Int32:
    """The index of each of `others` in `texts`, to which missing ones are added; -1 at the end."""
    places = {text: place for place, text in enumerate(texts)}
    found: list[int] = []
    for text in others:
        if text not in places:
            places[text] = len(texts)
            texts.append(text)
        found.append(places[text])
    return np.array([*found, -1], np.int32)


def _moved(index: Int32, by: int) -> Int32:
    moved: Int32 = np.where(index >= 0, index + np.int32(by), np.int32(-1))
    return moved


def _recorded_forward(recording: Recording, n_ranges: int) -> Int32:
    forward = recording.recorded_forward
    return np.full(n_ranges, -1, np.int32) if forward is None else forward


def _concatenated(
    own: Captured | None, other: Captured, n_launches: int, name: Int32, file: str
) -> Captured:
    """The captures in `own`, then those of the file named `file`."""
    first = 0 if own is None else int(own.graph.max(initial=-1)) + 1
    moved = Captured(
        launch=other.launch + np.int32(n_launches),
        graph=other.graph + np.int32(first),
        name=name[other.name],
        grid=other.grid,
        block=other.block,
        kind=other.kind,
        files=[file] * (int(other.graph.max(initial=-1)) + 1),
    )
    if own is None:
        return moved
    files = own.files + moved.files
    columns = {
        key: np.concatenate([column, getattr(moved, key)])
        for key, column in vars(own).items()
        if key != "files"
    }
    return Captured(**columns, files=files)
