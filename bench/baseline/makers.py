"""The operators that created the nodes of custom autograd functions.

The innermost carrier of a number created the node, unless the names rule it out. Then the creator
is another carrier with the node's name, or an operator that was open, or began, between the last
carrier of the number and the first carrier of a larger one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from bench.baseline.frames import Frame
from bench.baseline.meanings import TORCH, Meaning
from fastprof.profile.callpath.node_makers import (
    SAME,
    WEAK,
    is_cpp,
    is_custom,
    is_foreign,
    likeness,
)

MOST_CARRIERS, MOST_BESIDE, MOST_AROUND = 64, 512, 64


class Makers:
    """Looks for makers among frames in order of start.

    carriers : (scope, number, place among the frames) of forward frames with a number
    """

    def __init__(self, frames: list[Frame], carriers: Iterable[tuple[int, int, int]]) -> None:
        self.frames = frames
        self.carriers = sorted(carriers)
        self.numbers = {place: seq for _, seq, place in self.carriers}
        self.of_thread: dict[int, list[int]] = {}
        for place, frame in enumerate(frames):
            self.of_thread.setdefault(frame.thread, []).append(place)

    def maker(self, place: int, scope: int) -> Frame | None:
        """The operator that made the node that runs at a place."""
        frame = self.frames[place]
        assert frame.seq is not None and frame.node.meaning is not None
        node = frame.node.meaning
        at = bisect_left(self.carriers, (scope, frame.seq, place)) - 1
        same = list(self._carriers(at, scope, frame.seq))
        innermost = self.frames[same[0]] if same else None
        if not (node.node and is_custom(node.name)):
            return innermost
        if innermost is not None and alike(node, innermost) > 0:
            return innermost
        for other in same[:MOST_CARRIERS]:
            if alike(node, self.frames[other]) >= SAME:
                return self.frames[other]
        if at < 0 or self.carriers[at][0] != scope or self.carriers[at][2] > place:
            return None
        return self._in_window(node, self.carriers[at][2], frame.seq)

    def _carriers(self, at: int, scope: int, seq: int) -> Iterator[int]:
        while at >= 0 and self.carriers[at][:2] == (scope, seq):
            yield self.carriers[at][2]
            at -= 1

    def _in_window(self, node: Meaning, last: int, seq: int) -> Frame | None:
        around, behind = list(self._around(last)), list(self._behind(last, seq))
        best, score = None, WEAK
        for frame in (*around, *behind):
            if alike(node, frame) > score:
                best, score = frame, alike(node, frame)
        if best is not None or not is_cpp(node.name):
            return best
        outer = [frame for frame in around if _is_foreign(frame)]
        if outer:
            return outer[-1]
        first, *others = [frame for frame in behind if _is_foreign(frame)] or [None]
        inside = all(frame.parent and frame.parent.original is first for frame in others)
        return first if inside else None

    def _around(self, last: int) -> Iterator[Frame]:
        """A frame and the frames around it, innermost first."""
        frame: Frame | None = self.frames[last]
        for _ in range(MOST_AROUND):
            if frame is None:
                return
            yield frame.original
            frame = frame.parent

    def _behind(self, last: int, seq: int) -> Iterator[Frame]:
        """The operators without a number that count, before a carrier of a larger number."""
        places = self.of_thread[self.frames[last].thread]
        at = bisect_left(places, last) + 1
        for place in places[at : at + MOST_BESIDE]:
            if self.numbers.get(place, -1) > seq:
                return
            if place not in self.numbers and is_operator(self.frames[place]):
                yield self.frames[place]


def is_operator(frame: Frame) -> bool:
    meaning = frame.node.meaning
    return (
        meaning is not None
        and meaning.kind == TORCH
        and not (meaning.backward or meaning.recompute)
    )


def _is_foreign(frame: Frame) -> bool:
    meaning = frame.node.meaning
    if not is_operator(frame) or meaning is None or meaning.call is None:
        return False
    return is_foreign(meaning.name, meaning.call.mod)


def alike(node: Meaning, frame: Frame) -> float:
    """The score of an operator's name for a node's name; 0: no match."""
    meaning = frame.node.meaning
    if not is_operator(frame) or meaning is None or meaning.call is None:
        return 0.0
    return likeness(node.name, meaning.call.mod, meaning.call.op)
