"""How long ranks wait for each other in collectives, from their communication kernels.

A collective ends on all ranks at about the same time, and starts on each rank when the rank reaches
it. So the rank with the shortest kernel arrived last, and the additional time of the others is
waiting time. This needs no common clock, which the files of a run do not have.

The k-th call of a name in order of start on the same channel (stream) counts as the same call on
all ranks. This heuristic fails if ranks form groups that communicate in turn, or if recordings
start at different calls. It is verified: file clocks are shifted to align the ends of calls. If
ends still differ by more than the duration of a call, or files have too few calls in common to
align their clocks, waits are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof.model.arrays import Int64
from fastprof.model.columns import Ints
from fastprof.model.table import Floats, Table, text_column
from fastprof.ranks.all_ranks import TIMES, AllRanks, table_of

_BLOCK: Final = 1 << 12  # calls processed at a time
_SAMPLE: Final = 512  # calls used to align clocks
_MIN_CALLS: Final = 3

CollectiveCalls = tuple[Int64, Int64]  # start and duration, in order of start
ClockOffsets = list[int | None]  # of ranks


@dataclass()
class _Found:
    """Intermediate results for the calls of one name."""

    ranks: set[int] = field(default_factory=set)
    counts: dict[int, int] = field(default_factory=dict)  # by rank
    times: dict[int, int] = field(default_factory=dict)
    waits: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)  # how often a rank arrived last
    matched: int = 0
    is_known: bool = True
    longest: int = 0
    apart: list[npt.NDArray[Any]] = field(default_factory=list)
    taken: list[npt.NDArray[Any]] = field(default_factory=list)


def collectives(all_ranks: AllRanks) -> Table:
    """Compare ranks call by call.

    Returns
    -------
    Table
        A row for each name, the longest wait first:

        - collective: the operator, or the kernel name if there is none
        - ranks: number of ranks that call it; calls: maximum number of calls per rank
        - calls_min: minimum number of calls per rank
        - bytes: read and written by the calls, all ranks
        - time, mean, max: ns in the kernels: all ranks, mean and maximum per rank; slowest: the
          rank with the maximum
        - wait: mean ns that a rank waited for others; waits: the rank with the longest wait
        - longest: the longest wait of a rank in a single call
        - last: the rank that others waited for most often; last_share: its share of the calls
        - ends: median difference in ns between the ends of a call on different ranks, after clock
          alignment. If it exceeds the duration of a call, calls do not match and waits are unknown

        wait to ends are unknown if only one rank has the calls or files record no start times.
    """
    result: dict[str, _Found] = {}
    channels = _channels(all_ranks)
    files = {
        path: i for i, path in enumerate(dict.fromkeys(r.summary.path for r in all_ranks.ranks))
    }
    file_of = [files[rank.summary.path] for rank in all_ranks.ranks]
    clocks = _clocks(channels, file_of)
    for (name, _), calls in channels.items():
        each = result.setdefault(name, _Found())
        for rank, (_, duration) in calls.items():
            each.ranks.add(rank)
            each.counts[rank] = each.counts.get(rank, 0) + len(duration)
        if len(calls) > 1:
            _compare(each, calls, _of_one_file(calls, file_of, clocks))
    _add_times(result, all_ranks)
    return _table(result, all_ranks)


def _channels(all_ranks: AllRanks) -> dict[tuple[str, int], dict[int, CollectiveCalls]]:
    """Calls by (name, channel) and rank."""
    place = {(id(r.summary), id(r.process)): i for i, r in enumerate(all_ranks.ranks)}
    parts: dict[tuple[str, int], dict[int, list[CollectiveCalls]]] = {}
    for summary in {id(r.summary): r.summary for r in all_ranks.ranks}.values():
        groups = summary.groups
        name = groups.keys["collective"]
        for row in np.flatnonzero(np.diff(groups.offsets)).tolist():
            rows = slice(groups.offsets[row], groups.offsets[row + 1])
            rank = place[id(summary), id(summary.processes[groups.process[row]])]
            channel = groups.channel[rows]
            for number in np.unique(channel).tolist():
                there = channel == number
                calls = groups.start[rows][there], groups.duration[rows][there]
                of_name = parts.setdefault((name.at(row) or "na", number), {})
                of_name.setdefault(rank, []).append(calls)
    return {
        key: {rank: _in_order(calls) for rank, calls in sorted(by_rank.items())}
        for key, by_rank in sorted(parts.items())
    }


def _in_order(parts: list[CollectiveCalls]) -> CollectiveCalls:
    start, duration = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(start, kind="stable")
    return start[order], duration[order]


def _clocks(
    channels: dict[tuple[str, int], dict[int, CollectiveCalls]], file_of: Sequence[int]
) -> ClockOffsets:
    """The clock offset of each rank, to be subtracted; None if there are too few common calls.

    The offset is the median over calls of how much later they end than on other ranks. Ranks of one
    file have the same clock.
    """
    first = {
        rank: int(start[0]) for calls in channels.values() for rank, (start, _) in calls.items()
    }
    origin = np.array([first.get(rank, 0) for rank in range(len(file_of))], np.int64)
    of_file = {file: origin[rank] for rank, file in reversed(list(enumerate(file_of)))}
    origin = np.array([of_file[file] for file in file_of], np.int64)
    later: dict[int, list[npt.NDArray[Any]]] = {file: [] for file in file_of}
    for calls in channels.values():
        ranks = list(calls)
        if len({file_of[rank] for rank in ranks}) > 1:
            ends = _matrix(calls, _sampled(_least(calls)), ends=True) - origin[ranks][:, None]
            for rank, row in zip(ranks, ends - np.median(ends, axis=0), strict=True):
                later[file_of[rank]].append(row)
    clocks: ClockOffsets = []
    for rank, file in enumerate(file_of):
        rows = np.concatenate(later[file]) if later[file] else np.empty(0)
        known = len(rows) >= _MIN_CALLS * file_of.count(file)
        clocks.append(int(origin[rank]) + int(np.median(rows)) if known else None)
    return clocks


def _least(calls: dict[int, CollectiveCalls]) -> int:
    return min(len(start) for start, _ in calls.values())


def _sampled(n: int) -> npt.NDArray[np.intp]:
    return np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.intp))


def _blocks(n: int) -> Iterator[npt.NDArray[np.intp]]:
    for first in range(0, n, _BLOCK):
        yield np.arange(first, min(first + _BLOCK, n))


def _matrix(
    calls: dict[int, CollectiveCalls], which: npt.NDArray[np.intp], ends: bool = False
) -> Int64:
    """int64 [ranks, calls] Durations, or ends, of some calls."""
    return np.stack(
        [start[which] + duration[which] if ends else duration[which]
         for start, duration in calls.values()]
    )  # fmt: skip


def _of_one_file(
    calls: dict[int, CollectiveCalls], file_of: Sequence[int], clocks: ClockOffsets
) -> ClockOffsets:
    """The clock offset of each rank in `calls`; 0 if all are of one file."""
    if len({file_of[rank] for rank in calls}) == 1:
        return [0] * len(calls)
    return [clocks[rank] for rank in calls]


def _compare(found: _Found, calls: dict[int, CollectiveCalls], clocks: ClockOffsets) -> None:
    """Add the waits of the ranks of one channel, if their clocks are known."""
    if None in clocks:
        found.is_known = False
        return
    ranks, n = list(calls), _least(calls)
    for which in _blocks(n):
        durations = _matrix(calls, which)
        waits = durations - durations.min(axis=0)
        for rank, wait in zip(ranks, waits.sum(axis=1).tolist(), strict=True):
            found.waits[rank] = found.waits.get(rank, 0) + wait
        found.longest = max(found.longest, int(waits.max()))
        last = np.bincount(durations.argmin(axis=0), minlength=len(ranks)).tolist()
        for rank, times in zip(ranks, last, strict=True):
            found.last[rank] = found.last.get(rank, 0) + times
    found.matched += n
    which = _sampled(n)
    ends = _matrix(calls, which, ends=True) - np.array(clocks, np.int64)[:, None]
    found.apart.append(ends.max(axis=0) - ends.min(axis=0))
    found.taken.append(_matrix(calls, which).max(axis=0))


def _add_times(found: dict[str, _Found], all_ranks: AllRanks) -> None:
    """Add the time in all kernels of each name, including those without start times."""
    name = all_ranks.keys["collective"]
    rows = np.flatnonzero(name.ids >= 0)
    ranks, times = all_ranks.rank[rows].tolist(), all_ranks.sums["time"][rows].tolist()
    counts = all_ranks.sums["kernels"][rows].tolist()
    for row, rank, time, count in zip(rows.tolist(), ranks, times, counts, strict=True):
        each = found.setdefault(name.at(row), _Found())
        each.times[rank] = each.times.get(rank, 0) + time
        if rank not in each.ranks:
            each.counts[rank] = each.counts.get(rank, 0) + count


def _table(found: dict[str, _Found], all_ranks: AllRanks) -> Table:
    name = all_ranks.keys["collective"]
    known = (name.ids >= 0) & (all_ranks.sums["bytes"] >= 0)
    moved = np.zeros(len(name.values) + 1, np.float64)
    np.add.at(moved, name.ids[known], all_ranks.sums["bytes"][known])
    counted = np.bincount(name.ids[known], minlength=len(name.values))
    number = {value: i for i, value in enumerate(name.values)}
    rows = [
        {
            "collective": text,
            "bytes": moved[number[text]] if counted[number[text]] else np.nan,
            **_row(each, [rank.number for rank in all_ranks.ranks]),
        }
        for text, each in found.items()
    ]
    rows.sort(key=lambda row: (-row["wait"], -row["time"], row["collective"]))
    whole = ("ranks", "calls", "calls_min", "time", "mean", "max", "slowest")
    of_waits = ("wait", "waits", "longest", "last")
    columns: dict[str, Any] = {"collective": text_column([row["collective"] for row in rows])}
    for key in (*whole, *of_waits, "ends"):
        columns[key] = Ints(np.array([row[key] for row in rows], np.int64))
    for key in ("last_share", "bytes"):
        columns[key] = Floats(np.array([row[key] for row in rows], np.float64))
    order = ["collective", *whole, "bytes", *of_waits, "last_share", "ends"]
    return table_of({key: columns[key] for key in order}, TIMES | {"ends"})


def _row(found: _Found, numbers: list[int]) -> dict[str, Any]:
    """The table row of one name. The first rank wins ties."""
    slowest = _most(found.times)
    n = len(found.times)
    total = sum(found.times.values())
    row = {
        "ranks": n,
        "calls": max(found.counts.values()),
        "calls_min": min(found.counts.values()),
        "time": total,
        "mean": round(total / n),
        "max": found.times[slowest],
        "slowest": numbers[slowest],
        **dict.fromkeys(("wait", "waits", "longest", "last", "ends"), -1),
        "last_share": np.nan,
    }
    if found.matched and found.is_known:
        row["ends"] = int(np.median(np.concatenate(found.apart)))
        if row["ends"] <= np.median(np.concatenate(found.taken)):
            last = _most(found.last)
            row["wait"] = round(sum(found.waits.values()) / len(found.waits))
            row["waits"], row["last"] = numbers[_most(found.waits)], numbers[last]
            row["longest"] = found.longest
            row["last_share"] = found.last[last] / found.matched
    return row


def _most(values: dict[int, int]) -> int:
    return min(values, key=lambda rank: (-values[rank], rank))
