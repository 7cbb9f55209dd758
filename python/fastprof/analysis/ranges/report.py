"""`ranges`: the user's own ranges, on the CPU, and from first to last work on the GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np

from fastprof._core._take import take, where
from fastprof._system.classes import NamedTuple, dataclass
from fastprof.analysis.cells import cells_of
from fastprof.analysis.counted import headed, notes_on_sums
from fastprof.analysis.gpu_work import work_of_device
from fastprof.analysis.grouping import Grouping, group, numbers, texts
from fastprof.analysis.layers.report import LayerPath, in_tree_order, notes_on_depth, with_ancestors
from fastprof.analysis.notes import NO_GPU_WORK
from fastprof.analysis.ranges.columns import COLUMNS
from fastprof.analysis.registry import Where
from fastprof.analysis.selection import selected
from fastprof.analysis.stacks.sums import Sums, path_sums
from fastprof.model.arrays import Bools, Int32, Int64, joined
from fastprof.model.columns import Ints, Values
from fastprof.model.heading import Heading
from fastprof.model.markers import Kind
from fastprof.model.numbers import without_numbers
from fastprof.model.table import ColumnData, Floats, Table, text_column
from fastprof.model.table_text import Layout
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.data import ProfileData
from fastprof.profile.recording_hints import advice_on

_NO_RANGE: Final = "(no range)"
_INDENT: Final = "  "


def ranges_table(profile: ProfileData, flat: bool = False, where: Where | None = None) -> Table:
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

    both: list[tuple[LayerPath, LayerPath]]
    sums: Sums

    @property
    def paths(self) -> set[LayerPath]:
        """The paths of ranges with work, and those around them."""
        return {
            members for both in self.both for path in both for members in with_ancestors(path)
        } - {()}

    @property
    def is_outside(self) -> bool:
        """Whether work was launched outside all ranges."""
        return any(not launch for launch, _ in self.both)

    def _onto(
        self, order: list[LayerPath], rows: Callable[[LayerPath, LayerPath], Iterable[LayerPath]]
    ) -> Sums:
        """The sums of each row; rows: those to which a group counts."""
        place = {path: row for row, path in enumerate(order)}
        pairs = [
            (i, place[path])
            for i, both in enumerate(self.both)
            for path in rows(*both)
            if path in place
        ]
        return self.sums.onto([i for i, _ in pairs], [row for _, row in pairs], len(order))

    def columns(self, order: list[LayerPath]) -> dict[str, ColumnData]:
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
        result = self.sums.totals()
        names = ("gpu_ns", "kernels", "forward_ns", "backward_ns", "other_ns")
        totals = {name: result[name] for name in names if name in result}
        return totals | ({"with_backward_ns": result["gpu_ns"]} if result else {})


def _inside_either(launch: LayerPath, home: LayerPath) -> set[LayerPath]:
    paths = {*with_ancestors(launch), *with_ancestors(home)}
    return paths - {()} or paths


def _work(profile: ProfileData, rows: Bools | None) -> _Work:
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
    paths: list[LayerPath]
    start: Any
    wall: Any

    def first(self) -> dict[LayerPath, int]:
        """The start of the first range of each path."""
        stats = Grouping(self.path, len(self.paths)).stats(self.start, NO_TIME)
        return dict(zip(self.paths, stats.min.tolist(), strict=True))


def _instances(profile: ProfileData) -> _Instances:
    ranges = profile.ranges
    is_user = np.array([meaning.kind == Kind.USER for meaning in ranges.meanings], bool)
    rows = where(is_user, ranges.label).astype(np.int32)
    chain = _folded(texts(profile.source.range_columns, "launch_ranges"))
    paths = chain.take(rows)
    used = group([paths], len(rows))
    names = [paths.at(row) or () for row in used.first.tolist()]
    start, end = ranges.start[rows], ranges.end[rows]
    return _Instances(rows, used.ids, names, start, np.where(end == NEVER, -1, end - start))


def _of_instances(
    profile: ProfileData, instances: _Instances, order: list[LayerPath], rows: Bools | None
) -> dict[str, ColumnData]:
    place = {path: row for row, path in enumerate(order)}
    of_path = np.array([*(place.get(path, -1) for path in instances.paths), -1], np.int32)
    groups = Grouping(of_path[instances.path], len(order))
    wall, result = groups.stats(instances.wall), spans(profile, instances.rows, rows)
    counts = np.where([path == () for path in order], -1, groups.counts)
    return {
        "count": Ints(counts),
        "wall_ns": Ints(np.where(wall.count > 0, wall.sum, -1)),
        "wall_median_ns": Floats(wall.median()),
        "projected_ns": Ints(groups.stats(result.projected).sum),
        "idle_ns": Ints(groups.stats(result.idle).sum),
    }


def _with_all_ancestors(first: dict[LayerPath, int]) -> dict[LayerPath, int]:
    """Add the ranges around each; they start no later than it."""
    result: dict[LayerPath, int] = {}
    for path, time in first.items():
        for members in with_ancestors(path):
            result[members] = min(result.get(members, time), time)
    return result


def _table(
    order: list[LayerPath],
    columns: dict[str, ColumnData],
    notes: tuple[str, ...],
    total: dict[str, Any] | None = None,
) -> Table:
    texts_of_rows: dict[str, ColumnData] = {
        "range": text_column([":".join(path) or _NO_RANGE for path in order]),
        "name": text_column([path[-1] if path else _NO_RANGE for path in order]),
        "level": Ints(np.array([len(path) - 1 for path in order], np.int64)),
    }
    none: ColumnData = Ints(np.empty(0, np.int64))
    result = texts_of_rows | columns
    indented = [_INDENT * (len(path) - 1) + path[-1] if path else _NO_RANGE for path in order]
    return Table(
        {column.key: result.get(column.key, none) for column in COLUMNS},
        tuple(_shown(column, result.get(column.key, none)) for column in COLUMNS),
        notes=notes,
        total=total or {},
        layout=Layout({"range": text_column(indented)}),
    )


def _shown(heading: Heading, column: ColumnData) -> Heading:
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


def _notes(profile: ProfileData) -> tuple[str, ...]:
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


class RangeSpans(NamedTuple):
    """Sums over GPUs, int64 [ranges]; 0 for ranges without work.

    Parameters
    ----------
    projected : from the start of the first to the end of the last work launched inside
    idle : the part during which the GPU has no work, of whatever range
    """

    projected: Int64
    idle: Int64


def spans(profile: ProfileData, ranges: Int32, rows: Bools | None) -> RangeSpans:
    """The spans of ranges.

    Parameters
    ----------
    ranges : rows of `profile.ranges`
    rows : the work to include, bool [kernels]; None for all
    """
    instances, result = profile.ranges, RangeSpans(*np.zeros((2, len(ranges)), np.int64))
    start, launched = numbers(profile, "start"), numbers(profile, "launch_start")
    end = start + np.maximum(numbers(profile, "sil"), 0)
    device, (work, thread) = numbers(profile, "device"), _of_threads(profile, rows)
    of_devices, thread_of_range = work_of_device(profile), instances.thread[ranges]
    nothing = np.empty(0, np.int64)

    def inside_runs() -> Iterator[tuple[Int64, ...]]:
        """Places in `ranges`, parts of the devices, and the spans, of a device and thread each."""
        bounds = _runs(device[work], thread)
        for begins, ends in pairwise(bounds):
            inside = work[begins:ends]
            places = np.flatnonzero(thread_of_range == thread[begins])
            of = ranges[places]
            first = np.searchsorted(launched[inside], instances.start[of], "left")
            last = np.searchsorted(launched[inside], instances.end[of], "left")
            some = first < last
            places, first, last = places[some], first[some], last[some]
            begin = _reduced(np.minimum, start[inside], first, last)
            finish = _reduced(np.maximum, end[inside], first, last)
            part = np.full(len(places), of_devices.place(int(device[inside[0]])))
            yield places, part, begin, finish

    every = joined(chain([(nothing,) * 4], inside_runs()))
    for first in range(0, len(every[0]), _AT_ONCE):
        places, part, begin, finish = (array[first : first + _AT_ONCE] for array in every)
        by_kinds = of_devices.parts.ns_by_kinds(part, (begin, finish))
        np.add.at(result.projected, places, finish - begin)
        np.add.at(result.idle, places, by_kinds[:, 0])
    return result


def _of_threads(profile: ProfileData, rows: Bools | None) -> tuple[Int64, Int32]:
    """Kernels with known launches, and the thread whose ranges they belong to.

    In order of GPU, thread and launch. Work of the autograd engine belongs to ranges of its thread
    and of the one that waits for it.
    """
    instances, launched = profile.ranges, numbers(profile, "launch_start")
    innermost = numbers(profile, "range").astype(np.int32)
    owners = [
        take(instances.thread, array) for array in (innermost, take(instances.waiting, innermost))
    ]
    included = launched != NO_TIME if rows is None else (launched != NO_TIME) & rows
    known = [np.flatnonzero(included & (thread >= 0)) for thread in owners]
    work = np.concatenate(known)
    thread = np.concatenate([of[rows] for of, rows in zip(owners, known, strict=True)])
    order = np.lexsort((launched[work], thread, numbers(profile, "device")[work]))
    return work[order], thread[order]


_AT_ONCE: Final = 1 << 14  # spans


def _runs(*keys: Int32) -> Int64:
    """[runs + 1] Where each run of rows with equal keys begins, and the number of rows."""
    changes = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.unique(np.concatenate([[0], np.flatnonzero(changes) + 1, [len(keys[0])]]))


def _reduced(reduce: np.ufunc, values: Int64, first: Int64, last: Int64) -> Int64:
    """The minimum or maximum of values[first:last] for each pair; none is empty."""
    both = np.column_stack([first, last]).ravel()
    padded = np.append(values, values[-1:])  # `last` may be the length
    return np.asarray(reduce.reduceat(padded, both)[::2])
