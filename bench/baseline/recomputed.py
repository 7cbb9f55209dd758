"""Operators inside backward nodes that run a forward pass again (non-reentrant checkpointing)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from bench.baseline.frames import Frame, Range, sweep
from bench.baseline.meanings import TORCH
from bench.baseline.nodes import Node

LEAST_OPERATORS, LEAST_SHARE, MOST_NODES = 3, 0.8, 0.5


def recomputed(ranges: list[Range]) -> list[Range]:
    """The same ranges; recomputed operators are marked.

    Operators inside a node have numbers only where gradients are recorded: in a recomputation, by
    few nodes, or with create_graph, by all.
    """
    frames = sweep(ranges, [], Node())
    counts, again, ran, nodes = defaultdict(list), {}, set(), 0
    has_engine = any(frame.node.is_engine for frame in frames)
    for place, frame in enumerate(frames):
        meaning = frame.node.meaning
        assert meaning is not None
        nodes += meaning.backward and meaning.node
        if meaning.kind != TORCH or meaning.backward or meaning.recompute or not frame.seq:
            continue
        around = _node_around(frame)
        if around is None:
            ran.add(_key(meaning))
        elif around.node.meaning.backward and _torch_around(frame) is around:
            counts[around.original if around.copied_from else around].append(place)
    if not counts or len(counts) > MOST_NODES * nodes / (2 if has_engine else 1):
        return ranges
    variants: dict[int, Any] = {}
    for places in counts.values():
        alike = sum(_key(frames[place].node.meaning) in ran for place in places)
        if len(places) >= LEAST_OPERATORS and alike >= LEAST_SHARE * len(places):
            for place in places:
                meaning = ranges[place][3][0]
                again[place] = variants.setdefault(id(meaning), meaning.saying("recompute"))
    return [
        (start, end, thread, (again.get(place, meaning), seq, op_id))
        for place, (start, end, thread, (meaning, seq, op_id)) in enumerate(ranges)
    ]


def _key(meaning: Any) -> tuple[str, Any]:
    return meaning.name, meaning.call


def _node_around(frame: Frame) -> Frame | None:
    """The innermost node or recomputation around a frame."""
    around = frame.parent
    while around is not None:
        meaning = around.node.meaning
        if meaning.recompute or (meaning.backward and meaning.node):
            return around
        around = around.parent
    return None


def _torch_around(frame: Frame) -> Frame | None:
    around = frame.parent
    while around is not None and around.node.meaning.kind != TORCH:
        around = around.parent
    return around
