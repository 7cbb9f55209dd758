"""Dict lines to Profile: what the lines say of each kernel, linked and costed as a trace would be.

A dict line knows only what was around its own launch. So the forward call of a backward kernel is
that of the last forward kernel before it with the same number (as in PyProf), and the kernels of
one call are those of one thread that follow each other with the same markers. Both are guesses that
the trace itself does not need: a forward call that launched no kernel is not in the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof import _link, ops
from fastprof._pools import pairs
from fastprof._take import take
from fastprof.about import About
from fastprof.calls import CallsOfKernels, Named, named
from fastprof.check import Totals, mistake, totals_of
from fastprof.columns import Columns, Ints, Lists, Values
from fastprof.contents import contents_of_lines
from fastprof.costs import Costs, cost
from fastprof.coverage import cover
from fastprof.markers import Meaning, SourceLines, each_part_once, read
from fastprof.profile import Profile
from fastprof.trace import Int32, Int64


def from_dict_lines(name: str, columns: dict[str, Any], lines: SourceLines) -> Profile:
    """Make the Profile of the columns that `sources.dictlines.read` gives."""
    n = len(columns["kDuration"])
    backward = _equals(columns["dir"], "bprop")
    forward_row = _forward_rows(columns, backward)
    meaning_row = np.where(forward_row >= 0, forward_row, np.arange(n, dtype=np.int32))
    calls = _calls(columns, backward, forward_row >= 0, meaning_row)
    long_names = _names(columns)
    duration = columns["kDuration"].values
    launched = columns["tid"].values != columns["tid"].none
    costs = cost(calls, long_names.values, long_names.ids, np.maximum(duration, 0))
    report = Columns(
        {
            "idx": lambda: Ints(np.arange(1, n + 1, dtype=np.int32)),
            "seq": lambda: _as_ints(columns["seqId"]),
            "altseq": lambda: columns["altSeqId"],
            "tid": lambda: columns["tid"],
            "layer": lambda: _rows(columns["layer"], meaning_row).mapped(each_part_once),
            "trace": lambda: _rows(columns["trace"], meaning_row).mapped(lines.trace),
            "dir": lambda: columns["dir"],
            "sub": lambda: columns["subSeqId"],
            "mod": lambda: costs.mod,
            "op": lambda: costs.op,
            "kernel": lambda: _short_names(columns["kShortName"]),
            "params": lambda: costs.params,
            "sil": lambda: columns["kDuration"],
            "tc": lambda: costs.tc,
            "tc_reason": lambda: costs.tc_reason,
            "device": lambda: columns["device"],
            "stream": lambda: columns["stream"],
            "grid": lambda: columns["grid"],
            "block": lambda: columns["block"],
            "flops": lambda: costs.flops,
            "bytes": lambda: costs.bytes,
            "exact": lambda: costs.exact,
            "line": lambda: report["trace"].mapped(lines.line),
            "library_line": lambda: report["trace"].mapped(lines.library_line),
            "name": lambda: columns["kLongName"],
        }
    )
    return Profile(
        name=name,
        columns=report,
        extra={},
        make_dict_columns=lambda meanwhile: columns,
        cover=lambda copies: cover(
            duration,
            launched,
            _inside(columns),
            report["trace"],
            calls,
            costs.flops,
            any(", sizes = [" in text for cell in columns["seqMarker"].values for text in cell),
        ),
        count=lambda: contents_of_lines(columns, calls),
        about=About("dict"),
        add_up=lambda: _add_up(duration, costs),
    )


def _add_up(duration: Int64, costs: Costs) -> Totals:
    if not len(costs.flops) == len(costs.bytes) == len(duration):
        raise mistake("dict lines", "rows", len(duration), len(costs.flops))
    kind = Values(np.zeros(len(duration), np.int32), ["kernel"])
    return totals_of(kind, Ints(duration))


def _short_names(column: Values) -> Values:
    return Values(column.ids, [name.replace(" ", "_") for name in column.values])


def _equals(column: Values, text: str) -> npt.NDArray[np.bool_]:
    wanted = column.values.index(text) if text in column.values else -2
    return np.equal(column.ids, wanted)


def _rows(column: Values, row: Int32) -> Values:
    return Values(take(column.ids, row), column.values)


def _names(columns: dict[str, Any]) -> Values:
    """The long name of each kernel, or the short one where the line has no other."""
    long_names, short_names = columns["kLongName"], columns["kShortName"]
    if (long_names.ids >= 0).all():
        return Values(long_names.ids, long_names.values)
    further = np.where(short_names.ids >= 0, short_names.ids + len(long_names.values), -1)
    ids = np.where(long_names.ids >= 0, long_names.ids, further).astype(np.int32)
    return Values(ids, long_names.values + short_names.values)


def _forward_rows(columns: dict[str, Any], backward: npt.NDArray[np.bool_]) -> Int32:
    """The last forward row before each backward row with its number: first among seqId, then among
    altSeqId. -1 for none, and for forward rows."""
    seq = _first(columns["seqId"])
    forward = _equals(columns["dir"], "fprop")
    counting = np.isin(columns["tid"].values, np.unique(columns["tid"].values[forward & (seq > 0)]))
    # A kernel's forward call worked on the same GPU; numbers of other processes are other numbers.
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
        found = _link.forward_of(role[order], number[order], scope[rows])
        linked = found >= 0
        out[rows[linked]] = rows[found[linked]]
    return out


def _first(numbers: Lists) -> Int64:
    """The first number of each list, -1 for an empty one."""
    some = np.diff(numbers.offsets) > 0
    out = np.full(len(some), -1, np.int64)
    out[some] = numbers.values[numbers.offsets[:-1][some]]
    return out


def _as_ints(numbers: Lists) -> Ints | Lists:
    """Lists of one number at most as numbers: what a trace gives, and all that is ever there."""
    many = np.any(np.diff(numbers.offsets) > 1)
    return numbers if many else Ints(_first(numbers))


def _calls(
    columns: dict[str, Any],
    backward: npt.NDArray[np.bool_],
    linked: npt.NDArray[np.bool_],
    row: Int32,
) -> CallsOfKernels:
    """The call of each kernel, out of the line of its forward kernel where it has one."""
    keys = ("marker", "seqMarker", "op", "mod")
    own_backward = backward & ~linked
    call = own_backward.astype(np.int32)
    for key in keys:
        call = pairs(call, take(columns[key].ids, row))
    first = np.flatnonzero(np.diff(np.maximum.accumulate(call), prepend=np.int32(-1)))
    number: dict[Named, int] = {}
    number_of_call = np.empty(len(first), np.int32)
    for i, at in enumerate(first.tolist()):
        at_row = int(row[at])
        marker, seq_marker, op, mod = (columns[key].at(at_row) or () for key in keys)
        name = _named(marker, seq_marker, op, mod, bool(own_backward[at]))
        known = name.op is not None
        number_of_call[i] = number.setdefault(name, len(number)) if known else -1
    of_kernel = take(number_of_call, call)
    group, n_groups = _groups(columns, of_kernel, linked)
    none = np.full(len(of_kernel), -1, np.int32)
    taken = np.zeros(n_groups, bool)
    return CallsOfKernels(list(number), of_kernel, linked, of_kernel, linked, none, group, taken)


def _named(
    marker: tuple[str, ...],
    seq_marker: tuple[str, ...],
    op: tuple[str, ...],
    mod: tuple[str, ...],
    backward: bool,
) -> Named:
    """The call that a line's markers name: the outermost that has a model, else the outermost."""
    calls = [meaning.call for meaning in map(_marker, marker) if meaning.call is not None]
    torch = [_torch(label) for label in seq_marker]
    by_name = {m.name.removeprefix("aten::"): m for m in torch}
    in_order = [by_name[name] for name in op if name in by_name]  # seqMarker itself is sorted
    sized = [m.call for m in in_order + torch if m.has_arguments and m.call is not None]
    for call in calls + sized:
        if ops.has_model(call):
            return Named(call.mod, call.op, call)
    if calls:
        return Named(calls[0].mod, calls[0].op, calls[0])
    outermost = [m for m in torch if backward and m.autograd_node]
    outermost += [m for m in in_order if m.call is not None and ops.find(m.call) is not None]
    outermost += in_order
    if outermost:
        return named(outermost[0])
    return Named(mod[0] if mod and mod[0] != "na" else None, op[0] if op else None, None)


def _marker(label: str) -> Meaning:
    return read(label, False)


def _torch(label: str) -> Meaning:
    return read(label, True)


def _groups(
    columns: dict[str, Any], call: Int32, linked: npt.NDArray[np.bool_]
) -> tuple[Int32, int]:
    """Which instance of its call each kernel belongs to; -1 without a call.

    An instance is a run of kernels of one thread with the same call, direction and source line (in
    backward also the same number), and starts again where the name of its first kernel comes again
    that does more than help others.
    """
    n = len(call)
    order = np.argsort(columns["tid"].values, kind="stable")
    seq = np.where(linked, _first(columns["seqId"]), -1)
    marks = [columns["tid"].values, call, linked, seq, columns["trace"].ids]
    starts = np.ones(n, bool)
    starts[1:] = np.any([mark[order][1:] != mark[order][:-1] for mark in marks], axis=0)
    if n:
        name = columns["kShortName"].ids[order]
        infos = [ops.classify(text) for text in columns["kShortName"].values]
        helps = np.array([info.auxiliary for info in infos] + [False])[name]
        firsts = np.minimum.reduceat(np.where(helps, n, np.arange(n)), np.flatnonzero(starts))
        first_of_run = firsts[np.cumsum(starts) - 1]
        comes_again = name == np.append(name, np.int32(-2))[first_of_run]
        starts |= comes_again & ~helps & (np.arange(n) > first_of_run)
    group = np.empty(n, np.int32)
    group[order] = np.cumsum(starts) - 1
    return np.where(call >= 0, group, np.int32(-1)), int(starts.sum())


def _inside(columns: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """Whether a line says of any range around its kernel."""
    inside = np.zeros(len(columns["kDuration"]), bool)
    for key in ("layer", "trace", "marker", "seqMarker"):
        some = np.array([bool(value) for value in columns[key].values] + [False])
        inside |= some[columns[key].ids]
    return inside
