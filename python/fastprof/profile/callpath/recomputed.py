"""Forward passes that non-reentrant checkpointing runs again inside backward nodes.

A Python stack says so (`torch/utils/checkpoint.py: recompute_fn`). Without one, sequence numbers
do: an operator inside a backward node has one only where gradients are recorded again. That is so
in a recomputation, for the few nodes that ask for a saved tensor first, and with `create_graph`,
for all of them.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from fastprof._core import _path
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import Int32
from fastprof.profile.callpath.nesting import Nest

Bools = npt.NDArray[np.bool_]

_LEAST_OPERATORS = 3  # of a pass that was recomputed in one node
_LEAST_SHARE = 0.8  # of them ran forward before, with the same arguments
_MOST_NODES = 0.5  # of all nodes recompute; where more record gradients it is create_graph


def find(nest: Nest, in_backward: Bools) -> Int32:
    """Rows of the ranges of operators that backward nodes run again and no stack tells.

    in_backward : [frames]
    """
    ranges, meanings = nest.ranges, nest.meanings
    frame_parent, frame_range = nest.frame_parent, nest.frame_range
    none = np.empty(0, np.int32)
    if not in_backward.any():
        return none
    operator = np.array([m.is_operator for m in meanings], bool)
    rows = np.flatnonzero(operator[ranges.label] & (ranges.seq > 0)).astype(np.int32)
    frame = nest.frame_of_range[rows]
    if not in_backward[frame].any():
        return none
    node = np.array([m.backward and m.autograd_node for m in meanings], bool)
    label = ranges.label[frame_range]
    told = np.array([m.recompute for m in meanings], bool)
    frames = np.arange(len(label), dtype=np.int32)
    marks = node[label] | told[label]
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
    ran = _same(meanings, forward_labels)
    before = np.array([_key(m) in ran for m in meanings], bool)[ranges.label[rows]]
    nodes, place = np.unique(node_of_row, return_inverse=True)
    place = place.ravel()
    count = np.bincount(place)
    alike = np.bincount(place, weights=before)
    all_nodes = int(np.count_nonzero(node[label])) / _nodes_a_call(meanings, label)
    if len(nodes) > _MOST_NODES * all_nodes:
        return none
    again = (count >= _LEAST_OPERATORS) & (alike >= _LEAST_SHARE * count)
    found: Int32 = rows[again[place]]
    return found


def _nodes_a_call(meanings: list[Meaning], label: Int32) -> int:
    """How many frames one run of a node has: since PyTorch 1.7 the engine's own and the node's."""
    evaluates = np.array([m.evaluates for m in meanings], bool)
    return 2 if evaluates[label].any() else 1


def _key(meaning: Meaning) -> Hashable:
    return meaning.name, meaning.call


def _same(meanings: list[Meaning], labels: npt.NDArray[np.int32]) -> set[Hashable]:
    return {_key(meanings[label]) for label in np.unique(labels).tolist()}
