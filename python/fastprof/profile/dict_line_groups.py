"""Group dict lines into instances of calls.

A line contains the markers around its own launch but no number of the call instance. Consecutive
lines with the same markers count as one instance, which is a guess.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core import _calls, _share
from fastprof._core._pools import pairs
from fastprof.model.arrays import Bools, Int32
from fastprof.model.columns import Values, first_numbers
from fastprof.profile.calls import FAMILY_KERNELS, Flags, Named, cost_bits

_KNOWN_PRODUCT: Final = _calls.KNOWN | _calls.FAMILY


class Lines(NamedTuple):
    """Dict lines, and the call of each.

    Parameters
    ----------
    columns : as `readers.dict_lines.read` returns them
    kernels : [lines] the long name of the kernel, else the short one
    forward_row : int32 [lines], the line of its forward call; -1: none
    names : the distinct calls
    call, work : int32 [lines], index into `names`, as in `calls.CallsOfKernels`
    gradient : bool [lines], whether the kernel computes the backward pass of `work`
    """

    columns: dict[str, Any]
    kernels: Values
    forward_row: Int32
    names: list[Named]
    call: Int32
    work: Int32
    gradient: Bools


class Grouping:
    """The instances of calls among lines.

    Forward, an instance is a run of lines of one thread, or of one stream of a thread, with the
    same call and source line. A new instance starts where the first main (not auxiliary) kernel
    recurs in the same ranges, unless it recurs within an inner range that has the same number, with
    nothing in between: a convolution may launch a product per image, a loss several operators.

    A product inside a backward call is one kernel and its helpers. All other backward lines of a
    forward instance are one backward instance, until the backward pass runs again.
    """

    def __init__(self, lines: Lines) -> None:
        columns, names, work = lines.columns, lines.names, lines.work
        self.lines = lines
        self.seq, self.tid = first_numbers(columns["seqId"]), columns["tid"].values
        self.stream = columns["stream"].values
        kernels = lines.kernels
        info_of = {name: ops.classify(name) for name in kernels.values}
        helps = kernels.fits(lambda name: info_of[name].auxiliary)
        does_products = kernels.fits(lambda name: info_of[name].kind in FAMILY_KERNELS)
        family = np.array([_is_product(name) for name in names] + [False])[work]
        self.leads = ~helps & (does_products | ~family)
        # Products within a backward call with a known cost of their own.
        self.inside = family & ~lines.gradient & (work != lines.call)
        marks = (self.tid, np.where(self.inside, self.seq, -1))
        self.marks = [np.unique(each, return_inverse=True)[1].astype(np.int32) for each in marks]
        self.marks += [lines.call, work, lines.gradient.astype(np.int32), columns["trace"].ids]
        # Different operators inside a call can launch the same kernel; products cannot.
        self.chain = np.where(family, np.int32(-1), columns["seqMarker"].ids)
        convolves = np.array([_is_convolution(name) for name in names] + [False])[work]
        self.in_pieces = self._is_inner() & (convolves | ~family)
        self.instance = self._runs()
        # The instance of the forward call, or the own one.
        forward = lines.forward_row
        self.of_call = np.where(forward >= 0, self.instance[forward], self.instance)

    def _is_inner(self) -> Bools:
        """Whether the innermost operator around each kernel differs from its call."""
        operators = self.lines.columns["op"]
        innermost = [chain[-1] if chain else None for chain in operators.values] + [None]
        shown = [name.op for name in self.lines.names] + [None]
        codes = {text: i for i, text in enumerate(dict.fromkeys([*innermost, *shown]))}
        code_of_innermost = np.array([codes[text] for text in innermost])[operators.ids]
        is_inner: Bools = code_of_innermost != np.array([codes[t] for t in shown])[self.lines.call]
        return is_inner

    @cached_property
    def _backward(self) -> Int32:
        """The backward instance of each line with a forward line."""
        linked = np.flatnonzero(self.lines.forward_row >= 0)
        again = np.zeros(len(self.instance), np.int32)
        again[linked] = self._passes(linked, self.instance)
        backward, _ = pairs(
            np.where(self.lines.forward_row >= 0, self.of_call, np.int32(-1)), again
        )
        return backward

    def instances(self, backward: Bools) -> Int32:
        """The instance of each line, -1 without a call; `backward`: the backward one."""
        instance, _ = pairs(
            np.where(backward, np.int32(-1), self.instance),
            np.where(backward, self._backward, np.int32(-1)),
        )
        return np.where(self.lines.call >= 0, instance, np.int32(-1))

    def groups(self) -> tuple[Int32, Flags]:
        """The instance of the work of each line (-1: no call); per instance, the number of main
        parts that products inside it compute."""
        instance, backward = self.instance, self._backward
        group = self.instances(self.lines.gradient)
        n_groups = int(group.max(initial=-1)) + 1
        # The number of products with a cost of their own inside each backward instance.
        inside = np.flatnonzero(self.inside)
        inside = inside[np.unique(instance[inside], return_index=True)[1]]
        n_inside = np.bincount(backward[inside], minlength=int(backward.max(initial=-1)) + 1)
        taken = np.zeros(n_groups, np.uint8)
        rows = np.flatnonzero(self.lines.gradient & (group >= 0))
        taken[group[rows]] = np.minimum(n_inside[backward[rows]], _calls.SOME_TAKEN - 1)
        # Products inside of a forward call have its cost; which lines are of one call is unknown.
        lines = self.lines
        forward = lines.forward_row < 0
        divided = np.zeros(len(lines.names) + 1, bool)
        divided[lines.call[self.inside & forward]] = True
        taken[group[forward & divided[lines.call] & ~self.inside]] = _calls.SOME_TAKEN
        return group, taken

    def _runs(self) -> Int32:
        n = len(self.lines.call)
        place = np.empty(n, np.int64)
        place[np.argsort(self.tid, kind="stable")] = np.arange(n)
        kind = self.marks[0]
        for mark in self.marks[1:]:
            kind, _ = pairs(kind, mark)
        order = np.lexsort((place, kind))
        starts = np.ones(n, bool)
        is_next = place[order][1:] == place[order][:-1] + 1
        seq = self.seq[order]
        # Kernels of other streams may start between the kernels of a call.
        stream = np.unique(self.stream, return_inverse=True)[1].astype(np.int32)
        lane, _ = pairs(self.marks[0], stream)
        in_lane = np.empty(n, np.int64)
        in_lane[np.argsort(lane, kind="stable")] = np.arange(n)
        is_next |= (in_lane[order][1:] == in_lane[order][:-1] + 1) & (
            lane[order][1:] == lane[order][:-1]
        )
        goes_on = is_next | ((seq[1:] >= 0) & (seq[1:] == seq[:-1]))
        starts[1:] = (kind[order][1:] != kind[order][:-1]) | ~goes_on
        if n:
            at, leads, run = np.arange(n), self.leads[order], np.cumsum(starts) - 1
            firsts = np.minimum.reduceat(np.where(leads, at, n), np.flatnonzero(starts))[run]
            leader = np.minimum(firsts, n - 1)  # without a leader, nothing recurs
            kernel, chain = self.lines.kernels.ids[order], self.chain[order]
            in_pieces = self.in_pieces[order] & (seq >= 0) & (seq == seq[leader])
            in_pieces &= place[order] - place[order][leader] == at - leader
            again = (kernel == kernel[leader]) & ~in_pieces
            again &= (chain == chain[leader]) | (seq != seq[leader])
            starts |= leads & (at > firsts) & (again | self.inside[order])
        instance = np.empty(n, np.int32)
        instance[order] = np.cumsum(starts) - 1
        return instance

    def _passes(self, linked: npt.NDArray[np.intp], instance: Int32) -> Int32:
        """The number of earlier backward passes of each line's forward call."""
        rows = linked[np.argsort(self.tid[linked], kind="stable")]
        forward = instance[self.lines.forward_row[rows]]
        marks = [self.tid[rows], self.seq[rows], forward]
        starts = np.ones(len(rows), bool)
        starts[1:] = np.any([mark[1:] != mark[:-1] for mark in marks], axis=0)
        run = np.cumsum(starts) - 1
        number = np.unique(self.seq[rows], return_inverse=True)[1].astype(np.int32)
        key, firsts = pairs(forward[starts], number[starts])
        ordinal = _share.ordinal(key, len(firsts))
        out = np.empty(len(linked), np.int32)
        out[np.searchsorted(linked, rows)] = ordinal[run]
        return out


def _is_product(name: Named) -> bool:
    return cost_bits(name.call, True) & _KNOWN_PRODUCT == _KNOWN_PRODUCT


def _is_convolution(name: Named) -> bool:
    work = ops.work(name.call, "fprop") if name.call else None
    return work is not None and any("convolution" in part.kernels for part in work.parts)
