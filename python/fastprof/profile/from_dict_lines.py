"""Dict lines to Profile: what the lines say of each kernel, linked and costed as a trace would be.

A dict line knows only what was around its own launch. So the forward call of a backward kernel is
that of the last forward kernel before it with the same number (as in PyProf), and the kernels of
one call are those of one thread that follow each other with the same markers. Both are guesses that
the trace itself does not need: a forward call that launched no kernel is not in the file.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core import _link
from fastprof._core._take import take
from fastprof.model.columns import Columns, Ints, Lists, Values
from fastprof.model.markers import SourceLines, each_part_once
from fastprof.model.metadata import About
from fastprof.model.trace import Int32, Int64
from fastprof.profile.checks import Totals, mistake, totals_of
from fastprof.profile.costs import Costs, cost
from fastprof.profile.counts import contents_of_lines
from fastprof.profile.coverage import cover
from fastprof.profile.dict_line_calls import calls_of_lines
from fastprof.profile.dict_line_groups import first_numbers
from fastprof.profile.profile import Profile


def from_dict_lines(name: str, columns: dict[str, Any], lines: SourceLines) -> Profile:
    """Make the Profile of the columns that `sources.dictlines.read` gives."""
    n = len(columns["kDuration"])
    backward = _equals(columns["dir"], "bprop")
    forward_row = _forward_rows(columns, backward)
    meaning_row = np.where(forward_row >= 0, forward_row, np.arange(n, dtype=np.int32))
    long_names = _names(columns)
    calls = calls_of_lines(columns, long_names, backward, forward_row)
    duration = columns["kDuration"].values
    launched = columns["tid"].values != columns["tid"].none
    costs = cost(calls, long_names.values, long_names.ids, np.maximum(duration, 0))
    source = cache(lambda: _rows(columns["trace"], meaning_row).mapped(lines.trace))
    report = Columns(
        {
            "idx": lambda: Ints(np.arange(1, n + 1, dtype=np.int32)),
            "seq": lambda: _as_ints(columns["seqId"]),
            "altseq": lambda: columns["altSeqId"],
            "tid": lambda: columns["tid"],
            "layer": lambda: _rows(columns["layer"], meaning_row).mapped(each_part_once),
            "trace": source,
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
            "line": lambda: source().mapped(lines.line),
            "library_line": lambda: source().mapped(lines.library_line),
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
            source(),
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
    seq = first_numbers(columns["seqId"])
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


def _as_ints(numbers: Lists) -> Ints | Lists:
    """Lists of one number at most as numbers: what a trace gives, and all that is ever there."""
    many = np.any(np.diff(numbers.offsets) > 1)
    return numbers if many else Ints(first_numbers(numbers))


def _inside(columns: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """Whether a line says of any range around its kernel."""
    inside = np.zeros(len(columns["kDuration"]), bool)
    for key in ("layer", "trace", "marker", "seqMarker"):
        some = np.array([bool(value) for value in columns[key].values] + [False])
        inside |= some[columns[key].ids]
    return inside
