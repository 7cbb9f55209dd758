"""Reads a recording with fastprof: the nested ranges and their meanings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fastprof.model.markers import Meaning
from fastprof.model.trace import NEVER, label_text
from fastprof.profile.callpath.attribution import attribute
from fastprof.profile.callpath.nesting import nest
from fastprof.readers.detect import read_trace
from support.nvtx_recording import Range, Recording


@dataclass(eq=False)
class ReadRange:
    """A range read by fastprof; `seq` and `op_id` are -1 if its text has none."""

    meaning: Meaning
    label: str
    seq: int
    op_id: int
    start: int
    end: int | None
    process: int
    thread: int
    parent: ReadRange | None
    depth: int

    @property
    def text(self) -> str:
        """The recorded text, assembled from its parts, without `input_op_ids`."""
        name, sizes, of = label_text(self.label).partition(", sizes = ")
        seq = f", seq = {self.seq}" if self.seq >= 0 else ""
        op_id = f", op_id = {self.op_id}" if self.op_id >= 0 else ""
        return name + seq + op_id + sizes + of

    def chain(self) -> list[ReadRange]:
        """The range and its ancestors, outermost first."""
        return [*(self.parent.chain() if self.parent else ()), self]


def read_back(path: Path) -> list[ReadRange]:
    """The ranges of a file, thread by thread, in the order in which they began.

    Without those that end on another thread: see `read_phases`.
    """
    trace = read_trace(path)
    assert trace.warnings == []
    result = attribute(nest(trace)).attribution
    # The first frame of a range is that of its start; crossing ranges have more.
    _, frames = np.unique(result.frame_range, return_index=True)
    read: list[ReadRange] = []
    for row, frame in enumerate(frames.tolist()):
        around = result.frame_parent[frame]
        parent = read[result.frame_range[around]] if around >= 0 else None
        thread, end = trace.ranges.thread[row], int(trace.ranges.end[row])
        read.append(
            ReadRange(
                meaning=result.meanings[result.ranges.label[row]],
                label=trace.labels[trace.ranges.label[row]],
                seq=int(trace.ranges.seq[row]),
                op_id=int(trace.ranges.op_id[row]),
                start=int(trace.ranges.start[row]),
                end=None if end == NEVER else end,
                process=int(trace.processes[trace.process_of_thread[thread]]),
                thread=int(trace.threads[thread]),
                parent=parent,
                depth=parent.depth + 1 if parent else 0,
            )
        )
    return sorted(read, key=lambda range_: (range_.process, range_.thread, range_.start))


def read_phases(path: Path) -> list[tuple[str, int, int]]:
    """Text, start and end of the ranges that end on another thread, by start."""
    trace = read_trace(path)
    columns = (trace.phases.label, trace.phases.start, trace.phases.end)
    return [
        (label_text(trace.labels[label]), start, end)
        for label, start, end in zip(*(column.tolist() for column in columns), strict=True)
    ]


def assert_agrees(recording: Recording) -> list[ReadRange]:
    """Check fastprof's ranges against the file; return them.

    Ranges without a text are ignored.
    """
    named = [range_ for range_ in recording.ranges if range_.text is not None]
    read = read_back(recording.path)
    told = [range_ for range_ in named if not range_.moved]
    told.sort(key=lambda range_: (range_.process, range_.thread, range_.start))
    assert [_place(range_) for range_ in read] == [_place(range_) for range_ in told]
    moved = [(range_.text, range_.start, range_.end) for range_ in named if range_.moved]
    assert read_phases(recording.path) == moved
    return read


def _place(range_: Range | ReadRange) -> tuple[object, ...]:
    """The comparable attributes of a range; the position of its parent determines its ancestors."""
    parent = range_.parent
    while parent is not None and parent.text is None:
        parent = parent.parent
    thread = range_.process, range_.thread
    return thread, range_.end, _told(range_), None if parent is None else _told(parent)


def _told(range_: Range | ReadRange) -> tuple[int, str]:
    """The identity of a range, without the parts of its text that fastprof drops."""
    return range_.start, (range_.text or "").partition(", input_op_ids = ")[0]
