"""Ranges and API calls of one trace, put behind those of another.

So the captures of a graph, which another file tells, are looked at as those of the same file are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np

from fastprof.errors import BadInputError
from fastprof.model.trace import NEVER, Borrowed, Captured, Int32, Int64, Launches, Ranges, Trace

Text = TypeVar("Text", str, str | None)


def borrow(trace: Trace, lender: Trace) -> None:
    """Put ranges, calls, threads and captures of `lender` behind those of `trace`, later than all
    of these, in processes of their own. It gives no kernels.

    Raises
    ------
    BadInputError
        The times of both together are more than 64 bits hold.
    """
    own, other = trace.ranges, lender.ranges
    shift = _shift(trace, lender)
    label = _adopted(trace.labels, lender.labels)
    name = _adopted(trace.strings, lender.strings)
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
    launches = lender.launches
    trace.launches = Launches(
        start=np.concatenate([trace.launches.start, launches.start + shift]),
        thread=np.concatenate([trace.launches.thread, _moved(launches.thread, n_threads)]),
        name=np.concatenate([trace.launches.name, name[launches.name]]),
    )
    trace.threads = np.concatenate([trace.threads, lender.threads])
    trace.process_of_thread = np.concatenate(
        [trace.process_of_thread, _moved(lender.process_of_thread, n_processes)]
    )
    trace.processes = np.concatenate([trace.processes, lender.processes])
    if trace.told_forward is not None or lender.told_forward is not None:
        trace.told_forward = np.concatenate(
            [_told(trace, n_ranges), _moved(_told(lender, len(other)), n_ranges)]
        )
    if lender.captured is not None:
        trace.captured = _both(trace.captured, lender.captured, n_launches, name, lender.name)
    trace.borrowed = Borrowed(
        trace.borrowed.ranges + len(other),
        trace.borrowed.threads + len(lender.threads),
        trace.borrowed.processes + len(lender.processes),
    )


def _shift(trace: Trace, lender: Trace) -> int:
    """What moves the times of `lender` behind those of `trace`, whose rows are in order of time."""
    tables = [
        (trace.ranges.start, lender.ranges.start),
        (trace.launches.start, lender.launches.start),
    ]
    last = max((int(own[-1]) for own, _ in tables if len(own)), default=0)
    first = min((int(other[0]) for _, other in tables if len(other)), default=0)
    end = max((int(other[-1]) for _, other in tables if len(other)), default=0)
    shift = last + 1 - first
    if not -NEVER < shift < NEVER or end + shift >= NEVER:
        raise BadInputError(
            f"{lender.name}: expected times that fit behind those of {trace.name} into 64 bits of "
            f"ns, found {first} to {end}; one of the files is damaged, record it again"
        )
    return shift


def _later(end: Int64, shift: int) -> Int64:
    """Ends moved; what never ends still does not."""
    return np.where(end >= NEVER - max(shift, 0), NEVER, end + shift)


def _adopted(texts: list[Text], others: Iterable[Text]) -> Int32:
    """The places of other texts among some, which get those that they lack; -1 at the end."""
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


def _told(trace: Trace, n_ranges: int) -> Int32:
    told = trace.told_forward
    return np.full(n_ranges, -1, np.int32) if told is None else told


def _both(
    own: Captured | None, other: Captured, n_launches: int, name: Int32, file: str
) -> Captured:
    """The captures of both, those of `file` behind the own ones, which are of other files too."""
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
