"""The idle time of typical steps by cause, with places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fastprof._core._groups import sum_where
from fastprof.analysis.advice.finding import CannotJudge
from fastprof.analysis.gpu_work import Gaps
from fastprof.analysis.idle_causes import CAUSES, Cause, Host, Split, split
from fastprof.analysis.idle_places import places
from fastprof.analysis.steps_windows import Windows
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Values
from fastprof.profile.profile import Profile

__all__ = ["IdleTime", "idle_time"]

_SHORT_NS = 1000


class IdleTime(NamedTuple):
    """The gaps of some windows.

    Parameters
    ----------
    gaps : those of at least 1 us
    window : int64 [gaps], the window of each, an index into the rows given
    main : uint8 [gaps], the `Cause` that takes most of each
    main_ns : int64 [gaps]
    by_window : int64 [windows, causes], ns; adds up to the idle time after the first work
    places : where to look, by name of `idle_places.PLACES`, [gaps]
    """

    gaps: Gaps
    window: Int64
    main: Int32
    main_ns: Int64
    by_window: Int64
    places: dict[str, Values]

    def mean(self, cause: str) -> float:
        """ns per window."""
        return float(self.by_window[:, CAUSES.index(cause)].mean()) if len(self.by_window) else 0.0

    def of_windows(self, cause: str) -> Int64:
        """[windows] ns."""
        found: Int64 = self.by_window[:, CAUSES.index(cause)]
        return found

    def is_mainly(self, *causes: str) -> Bools:
        """[gaps] Whether one of these causes takes most."""
        return np.isin(self.main, [CAUSES.index(cause) for cause in causes])

    def top(self, place: str, rows: Bools, most: int = 3) -> list[tuple[str, float]]:
        """The places that take most of some gaps, with their share of the time of these gaps."""
        column, ns = self.places[place], self.main_ns[rows].astype(np.float64)
        ids = column.ids[rows]
        sums = np.bincount(ids + 1, ns, len(column.values) + 1)[1:]
        order = np.argsort(-sums, kind="stable")[:most].tolist()
        total = max(float(ns.sum()), 1.0)
        return [(str(column.values[i]), float(sums[i]) / total) for i in order if sums[i] > 0]

    def take(self, windows: Int64) -> IdleTime:
        """The gaps of some windows, in this order; their places in `by_window` are the new ones."""
        index = np.full(len(self.by_window), -1)
        index[windows] = np.arange(len(windows))
        rows = np.flatnonzero(index[self.window] >= 0)
        return IdleTime(
            Gaps._make(each[rows] for each in self.gaps),
            index[self.window[rows]],
            self.main[rows],
            self.main_ns[rows],
            self.by_window[windows],
            {name: Values(each.ids[rows], each.values) for name, each in self.places.items()},
        )

    def by_cause(self, rows: Bools) -> Mapping[str, float]:
        """The time of the main cause of some gaps, ns per window."""
        n = max(len(self.by_window), 1)
        sums = np.bincount(self.main[rows], self.main_ns[rows], len(Cause)) / n
        return {cause: float(ns) for cause, ns in zip(CAUSES, sums.tolist(), strict=True) if ns}


def idle_time(profile: Profile, windows: Windows, rows: Int64) -> IdleTime:
    """The gaps of some rows of the windows. Reads the file again on first use.

    Raises
    ------
    CannotJudge
        There is no GPU work.
    """
    host, found, parts, window = Host(profile), [], [], []
    by_window = np.zeros((len(rows), len(Cause)), np.int64)
    index = np.full(len(windows) + 1, -1, np.int32)
    index[rows] = np.arange(len(rows), dtype=np.int32)
    for lane, own in windows.by_lane():
        between = lane.work.gaps
        at = index[windows.row_of(between.start, own)]
        length = between.end - between.start
        is_short = length < _SHORT_NS
        by_window[:, Cause.SHORT] += sum_where(at, length, is_short.view(np.uint8), len(rows))
        some = np.flatnonzero((at >= 0) & ~is_short)
        found.append(Gaps._make(each[some] for each in between))
        parts.append(split(found[-1], host, at[some], len(rows)))
        by_window += parts[-1].of_windows
        window.append(at[some])
    if not found:
        raise CannotJudge("no GPU work: record a run on a GPU")
    together = Gaps._make(map(np.concatenate, zip(*found, strict=True)))
    *columns, totals, of_windows, late = zip(*parts, strict=True)
    sums = (np.sum(each, axis=0) for each in (totals, of_windows))
    both = Split._make([*map(np.concatenate, columns), *sums, sum(late)])
    where = places(together, both, host)
    main = both.main.astype(np.int32)
    return IdleTime(together, np.concatenate(window), main, both.ns, by_window, where)
