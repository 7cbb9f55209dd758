"""The nodes of a tree of stacks, and sums over their own kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._take import take
from fastprof.analysis.columns import numbers
from fastprof.analysis.grouping import group
from fastprof.analysis.keys import key_of
from fastprof.analysis.path_sums import in_part
from fastprof.analysis.saturated import in_subtrees, scattered
from fastprof.analysis.stack_chains import Chains
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Values
from fastprof.profile.kept import kept
from fastprof.profile.phases import BACKWARD, FORWARD
from fastprof.profile.profile import Profile, cells

DIRECTIONS: Final = (FORWARD, BACKWARD, "other")
_ROOT: Final = ("all", "all")
# Keys in which the kernels of a call agree.
_OF_CALLS: Final = frozenset({"op", "mod", "shape", "dtype", "line", "layer", "dir"})


class Nodes:
    """The nodes of chains and of the keys below them, in order of the first kernel of each.

    Parameters
    ----------
    chains : the chain of each cell
    leaves : grouping keys

    Attributes
    ----------
    parent : int32 [n]; row 0 is the root, -1
    type, name : Values [n]
    groups : the selected cells of equal node and direction; several groups may have the same
    """

    def __init__(self, chains: Chains, leaves: Sequence[str]) -> None:
        """Make the nodes."""
        self._cells = cells = chains.cells
        keys = [key_of(cells, name) for name in leaves]
        direction = np.full(len(cells), DIRECTIONS.index("other"), np.int32)
        for part in (FORWARD, BACKWARD):
            direction[in_part(cells, part)] = DIRECTIONS.index(part)
        chain = Values(chains.groups.ids, [None] * chains.groups.n)
        by = [chain, *keys, Values(direction, list(DIRECTIONS))]
        self.groups = group(by, len(cells), chains.groups.ids >= 0)
        first = self.groups.first
        order = np.argsort(first)
        self._direction, first = direction[first], first[order]

        tree, of_chain = _Tree(), dict[int, int]()
        rows, rows_of_calls = [], []
        n_of_calls = len(list(takewhile(_OF_CALLS.__contains__, leaves)))
        texts = [_labels(name, key.take(first)) for name, key in zip(leaves, keys, strict=True)]
        for own, *labels in zip(chain.ids[first].tolist(), *texts, strict=True):
            if own not in of_chain:
                of_chain[own] = tree.inside(0, chains.chains[own])
            rows_of_calls.append(tree.inside(of_chain[own], labels[:n_of_calls]))
            rows.append(tree.inside(rows_of_calls[-1], labels[n_of_calls:]))
        self.parent, self.type, self.name = tree.columns()
        self._rows, self._rows_of_calls = np.empty((2, len(order)), np.int32)
        self._rows[order], self._rows_of_calls[order] = rows, rows_of_calls

    def own(self, of_groups: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """[n, 3] Numbers [groups], added by node and direction."""
        shape = len(self.parent), len(DIRECTIONS)
        return scattered(of_groups, (self._rows, self._direction), shape)

    def calls(self) -> Int64:
        """[n, 3] The calls of operators, each at its first kernel; nodes below them have none."""
        shape = len(self.parent), len(DIRECTIONS)
        if "call" not in self._cells.names:
            return np.zeros(shape, np.int64)
        return scattered(self._begun(), (self._rows_of_calls, self._direction), shape)

    def _begun(self) -> Int64:
        """[groups] How many calls have their first kernel in each group."""
        if self._cells.is_coarsest and (self.groups.ids >= 0).all():
            return self.groups.stats(kept(self._cells.profile, _begun)).sum
        group = take(self.groups.ids, self._cells.of_kernel)
        return _first(np.where(group >= 0, _calls(self._cells.profile), -1), group, self.groups.n)

    def dominant(self, key: str) -> Values:
        """[n] The value of a key with at least half of the GPU time inside each node."""
        values = key_of(self._cells, key)
        n_values = len(values.values) + 1
        row = take(self._rows, self.groups.ids)
        time = np.where(row >= 0, np.maximum(numbers(self._cells, "sil"), 0), 0)
        place = np.maximum(row, 0) * np.intp(n_values) + values.ids + 1
        own = np.bincount(place, time, len(self.parent) * n_values).reshape(-1, n_values)
        inside = in_subtrees(self.parent, own)
        most = inside.argmax(1)
        has_half = 2 * inside[np.arange(len(most)), most] >= inside.sum(1)
        return Values(np.where(has_half, most - 1, -1).astype(np.int32), values.values)


def _calls(profile: Profile) -> Int32:
    found: Int32 = numbers(profile, "call")
    return found


def _begun(profile: Profile) -> Int64:
    """[cells] How many calls have their first kernel in each cell of a profile."""
    base = cells(profile)
    return _first(_calls(profile), base.of_kernel, len(base))


def _first(call: Int32, group: Int32, n_groups: int) -> Int64:
    """[groups] How many calls have their first kernel in each group.

    call, group : int32 [kernels], -1 for none
    """
    first = np.full(int(call.max(initial=-1)) + 2, -1, np.int32)  # the last for those without
    first[call[::-1]] = group[::-1]  # the last one assigned is that of the first kernel
    return np.bincount(first[:-1] + 1, minlength=n_groups + 1)[1:].astype(np.int64)


class _Tree:
    """A tree of (type, name), parents before their children."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, tuple[str, str]], int] = {(-1, _ROOT): 0}

    def inside(self, row: int, labels: Iterable[tuple[str, str] | None]) -> int:
        """The node of a chain below a node; unknown labels are omitted."""
        for label in labels:
            if label is not None:
                row = self._rows.setdefault((row, label), len(self._rows))
        return row

    def columns(self) -> tuple[Int32, Values, Values]:
        """Parent, type and name of each node."""
        parent = np.array([above for above, _ in self._rows], np.int32)
        kinds, names = zip(*(label for _, label in self._rows), strict=True)
        return parent, _repeated(kinds), _repeated(names)


def _repeated(texts: Sequence[str]) -> Values:
    ids: dict[str, int] = {}
    found = [ids.setdefault(text, len(ids)) for text in texts]
    return Values(np.array(found, np.int32), list(ids))


def _labels(name: str, key: Values) -> list[tuple[str, str] | None]:
    """[n] Key and value; None where unknown."""
    labels = [None if each is None else (name, str(each)) for each in key.values]
    return [None if each < 0 else labels[each] for each in key.ids.tolist()]
