"""The tables of GPU time in `overview`: by operator, by layer and by source line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from fastprof._system.classes import dataclass
from fastprof._system.regex import regex
from fastprof.analysis.cells import ReportCells
from fastprof.analysis.counted import headed
from fastprof.analysis.grouping import Grouping, group, numbers
from fastprof.analysis.key_names import heading_of
from fastprof.analysis.keys import key_of
from fastprof.analysis.layers.report import NO_LAYER, LayerPath, folded, layer_paths, with_ancestors
from fastprof.analysis.lines.descent import below_one_line
from fastprof.analysis.lines.report import NO_LINE
from fastprof.analysis.overview.columns import LAYERS, LINES, OF_WORK
from fastprof.analysis.parts import parts_of
from fastprof.analysis.roofline.ideal import Ideals, ideals_of
from fastprof.analysis.summary.measures import TimeInSteps, measures, shown, time_in_steps, totals
from fastprof.analysis.summary.report import default_keys, summary
from fastprof.model.columns import Ints, Values
from fastprof.model.devices import Device
from fastprof.model.heading import Heading
from fastprof.model.markers.frames import place_of
from fastprof.model.table import ColumnData, Table, text_column
from fastprof.profile.data import ProfileData
from fastprof.profile.recording_hints import advice_on
from fastprof.profile.steps.kernel_steps import StepsOfKernels

_MEASURES: Final = [heading.key for heading in OF_WORK]


def work_tables(
    cells: ReportCells, steps: StepsOfKernels, devices: Mapping[int, Device]
) -> dict[str, Table]:
    """The tables `ops`, `layers` and `lines`, the most time first.

    Without layers or lines, their table has no rows and a note.

    cells : of the profile, not refined, as `parts_of` returns them
    """
    if not len(cells):
        none = Table({heading.key: Ints(np.empty(0, np.int64)) for heading in OF_WORK}, OF_WORK)
        return {"ops": summary(cells.profile), "layers": none, "lines": none}
    names = default_keys(cells)
    whole, finer = _work(cells, steps, devices), parts_of(cells.profile, names)
    same = replace(whole, cells=finer)
    of_ops = same if finer.is_coarsest else _work(finer, steps, devices)
    return {"ops": _by_op(of_ops, names), "layers": _by_layer(whole), "lines": _by_line(whole)}


@dataclass(frozen=True)
class _Work:
    """All GPU work, its time in steps, and its ideal time."""

    cells: ReportCells
    in_steps: TimeInSteps
    ideal: Ideals

    def table(
        self, keys: Mapping[str, ColumnData], headings: Sequence[Heading], groups: Grouping
    ) -> Table:
        """A row per group; `keys` are its first columns."""
        of_groups = measures(self.cells, groups, self.in_steps, self.ideal, _MEASURES)
        ordered = {name: of_groups[name] for name in _MEASURES}
        time = "step_ns" if self.in_steps.n_windows else "gpu_ns"
        table = Table(
            {**keys, **ordered},
            (
                *headings,
                *(
                    replace(heading, in_text=True) if heading.key == time else heading
                    for heading in shown(OF_WORK, ordered)
                ),
            ),
            total=totals(ordered),
        )
        headings = headed(table.headings, self.cells.profile)
        return replace(table, headings=headings).sort(time)

    def without(self, heading: Heading, depth: str) -> Table:
        """No rows, and what to record."""
        profile: ProfileData = self.cells.profile
        none: dict[str, ColumnData] = {
            each.key: Ints(np.empty(0, np.int64)) for each in (heading, *OF_WORK)
        }
        note = advice_on(profile.about, profile.contents, depth)
        return Table(none, (heading, *OF_WORK), notes=(note,))


def _work(cells: ReportCells, steps: StepsOfKernels, devices: Mapping[int, Device]) -> _Work:
    ideal = cells.with_ideals(lambda whole: ideals_of(whole, devices))
    return _Work(cells, time_in_steps(cells, steps), ideal)


def _by_op(work: _Work, names: Sequence[str]) -> Table:
    keys = {name: key_of(work.cells, name) for name in names}
    groups = group(list(keys.values()), len(work.cells))
    firsts: dict[str, ColumnData] = {
        name: Values(key.ids[groups.first], key.values) for name, key in keys.items()
    }
    return work.table(firsts, tuple(map(heading_of, names)), groups)


def _by_layer(work: _Work) -> Table:
    """Own time of each layer, as `layers` with the options fold and flat."""
    groups, paths, _ = layer_paths(work.cells)
    if not any(paths):
        return work.without(LAYERS, "layer")
    folds = folded({layer: None for path in paths for layer in with_ancestors(path)})
    place: dict[LayerPath, int] = {}
    row = [place.setdefault(folds[path], len(place)) for path in paths]
    names = text_column([":".join(path) or NO_LAYER for path in place])
    merged = Grouping(np.array(row, np.int32)[groups.ids], len(place))
    return work.table({"layer": names}, (LAYERS,), merged)


def _by_line(work: _Work) -> Table:
    """Own lines; where one takes nearly all, the lines of libraries below it in its place."""
    key, heading = key_of(work.cells, "line"), LINES
    if (key.ids < 0).all():
        return work.without(LINES, "source line")
    key, caller = _descended(work.cells, key)
    if caller:
        heading = replace(LINES, header=f"below {caller}", about=f"lines called by {caller}")
    groups = group([key], len(work.cells))
    lines = Values(key.ids[groups.first], key.values)
    named = text_column([lines.at(row) or NO_LINE.frame for row in range(groups.n)])
    return work.table({"line": named}, (heading,), groups)


_PACKAGES: Final = regex(r".*[/\\](?:site|dist)-packages[/\\]")
_HEADER: Final = 14  # characters of a place in the heading of a narrow column


def _descended(cells: ReportCells, lines: Values) -> tuple[Values, str]:
    """Lines of libraries in place of the own line that takes nearly all, and that line's place.

    The lines as they are, and no place, if there is no such line or it is all that is recorded.
    """
    inner = key_of(cells, "library_line")
    descent = below_one_line(lines, inner, numbers(cells, "sil"))
    if descent is None:
        return lines, ""
    longest, below = descent
    place = place_of(str(lines.values[longest]))
    caller = f"{place.file}:{place.line}"
    caller = caller if len(caller) <= _HEADER else f"…{caller[1 - _HEADER :]}"
    ids = np.where(below, len(lines.values) + inner.ids, lines.ids).astype(np.int32)
    values = [*lines.values, *(_PACKAGES.sub("", str(value)) for value in inner.values)]
    return Values(ids, values).mapped(lambda text: text), caller
