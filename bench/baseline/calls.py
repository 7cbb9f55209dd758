"""Frames -> the call that each kernel works for, and which kernels work for one call together.

A kernel's call is the outermost range around it whose operator has a formula in fastprof.ops; with
none anywhere, the outermost marker or torch range. A backward kernel works for the forward call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

from bench.baseline.frames import Frame
from bench.baseline.links import backward_call, meaning_of
from bench.baseline.meanings import ARGUMENT, TORCH, USER, Meaning
from bench.baseline.nodes import Node
from fastprof import ops
from fastprof.call import Call

ANNOUNCED = re.compile(
    r"Optimizer\.\w+#|DistributedDataParallel\.forward\Z|DataParallel\.forward\Z"
)
# Which ranges may be a kernel's call, the best first.
RANKS: list[Callable[[Meaning], bool]] = [
    lambda m: m.call is not None and m.has_arguments and ops.has_model(m.call),
    lambda m: m.kind == ARGUMENT,
    lambda m: m.call is not None and ops.find(m.call) is not None,
    lambda m: m.kind == TORCH and "::" in m.name and not m.node,
    lambda m: m.kind == TORCH,
    lambda m: m.kind == USER and ANNOUNCED.match(m.name) is not None,
]


class KernelCall(NamedTuple):
    """What a kernel works for: how the report names it, and its instance, one for each time."""

    mod: str | None
    op: str | None
    call: Call | None
    direction: str
    instance: Frame | None


NO_CALL = KernelCall(None, None, None, "fprop", None)


def find_calls(frames: Iterable[Frame]) -> Callable[[Frame], KernelCall]:
    """What gives the call of a kernel by its frame; `frames` are those of all ranges, in order."""
    instances = backward_instances(frames)

    @cache
    def call_of(frame: Frame) -> KernelCall:
        own = picked(frame)
        forward = frame if is_beside_node(frame) else meaning_of(frame)
        of_forward = None if forward is frame else picked(forward)
        if of_forward is None or tells_more(own, of_forward):
            return _named(own, "fprop", own)
        call = backward_call(frame)
        return _named(of_forward, "bprop", instances.get(call, call) or of_forward)

    return call_of


def picked(frame: Frame) -> Frame | None:
    """The frame of the call that a frame is a part of."""
    depth = _picked_depth(frame.node)
    if depth is None:
        return None
    around: Frame | None = frame
    for _ in range(len(frame.node.chain) - 1 - depth):
        around = around and around.parent
    return around


@cache
def _picked_depth(node: Node) -> int | None:
    """How many labels lie around the one that is picked of a chain."""
    again = max((i for i, meaning in enumerate(node.chain) if meaning.recompute), default=0)
    for fits in RANKS:
        for depth, meaning in enumerate(node.chain):
            if depth >= again and fits(meaning):
                return depth
    return None


def is_beside_node(frame: Frame) -> bool:
    """Whether the engine ran it for a node, but not within that node."""
    around: Frame | None = frame
    while around is not None:
        if around.node.is_engine:
            return around is not frame and around.has_node
        if around.node.is_node:
            return False
        around = around.parent
    return False


def tells_more(own: Frame | None, forward: Frame) -> bool:
    """Whether the operator of a backward kernel has a known cost and the backward pass of its
    forward call has none; or a formula, and the forward call none."""
    if own is None:
        return False
    has_formula = [
        frame.node.meaning.call is not None and ops.find(frame.node.meaning.call) is not None
        for frame in (own, forward)
    ]
    if has_formula == [True, False]:
        return True
    own_call, call = (
        frame.node.meaning.call if frame.node.meaning.has_arguments else None
        for frame in (own, forward)
    )
    known = own_call is not None and ops.has_model(own_call)
    return known and (call is None or ops.work(call, "bprop") is None)


def backward_instances(frames: Iterable[Frame]) -> dict[Frame | None, Frame]:
    """One backward call for all that belong to one forward call.

    The nodes that one forward call made do its backward work together, but a graph that is gone
    through again does it again.
    """
    first_of: dict[Frame, Frame] = {}
    instances: dict[Frame | None, Frame] = {}
    seen: set[Frame] = set()
    for frame in frames:
        if not frame.asks or backward_call(frame) is not frame:
            continue
        forward = meaning_of(frame)
        if forward in seen:
            continue
        seen.add(forward)
        call = picked(forward)
        if call is not None:
            instances[frame] = first_of.setdefault(call, frame)
    return instances


def _named(frame: Frame | None, direction: str, instance: Frame | None) -> KernelCall:
    if frame is None:
        return NO_CALL
    meaning = frame.node.meaning
    call = meaning.call
    if meaning.kind == ARGUMENT:
        return KernelCall(call.mod, call.op, call, direction, instance)
    qualified = call is not None and "::" in meaning.name and not meaning.backward
    known = call if meaning.has_arguments else None
    return KernelCall(call.mod if qualified else None, meaning.op, known, direction, instance)
