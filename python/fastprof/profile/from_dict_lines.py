"""Dict lines as the source of a Profile: their calls and instances, links and costs.

A dict line contains only the ranges around its own launch. The forward call of a backward kernel is
therefore that of the last preceding forward kernel with the same number (as in PyProf), and the
kernels of one call are consecutive kernels of one thread with the same markers. Both are guesses: a
forward call that launched no kernel is not in the file.

The rules are those of traces, with less information: a line contains only the ranges around its own
launch.

A line contains the markers around its own launch but no number of the call instance. Consecutive
lines with the same markers count as one instance, which is a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core import _calls, _link, _share
from fastprof._core._pools import pairs
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof._system.threads import computed_once
from fastprof.errors import StepsError
from fastprof.model.arrays import Bools, Int32, Int64, unique
from fastprof.model.call import Tensor
from fastprof.model.column_table import COLUMNS
from fastprof.model.columns import Column, Ints, Lists, Values, first_numbers
from fastprof.model.markers import Meaning, SourceLines, each_part_once, read
from fastprof.model.metadata import About
from fastprof.profile import api_classes as kernel_types
from fastprof.profile.call_results import CallKinds, lacks_only_result, output_gradient
from fastprof.profile.calls import (
    FAMILY_KERNELS,
    ByteFlags,
    CallsOfKernels,
    Named,
    cost_bits,
    flops_of_products,
    is_complete,
    named,
)
from fastprof.profile.cells import KernelCells, cells_of_columns
from fastprof.profile.checks import Totals, mistake, totals_of
from fastprof.profile.costs import cost
from fastprof.profile.coverage import Contents, Coverage, RowCalls, contents_of_lines, cover
from fastprof.profile.source import ProfileSource
from fastprof.profile.steps.kernel_steps import StepsOfKernels, timeless_step

_PRODUCT: Final = _calls.KNOWN | _calls.MATRICES
_KEYS: Final = ("marker", "seqMarker", "op", "mod")


def calls_of_lines(
    columns: dict[str, Any], names_of_kernels: Values, backward: Bools, forward_row: Int32
) -> CallsOfKernels:
    """The call of each line's kernel: that of its forward line if it has one, else its own.

    Parameters
    ----------
    columns : as `readers.dict_lines.read` returns them
    names_of_kernels : [lines] the long name of the kernel, else the short one
    backward : [lines] whether the kernel runs backward
    forward_row : int32 [lines], the line of its forward call; -1: none
    """
    own = np.arange(len(backward), dtype=np.int32)
    linked = forward_row >= 0
    row = np.where(linked, forward_row, own)
    chain = backward.astype(np.int32) + np.int32(2) * linked
    for key in _KEYS:
        chain, firsts = pairs(chain, take(columns[key].ids, row))
    # The markers of the backward line itself count too.
    for key in ("seqMarker", "op"):
        chain, firsts = pairs(chain, np.where(linked, columns[key].ids, np.int32(-1)))
    number: dict[Named, int] = {}
    of_chain = np.empty((len(firsts), 4), np.int32)
    for i, at in enumerate(firsts.tolist()):
        shown = _called(columns, int(row[at]), bool(backward[at] and not linked[at]))
        costed, is_backward = shown, bool(linked[at])
        if is_backward:
            shown, costed, is_backward = _of_backward(columns, at, shown)
        else:
            costed = _product_inside(columns, int(row[at]), shown)
        ids = [-1 if call.op is None else number.setdefault(call, len(number))
               for call in (shown, costed)]  # fmt: skip
        of_chain[i] = (*ids, is_backward, is_backward and costed is shown)
    rows = of_chain[chain]
    call, work, backward_of, gradient = (np.ascontiguousarray(column) for column in rows.T)
    gradient = gradient > 0
    lines = DictLines(columns, names_of_kernels, forward_row, list(number), call, work, gradient)
    grouping = CallInstances(lines)
    group, taken = grouping.groups()
    call, work = _with_results(columns, grouping, number, call, work)
    kind, firsts = pairs(pairs(call, work)[0], 2 * backward_of + gradient)
    calls = np.stack([call, work, np.full(len(call), -1, np.int32)], axis=1)
    kinds = CallKinds(calls[firsts], backward_of[firsts] > 0, gradient[firsts])
    return CallsOfKernels(
        named=list(number),
        kinds=kinds,
        kind=kind,
        group=group,
        taken=taken,
        instance=grouping.instances(backward_of > 0),
    )


def _called(columns: dict[str, Any], row: int, backward: bool) -> Named:
    """The call that a line's markers name: the outermost that has a model, else the outermost."""
    marker, seq_marker, op, mod = (columns[key].at(row) or () for key in _KEYS)
    calls = [meaning.call for meaning in map(_marker, marker) if meaning.call is not None]
    torch = [_torch(label) for label in seq_marker]
    in_order = _in_order(torch, op)
    for call in calls:
        if ops.has_model(call):
            return Named(call.mod, call.op, call)
    for meaning in in_order + torch:
        if meaning.has_arguments and meaning.call is not None and ops.has_model(meaning.call):
            return named(meaning)
    if calls:
        return Named(calls[0].mod, calls[0].op, calls[0])
    outermost = [m for m in torch if backward and m.autograd_node]
    outermost += [m for m in in_order if m.call is not None and ops.find(m.call) is not None]
    outermost += in_order
    if outermost:
        return named(outermost[0])
    return Named(mod[0] if mod and mod[0] != "na" else None, op[0] if op else None, None)


def _product_inside(columns: dict[str, Any], row: int, shown: Named) -> Named:
    """The innermost product of a line if it has other FLOPs than the line's call, else the call.

    As in traces (fp_calls.h, rule 3). Of products of one name, whose order lines do not hold,
    it is that with other FLOPs.
    """
    if shown.call is None or not cost_bits(shown.call, True) & _calls.KNOWN:
        return shown
    torch = [_torch(label) for label in columns["seqMarker"].at(row) or ()]
    products = [m for m in torch if _cost_bits(m) & _PRODUCT == _PRODUCT and m.call]
    ordered = _in_order(products, columns["op"].at(row) or ())
    same = (m for m in products if m.name == ordered[-1].name) if ordered else ()
    flops = flops_of_products(shown.call)
    other = (m for m in same if m.call and flops_of_products(m.call) not in (None, flops))
    return next((named(meaning) for meaning in other), shown)


def _of_backward(columns: dict[str, Any], row: int, forward: Named) -> tuple[Named, Named, bool]:
    """The call of a backward line, the source of its cost, and whether the call is forward's.

    As in traces (fp_calls.h, rules 1 and 2): in the backward pass of a product, the cost is
    that of the line's own product; if the backward pass has no known cost, that of its operator.
    """
    torch = [_torch(label) for label in columns["seqMarker"].at(row) or ()]
    chain = _in_order(torch, columns["op"].at(row) or ())
    chain += [meaning for meaning in torch if meaning not in chain]
    known = [m for m in chain if _cost_bits(m) & _calls.KNOWN and m.call and is_complete(m.call)]
    products = [m for m in known if _cost_bits(m) & _calls.FAMILY]
    of_call = cost_bits(forward.call, True)
    if of_call & _calls.FAMILY and products:
        needed = 0 if of_call & _calls.UNKNOWN_BACKWARD else _calls.MATRICES
        if _cost_bits(products[-1]) & needed == needed:
            return forward, named(products[-1]), True
        return forward, forward, True
    knowing = known if products or of_call & _calls.UNKNOWN_BACKWARD else []
    if not (knowing or of_call & _calls.FORMULA):
        knowing = [m for m in chain if _cost_bits(m) & _calls.FORMULA]
    if knowing:
        own = named(knowing[0])
        if _cost_bits(knowing[0]) & _calls.GRADIENT:
            return forward, own, True
        return own, own, False
    return forward, forward, True


def _in_order(torch: list[Meaning], op: tuple[str, ...]) -> list[Meaning]:
    """Torch's ranges, outermost first: in the order of `op`, because seqMarker is sorted."""
    by_name = {meaning.name.removeprefix("aten::"): meaning for meaning in torch}
    return [by_name[name] for name in op if name in by_name]


def _marker(label: str) -> Meaning:
    return read(label, False)


def _torch(label: str) -> Meaning:
    return read(label, True)


def _cost_bits(meaning: Meaning) -> int:
    gradient = meaning.backward and not meaning.autograd_node
    return cost_bits(meaning.call, meaning.has_arguments, gradient)


def _with_results(
    columns: dict[str, Any],
    grouping: CallInstances,
    number: dict[Named, int],
    call: Int32,
    work: Int32,
) -> tuple[Int32, Int32]:
    """`call` and `work`, with calls that lack only their results completed by backward lines.

    number : number of each distinct call; new calls are added
    """
    asking = np.array([lacks_only_result(name.call) for name in number] + [False])
    linked = np.flatnonzero((grouping.lines.forward_row >= 0) & asking[call])
    gradients: list[Tensor | None] = [None] * len(columns["seqMarker"].values)
    for marker in unique(columns["seqMarker"].ids[linked]).tolist():
        tensors = map(output_gradient, map(_torch, columns["seqMarker"].values[marker]))
        gradients[marker] = next((tensor for tensor in tensors if tensor is not None), None)
    known = np.array([gradient is not None for gradient in gradients] + [False])
    rows = linked[known[columns["seqMarker"].ids[linked]]]
    result = np.full(int(grouping.of_call.max(initial=-1)) + 1, -1, np.int32)
    result[grouping.of_call[rows]] = columns["seqMarker"].ids[rows]
    of_row = result[grouping.of_call]
    changed = np.flatnonzero((of_row >= 0) & asking[call])
    pair, firsts = pairs(call[changed], of_row[changed])
    names, new = list(number), []
    for at in firsts.tolist():
        name, tensor = names[call[changed[at]]], gradients[of_row[changed[at]]]
        with_result = replace(name, call=name.call and replace(name.call, result=tensor))
        new.append(number.setdefault(with_result, len(number)))
    new_call, new_work = call.copy(), work.copy()
    new_call[changed] = np.array(new, np.int32)[pair]
    same = changed[work[changed] == call[changed]]
    new_work[same] = new_call[same]
    return new_call, new_work


_KNOWN_PRODUCT: Final = _calls.KNOWN | _calls.FAMILY


class DictLines(NamedTuple):
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


class CallInstances:
    """The instances of calls among lines.

    Forward, an instance is a run of lines of one thread, or of one stream of a thread, with the
    same call and source line. A new instance starts where the first main (not auxiliary) kernel
    recurs in the same ranges, unless it recurs within an inner range that has the same number, with
    nothing in between: a convolution may launch a product per image, a loss several operators.

    A product inside a backward call is one kernel and its helpers. All other backward lines of a
    forward instance are one backward instance, until the backward pass runs again.
    """

    def __init__(self, lines: DictLines) -> None:
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
        self.marks = [np.unique(mark, return_inverse=True)[1].astype(np.int32) for mark in marks]
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

    @computed_once
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

    def groups(self) -> tuple[Int32, ByteFlags]:
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


class DictLineSource(ProfileSource):
    """Dict lines.

    Parameters
    ----------
    name : the file
    columns : as `readers.dict_lines.read` returns them
    lines : which source lines are the user's
    """

    def __init__(self, name: str, columns: dict[str, Any], lines: SourceLines) -> None:
        n = len(columns["kDuration"])
        super().__init__(name, About("dict"), [], n, COLUMNS)
        backward = _equals(columns["dir"], "bprop")
        forward_row = _forward_rows(columns, backward)
        self.columns, self.lines = columns, lines
        self.meaning_row = np.where(forward_row >= 0, forward_row, np.arange(n, dtype=np.int32))
        self.duration: Int64 = columns["kDuration"].values
        self.names_of_kernels = names = _names(columns)
        self.calls = calls_of_lines(columns, names, backward, forward_row)
        self.costs = cost(self.calls, names, np.maximum(self.duration, 0))

    def _make(self, name: str) -> Column:
        return _MAKERS[name](self)

    @computed_once
    def source_lines(self) -> Values:
        """The source lines of each kernel's call, outermost first."""
        return _rows(self.columns["trace"], self.meaning_row).mapped(self.lines.trace)

    def _cover(self, copies: bool) -> Coverage:
        columns, tid = self.columns, self.columns["tid"]
        markers = columns["seqMarker"].values
        return cover(
            self.duration,
            tid.values != tid.none,
            _inside(columns),
            self.source_lines,
            RowCalls.of(self.calls),
            self.costs.flops.values >= 0,
            any(", sizes = [" in text for cell in markers for text in cell),
        )

    @computed_once
    def cells(self) -> KernelCells:
        """As in ProfileSource."""
        return cells_of_columns(self.column, self.names)

    def contents(self) -> Contents:
        """Count the contents."""
        return contents_of_lines(self.columns, self.calls)

    def steps(self, source: str | None) -> StepsOfKernels:
        """All kernels as one step."""
        reason = "dict lines record no times"
        if source not in (None, "none"):
            raise StepsError(f"{self.name}: {reason}; find steps in the trace itself")
        return timeless_step(self.n_kernels, reason)

    def totals(self) -> Totals:
        """Sum the rows."""
        n, costs = self.n_kernels, self.costs
        if not len(costs.flops) == len(costs.bytes) == n:
            raise mistake("dict lines", "rows", n, len(costs.flops))
        kind = Values(np.zeros(n, np.int32), ["kernel"])
        return totals_of(kind, Ints(self.duration))

    def dict_line_columns(self) -> Mapping[str, Any]:
        """The columns as read."""
        return self.columns


_MAKERS: Final[dict[str, Callable[[DictLineSource], Column]]] = {
    "idx": lambda of: Ints(np.arange(1, of.n_kernels + 1, dtype=np.int32)),
    "seq": lambda of: _as_ints(of.columns["seqId"]),
    "altseq": lambda of: of.columns["altSeqId"],
    "tid": lambda of: of.columns["tid"],
    "layer": lambda of: _rows(of.columns["layer"], of.meaning_row).mapped(each_part_once),
    "trace": lambda of: of.source_lines,
    "dir": lambda of: of.columns["dir"],
    "sub": lambda of: of.columns["subSeqId"],
    "mod": lambda of: of.costs.mod,
    "op": lambda of: of.costs.op,
    "kernel": lambda of: _short_names(of.columns["kShortName"]),
    "params": lambda of: of.costs.params,
    "sil": lambda of: of.columns["kDuration"],
    "tc": lambda of: of.costs.tc,
    "device": lambda of: of.columns["device"],
    "stream": lambda of: of.columns["stream"],
    "grid": lambda of: of.columns["grid"],
    "block": lambda of: of.columns["block"],
    "flops": lambda of: of.costs.flops,
    "bytes": lambda of: of.costs.bytes,
    "tc_reason": lambda of: of.costs.tc_reason,
    "exact": lambda of: of.costs.exact,
    "line": lambda of: of.source_lines.mapped(of.lines.line),
    "library_line": lambda of: of.source_lines.mapped(of.lines.library_line),
    "name": lambda of: of.columns["kLongName"],
    "class": lambda of: kernel_types.classes(of.names_of_kernels),
    "compute_type": lambda of: kernel_types.compute_types_of(of.names_of_kernels, of.costs),
    "helper": lambda of: kernel_types.helpers(of.names_of_kernels, of.costs),
    "call": lambda of: kernel_types.call_numbers(of.calls),
}


def _short_names(column: Values) -> Values:
    return Values(column.ids, [name.replace(" ", "_") for name in column.values])


def _equals(column: Values, text: str) -> npt.NDArray[np.bool_]:
    wanted = column.values.index(text) if text in column.values else -2
    return np.equal(column.ids, wanted)


def _rows(column: Values, row: Int32) -> Values:
    return Values(take(column.ids, row), column.values)


def _names(columns: dict[str, Any]) -> Values:
    """The long name of each kernel, else the short one."""
    long_names, short_names = columns["kLongName"], columns["kShortName"]
    if (long_names.ids >= 0).all():
        return Values(long_names.ids, long_names.values)
    further = np.where(short_names.ids >= 0, short_names.ids + len(long_names.values), -1)
    ids = np.where(long_names.ids >= 0, long_names.ids, further).astype(np.int32)
    return Values(ids, long_names.values + short_names.values)


def _forward_rows(columns: dict[str, Any], backward: npt.NDArray[np.bool_]) -> Int32:
    """The last forward row with the same number before each backward row: first by seqId, then by
    altSeqId. -1: none, or a forward row."""
    seq = first_numbers(columns["seqId"])
    forward = _equals(columns["dir"], "fprop")
    counting = np.isin(columns["tid"].values, unique(columns["tid"].values[forward & (seq > 0)]))
    # A forward call runs on the same GPU; each process has its own numbers.
    scope = columns["device"].values.astype(np.int32)
    asking = backward & (seq >= 0)
    out = np.full(len(seq), -1, np.int32)
    for numbers in (columns["seqId"], columns["altSeqId"]):
        row = np.repeat(np.arange(len(seq), dtype=np.int32), np.diff(numbers.offsets))
        carries = forward[row] & ((numbers.values > 0) | counting[row])
        still = np.flatnonzero(asking & (out < 0)).astype(np.int32)
        rows = np.concatenate([row[carries], still])
        order = np.argsort(rows, kind="stable")
        role = np.repeat(
            np.array([_link.FORWARD, _link.BACKWARD], np.uint8), [carries.sum(), len(still)]
        )
        number = np.concatenate([numbers.values[carries], seq[still]])
        rows = rows[order]
        forward_of = _link.forward_of(role[order], number[order], scope[rows])
        linked = forward_of >= 0
        out[rows[linked]] = rows[forward_of[linked]]
    return out


def _as_ints(numbers: Lists) -> Ints | Lists:
    """Lists of at most one number as numbers, as in a trace; other lists unchanged."""
    many = np.any(np.diff(numbers.offsets) > 1)
    return numbers if many else Ints(first_numbers(numbers))


def _inside(columns: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """Whether each line contains any range around its kernel."""
    inside = np.zeros(len(columns["kDuration"]), bool)
    for key in ("layer", "trace", "marker", "seqMarker"):
        some = np.array([bool(value) for value in columns[key].values] + [False])
        inside |= some[columns[key].ids]
    return inside
