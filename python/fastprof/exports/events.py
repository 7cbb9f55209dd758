"""The events of a time line: selected GPU work, and the ranges and API calls of the host.

Weights of the exports of trees: collapsed stacks, speedscope, pstats.

Names, categories and arguments of ranges and GPU work in time lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from fastprof._core._pools import alike
from fastprof._system.classes import dataclass
from fastprof._system.threads import SecondThread, computed_once
from fastprof.analysis.cells import cells_of
from fastprof.analysis.grouping import numbers
from fastprof.analysis.registry import Where
from fastprof.analysis.selection import selected
from fastprof.analysis.stacks.tree import DIRECTIONS, Stacks
from fastprof.errors import BadInputError, ReportError
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import RepeatedInts
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.cells import numbered, picked
from fastprof.profile.data import ProfileData
from fastprof.profile.range_columns import params_of

_PLACE: Final = ("pid", "device", "context", "stream")


@dataclass(frozen=True, eq=False)
class SelectedWork:
    """The selected GPU work of a profile, in order of start.

    Parameters
    ----------
    rows : int64 [n], rows of the profile; None for all
    start, end : int64 [n], ns; without a valid duration, the end is the start
    place : int32 [n], index into `places`
    places : int64 [places, 4], process, device, context and stream, -1 if unknown
    """

    profile: ProfileData
    rows: Int64 | None
    start: Int64
    end: Int64
    place: Int32
    places: Int64

    def __len__(self) -> int:
        return len(self.start)

    def of(self, column: Any) -> Any:
        """The selected rows of an array [kernels]."""
        return column if self.rows is None else column[self.rows]

    def numbers(self, name: str) -> Any:
        """The selected rows of a column of numbers."""
        return self.of(numbers(self.profile, name))

    @computed_once
    def looks(self) -> tuple[Int32, Int64]:
        """int32 [n]: the look of each, work that agrees in all texts and launch configuration; and
        the first row of the profile of each look."""
        cells = cells_of(self.profile)
        config = cast(RepeatedInts, self.profile.column("block"))
        of_kernel, first = numbered([cells.of_kernel, config.ids], len(self.profile))
        if self.rows is None:
            return of_kernel, first.astype(np.int64)
        used, look = np.unique(of_kernel[self.rows], return_inverse=True)
        return look.astype(np.int32), first[used].astype(np.int64)

    def by_kernel(self, name: str) -> list[Any]:
        """The value of a column for each look; None where unknown."""
        _, first = self.looks
        return [
            each
            for chunk in picked(self.profile.column(name), first).chunks(1 << 16)
            for each in chunk
        ]

    @computed_once
    def api(self) -> Int32:
        """int32 [n], the API call that launched each, -1 if none."""
        result: Int32 = self.of(self.profile.api.of_kernel)
        return result

    @computed_once
    def latency(self) -> Int64:
        """int64 [n], ns from the start of the launching call to the start on the GPU, NO_TIME if
        unknown. A node of a graph has the launch of the graph."""
        launched = self.numbers("launch_start")
        result: Int64 = np.where(launched == NO_TIME, NO_TIME, self.start - launched)
        return result


def read(profile: ProfileData, where: Where | None) -> tuple[SelectedWork, HostRows]:
    """The GPU work that `where` selects, and the host's work during it.

    Raises
    ------
    BadInputError
        The profile is dict lines, which contain no times.
    ReportError
        A condition of `where` is malformed.
    """
    if "start" not in profile.names:
        raise BadInputError(
            f"{profile.name}: dict lines contain no times; export the trace from which fastprof "
            "parse made them"
        )
    with SecondThread() as second:
        times = second.submit(lambda: profile.ranges)  # reads the file again
        work = _gpu_work(profile, where)
        profile.column("flops")
        times.result()
    return work, _host_rows(profile, work)


def _gpu_work(profile: ProfileData, where: Where | None) -> SelectedWork:
    cells = cells_of(profile, (), where)
    flags = selected(cells, where)
    rows = None if flags is None else np.flatnonzero(cells.flags(flags))
    start, duration = numbers(profile, "start"), numbers(profile, "sil")
    columns = [np.ascontiguousarray(numbers(profile, name), np.int64) for name in _PLACE]
    if rows is not None:
        start, duration, *columns = (array[rows] for array in (start, duration, *columns))
    place, first = alike(columns)
    return SelectedWork(
        profile,
        rows,
        start,
        start + np.maximum(duration, 0),
        place,
        np.stack([column[first] for column in columns], axis=1).reshape(-1, 4),
    )


@dataclass(frozen=True, eq=False)
class HostRows:
    """The ranges and API calls to export: rows of `profile.ranges` and `profile.api`."""

    ranges: Int64
    api: Int64


def _host_rows(profile: ProfileData, work: SelectedWork) -> HostRows:
    """All rows; if only some work is selected, those that overlap its time, launches included."""
    ranges, api = profile.ranges, profile.api
    own = np.arange(ranges.n_own)
    if work.rows is None:
        return HostRows(own, np.arange(len(api)))
    launched = work.numbers("launch_start")
    first = min(work.start.min(initial=NEVER), launched[launched != NO_TIME].min(initial=NEVER))
    last = work.end.max(initial=NO_TIME)
    return HostRows(
        own[_overlap(ranges.start[own], ranges.end[own], first, last)],
        np.flatnonzero(_overlap(api.start, api.end, first, last)),
    )


def _overlap(start: Int64, end: Int64, first: int, last: int) -> Any:
    return (start <= last) & (end >= first)


_MEASURE_OF: Final = {"ns": "ns", "flops": "flops", "bytes": "bytes", "lost": "lost_ns"}


def own_weights(tree: Stacks, weight: str) -> npt.NDArray[np.int64]:
    """[n, 3] The weight of the kernels of each node, by direction; 0 where unknown.

    Raises
    ------
    ReportError
        Nothing has such a weight.
    """
    measure = _MEASURE_OF[weight]
    values = np.stack([tree.own(measure, direction) for direction in DIRECTIONS], axis=1)
    whole = np.rint(np.nan_to_num(values.astype(np.float64))) if measure == "lost_ns" else values
    result = np.maximum(whole, 0).astype(np.int64)
    if weight != "ns" and not result.any() and tree.own("ns").any():
        raise ReportError(
            f"--weight {weight}: no operator of this capture has known {weight}; "
            "`fastprof info` says what to record"
        )
    return result


def paths_of(tree: Stacks) -> list[tuple[int, ...]]:
    """The nodes from below the root to each node, itself included; empty for the root."""
    paths: list[tuple[int, ...]] = [()]
    for row, parent in enumerate(tree.parent.tolist()[1:], 1):
        paths.append((*paths[parent], row))
    return paths


_CATEGORIES: Final = {
    Kind.USER: "range",
    Kind.ARGUMENT: "operator",
    Kind.MODULE: "module",
    Kind.TRACE: "line",
    Kind.LAYER: "layer",
    Kind.TORCH: "operator",
    Kind.FRAME: "python",
    Kind.HIDDEN: "python",
}
# The columns that say what GPU work computes, and the names of their arguments.
WORK: Final = {
    "op": "op",
    "layer": "layer",
    "dir": "direction",
    "params": "shapes",
    "line": "line",
    "class": "class",
    "compute_type": "compute type",
    "tc": "tensor cores",
    "phase": "phase",
}
# The columns of kernels in which those of one look agree, and the names of their arguments.
LOOKS: Final = {
    **WORK,
    "copy_direction": "copy",
    "grid": "grid",
    "block": "block",
    "registers": "registers per thread",
    "shared_memory": "shared memory (bytes)",
    "name": "kernel",
}


def title_of(meaning: Meaning) -> str:
    """The name of a range's slice: without shapes and without the syntax of markers."""
    if meaning.kind == Kind.ARGUMENT and meaning.call is not None:
        return meaning.call.op
    if meaning.kind == Kind.TRACE and meaning.frames:
        return meaning.frames[-1]
    return meaning.name


def category_of(meaning: Meaning) -> str:
    """The category of a range's slice."""
    return _CATEGORIES[meaning.kind]


def details_of(meaning: Meaning) -> Iterator[tuple[str, str]]:
    """The arguments of a range's slice."""
    shapes = params_of(meaning)
    if shapes:
        yield "shapes", shapes
    if meaning.layers:
        yield "layer", ":".join(meaning.layers)
    if meaning.frames:
        yield "line", meaning.frames[-1]
    if meaning.kind == Kind.MODULE:
        yield "module", meaning.module_repr or meaning.label


def shown(value: Any) -> str | int | None:
    """The value of a column as an argument: texts of a list joined, numbers of a triple too."""
    if isinstance(value, tuple):
        return (":" if value and isinstance(value[0], str) else ", ").join(map(str, value)) or None
    return value if isinstance(value, int) else (str(value) if value not in (None, "") else None)
