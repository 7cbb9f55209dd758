"""Ranges and launches in order of time -> the open ranges around each, in one sweep."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from bench.baseline.meanings import Meaning
from bench.baseline.nodes import Node

NEVER = (1 << 63) - 1


class Frame:
    """A range with the ranges open around it, and the first end in that chain."""

    __slots__ = (
        *("parent", "node", "seq", "op_id", "end", "first_end", "thread", "copied_from"),
        *("forward", "asks", "has_node"),
    )

    def __init__(
        self, parent: Frame | None, node: Node, seq: int | None, op_id: int | None, end: int,
        thread: int, copied_from: Frame | None = None,
    ) -> None:  # fmt: skip
        self.parent, self.node, self.seq, self.op_id, self.end = parent, node, seq, op_id, end
        self.first_end = end if parent is None or end < parent.first_end else parent.first_end
        self.thread = thread
        self.copied_from = copied_from
        self.forward: Frame | None = None  # of a backward call
        self.asks = False
        self.has_node = False  # of the engine's work: whether the node itself is inside
        if parent is not None and node.is_node and not node.is_engine:
            parent.has_node = True

    @property
    def original(self) -> Frame:
        """The first frame of the same range."""
        return self if self.copied_from is None else self.copied_from


class Launch:
    """An API call that launched GPU work or created a graph node."""

    __slots__ = ("frame", "name", "start", "thread")

    def __init__(self, start: int, thread: int, name: int | None = None) -> None:
        self.start, self.thread, self.name = start, thread, name
        self.frame: Frame | None = None


Range = tuple[int, int, int, tuple[Meaning, int | None, int | None]]


def sweep(ranges: Iterable[Range], launches: Iterable[Launch], root: Node) -> list[Frame]:
    """Give each launch the innermost frame around it; the frames of all ranges, in their order.

    ranges : (start, end, thread, (meaning, seq, op_id)), by start, then the longer first
    """
    tops: dict[int, Frame | None] = {}
    frames: list[Frame] = []
    coming = iter(ranges)
    one: Any = next(coming, None)
    for launch in sorted(launches, key=attrgetter("start")):
        now = launch.start
        while one is not None and one[0] <= now:
            frames.append(_push(tops, one, root))
            one = next(coming, None)
        top = tops.get(launch.thread)
        if top is not None and top.first_end <= now:
            top = tops[launch.thread] = still_open(top, now)
        launch.frame = top
    while one is not None:
        frames.append(_push(tops, one, root))
        one = next(coming, None)
    return frames


def _push(tops: dict[int, Frame | None], one: Range, root: Node) -> Frame:
    start, end, thread, (meaning, seq, op_id) = one
    top = tops.get(thread)
    if top is not None and top.first_end <= start:
        top = still_open(top, start)
    node = (root if top is None else top.node)[meaning]
    tops[thread] = frame = Frame(top, node, seq, op_id, end, thread)
    return frame


def still_open(frame: Frame, now: int) -> Frame | None:
    """The chain without ended ranges. Where ranges cross, those on top get new frames."""
    top: Frame | None = frame
    while top is not None and top.end <= now:
        top = top.parent
    if top is None or top.first_end > now:
        return top
    going_on = []
    while top is not None and top.first_end <= now:
        if top.end > now:
            going_on.append(top)
        top = top.parent
    for call in reversed(going_on):
        assert call.node.meaning is not None
        above = _root(call.node) if top is None else top.node
        node = above[call.node.meaning]
        top = Frame(top, node, call.seq, call.op_id, call.end, call.thread, call.original)
    return top


def _root(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node
