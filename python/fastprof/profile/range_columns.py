"""Columns of ranges, under the names of the columns of kernels, and the tree of call paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fastprof import ops
from fastprof._core import _path
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof._system.optional import import_optional
from fastprof.model.arrays import Int32, Int64, rows_by
from fastprof.model.columns import Column, Ints, Values
from fastprof.model.markers import Kind, Meaning, SourceLines
from fastprof.model.markers.collectives import RECORDED
from fastprof.model.metadata import About
from fastprof.model.numbers import without_numbers
from fastprof.model.trace import Trace
from fastprof.profile import phases
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.calls import named, outermost_calls
from fastprof.profile.instances import RangeInstances
from fastprof.profile.lookups import Lookups
from fastprof.profile.steps.kernel_steps import StepsOfKernels

if TYPE_CHECKING:
    import pandas


Maker = Callable[[Lookups], Column]

_ATEN: Final = "aten::"


class RangeColumns:
    """The columns that a range can have, [ranges].

    A range of a backward pass has the layer, the source line and the `ranges` of its forward call,
    as kernels have; `launch_ranges` are those around itself.

    Parameters
    ----------
    shared : makers of the columns that depend on call paths only, by name
    steps : the steps of the trace
    """

    SHARED: Final = ("dir", "layer", "trace", "line", "library_line", "ranges", "launch_ranges")

    def __init__(
        self,
        trace: Trace,
        attribution: Attribution,
        lines: SourceLines,
        ranges: RangeInstances,
        shared: Mapping[str, Maker],
        steps: Callable[[], StepsOfKernels],
    ) -> None:
        self.about: About = trace.about
        self.ranges = ranges
        own = attribution.frame_of_range
        frames = replace(
            attribution, frame_of_kernel=own, launch_frame_of_kernel=own, in_engine=None
        )
        self._lookups = Lookups(trace, frames, lines)
        self._shared, self._steps = shared, steps
        self.names = [*shared, *_OWN]
        self._columns: dict[str, Column] = {}
        self._calls: Values | None = None

    def __len__(self) -> int:
        return len(self.ranges)

    def column(self, name: str) -> Column:
        """A column of `names`."""
        if name not in self._columns:
            make = self._shared.get(name)
            self._columns[name] = _OWN[name](self) if make is None else make(self._lookups)
        return self._columns[name]

    def at(self, rows: Int32) -> Callable[[str], Column]:
        """The columns of `SHARED` at some ranges, -1 for none, by name: [rows]."""
        attribution = self._lookups.attribution
        frames = take(attribution.frame_of_kernel, rows)
        lookups = Lookups(
            self._lookups.trace,
            replace(attribution, frame_of_kernel=frames, launch_frame_of_kernel=frames),
            self._lookups.lines,
        )
        lookups.tree_without_user_ranges = self._lookups.tree_without_user_ranges
        return lambda name: self._shared[name](lookups)

    def calls(self, value: Callable[[Meaning], Any]) -> Values:
        """A property of the call around each range: of the operator that kernels launched in it
        work for."""
        if self._calls is None:
            attribution = self._lookups.attribution
            self._calls = outermost_calls(attribution, attribution.frame_of_kernel)
        return self._calls.mapped(value)

    def _of_label(self, value: Callable[[Meaning], str | None]) -> Values:
        return Values(self.ranges.label, self.ranges.meanings).mapped(value)


_OWN: Final[dict[str, Callable[[RangeColumns], Column]]] = {
    "op": lambda columns: columns._of_label(operator_of),
    "mod": lambda columns: columns._of_label(lambda meaning: named(meaning).mod),
    "params": lambda columns: columns._of_label(params_of),
    "phase": lambda columns: phases.phase_of_ranges(columns._lookups),
    "step": lambda columns: steps_at(columns._steps(), columns.ranges.start, columns.ranges.pid),
    "tid": lambda columns: Ints(columns.ranges.tid),
    "pid": lambda columns: Ints(columns.ranges.pid),
}


def steps_at(steps: StepsOfKernels, time: Int64, pid: Int64) -> Ints:
    """The number of the step of each process at each time, -1 outside."""
    if steps.source == "none":
        return Ints(np.full(len(time), steps.number[0]))
    number = np.full(len(time), -1, np.int64)
    rows_of_pid = dict(rows_by(pid))
    for index, rows in rows_by(steps.pid):
        own = rows_of_pid.get(index, np.empty(0, np.int64)) if index >= 0 else np.arange(len(pid))
        start = time[own]
        place = np.searchsorted(steps.start[rows], start, side="right") - 1
        inside = (place >= 0) & (start < steps.end[rows][place])
        number[own] = np.where(inside, steps.number[rows][place], -1)
    return Ints(number)


def operator_of(meaning: Meaning) -> str | None:
    """As in the column `op`; backward operators and the inside of collectives keep their names."""
    if meaning.kind == Kind.USER:
        return without_numbers(meaning.label)
    if meaning.kind not in (Kind.TORCH, Kind.ARGUMENT):
        return None
    if meaning.backward or meaning.recompute or meaning.name == RECORDED:
        return meaning.name.removeprefix(_ATEN)
    return named(meaning).op


def params_of(meaning: Meaning) -> str | None:
    """Shapes and types as in the column `params`."""
    call = meaning.call
    if call is None or not meaning.has_arguments:
        return None
    if not any(tensor.shape or tensor.dtype for tensor in ops.tensors_of(call)):
        return None
    work = ops.work(call, "fprop")
    return (work.parts[0].params if work is not None else "") or ops.tensors_text(call)


_KINDS: Final = {
    Kind.TORCH: "operator",
    Kind.ARGUMENT: "annotation",
    Kind.MODULE: "annotation",
    Kind.TRACE: "annotation",
    Kind.LAYER: "layer",
    Kind.USER: "user",
    Kind.FRAME: "python",
    Kind.HIDDEN: "python",
}


@dataclass(frozen=True, eq=False)
class Paths:
    """The call-path tree: one row per distinct chain of range names. Parents precede children.

    The column `path` of kernels contains rows of this table.

    Parameters
    ----------
    parent : int32 [n]
        The row of the enclosing path, -1 for none.
    level : int32 [n]
        0 for the outermost.
    label : Values
        The innermost name of the path.
    folded : Values
        Names to group by: operators without shapes; user ranges with `*` for each number, so that
        `step 17` and `step 18` are both `step *`.
    kind : Values
        operator, annotation, layer, user or python.
    """

    parent: Int32
    level: Int32
    label: Values
    folded: Values
    kind: Values

    def __len__(self) -> int:
        return len(self.parent)

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame: parent, level, label, folded, kind.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        library = import_optional("pandas", "DataFrames need")
        texts = {"label": self.label, "folded": self.folded, "kind": self.kind}
        frame: pandas.DataFrame = library.DataFrame(
            {"parent": self.parent, "level": self.level}
            | {
                name: library.Categorical.from_codes(column.ids, categories=column.values)
                for name, column in texts.items()
            }
        )
        return frame


def paths_of(attribution: Attribution) -> Paths:
    """The call-path tree; linear in its nodes."""
    meaning = Values(attribution.node_label, attribution.meanings)
    return Paths(
        parent=attribution.node_parent,
        level=_path.levels(attribution.node_parent),
        label=meaning.mapped(lambda m: m.label),
        folded=meaning.mapped(_folded),
        kind=meaning.mapped(lambda m: _KINDS[m.kind]),
    )


def _folded(meaning: Meaning) -> str:
    return without_numbers(meaning.label) if meaning.kind == Kind.USER else meaning.name
