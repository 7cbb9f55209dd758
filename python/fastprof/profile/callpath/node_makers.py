"""Which operator made a node of the autograd graph, where its sequence number does not tell.

A number on a forward operator is that of the *next* node, so the innermost carrier of a number made
the node, if an operator of torch's own did. The node of a custom function (`CppNode<Lookup>`, a
Python `FooBackward`) may be made by an operator that carries no number. Then its carriers only
came before it: an `aten::zero_` that prepared the call. So where a node's name cannot come from its
carrier's, the maker is looked for: another carrier of that name; else an operator that started
between the last carrier of the number and the first of a larger one, or that is around the carrier.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fastprof._core import _link
from fastprof._core._take import take
from fastprof.model.markers import Meaning
from fastprof.model.markers.node_names import SAME, WEAK, is_cpp, is_custom, is_foreign, likeness
from fastprof.model.trace import Int32, Int64
from fastprof.profile.callpath.nesting import Nest

Bools = npt.NDArray[np.bool_]
Step = tuple[npt.NDArray[np.intp], Int32]  # which of those asked for, and a range of each

_MOST_CARRIERS = 64  # of one number that are looked at
_MOST_BESIDE = 512  # ranges behind the last carrier that are looked at
_MOST_AROUND = 64  # ranges around the carrier


def _is_foreign(meaning: Meaning) -> bool:
    """Whether a range is an operator of a namespace that is none of torch's own."""
    call = meaning.call
    return meaning.is_operator and call is not None and is_foreign(meaning.name, call.mod)


def mend(forward: Int32, role: npt.NDArray[np.uint8], scope: Int32, nest: Nest) -> None:
    """Replace the forward ranges of nodes that these cannot have made, in place; -1 for none found.

    Parameters
    ----------
    forward : [ranges] the innermost carrier of each backward range's number, -1 for none
    role, scope : [ranges] as `_link.forward_of` takes them
    """
    ranges, meanings = nest.ranges, nest.meanings
    custom = np.array([m.autograd_node and is_custom(m.name) for m in meanings], bool)
    if not custom.any():
        return
    asked = np.flatnonzero((role == _link.BACKWARD) & custom[ranges.label]).astype(np.int32)
    if not len(asked):
        return
    carried = forward[asked] >= 0
    kept = carried & (_likeness(meanings, ranges.label[asked], ranges.label[forward[asked]]) > 0)
    asked = asked[~kept]
    if not len(asked):
        return
    carriers = _Carriers(role, ranges.seq, scope)
    at = carriers.up_to(asked)
    found = carriers.alike(asked, at, nest)
    open_ = np.flatnonzero(found < 0)
    if len(open_):
        last = carriers.last(asked[open_], at[open_])
        found[open_] = _Window(nest, role).makers(asked[open_], last)
    forward[asked] = found


def _likeness(
    meanings: list[Meaning], node_label: Int32, operator_label: Int32
) -> npt.NDArray[np.float64]:
    """How well the name of each operator goes with the name of its node, by labels."""
    pairs = node_label.astype(np.int64) * len(meanings) + operator_label
    distinct, place = np.unique(pairs, return_inverse=True)
    of_pair = [
        _alike(meanings[pair // len(meanings)], meanings[pair % len(meanings)])
        for pair in distinct.tolist()
    ]
    return np.asarray(np.array(of_pair, float)[place.ravel()])


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

    def up_to(self, asked: Int32) -> Int64:
        """The place of the last carrier, in order, that comes before each range or has its scope
        and number, and started before it; -1 for none."""
        rows = self.rows
        both = np.concatenate([rows, asked])
        is_asked = np.concatenate([np.zeros(len(rows), bool), np.ones(len(asked), bool)])
        order = np.lexsort((both, self.seq[both], self.scope[both]))
        before = np.cumsum(~is_asked[order])
        place = np.empty(len(both), np.int64)
        place[order] = before
        return place[len(rows) :] - 1

    def alike(self, asked: Int32, last: Int64, nest: Nest) -> Int32:
        """The latest carrier of each range's number that has its name, -1 for none.

        last : as `up_to` tells
        """
        found = np.full(len(asked), -1, np.int32)
        at, label = last.copy(), nest.ranges.label
        for _ in range(_MOST_CARRIERS):
            open_ = np.flatnonzero((at >= 0) & (found < 0))
            row = self.rows[at[open_]] if len(open_) else np.empty(0, np.int32)
            same = self._is_number_of(row, asked[open_])
            at[open_[~same]] = -1
            open_, row = open_[same], row[same]
            if not len(open_):
                break
            fits = _likeness(nest.meanings, label[asked[open_]], label[row]) >= SAME
            found[open_[fits]] = row[fits]
            at[open_] -= 1
        return found

    def _is_number_of(self, row: Int32, asked: Int32) -> Bools:
        same: Bools = (self.seq[row] == self.seq[asked]) & (self.scope[row] == self.scope[asked])
        return same

    def last(self, asked: Int32, last: Int64) -> Int32:
        """The latest carrier of the largest number up to each range's, which started before it; -1
        for none."""
        row = np.append(self.rows, np.int32(-1))[last]
        row[(self.scope[row] != self.scope[asked]) | (row > asked)] = -1
        return row


class _Window:
    """The operators that were open or started while a number was the next."""

    def __init__(self, nest: Nest, role: npt.NDArray[np.uint8]) -> None:
        self._nest, self._role = nest, role
        meanings = nest.meanings
        self._operator = np.array([meaning.is_operator for meaning in meanings], bool)
        self._foreign = np.array([_is_foreign(meaning) for meaning in meanings], bool)

    def makers(self, asked: Int32, last: Int32) -> Int32:
        """The operator that each node's name fits best; else the outermost that is not of torch.

        last : the last carrier before the node was made, -1 for none
        """
        best = np.full(len(asked), -1, np.int32)
        score = np.zeros(len(asked))
        around = np.full(len(asked), -1, np.int32)
        behind = np.full(len(asked), -1, np.int32)
        several = np.zeros(len(asked), bool)
        label = self._nest.ranges.label

        def look(places: npt.NDArray[np.intp], rows: Int32) -> Bools:
            alike = _likeness(self._nest.meanings, label[asked[places]], label[rows])
            better = alike > np.maximum(score[places], WEAK)
            best[places[better]] = rows[better]
            score[places[better]] = alike[better]
            foreign: Bools = self._foreign[label[rows]]
            return foreign

        for places, rows in self._around(last):
            foreign = look(places, rows)
            around[places[foreign]] = rows[foreign]
        for places, rows in self._behind(last, self._nest.ranges.seq[asked]):
            foreign = look(places, rows)
            again = foreign & (behind[places] >= 0)
            inside = again & (self._around_of(rows) == behind[places])
            several[places[again & ~inside]] = True
            first = foreign & ~again
            behind[places[first]] = rows[first]
        alone = np.where(several, np.int32(-1), behind)
        in_cpp = np.array([is_cpp(meaning.name) for meaning in self._nest.meanings], bool)
        other = np.where(around >= 0, around, alone)
        other[~in_cpp[label[asked]]] = -1
        return np.where(best >= 0, best, other).astype(np.int32)

    def _around_of(self, rows: Int32) -> Int32:
        """The range around each range, -1 for none."""
        nest = self._nest
        return take(nest.frame_range, nest.frame_parent[nest.frame_of_range[rows]])

    def _around(self, last: Int32) -> Iterator[Step]:
        """The ranges around each carrier, step by step outwards."""
        nest = self._nest
        frame = np.where(last >= 0, nest.frame_of_range[last], -1)
        for _ in range(_MOST_AROUND):
            places = np.flatnonzero(frame >= 0)
            if not len(places):
                return
            yield places, nest.frame_range[frame[places]]
            frame[places] = nest.frame_parent[frame[places]]

    def _behind(self, last: Int32, seq: Int64) -> Iterator[Step]:
        """The operators that started on its thread behind each carrier and before one of a larger
        number, step by step."""
        ranges = self._nest.ranges
        order = np.argsort(ranges.thread, kind="stable").astype(np.int32)
        place_of = np.empty(len(order), np.int64)
        place_of[order] = np.arange(len(order))
        at = np.where(last >= 0, place_of[last] + 1, -1)
        for _ in range(_MOST_BESIDE):
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
