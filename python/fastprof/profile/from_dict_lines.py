"""Dict lines as the source of a Profile: links to forward calls and costs, as for traces.

A dict line contains only the ranges around its own launch. The forward call of a backward kernel is
therefore that of the last preceding forward kernel with the same number (as in PyProf), and the
kernels of one call are consecutive kernels of one thread with the same markers. Both are guesses: a
forward call that launched no kernel is not in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _link
from fastprof._core._take import take
from fastprof._system.threads import computed_once
from fastprof.errors import StepsError
from fastprof.model.arrays import Int32, Int64, unique
from fastprof.model.column_table import COLUMNS
from fastprof.model.columns import Column, Ints, Lists, Values, first_numbers
from fastprof.model.markers import SourceLines, each_part_once
from fastprof.model.metadata import About
from fastprof.profile import kernel_types
from fastprof.profile.cells import KernelCells, cells_of_columns
from fastprof.profile.checks import Totals, mistake, totals_of
from fastprof.profile.costs import cost
from fastprof.profile.counts import Contents, contents_of_lines
from fastprof.profile.coverage import Coverage, RowCalls, cover
from fastprof.profile.dict_line_calls import calls_of_lines
from fastprof.profile.source import ProfileSource
from fastprof.profile.steps.kernel_steps import StepsOfKernels, timeless_step


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

    @cached_property
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
            self.costs.flops,
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
