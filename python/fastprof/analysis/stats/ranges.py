"""Tables of ranges in nsys's styles, and of the GPU work launched inside, on their thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import numpy as np

from fastprof._core._groups import GroupStats
from fastprof._core._pools import alike, pairs
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof._system.threads import computed_once
from fastprof.analysis.grouping import numbers, texts
from fastprof.analysis.stats.gpu import in_part_of_kinds
from fastprof.analysis.stats.statistics import Statistics, known_duration, mean, rounded
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.derived import Computed
from fastprof.model.table import ColumnData
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.data import ProfileData, begins_in_part, inside_part
from fastprof.profile.instances import RangeInstances


def _contained(profile: ProfileData, wanted: Bools) -> tuple[Int32, Int32]:
    """Pairs of a range and a row of GPU work that was launched inside it.

    The ranges around a launch are the innermost one and those of its parents that are still open:
    a range may cross the end of its parent.
    """
    ranges, launch = profile.ranges, numbers(profile, "launch_start")
    kernel = np.flatnonzero(wanted & (ranges.of_kernel >= 0)).astype(np.int32)
    row = ranges.of_kernel[kernel]
    results = [(row[:0], kernel[:0])]
    while len(row):
        is_open = ranges.end[row] > launch[kernel]
        results.append((row[is_open], kernel[is_open]))
        row = ranges.parent[row]
        kernel, row = kernel[row >= 0], row[row >= 0]
    rows, kernels = zip(*results, strict=True)
    return np.concatenate(rows), np.concatenate(kernels)


@dataclass(frozen=True)
class _Projected:
    """The ranges with GPU work: rows of `ranges`, and the first start and last end of the work."""

    ranges: RangeInstances
    rows: Int32
    start: Int64
    end: Int64
    n_work: Int64

    @computed_once
    def names(self) -> Values:
        every = self.ranges.recorded_name
        return Values(every.ids[self.rows], every.values)

    @property
    def styles(self) -> Values:
        return Values(styles_of(self.ranges).ids[self.rows], STYLES)

    @property
    def duration(self) -> Int64:
        return self.end - self.start

    @property
    def range_duration(self) -> Int64:
        """-1 for ranges that were not closed."""
        end = self.ranges.end[self.rows]
        return np.where(end == NEVER, -1, end - self.ranges.start[self.rows])

    @computed_once
    def n_children(self) -> Int64:
        """The ranges with GPU work directly inside each."""
        parent = self.ranges.parent[self.rows]
        every = np.bincount(parent + 1, minlength=len(self.ranges) + 1)[1:]
        return every[self.rows].astype(np.int64)


def _projected(profile: ProfileData) -> _Projected:
    ranges = profile.ranges
    start, duration = numbers(profile, "start"), numbers(profile, "sil")
    inside = inside_part(profile)
    row, kernel = _contained(profile, duration >= 0 if inside is None else inside & (duration >= 0))
    # Times from the first start on are not negative: -1 stands for unknown.
    first = int(start.min(initial=0))
    starts = GroupStats(row, start[kernel] - first, len(ranges))
    ends = GroupStats(row, start[kernel] + duration[kernel] - first, len(ranges))
    rows = np.flatnonzero(starts.count).astype(np.int32)
    return _Projected(
        ranges, rows, starts.min[rows] + first, ends.max[rows] + first, starts.count[rows]
    )


def nvtx_gpu_proj_sum(profile: ProfileData) -> list[ColumnData]:
    """Ranges with GPU work by name and style: from the start of the first to the end of the last
    work launched inside."""
    result = _projected(profile)
    ids, first = alike([result.names.ids, result.styles.ids])
    projected = Statistics(ids, result.duration, len(first))

    def sums(values: Int64 | Int32) -> Int64:
        total: Int64 = GroupStats(ids, values.astype(np.int64), len(first)).sum
        return total

    n, n_work = projected.count, sums(result.n_work)
    return [
        Values(result.names.ids[first], result.names.values),
        Values(result.styles.ids[first], STYLES),
        Ints(projected.sum),
        Ints(sums(result.range_duration)),
        Ints(n),
        *projected.spread(),
        Ints(n_work),
        rounded(mean(n_work, n)),
        rounded(mean(sums(result.ranges.level[result.rows]), n)),
        rounded(mean(sums(result.n_children), n)),
    ]


_MOST_ABOVE: Final = 256  # ranges of a stack that are kept in any case, the innermost ones
_MOST_IN_ALL: Final = 10**7  # ranges of all stacks, roughly


def nvtx_gpu_proj_trace(profile: ProfileData) -> list[ColumnData]:
    """Each range with GPU work; rows of `Profile.ranges` are its ids.

    A stack that would make the table quadratic in the depth of the ranges starts with "...".
    """
    projected = _projected(profile)
    ranges, rows = projected.ranges, projected.rows
    parent = ranges.parent
    most = max(_MOST_ABOVE, _MOST_IN_ALL // max(len(rows), 1))

    def stack(row: int) -> str:
        above: list[str] = []
        while row >= 0 and len(above) < most:
            above.append(f":{row}")
            row = int(parent[row])
        return ("..." if row >= 0 else "") + "".join(reversed(above))

    stacks = Computed(len(rows), lambda numbers: [stack(row) for row in rows[numbers].tolist()])

    return [
        projected.names,
        Ints(projected.start, none=NO_TIME),
        Ints(projected.duration),
        Ints(ranges.start[rows], none=NO_TIME),
        Ints(projected.range_duration),
        projected.styles,
        Ints(take(ranges.threads.pid, ranges.thread[rows])),
        Ints(take(ranges.threads.tid, ranges.thread[rows])),
        Ints(projected.n_work),
        Ints(ranges.level[rows]),
        Ints(projected.n_children),
        Ints(rows),
        Ints(ranges.parent[rows]),
        Values(np.arange(len(rows), dtype=np.int32), cast("list[str]", stacks)),
    ]


def nvtx_kern_sum(profile: ProfileData) -> list[ColumnData]:
    """Kernels by the range that contains their launch, thread and name.

    A kernel inside several ranges of one name counts once in Kern Inst, and once per range in the
    times. Unlike nsys, without the kernels outside all ranges.
    """
    ranges, kernels = profile.ranges, texts(profile, "name")
    duration = numbers(profile, "sil")
    row, kernel = _contained(profile, in_part_of_kinds(profile, "kernel") & (duration >= 0))
    names, styles = ranges.recorded_name, styles_of(ranges)
    kinds, _ = alike([names.ids, styles.ids, ranges.thread])
    name = np.ascontiguousarray(kernels.ids[kernel])
    ids, _ = pairs(kinds[row], name)
    n = int(ids.max(initial=-1)) + 1
    stats = Statistics(ids, duration[kernel], n)
    first = np.empty(n, np.intp)
    first[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
    of_first = row[first]
    return [
        Values(names.ids[of_first], names.values),
        Values(styles.ids[of_first], STYLES),
        Ints(take(ranges.threads.pid, ranges.thread[of_first])),
        Ints(take(ranges.threads.tid, ranges.thread[of_first])),
        Ints(_n_distinct(ids, row, n)),
        Ints(_n_distinct(ids, kernel, n)),
        Ints(stats.sum),
        *stats.spread(),
        Values(name[first], kernels.values),
    ]


def _n_distinct(ids: Int32, rows: Int32, n: int) -> Int64:
    """The number of distinct rows with each of `n` ids."""
    numbers_of_pairs, _ = pairs(ids, rows)
    of_pair = np.empty(int(numbers_of_pairs.max(initial=-1)) + 1, np.int32)
    of_pair[numbers_of_pairs] = ids
    return np.bincount(of_pair, minlength=n).astype(np.int64)


STYLES: Final = ["StartEnd", "PushPop"]


def styles_of(ranges: RangeInstances) -> Values:
    """[ranges] PushPop or StartEnd."""
    return Values(ranges.is_push_pop.astype(np.int32), STYLES)


def nvtx_sum(profile: ProfileData) -> list[ColumnData]:
    """Ranges by name and style. Ranges that were not closed are left out."""
    ranges, others = profile.ranges, profile.ranges.ended_elsewhere
    n_own = ranges.n_own
    domains = [*others.domain.values, ""]
    moved = [
        f"{domains[domain]}:{others.text.values[label]}"
        for domain, label in zip(others.domain.ids.tolist(), others.text.ids.tolist(), strict=True)
    ]
    style = styles_of(ranges).ids[:n_own]
    of_own, first = alike([*(part[:n_own] for part in ranges.name_parts), style])
    n_groups = len(first)
    place: dict[str, int] = {}
    if moved:
        alone = np.flatnonzero(style[first] == STYLES.index("StartEnd"))
        place = dict(zip(ranges.recorded_names(first[alone]), alone.tolist(), strict=True))
    new = [name for name in dict.fromkeys(moved) if name not in place]
    place |= {name: n_groups + i for i, name in enumerate(new)}
    ids = np.concatenate([of_own, np.array([place[name] for name in moved], np.int32)])
    duration = np.concatenate(
        [known_duration(ranges.start, ranges.end)[:n_own], known_duration(others.start, others.end)]
    )
    n = n_groups + len(new)
    inside = begins_in_part(profile, np.concatenate([ranges.start[:n_own], others.start]))
    if inside is not None:
        ids = np.where(inside, ids, np.int32(-1))
    stats = Statistics(ids, duration, n)

    def names(groups: Sequence[int]) -> list[str]:
        own = [group for group in groups if group < n_groups]
        further = [new[group - n_groups] for group in groups if group >= n_groups]
        return ranges.recorded_names(first[own]) + further

    return [
        *stats.times(),
        Values(np.append(style[first], np.zeros(len(new), np.int32)), STYLES),
        Values(np.arange(n, dtype=np.int32), cast("list[str]", Computed(n, names))),
    ]
