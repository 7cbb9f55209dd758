"""The operator that created an autograd node without a matching number, by the similarity of names.

The sequence number of a forward operator is that of the *next* node. So the innermost operator with
a number created the node, if it is an operator of torch. An operator without a sequence number may
create the node of a custom function (`CppNode<Lookup>`, a Python `FooBackward`). The operators with
the node's number, here its *carriers*, then only ran before it, such as an `aten::zero_` that
prepared the call.

If the name of a node cannot come from its carrier, the candidates are: another carrier with a
matching name; an operator that started between the last carrier of the number and the first carrier
of a larger one; an operator around the carrier.

Generated nodes are named after the operator in CamelCase, plus `Backward` and, since PyTorch 1.10,
a number: `NativeLayerNormBackward0`. The node of a custom Python function `Foo` is `FooBackward`,
that of a C++ function `torch::autograd::CppNode<Foo>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _link
from fastprof._core._take import take
from fastprof._system.regex import regex
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.markers import Meaning
from fastprof.model.markers.kineto import node_of
from fastprof.model.markers.meaning import EVALUATE
from fastprof.profile.callpath.nesting import NestedRanges

Step = tuple[npt.NDArray[np.intp], Int32]  # indices into `nodes`, and a candidate range for each

# Limits of the search per node.
_MAX_CARRIERS = 64  # with the same number
_MAX_AFTER = 512  # ranges after the last carrier
_MAX_AROUND = 64  # ranges around the carrier


def _is_foreign(meaning: Meaning) -> bool:
    """Whether a range is an operator outside of torch's own namespaces."""
    call = meaning.call
    return meaning.is_operator and call is not None and is_foreign(meaning.name, call.mod)


def correct(
    forward: Int32, role: npt.NDArray[np.uint8], scope: Int32, ranges: NestedRanges
) -> None:
    """Replace, in place, forward ranges that cannot have created their nodes; -1 if none is found.

    Parameters
    ----------
    forward : [ranges] the innermost carrier of each backward range's number, -1 for none
    role, scope : [ranges] arguments of `_link.forward_of`
    """
    meanings = ranges.meanings
    custom = np.array([m.autograd_node and is_custom(m.name) for m in meanings], bool)
    if not custom.any():
        return
    nodes = np.flatnonzero((role == _link.BACKWARD) & custom[ranges.label]).astype(np.int32)
    if not len(nodes):
        return
    carried = forward[nodes] >= 0
    keep = carried & (_likeness(meanings, ranges.label[nodes], ranges.label[forward[nodes]]) > 0)
    nodes = nodes[~keep]
    if not len(nodes):
        return
    carriers = _Carriers(role, ranges.seq, scope)
    at = carriers.up_to(nodes)
    result = carriers.alike(nodes, at, ranges)
    open_ = np.flatnonzero(result < 0)
    if len(open_):
        last = carriers.last(nodes[open_], at[open_])
        result[open_] = _Window(ranges, role).makers(nodes[open_], last)
    forward[nodes] = result


def _likeness(
    meanings: list[Meaning], node_label: Int32, operator_label: Int32
) -> npt.NDArray[np.float64]:
    """How well the name of each operator matches the name of its node."""
    pairs = node_label.astype(np.int64) * len(meanings) + operator_label
    distinct, place = np.unique(pairs, return_inverse=True)
    scores = [
        _alike(meanings[pair // len(meanings)], meanings[pair % len(meanings)])
        for pair in distinct.tolist()
    ]
    return np.asarray(np.array(scores, float)[place.ravel()])


def _alike(node: Meaning, operator: Meaning) -> float:
    if not operator.is_operator or operator.call is None:
        return 0.0
    return likeness(node.name, operator.call.mod, operator.call.op)


class _Carriers:
    """Forward ranges by scope and number, in order of start."""

    def __init__(self, role: npt.NDArray[np.uint8], seq: Int64, scope: Int32) -> None:
        self.seq, self.scope = seq, scope
        rows = np.flatnonzero(role == _link.FORWARD).astype(np.int32)
        self.rows = rows[np.lexsort((rows, seq[rows], scope[rows]))]

    def up_to(self, nodes: Int32) -> Int64:
        """The position of the last carrier that sorts before each node; -1 for none.

        Carriers with the scope and number of the node sort before it if they started earlier.
        """
        rows = self.rows
        both = np.concatenate([rows, nodes])
        is_node = np.concatenate([np.zeros(len(rows), bool), np.ones(len(nodes), bool)])
        order = np.lexsort((both, self.seq[both], self.scope[both]))
        before = np.cumsum(~is_node[order])
        place = np.empty(len(both), np.int64)
        place[order] = before
        return place[len(rows) :] - 1

    def alike(self, nodes: Int32, last: Int64, ranges: NestedRanges) -> Int32:
        """The latest carrier of each node's number with a matching name, -1 for none.

        last : result of `up_to`
        """
        result = np.full(len(nodes), -1, np.int32)
        at, label = last.copy(), ranges.label
        for _ in range(_MAX_CARRIERS):
            open_ = np.flatnonzero((at >= 0) & (result < 0))
            row = self.rows[at[open_]] if len(open_) else np.empty(0, np.int32)
            same = self._is_number_of(row, nodes[open_])
            at[open_[~same]] = -1
            open_, row = open_[same], row[same]
            if not len(open_):
                break
            fits = _likeness(ranges.meanings, label[nodes[open_]], label[row]) >= SAME
            result[open_[fits]] = row[fits]
            at[open_] -= 1
        return result

    def _is_number_of(self, row: Int32, nodes: Int32) -> Bools:
        same: Bools = (self.seq[row] == self.seq[nodes]) & (self.scope[row] == self.scope[nodes])
        return same

    def last(self, nodes: Int32, last: Int64) -> Int32:
        """The latest carrier that started before each node, of the largest number up to that of
        the node; -1 for none."""
        row = np.append(self.rows, np.int32(-1))[last]
        row[(self.scope[row] != self.scope[nodes]) | (row > nodes)] = -1
        return row


class _Window:
    """The operators that were open or started while a number was the next to be assigned."""

    def __init__(self, ranges: NestedRanges, role: npt.NDArray[np.uint8]) -> None:
        self._ranges, self._role = ranges, role
        meanings = ranges.meanings
        self._operator = np.array([meaning.is_operator for meaning in meanings], bool)
        self._foreign = np.array([_is_foreign(meaning) for meaning in meanings], bool)

    def makers(self, nodes: Int32, last: Int32) -> Int32:
        """The operator with the best matching name; otherwise the outermost operator outside of
        torch's namespaces.

        last : the last carrier before the node was created, -1 for none
        """
        best = np.full(len(nodes), -1, np.int32)
        score = np.zeros(len(nodes))
        around = np.full(len(nodes), -1, np.int32)
        after_carrier = np.full(len(nodes), -1, np.int32)
        several = np.zeros(len(nodes), bool)
        label = self._ranges.label

        def look(places: npt.NDArray[np.intp], rows: Int32) -> Bools:
            alike = _likeness(self._ranges.meanings, label[nodes[places]], label[rows])
            better = alike > np.maximum(score[places], WEAK)
            best[places[better]] = rows[better]
            score[places[better]] = alike[better]
            foreign: Bools = self._foreign[label[rows]]
            return foreign

        for places, rows in self._around(last):
            foreign = look(places, rows)
            around[places[foreign]] = rows[foreign]
        for places, rows in self._after(last, self._ranges.seq[nodes]):
            foreign = look(places, rows)
            again = foreign & (after_carrier[places] >= 0)
            inside = again & (self._around_of(rows) == after_carrier[places])
            several[places[again & ~inside]] = True
            first = foreign & ~again
            after_carrier[places[first]] = rows[first]
        alone = np.where(several, np.int32(-1), after_carrier)
        in_cpp = np.array([is_cpp(meaning.name) for meaning in self._ranges.meanings], bool)
        other = np.where(around >= 0, around, alone)
        other[~in_cpp[label[nodes]]] = -1
        return np.where(best >= 0, best, other).astype(np.int32)

    def _around_of(self, rows: Int32) -> Int32:
        """The parent range of each range, -1 for none."""
        ranges = self._ranges
        return take(ranges.frame_range, ranges.frame_parent[ranges.frame_of_range[rows]])

    def _around(self, last: Int32) -> Iterator[Step]:
        """The ranges around each carrier, from the innermost outwards."""
        ranges = self._ranges
        frame = np.where(last >= 0, ranges.frame_of_range[last], -1)
        for _ in range(_MAX_AROUND):
            places = np.flatnonzero(frame >= 0)
            if not len(places):
                return
            yield places, ranges.frame_range[frame[places]]
            frame[places] = ranges.frame_parent[frame[places]]

    def _after(self, last: Int32, seq: Int64) -> Iterator[Step]:
        """The operators that started on the thread of each carrier after it and before a carrier of
        a larger number, in order of start."""
        ranges = self._ranges
        order = np.argsort(ranges.thread, kind="stable").astype(np.int32)
        place_of = np.empty(len(order), np.int64)
        place_of[order] = np.arange(len(order))
        at = np.where(last >= 0, place_of[last] + 1, -1)
        for _ in range(_MAX_AFTER):
            places = np.flatnonzero((at >= 0) & (at < len(order)))
            if not len(places):
                return
            rows = order[at[places]]
            ends = (ranges.thread[rows] != ranges.thread[last[places]]) | (
                (self._role[rows] == _link.FORWARD) & (ranges.seq[rows] > seq[places])
            )
            at[places] += 1
            at[places[ends]] = -1
            places, rows = places[~ends], rows[~ends]
            fits = self._operator[ranges.label[rows]] & (self._role[rows] != _link.FORWARD)
            yield places[fits], rows[fits]


SAME: Final = 1.0  # likeness: the operator's name has all words of the node's name
WEAK: Final = 0.01  # likeness factor for torch's operators that have only some of them

_CPP_NODE = regex(r"torch::autograd::CppNode<(.*)>\Z", re.DOTALL)
_TEMPLATE = regex(r"[<(].*", re.DOTALL)
_END = regex(r"Backwards?\d*\Z")
_GENERATED = regex(r"(?:Backward\d+|CopyBackwards|CopySlices|AccumulateGrad|GraphRoot)\Z")
_WORD = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SHORTEST = 3  # letters of a significant word
# Words unrelated to the computation.
_NOISE = frozenset(
    {"autograd", "backward", "cpp", "cuda", "fn", "forward", "func", "function", "functional"}
    | {"gpu", "grad", "impl", "node", "op", "torch"}
)
_ATEN = frozenset({"aten", "prim", "prims"})


def is_custom(name: str) -> bool:
    """Whether a node may belong to a custom function.

    Some generated nodes of PyTorch 1 have no number either; compare the operator's name.
    """
    return _GENERATED.search(name.removeprefix(EVALUATE)) is None


def is_cpp(name: str) -> bool:
    """Whether a node belongs to a custom C++ function."""
    return _CPP_NODE.search(name.removeprefix(EVALUATE)) is not None


def is_foreign(name: str, mod: str) -> bool:
    """Whether an operator's namespace, `mod`, is not torch's."""
    return "::" in name and mod not in _ATEN


@lru_cache(1 << 14)
def likeness(node: str, mod: str, op: str) -> float:
    """Similarity of an operator's and a node's name: the fraction of the node's words in common.

    2 if the names are equal except for case and punctuation. Torch's own operators create no custom
    nodes: 0 for a C++ node, and a small value for nodes that PyTorch 1 may have generated.
    """
    name = _plain(node)
    joined = _joined(name)
    words, of_op = _words(name), _words(op)
    if joined and joined == _joined(op):
        score = 2.0
    else:
        common = {word for word in words & of_op if len(word) >= _SHORTEST}
        score = len(common) / len(words) if words else 0.0
    if mod in _ATEN and score < SAME:
        return 0.0 if is_cpp(node) else score * WEAK
    return score


def _plain(node: str) -> str:
    """The name of a node without prefixes, templates and namespaces."""
    name = node_of(node)
    made_of = _CPP_NODE.match(name)
    plain = _TEMPLATE.sub("", made_of[1] if made_of else name.replace("(anonymous namespace)", ""))
    return plain.rstrip(": ").rsplit("::", 1)[-1]


def _joined(text: str) -> str:
    return re.sub("[^a-z0-9]", "", _END.sub("", text).lower().replace("forward", ""))


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text)) - _NOISE
