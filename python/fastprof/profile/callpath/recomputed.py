"""Forward passes that non-reentrant checkpointing recomputes inside backward nodes.

A Python stack shows them (`torch/utils/checkpoint.py: recompute_fn`). Without stacks, sequence
numbers do: an operator inside a backward node has one only if autograd records it. Autograd records
recomputed operators, in the few nodes that use a saved tensor first. With `create_graph` it records
the operators of all nodes.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from fastprof._core import _path
from fastprof.model.arrays import Bools, Int32
from fastprof.model.markers import Kind, Meaning
from fastprof.profile.callpath.nesting import NestedRanges

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
    rows = np.flatnonzero(operator[ranges.label] & (ranges.seq > 0)).astype(np.int32)
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
    in_forward = {_key(meanings[label]) for label in np.unique(forward_labels).tolist()}
    ran_before = np.array([_key(m) in in_forward for m in meanings], bool)[ranges.label[rows]]
    nodes, place = np.unique(node_of_row, return_inverse=True)
    place = place.ravel()
    count = np.bincount(place)
    alike = np.bincount(place, weights=ran_before)
    all_nodes = int(np.count_nonzero(node[label])) / _nodes_a_call(meanings, label)
    if len(nodes) > _MAX_NODES * all_nodes:
        return none
    recomputes = (count >= _MIN_OPERATORS) & (alike >= _MIN_SHARE * count)
    found: Int32 = rows[recomputes[place]]
    return found


def _nodes_a_call(meanings: list[Meaning], label: Int32) -> int:
    """Frames per execution of a node: since PyTorch 1.7, one of the engine and one of the node."""
    evaluates = np.array([m.evaluates for m in meanings], bool)
    return 2 if evaluates[label].any() else 1


def _key(meaning: Meaning) -> Hashable:
    return meaning.name, meaning.call
