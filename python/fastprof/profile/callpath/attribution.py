"""Trace to Attribution: in which chain of ranges every kernel was launched, and what that means.

Nest, path, link, in that order, each over whole columns. A *frame* is one range in its place: it
knows its parent frame. A *node* is one distinct path of labels. Kernels point at frames, frames at
nodes; what a label means is read once for each distinct label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fastprof._core import _link, _nest, _path
from fastprof._core._take import distinct, take
from fastprof._system.threads import Beside
from fastprof.model.markers import Kind, Meaning, read, read_event
from fastprof.model.trace import OF_EVENT, OF_TORCH, Int32, Trace, label_text
from fastprof.profile.callpath import autograd_threads, node_makers, recomputed
from fastprof.profile.callpath.nesting import Nest

UInt8 = npt.NDArray[np.uint8]

NOWHERE, FORWARD, BACKWARD = _path.NOWHERE, _path.FORWARD, _path.BACKWARD  # direction of a node
_SAYS_NOTHING = frozenset({Kind.USER, Kind.FRAME, Kind.HIDDEN})  # of the direction


@dataclass
class Attribution:
    """What `attribute` finds. Indices are int32, -1 is "none".

    Parameters
    ----------
    meanings : what each label means, in the order of Trace.labels
    frame_parent, frame_range : [frames] the frame around each frame, and its row in Trace.ranges
    node_of_frame : [frames]
    node_parent, node_label : [nodes] the call-path tree, parents first
    direction_of_node : [nodes] NOWHERE, FORWARD or BACKWARD
    backward_of_frame : [frames] the frame of the backward call that a frame is a part of: the
        outermost backward frame with the number that links
    meaning_of_frame : [frames] the forward frame that a backward frame belongs to, else itself
    links_of_frame : [frames] 1 for a backward frame whose number looks for a forward call
    frame_of_kernel : [kernels] the innermost frame; for a node of a CUDA graph, where the node was
        created if that is known
    launch_frame_of_kernel : [kernels] the innermost frame around the launch
    in_engine : [kernels] whether a thread of the autograd engine launched it outside all ranges:
        it runs backward, and its frame is what the waiting thread had open; None where none was
    frame_of_launch : [launches] the innermost frame around each API call
    replay_of_kernel : [kernels] of a kernel whose frame is that of its graph's capture, the launch
        of the graph; else -1. None where no kernel has one
    """

    meanings: list[Meaning]
    frame_parent: Int32
    frame_range: Int32
    node_of_frame: Int32
    node_parent: Int32
    node_label: Int32
    direction_of_node: Int32
    backward_of_frame: Int32
    meaning_of_frame: Int32
    links_of_frame: UInt8
    frame_of_kernel: Int32
    launch_frame_of_kernel: Int32
    frame_of_launch: Int32
    replay_of_kernel: Int32 | None = None
    in_engine: npt.NDArray[np.bool_] | None = None

    def forget_launches(self) -> None:
        """Free what nothing needs once kernels of graphs have their frames."""
        self.frame_of_launch = np.empty(0, np.int32)


def attribute(
    trace: Trace, nested: Callable[[list[Meaning]], object] = lambda meanings: None
) -> Attribution:
    """Find the chain of ranges of every kernel, its call path and its forward call.

    nested : called with what each label means, when the times of ranges are no longer needed

    Cost: linear in launches, ranges and the times that one range crosses another.
    """
    ranges, launches = trace.ranges, trace.launches
    with Beside() as beside:
        nesting = beside.run(
            _nest.sweep,
            ranges.start, ranges.end, ranges.thread,
            launches.start, launches.thread, len(trace.threads), trace.name,
        )  # fmt: skip
        meanings = [_meaning(label) for label in trace.labels]
        engine = autograd_threads.find(trace, meanings)
        frames, borrowed = autograd_threads.borrow(trace, engine, nesting.result())
        frame_parent, frame_range, frame_of_range, frame_of_launch = frames
        nested(meanings)
        nest = Nest(ranges, meanings, frame_parent, frame_range, frame_of_range)
        label, says, direction = _directions(trace, nest, engine)
        folding = beside.run(_path.nodes, frame_parent, label, len(meanings))
        backward, meaning, links = _links(trace, nest, direction)
        node_of_frame, node_parent, node_label = folding.result()
        del label
    launch_frame = take(frame_of_launch, trace.kernels.launch)
    frame, replay = launch_frame, None
    if trace.kernels.origin is not None:
        origin_frame = take(frame_of_launch, trace.kernels.origin)
        frame = np.where(origin_frame >= 0, origin_frame, launch_frame)
        replay = np.where(origin_frame >= 0, trace.kernels.launch, np.int32(-1))
    if trace.kernels.told_range is not None:
        frame = np.where(frame >= 0, frame, take(frame_of_range, trace.kernels.told_range))
    in_engine = None
    if borrowed.any():
        in_engine = np.append(borrowed, False)[trace.kernels.launch] & (frame == launch_frame)
    return Attribution(
        meanings=meanings,
        frame_parent=frame_parent,
        frame_range=frame_range,
        node_of_frame=node_of_frame,
        node_parent=node_parent,
        node_label=node_label,
        direction_of_node=_path.directions(node_parent, node_label, says).astype(np.int32),
        backward_of_frame=backward,
        meaning_of_frame=meaning,
        links_of_frame=links,
        frame_of_kernel=frame,
        launch_frame_of_kernel=launch_frame,
        in_engine=in_engine,
        frame_of_launch=frame_of_launch,
        replay_of_kernel=replay,
    )


def _directions(
    trace: Trace, nest: Nest, engine: npt.NDArray[np.bool_]
) -> tuple[Int32, UInt8, UInt8]:
    """The label of each frame, what each label says of the direction, the direction of each frame.

    Ranges whose place says more than their text get labels of their own: what the autograd engine
    runs outside of backward nodes, and what nodes run again.
    """
    meanings = nest.meanings
    if engine.any():
        root = nest.frame_parent[nest.frame_of_range] < 0
        rows = autograd_threads.roots(trace, meanings, engine, root)
        _relabel(trace, meanings, rows, lambda meaning: replace(meaning, engine=True))
    while True:
        label, says = take(trace.ranges.label, nest.frame_range), _says(meanings)
        direction = _path.directions(nest.frame_parent, label, says)
        again = recomputed.find(nest, direction == BACKWARD)
        if not len(again):
            return label, says, direction
        _relabel(trace, meanings, again, lambda meaning: replace(meaning, recompute=True))


def _relabel(
    trace: Trace, meanings: list[Meaning], rows: Int32, more: Callable[[Meaning], Meaning]
) -> None:
    """Give some ranges labels of their own, of the same text, whose meanings say more."""
    used, place = distinct(trace.ranges.label[rows], len(meanings))
    if not used:
        return
    trace.ranges.label = trace.ranges.label.copy()
    trace.ranges.label[rows] = place + np.int32(len(meanings))
    trace.labels = [*trace.labels, *(trace.labels[label] for label in used)]
    meanings += [more(meanings[label]) for label in used]


def _meaning(label: str) -> Meaning:
    if not label.startswith(OF_EVENT):
        return read(label_text(label), label.startswith(OF_TORCH))
    found = read_event(label[1:])
    return read(found, False) if isinstance(found, str) else found


def _says(meanings: list[Meaning]) -> UInt8:
    """What each label says of the direction, for `_path.directions`."""
    return np.array(
        [
            _path.SAYS_BACKWARD * (m.backward or m.engine)
            | _path.SAYS_FORWARD * (m.recompute and not m.backward)
            | _path.SAYS_TORCH * (m.kind not in _SAYS_NOTHING)
            for m in meanings
        ],
        np.uint8,
    )


def _links(trace: Trace, nest: Nest, direction: UInt8) -> tuple[Int32, Int32, UInt8]:
    """The backward call and the meaning of each frame, and whether its number links backward."""
    ranges, meanings = nest.ranges, nest.meanings
    frame_parent, frame_range = nest.frame_parent, nest.frame_range
    frame_of_range = nest.frame_of_range
    if not any(m.backward for m in meanings):
        n = len(frame_parent)
        return np.full(n, -1, np.int32), np.arange(n, dtype=np.int32), np.zeros(n, np.uint8)
    in_backward = (direction == BACKWARD).view(np.uint8)
    role = _link.roles(
        ranges.label, ranges.thread, frame_of_range, ranges.seq, _bits(meanings),
        frame_parent, in_backward, len(trace.threads),
    )  # fmt: skip
    recompute = np.array([m.recompute for m in meanings], bool)
    scope = _scopes(trace, recompute, frame_parent, frame_range, frame_of_range)
    forward = _link.forward_of(role, ranges.seq, scope)
    call, links = _link.calls(frame_parent, frame_range, role, ranges.seq)
    if trace.told_forward is not None:
        _tell(forward, trace.told_forward, frame_range, call[frame_of_range])
    node_makers.mend(forward, role, scope, nest)
    meaning = _link.meanings(call, frame_range, in_backward, forward, frame_of_range)
    return call, meaning, links


def _tell(forward: Int32, told: Int32, frame_range: Int32, call_of_range: Int32) -> None:
    """Put what the trace says in the place of what the rule found: for a range, and for the
    backward call that it is a part of."""
    said = np.flatnonzero(told >= 0)
    forward[said] = told[said]
    inside = said[call_of_range[said] >= 0]
    forward[frame_range[call_of_range[inside]]] = told[inside]


def _bits(meanings: list[Meaning]) -> UInt8:
    return np.array(
        [
            _link.LABEL_TORCH * (m.kind == Kind.TORCH)
            | _link.LABEL_BACKWARD * m.backward
            | _link.LABEL_NODE * m.autograd_node
            | _link.LABEL_RECOMPUTE * m.recompute
            for m in meanings
        ],
        np.uint8,
    )


def _scopes(
    trace: Trace, recompute: npt.NDArray[np.bool_], frame_parent: Int32, frame_range: Int32,
    frame_of_range: Int32,
) -> Int32:  # fmt: skip
    """Where the numbers of a range count: its process, or the recomputation that it is inside."""
    process = trace.process_of_thread[trace.ranges.thread]
    if not recompute.any():
        return process
    own = np.where(recompute[trace.ranges.label[frame_range]], np.arange(len(frame_range)), -1)
    around = _path.innermost(frame_parent, own.astype(np.int32))[frame_of_range]
    return np.where(around >= 0, len(trace.processes) + around, process).astype(np.int32)
