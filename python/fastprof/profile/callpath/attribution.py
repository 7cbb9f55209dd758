"""Nesting to Attribution: the call path of every kernel, its forward call, and recomputed passes.

A *node* is a distinct path of labels. Kernels refer to frames, frames refer to nodes.

A Python stack shows forward passes that non-reentrant checkpointing recomputes inside backward
nodes (`torch/utils/checkpoint.py: recompute_fn`). Without stacks, sequence numbers do: an operator
inside a backward node has one only if autograd records it. Autograd records recomputed operators,
in the few nodes that use a saved tensor first. With `create_graph` it records the operators of all
nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _link, _path
from fastprof._core._take import distinct, take, where
from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.threads import SecondThread, computed_once
from fastprof.model.arrays import Bools, Int32, Int64, UInt8, unique
from fastprof.model.markers import Kind, Meaning
from fastprof.model.markers.meaning import ENGINE, RECOMPUTE
from fastprof.model.trace import RangeNames, Trace
from fastprof.profile.callpath import node_makers
from fastprof.profile.callpath.nesting import NestedRanges, Nesting

NOWHERE, FORWARD, BACKWARD = _path.NOWHERE, _path.FORWARD, _path.BACKWARD  # direction of a node
_WITHOUT_DIRECTION = frozenset({Kind.USER, Kind.FRAME, Kind.HIDDEN})


@dataclass(frozen=True)
class Attribution:
    """The ranges of a trace, their call paths, and the frames of its kernels.

    Indices are int32, -1 is "none".

    Parameters
    ----------
    ranges : names of the ranges, in the order of the recording
    meanings : [labels] the meaning of each label of `ranges`
    frame_parent, frame_range : [frames] the parent frame, and its row in `ranges`
    node_of_frame : [frames]
    node_parent, node_label : [nodes] the call-path tree, parents first
    direction_of_node : [nodes] NOWHERE, FORWARD or BACKWARD
    backward_of_frame : [frames] the backward call of each frame: the outermost backward frame with
        the sequence number that links it
    meaning_of_frame : [frames] the forward frame of a backward frame; of others, the frame itself
    links_of_frame : [frames] 1 for a backward frame whose sequence number refers to a forward call
    frame_of_kernel : [kernels] the innermost frame; for a node of a CUDA graph, the frame that
        created the node if it is known
    launch_frame_of_kernel : [kernels] the innermost frame around the launch
    replay_of_kernel : [kernels] the launch of the graph if `frame_of_kernel` is from its capture;
        otherwise -1. None if no kernel has such a frame
    in_engine : [kernels] whether a thread of the autograd engine launched the kernel outside all
        ranges of its own: it is backward work, and its frame that of the waiting thread, if known.
        None if none was
    caller_of_frame : [frames] of an outermost frame on a thread that another waits for, the frame
        of the user's range that the waiting one had open, -1 for others. None if none has one
    """

    ranges: RangeNames
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
    replay_of_kernel: Int32 | None = None
    in_engine: npt.NDArray[np.bool_] | None = None
    caller_of_frame: Int32 | None = None

    @computed_once
    def frame_of_range(self) -> Int32:
        """[ranges] The first frame of each range. Crossing ranges have several."""
        n, first = len(self.frame_range), np.empty(len(self.ranges), np.int32)
        first[self.frame_range[::-1]] = np.arange(n - 1, -1, -1, dtype=np.int32)
        return first

    @computed_once
    def user_parent(self) -> Int32:
        """[frames] The parent in the tree of the user's ranges, where those of a waiting thread are
        around the work that it waits for."""
        caller = self.caller_of_frame
        if caller is None:
            return self.frame_parent
        return np.where(caller >= 0, caller, self.frame_parent)

    @property
    def around_work(self) -> Bools:
        """[labels] Whether a range of this label is around a kernel or the forward call of one."""
        return self._around[0]

    def ranks_around_work(self, rank: Callable[[Meaning], int]) -> UInt8:
        """[labels] The rank of each label around work; NO_RANK for the others."""
        result = np.full(len(self.meanings), _path.NO_RANK, np.uint8)
        for label in np.flatnonzero(self.around_work).tolist():
            result[label] = rank(self.meanings[label])
        return result

    @property
    def around_forward(self) -> Bools:
        """[labels] Whether a range of this label is around the forward call of a backward range."""
        return self._around[1]

    @computed_once
    def _around(self) -> tuple[Bools, Bools]:
        own: Int64 = np.zeros(len(self.node_parent) + 1, np.int64)  # the last for no node
        own[take(self.node_of_frame, self.frame_of_kernel)] = 1
        forward = self.meaning_of_frame
        forward = forward[forward != np.arange(len(forward), dtype=np.int32)]
        own[take(self.node_of_frame, forward)] += _FORWARD
        inside = _path.sums(self.node_parent, own[:-1])
        around = np.zeros((2, len(self.meanings)), bool)
        for row, least in enumerate((1, _FORWARD)):
            around[row, self.node_label[inside >= least]] = True
        return around[0], around[1]


_FORWARD: Final = 1 << 32  # above the sum of all kernels' nodes


class Attributed(NamedTuple):
    """Result of `attribute`; `frame_of_launch` [launches] is only needed to align captures."""

    trace: Trace
    attribution: Attribution
    frame_of_launch: Int32


def attribute(nesting: Nesting) -> Attributed:
    """Find the call path of every kernel and its forward call. Linear in ranges and kernels."""
    trace, ranges, frame_of_launch = nesting.trace, nesting.ranges, nesting.frame_of_launch
    frame_parent, frame_range = ranges.frame_parent, ranges.frame_range
    with SecondThread() as second:
        label, direction_bits, direction = _directions(ranges, nesting.is_engine)
        nodes = second.submit(_path.nodes, frame_parent, label, len(ranges.meanings))
        backward, meaning, links = _links(trace, ranges, direction)
        node_of_frame, node_parent, node_label = nodes.result()
        del label
    kernels = trace.kernels
    launch_frame = take(frame_of_launch, kernels.launch)
    frame, replay = launch_frame, None
    if kernels.origin is not None:
        origin_frame = take(frame_of_launch, kernels.origin)
        frame = np.where(origin_frame >= 0, origin_frame, launch_frame)
        replay = np.where(origin_frame >= 0, kernels.launch, np.int32(-1))
    if kernels.recorded_range is not None:
        recorded = take(ranges.frame_of_range, kernels.recorded_range)
        frame = np.where(frame >= 0, frame, recorded)
    in_engine = None
    if nesting.in_engine.any():
        in_engine = np.append(nesting.in_engine, False)[kernels.launch] & (frame == launch_frame)
    attribution = Attribution(
        ranges=RangeNames(ranges.label, ranges.seq, ranges.op_id),
        meanings=ranges.meanings,
        frame_parent=frame_parent,
        frame_range=frame_range,
        node_of_frame=node_of_frame,
        node_parent=node_parent,
        node_label=node_label,
        direction_of_node=_path.directions(node_parent, node_label, direction_bits).astype(
            np.int32
        ),
        backward_of_frame=backward,
        meaning_of_frame=meaning,
        links_of_frame=links,
        frame_of_kernel=frame,
        launch_frame_of_kernel=launch_frame,
        replay_of_kernel=replay,
        in_engine=in_engine,
        caller_of_frame=ranges.caller,
    )
    return Attributed(trace, attribution, frame_of_launch)


def _directions(
    ranges: NestedRanges, is_engine: npt.NDArray[np.bool_]
) -> tuple[Int32, UInt8, UInt8]:
    """The label of each frame, the direction bits of each label, the direction of each frame.

    Ranges whose meaning depends on their place get new labels: those that the autograd engine runs
    outside of backward nodes, and those that backward nodes recompute.
    """
    if is_engine.any():
        roots = _engine_roots(ranges, is_engine)
        _relabel(ranges, roots, lambda meaning: replace(meaning, traits=meaning.traits | ENGINE))
    while True:
        label, bits = take(ranges.label, ranges.frame_range), _direction_bits(ranges.meanings)
        direction = _path.directions(ranges.frame_parent, label, bits)
        again = find(ranges, direction == BACKWARD)
        if not len(again):
            return label, bits, direction
        _relabel(ranges, again, lambda meaning: replace(meaning, traits=meaning.traits | RECOMPUTE))


def _engine_roots(ranges: NestedRanges, is_engine: npt.NDArray[np.bool_]) -> Int32:
    """Rows of outermost ranges on engine threads that are not marked backward: sums of gradients,
    hooks."""
    marked = np.array([m.backward or m.recompute for m in ranges.meanings], bool)
    rows = where(is_engine, ranges.thread)
    rows = rows[~marked[ranges.label[rows]]]
    is_root = ranges.frame_parent[ranges.frame_of_range[rows]] < 0
    roots: Int32 = rows[is_root].astype(np.int32)
    return roots


def _relabel(ranges: NestedRanges, rows: Int32, change: Callable[[Meaning], Meaning]) -> None:
    """Give rows new labels with changed meanings."""
    meanings = ranges.meanings
    used, place = distinct(ranges.label[rows], len(meanings))
    if not used:
        return
    ranges.label = ranges.label.copy()
    ranges.label[rows] = place + np.int32(len(meanings))
    ranges.meanings = [*meanings, *(change(meanings[label]) for label in used)]


def _direction_bits(meanings: list[Meaning]) -> UInt8:
    """The effect of each label on the direction, for `_path.directions`."""
    return np.array(
        [
            _path.SAYS_BACKWARD * (m.backward or m.engine)
            | _path.SAYS_FORWARD * (m.recompute and not m.backward)
            | _path.SAYS_TORCH * (m.kind not in _WITHOUT_DIRECTION)
            for m in meanings
        ],
        np.uint8,
    )


def _links(trace: Trace, ranges: NestedRanges, direction: UInt8) -> tuple[Int32, Int32, UInt8]:
    """`backward_of_frame`, `meaning_of_frame` and `links_of_frame` of Attribution."""
    frame_parent, frame_range = ranges.frame_parent, ranges.frame_range
    frame_of_range = ranges.frame_of_range
    if not any(m.backward for m in ranges.meanings):
        n = len(frame_parent)
        return np.full(n, -1, np.int32), np.arange(n, dtype=np.int32), np.zeros(n, np.uint8)
    in_backward = (direction == BACKWARD).view(np.uint8)
    role = _link.roles(
        ranges.label, ranges.thread, frame_of_range, ranges.seq, _link_bits(ranges.meanings),
        frame_parent, in_backward, len(trace.threads),
    )  # fmt: skip
    scope = _scopes(trace, ranges)
    forward = _link.forward_of(role, ranges.seq, scope)
    call, links = _link.calls(frame_parent, frame_range, role, ranges.seq)
    if ranges.recorded_forward is not None:
        _use_recorded(forward, ranges.recorded_forward, frame_range, call[frame_of_range])
    node_makers.correct(forward, role, scope, ranges)
    meaning = _link.meanings(call, frame_range, in_backward, forward, frame_of_range)
    return call, meaning, links


def _use_recorded(
    forward: Int32, recorded: Int32, frame_range: Int32, call_of_range: Int32
) -> None:
    """Overwrite links by sequence number with recorded ones: of a range and of the backward call
    that it is a part of."""
    rows = np.flatnonzero(recorded >= 0)
    forward[rows] = recorded[rows]
    inside = rows[call_of_range[rows] >= 0]
    forward[frame_range[call_of_range[inside]]] = recorded[inside]


def _link_bits(meanings: list[Meaning]) -> UInt8:
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


def _scopes(trace: Trace, ranges: NestedRanges) -> Int32:
    """[ranges] Where a sequence number is unique: in a process, or in a recomputed forward pass."""
    process = trace.process_of_thread[ranges.thread]
    recompute = np.array([m.recompute for m in ranges.meanings], bool)
    if not recompute.any():
        return process
    frames = np.arange(len(ranges.frame_range), dtype=np.int32)
    own = np.where(recompute[ranges.label[ranges.frame_range]], frames, np.int32(-1))
    around = _path.innermost(ranges.frame_parent, own)[ranges.frame_of_range]
    return np.where(around >= 0, len(trace.processes) + around, process).astype(np.int32)


_MIN_OPERATORS = 3  # in the forward pass that one node recomputes
_MIN_SHARE = 0.8  # of these operators ran in the forward pass with the same arguments
_MAX_NODES = 0.5  # share of nodes that recompute; above it, create_graph is the cause


def find(ranges: NestedRanges, in_backward: Bools) -> Int32:
    """Rows of the operators that backward nodes recompute and that no stack marks.

    in_backward : [frames]
    """
    meanings, frame_parent, frame_range = ranges.meanings, ranges.frame_parent, ranges.frame_range
    none = np.empty(0, np.int32)
    if not in_backward.any():
        return none
    operator = np.array([m.is_operator for m in meanings], bool)
    rows = where(operator, ranges.label)
    rows = rows[ranges.seq[rows] > 0].astype(np.int32)
    frame = ranges.frame_of_range[rows]
    if not in_backward[frame].any():
        return none
    node = np.array([m.backward and m.autograd_node for m in meanings], bool)
    label = ranges.label[frame_range]
    recompute = np.array([m.recompute for m in meanings], bool)
    frames = np.arange(len(label), dtype=np.int32)
    marks = node[label] | recompute[label]
    around = _path.innermost(frame_parent, np.where(marks, frames, np.int32(-1)))
    of_torch = np.array([m.kind == Kind.TORCH for m in meanings], bool)
    parent_of_torch = _path.innermost(frame_parent, np.where(of_torch[label], frames, np.int32(-1)))
    node_of_row = around[frame]
    in_node = (node_of_row >= 0) & node[label[np.maximum(node_of_row, 0)]]
    forward_labels = ranges.label[rows[node_of_row < 0]]
    above = np.where(frame_parent[frame] >= 0, parent_of_torch[frame_parent[frame]], -1)
    top = in_node & (above == node_of_row)
    if not top.any():
        return none
    rows, node_of_row = rows[top], node_of_row[top]
    in_forward = {_key(meanings[label]) for label in unique(forward_labels).tolist()}
    ran_before = np.array([_key(m) in in_forward for m in meanings], bool)[ranges.label[rows]]
    nodes, place = np.unique(node_of_row, return_inverse=True)
    place = place.ravel()
    count = np.bincount(place)
    alike = np.bincount(place, weights=ran_before)
    all_nodes = int(np.count_nonzero(node[label])) / _nodes_a_call(meanings, label)
    if len(nodes) > _MAX_NODES * all_nodes:
        return none
    recomputes = (count >= _MIN_OPERATORS) & (alike >= _MIN_SHARE * count)
    result: Int32 = rows[recomputes[place]]
    return result


def _nodes_a_call(meanings: list[Meaning], label: Int32) -> int:
    """Frames per execution of a node: since PyTorch 1.7, one of the engine and one of the node."""
    evaluates = np.array([m.evaluates for m in meanings], bool)
    return 2 if evaluates[label].any() else 1


def _key(meaning: Meaning) -> Hashable:
    return meaning.name, meaning.call
