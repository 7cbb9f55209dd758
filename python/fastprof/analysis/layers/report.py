"""`layers`: the module tree with GPU time, forward and backward; repeated layers folded."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fastprof._system.classes import dataclass
from fastprof.analysis.cells import ReportCells
from fastprof.analysis.counted import headed, notes_on_sums
from fastprof.analysis.grouping import Grouping, group, numbers, texts
from fastprof.analysis.layers.columns import COLUMNS
from fastprof.analysis.parts import parts_of
from fastprof.analysis.registry import Where
from fastprof.analysis.roofline.ideal import ideals_of
from fastprof.analysis.roofline.utilisation import devices_with, roof_notes
from fastprof.analysis.selection import selected
from fastprof.analysis.stacks.sums import OPTIONAL, Sums, path_sums
from fastprof.analysis.summary.measures import ratio, shown
from fastprof.errors import ReportError
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.numbers import without_index
from fastprof.model.table import ColumnData, Floats, Table, text_column
from fastprof.model.table_text import Layout
from fastprof.model.trace import NO_TIME
from fastprof.profile.data import ProfileData
from fastprof.profile.lookups import DEEPEST
from fastprof.profile.phases import RECOMPUTE
from fastprof.profile.recording_hints import advice_on

_INDENT: Final = "  "


def layers(
    profile: ProfileData,
    depth: int | None = None,
    fold: bool = False,
    flat: bool = False,
    where: Where | None = None,
    steps: str | None = None,
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
) -> Table:
    """Time and work of each layer, including the layers inside it, in order of execution.

    A backward kernel counts to the layer of its forward call, recomputed work to the layer that it
    recomputes. Work outside all layers is the row `(no layer)`; own_ns sums to the total.

    Parameters
    ----------
    depth : deeper layers are part of their ancestor at this depth, counted from 1
    fold : repeated layers, such as `layers.0` to `layers.31`, are one row
    flat : in order of own time, not as a tree
    where : see `fastprof.analysis.selection`
    steps : what a step is, see `Profile.find_steps`
    gpu, peak, bandwidth : see `fastprof.model.devices.with_figures`

    Raises
    ------
    ReportError
        depth is not positive, or a key of `where`, GPU or figure is unknown.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    """
    if depth is not None and depth < 1:
        raise ReportError(f"depth: expected a positive number, found {depth}")
    devices = devices_with(profile, gpu, peak, bandwidth)
    kernels, cells = profile.find_steps(steps), parts_of(profile, where=where)
    chosen = selected(cells, where)
    groups, paths, first = layer_paths(cells, depth, chosen)
    ideals = cells.with_ideals(lambda whole: ideals_of(whole, devices))
    sums = path_sums(cells, groups, kernels, ideals)
    work = _Work(paths, sums, first)
    rows = work.rows()
    of_instances: dict[str, ColumnData] = {}
    if fold:
        instances = rows
        folds = folded(instances)
        of_gpu = replace(work, sums=sums.only("gpu_ns"))
        time = of_gpu.inclusive(instances).of["gpu_ns"]
        work = replace(work, paths=[folds[path] for path in work.paths])
        rows = work.rows()
        place = {path: row for row, path in enumerate(rows)}
        ids = np.array([place[folds[path]] for path in instances], np.int32)
        of_instances = _of_instances(Grouping(ids, len(rows)), time)
    columns = _columns(work, rows) | of_instances
    table = Table(
        {column.key: columns[column.key] for column in COLUMNS if column.key in columns},
        headed(shown(COLUMNS, columns, OPTIONAL), profile),
        notes=(
            *_notes(profile, cells),
            *cells.notes_on_parts(chosen),
            *notes_on_depth(rows, "layers"),
            *notes_on_sums(profile, kernels, None if chosen is None else cells.flags(chosen)),
            *roof_notes(devices, columns),
        ),
        total=_totals(work.sums),
        layout=Layout({"layer": _indented(rows)}),
    )
    return table.sort("own_ns") if flat else table


@dataclass(frozen=True)
class _Work:
    """The work of the selected kernels.

    Parameters
    ----------
    paths : the layers of the kernels; a path may occur more than once
    sums : the sums over the kernels of each path
    first : int64 [paths], the time of the first launch of each path
    """

    paths: list[LayerPath]
    sums: Sums
    first: Int64

    def rows(self) -> list[LayerPath]:
        """The paths and their ancestors, each once, in tree order."""
        first: dict[LayerPath, int] = {}
        for path, time in zip(self.paths, self.first.tolist(), strict=True):
            for layer in with_ancestors(path):
                first[layer] = min(first.get(layer, time), time)
        return in_tree_order(first)

    def inclusive(self, rows: list[LayerPath]) -> Sums:
        """The sums of each row and the layers inside it."""
        place = {path: row for row, path in enumerate(rows)}
        own, row_of = array("i"), array("i")
        for i, path in enumerate(self.paths):
            for layer in with_ancestors(path):
                own.append(i)
                row_of.append(place[layer])
        return self.sums.onto(own, row_of, len(rows))

    def own(self, rows: list[LayerPath]) -> Int64:
        """The GPU time of each row without the layers inside it."""
        place = {path: row for row, path in enumerate(rows)}
        own = self.sums.only("gpu_ns").onto(
            range(len(self.paths)), [place[path] for path in self.paths], len(rows)
        )
        return own.of["gpu_ns"]


def layer_paths(
    cells: ReportCells, depth: int | None = None, selection: Bools | None = None
) -> tuple[Grouping, list[LayerPath], Int64]:
    """The cells of equal layers, the layers of each group, and the time of its first launch."""
    layer = texts(cells, "layer")
    recomputed = _recomputed(cells)
    groups = group([layer, recomputed], len(cells), selection)
    first = groups.first.tolist()
    paths: list[LayerPath] = [layer.at(row) or () for row in first]
    again = [i for i, row in enumerate(first) if recomputed.at(row)]
    if again:
        others = set(range(len(paths))).difference(again)
        moved = attached([paths[i] for i in again], [paths[i] for i in others])
        for i, path in zip(again, moved, strict=True):
            paths[i] = path
    times = groups.stats(cells.launched(_launch_times(cells.profile)), NO_TIME).min
    return groups, [path[:depth] for path in paths], times


def _recomputed(cells: ReportCells) -> Values:
    """Whether each cell is part of a recomputed forward pass."""
    if "phase" not in cells.names:
        return Values(np.zeros(len(cells), np.int32), [False])
    return texts(cells, "phase").mapped(lambda phase: phase == RECOMPUTE)


def _launch_times(profile: ProfileData) -> Int64:
    """[kernels] The time of each launch, of the start on the GPU where the launch is unknown."""
    if "launch_start" not in profile.names:
        return np.arange(len(profile))
    launch, start = numbers(profile, "launch_start"), numbers(profile, "start")
    unknown = launch == NO_TIME
    return np.where(unknown, start, launch) if unknown.any() else launch


def _columns(work: _Work, rows: list[LayerPath]) -> dict[str, ColumnData]:
    own = work.own(rows)  # before there are more sums
    sums = work.inclusive(rows)
    both = sums.of["forward_ns"] + sums.of["backward_ns"]
    return {
        "layer": text_column([":".join(path) or NO_LAYER for path in rows]),
        "name": text_column([path[-1] if path else NO_LAYER for path in rows]),
        "depth": Ints(np.array([len(path) for path in rows], np.int64)),
        **sums.cells(work.sums),
        "with_backward_ns": Ints(both),
        "own_ns": Ints(own),
    }


def _of_instances(rows: Grouping, time: Int64) -> dict[str, ColumnData]:
    """The statistics of the layers of each row; time: [layers] GPU time."""
    stats = rows.stats(time)
    return {
        "instances": Ints(stats.count),
        "mean_ns": Floats(ratio(stats.sum, stats.count)),
        "min_ns": Ints(stats.min),
        "max_ns": Ints(stats.max),
        "std_ns": Floats(np.sqrt(ratio(stats.squares, stats.count))),
    }


def _indented(rows: list[LayerPath]) -> Values:
    return text_column(
        [_INDENT * (len(path) - 1) + path[-1] if path else NO_LAYER for path in rows]
    )


def _totals(sums: Sums) -> dict[str, Any]:
    totals = sums.totals()
    if totals:
        totals["with_backward_ns"] = totals["forward_ns"] + totals["backward_ns"]
        totals["own_ns"] = totals["gpu_ns"]
    return totals


def _notes(profile: ProfileData, cells: ReportCells) -> tuple[str, ...]:
    if any(texts(cells, "layer").values):
        return ()
    return (advice_on(profile.about, profile.contents, "layer"),)


# The names of a layer and those around it, outermost first. () is work outside all layers.
LayerPath = tuple[str, ...]

NO_LAYER: Final = "(no layer)"


def with_ancestors(path: LayerPath) -> list[LayerPath]:
    """The path of a layer and of each layer around it. Work outside all layers is one, ()."""
    return [path[:n] for n in range(1, len(path) + 1)] or [()]


def in_tree_order(first: Mapping[LayerPath, int]) -> list[LayerPath]:
    """Paths, each before its children, siblings by `first`; () last.

    first : the time of the first launch by path, for each path and its ancestors
    """
    inside: dict[LayerPath, list[LayerPath]] = {}
    for path in first:
        if path:
            inside.setdefault(path[:-1], []).append(path)
    results: list[LayerPath] = []
    left: list[LayerPath] = [()] if () in inside else []
    while left:
        path = left.pop()
        results += [path] if path else []
        left += sorted(
            inside.pop(path, []), key=lambda members: (first[members], members), reverse=True
        )
    return [*results, ()] if () in first else results


def notes_on_depth(paths: Iterable[LayerPath], what: str) -> tuple[str, ...]:
    """A note if paths were cut; what: layers or ranges."""
    if all(len(path) < DEEPEST for path in paths):
        return ()
    return (f"{what} nested deeper than {DEEPEST} levels are part of the one around them",)


def folded(paths: Iterable[LayerPath]) -> dict[LayerPath, LayerPath]:
    """Each path with repeated siblings folded: `layers.0`, `layers.1` are `layers.*`.

    Siblings are folded if their names differ in an index only. Children of folded layers are
    siblings. `paths` contains the ancestors of each path.
    """
    by_depth = sorted(paths, key=len)
    names: dict[tuple[LayerPath, str], set[str]] = {}
    result: dict[LayerPath, LayerPath] = {(): ()}
    done = 0
    while done < len(by_depth):
        end = done
        while end < len(by_depth) and len(by_depth[end]) == len(by_depth[done]):
            end += 1
        level = [path for path in by_depth[done:end] if path]
        for path in level:
            key = result[path[:-1]], without_index(path[-1])
            names.setdefault(key, set()).add(path[-1])
        for path in level:
            parent, pattern = result[path[:-1]], without_index(path[-1])
            is_repeated = len(names[parent, pattern]) > 1
            result[path] = (*parent, pattern if is_repeated else path[-1])
        done = end
    return result


def attached(paths: Sequence[LayerPath], forward: Iterable[LayerPath]) -> list[LayerPath]:
    """Paths of recomputed work, below the layers of their forward pass.

    Checkpointing runs a layer again during backward, outside of the layers around it. The path of
    such work then begins with an inner layer, `Block_3` or `model.layers.3`. It is replaced by the
    only path of forward work that has this name.
    """
    places: dict[str, set[LayerPath]] = {}
    for path in forward:
        for layer in with_ancestors(path):
            for name in {layer[-1], ".".join(layer)} if layer else ():
                places.setdefault(name, set()).add(layer)
    result = []
    for path in paths:
        place = places.get(path[0], set()) if path else set()
        result.append((*next(iter(place)), *path[1:]) if len(place) == 1 else path)
    return result
