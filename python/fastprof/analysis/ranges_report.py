"""`ranges`: the user's own ranges with their time on the CPU and on the GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np

from fastprof._core._take import where
from fastprof._system.classes import dataclass
from fastprof.analysis.cells import cells_of
from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.counted import headed, notes_on_sums
from fastprof.analysis.grouping import Grouping, group
from fastprof.analysis.layer_tree import Path, in_tree_order, notes_on_depth, with_ancestors
from fastprof.analysis.missing import NO_GPU_WORK
from fastprof.analysis.path_sums import Sums, path_sums
from fastprof.analysis.range_spans import spans
from fastprof.analysis.ranges_columns import COLUMNS
from fastprof.analysis.selection import selected
from fastprof.model.arrays import Bools, Int32
from fastprof.model.columns import Ints, Values
from fastprof.model.heading import Heading
from fastprof.model.markers import Kind
from fastprof.model.numbers import without_numbers
from fastprof.model.table import Cells, Floats, Table
from fastprof.model.table import texts as text_column
from fastprof.model.table_layout import Layout
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.advice import advice_on
from fastprof.profile.profile import Profile, range_columns
from fastprof.profile.reports import Where

_NO_RANGE: Final = "(no range)"
_INDENT: Final = "  "


def ranges_table(profile: Profile, flat: bool = False, where: Where | None = None) -> Table:
    """Your own ranges in order of start; ranges whose names differ in numbers are one row.

    A row includes the work of the ranges inside it. Work outside all ranges is `(no range)`. A
    range that outlives the range around it has a second row, for the work after.

    Parameters
    ----------
    flat : in order of own GPU time, not as a tree
    where : only work that fits, and the ranges that launched it or its forward pass; see
        `fastprof.analysis.selection`

    Raises
    ------
    ReportError
        A key of `where` is unknown.
    BadInputError
        The file has changed since it was read.
    """
    if "range" not in profile.names:
        return _table([], {}, (advice_on(profile.about, profile.contents, "range"),))
    rows = selected(profile, where)
    work, instances = _work(profile, rows), _instances(profile)
    with_work = dict.fromkeys(work.paths, NEVER)
    first = _with_all_ancestors(with_work | instances.first())
    if rows is not None:
        first = {path: time for path, time in first.items() if path in with_work}
    outside = {(): NEVER} if work.is_outside else {}
    order = in_tree_order(first | outside)
    columns = work.columns(order) | _of_instances(profile, instances, order, rows)
    notes = (
        *_notes(profile),
        *notes_on_depth(order, "ranges"),
        *notes_on_sums(profile, rows=rows),
    )
    table = _table(order, columns, notes, work.totals())
    table = replace(table, headings=headed(table.headings, profile))
    return table.sort("own_ns") if flat else table


@dataclass(frozen=True)
class _Work:
    """The selected kernels, by the ranges around their launch and around their forward pass.

    Parameters
    ----------
    both : both paths of each group of kernels
    sums : the sums over the kernels of each group
    """

    both: list[tuple[Path, Path]]
    sums: Sums

    @property
    def paths(self) -> set[Path]:
        """The paths of ranges with work, and those around them."""
        return {each for both in self.both for path in both for each in with_ancestors(path)} - {()}

    @property
    def is_outside(self) -> bool:
        """Whether work was launched outside all ranges."""
        return any(not launch for launch, _ in self.both)

    def _onto(self, order: list[Path], rows: Callable[[Path, Path], Iterable[Path]]) -> Sums:
        """The sums of each row; rows: those to which a group counts."""
        place = {path: row for row, path in enumerate(order)}
        pairs = [
            (i, place[path])
            for i, both in enumerate(self.both)
            for path in rows(*both)
            if path in place
        ]
        return self.sums.onto([i for i, _ in pairs], [row for _, row in pairs], len(order))

    def columns(self, order: list[Path]) -> dict[str, Cells]:
        """The GPU times of each row."""
        inside = self._onto(order, lambda launch, _: with_ancestors(launch)).of
        own = self._onto(order, lambda launch, _: [launch]).of
        whole = self._onto(order, _inside_either).of
        columns = {name: Ints(inside[name]) for name in ("gpu_ns", "kernels")}
        columns["own_ns"] = Ints(own["gpu_ns"])
        columns["with_backward_ns"] = Ints(whole["gpu_ns"])
        columns |= {name: Ints(whole[name]) for name in ("forward_ns", "backward_ns")}
        other = whole["gpu_ns"] - whole["forward_ns"] - whole["backward_ns"]
        return {**columns, "other_ns": Ints(other)}

    def totals(self) -> dict[str, Any]:
        """The sums over all kernels."""
        found = self.sums.totals()
        names = ("gpu_ns", "kernels", "forward_ns", "backward_ns", "other_ns")
        totals = {name: found[name] for name in names if name in found}
        return totals | ({"with_backward_ns": found["gpu_ns"]} if found else {})


def _inside_either(launch: Path, home: Path) -> set[Path]:
    paths = {*with_ancestors(launch), *with_ancestors(home)}
    return paths - {()} or paths


def _work(profile: Profile, rows: Bools | None) -> _Work:
    launch, call = _folded(texts(profile, "launch_ranges")), _folded(texts(profile, "ranges"))
    # The file may link a kernel to its range without recording its launch.
    unknown = numbers(profile, "launch_start") == NO_TIME
    names = [*launch.values, *call.values]
    other = call.ids + np.int32(len(launch.values))
    inside = Values(np.where(unknown, other, launch.ids), names)
    is_backward = texts(profile, "dir").fits(lambda direction: direction == "bprop")
    home = Values(np.where(is_backward, other, inside.ids), names)
    factors = [inside.ids, home.ids] + ([] if rows is None else [rows.astype(np.int32)])
    cells = cells_of(profile).refined(factors)
    some = None if rows is None else rows[cells.first]
    groups = group([cells.picked(inside), cells.picked(home)], len(cells), some)
    first = cells.first[groups.first].tolist()
    paths = [(inside.at(row) or (), home.at(row) or ()) for row in first]
    return _Work(paths, path_sums(cells, groups, profile.find_steps()))


def _folded(ranges: Values) -> Values:
    folded = cache(without_numbers)
    return ranges.mapped(lambda names: tuple(map(folded, names)))


@dataclass(frozen=True)
class _Instances:
    """The user's ranges: rows of `Profile.ranges`, and the path of each, an index into `paths`."""

    rows: Int32
    path: Int32
    paths: list[Path]
    start: Any
    wall: Any

    def first(self) -> dict[Path, int]:
        """The start of the first range of each path."""
        stats = Grouping(self.path, len(self.paths)).stats(self.start, NO_TIME)
        return dict(zip(self.paths, stats.min.tolist(), strict=True))


def _instances(profile: Profile) -> _Instances:
    ranges = profile.ranges
    is_user = np.array([meaning.kind == Kind.USER for meaning in ranges.meanings], bool)
    rows = where(is_user, ranges.label).astype(np.int32)
    chain = _folded(texts(range_columns(profile), "launch_ranges"))
    paths = chain.take(rows)
    used = group([paths], len(rows))
    names = [paths.at(row) or () for row in used.first.tolist()]
    start, end = ranges.start[rows], ranges.end[rows]
    return _Instances(rows, used.ids, names, start, np.where(end == NEVER, -1, end - start))


def _of_instances(
    profile: Profile, instances: _Instances, order: list[Path], rows: Bools | None
) -> dict[str, Cells]:
    place = {path: row for row, path in enumerate(order)}
    of_path = np.array([*(place.get(path, -1) for path in instances.paths), -1], np.int32)
    groups = Grouping(of_path[instances.path], len(order))
    wall, found = groups.stats(instances.wall), spans(profile, instances.rows, rows)
    counts = np.where([path == () for path in order], -1, groups.counts)
    return {
        "count": Ints(counts),
        "wall_ns": Ints(np.where(wall.count > 0, wall.sum, -1)),
        "wall_median_ns": Floats(wall.median()),
        "projected_ns": Ints(groups.stats(found.projected).sum),
        "idle_ns": Ints(groups.stats(found.idle).sum),
    }


def _with_all_ancestors(first: dict[Path, int]) -> dict[Path, int]:
    """Add the ranges around each; they start no later than it."""
    found: dict[Path, int] = {}
    for path, time in first.items():
        for each in with_ancestors(path):
            found[each] = min(found.get(each, time), time)
    return found


def _table(
    order: list[Path],
    columns: dict[str, Cells],
    notes: tuple[str, ...],
    total: dict[str, Any] | None = None,
) -> Table:
    texts_of_rows: dict[str, Cells] = {
        "range": text_column([":".join(path) or _NO_RANGE for path in order]),
        "name": text_column([path[-1] if path else _NO_RANGE for path in order]),
        "level": Ints(np.array([len(path) - 1 for path in order], np.int64)),
    }
    none: Cells = Ints(np.empty(0, np.int64))
    found = texts_of_rows | columns
    indented = [_INDENT * (len(path) - 1) + path[-1] if path else _NO_RANGE for path in order]
    return Table(
        {each.key: found.get(each.key, none) for each in COLUMNS},
        tuple(_shown(each, found.get(each.key, none)) for each in COLUMNS),
        notes=notes,
        total=total or {},
        layout=Layout({"range": text_column(indented)}),
    )


def _shown(heading: Heading, column: Cells) -> Heading:
    """The heading; text omits times on the GPU that are 0 in all rows."""
    if heading.key not in _OF_GPU or np.ma.filled(column.array(), 0).any():
        return heading
    return replace(heading, in_text=False)


_OF_GPU: Final = frozenset(
    {
        *("gpu_ns", "with_backward_ns", "forward_ns", "backward_ns", "other_ns", "own_ns"),
        *("projected_ns", "idle_ns", "kernels"),
    }
)


def _notes(profile: Profile) -> tuple[str, ...]:
    if not (profile.contents.ranges or {}).get("user"):
        with_torch = "torch.profiler.record_function or nvtx"
        how = with_torch if profile.contents.program.uses_torch else "NVTX or roctx"
        return (f"no ranges of your own: open them with {how}",)
    if not len(profile):
        return (NO_GPU_WORK,)
    if "operators" in (profile.contents.ranges or {}):
        return ()
    advice = advice_on(profile.about, profile.contents, "op")
    return (f"with backward = gpu, as backward is not linked to forward: {advice}",)
