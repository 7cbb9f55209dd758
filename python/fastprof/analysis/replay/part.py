"""Some steps in the middle of a long run, which replay as the whole run does, but sooner."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.columns import numbers
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Column
from fastprof.model.metadata import About
from fastprof.profile.cells import picked
from fastprof.profile.host_events import Synchronisations
from fastprof.profile.instances import ApiCalls
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

_LEAST: Final = 5  # steps


class Part:
    """Some steps of a profile, as a profile: what a replay needs of it.

    Parameters
    ----------
    whole : Profile
    rows : int64 [kernels of the part], rows of `whole`, ascending
    calls : the API calls of the part, a slice of `whole.api`
    steps : the steps of the part
    """

    def __init__(self, whole: Profile, rows: Int64, calls: slice, steps: StepsOfKernels) -> None:
        self.whole, self.rows, self._calls, self._steps = whole, rows, calls, steps

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def about(self) -> About:
        """That of the whole."""
        return self.whole.about

    @property
    def names(self) -> list[str]:
        """The columns."""
        return self.whole.names

    def column(self, name: str) -> Column:
        """A column [kernels of the part] of numbers or texts."""
        return picked(self.whole.column(name), self.rows)

    def find_steps(self, source: str | None = None) -> StepsOfKernels:
        """The steps of the part, whatever the source: it decided which part this is."""
        return self._steps

    @cached_property
    def api(self) -> ApiCalls:
        """The API calls of the part."""
        api, calls = self.whole.api, self._calls
        return replace(
            api,
            start=api.start[calls],
            end=api.end[calls],
            thread=api.thread[calls],
            name=api.name.take(calls),
            call_class=api.call_class.take(calls),
            correlation=api.correlation[calls],
            of_kernel=self._row_of(api.of_kernel[self.rows]),
        )

    @cached_property
    def synchronisations(self) -> Synchronisations:
        """The synchronisations of the whole, with the calls of the part."""
        syncs = self.whole.synchronisations
        return replace(syncs, call=self._row_of(syncs.call))

    def _row_of(self, call: Int32) -> Int32:
        """Rows of `api`; -1 for calls outside."""
        first, n = self._calls.start, self._calls.stop - self._calls.start
        row = call - np.int32(first)
        found: Int32 = np.where((call >= 0) & (row >= 0) & (row < n), row, np.int32(-1))
        return found

    @cached_property
    def _place(self) -> Int32:
        found = np.full(len(self.whole), -1, np.int32)
        found[self.rows] = np.arange(len(self.rows), dtype=np.int32)
        return found

    def within(self, rows: Int64) -> Int64:
        """Those kernels of the whole that are in the part, as rows of the part."""
        place = self._place[rows]
        return place[place >= 0].astype(np.int64)

    def places(self, rows: Int32) -> Int32:
        """The row of the part of each kernel of the whole, -1 if it is not in the part."""
        return take(self._place, rows)

    def calls_within(self, rows: Int64) -> Int64:
        """Those API calls of the whole that are in the part, as rows of `api`."""
        first, end = self._calls.start, self._calls.stop
        found: Int64 = rows[(rows >= first) & (rows < end)] - first
        return found


Run = Profile | Part


def part_of(profile: Profile, steps: StepsOfKernels, most: int) -> Run:
    """About `most` kernels: steps from the middle of the run, and at least five.

    The whole run if it has no more, or no steps.
    """
    counts = np.bincount(steps.of_kernel + 1, minlength=len(steps) + 1)[1:]
    order = np.argsort(steps.start, kind="stable")
    counted = np.flatnonzero(steps.is_counted[order] & (counts[order] > 0))
    if len(profile) <= most or steps.source == "none" or len(counted) <= _LEAST:
        return profile
    middle = int(counted[len(counted) // 2])
    before = np.concatenate([[0], np.cumsum(counts[order])])
    half = (most + 1) // 2
    begin = int(np.searchsorted(before, before[middle] - half, "right")) - 1
    end = int(np.searchsorted(before, before[middle] + half))
    begin = min(max(begin, 0), max(middle - _LEAST // 2, 0))
    end = max(end, begin + _LEAST)
    chosen = order[begin:end]
    known = np.concatenate([_last_of_each(steps.pid, order[:begin]), chosen])
    since, until = int(steps.start[known].min()), int(steps.end[chosen].max())
    api = profile.api
    calls = slice(*(int(each) for each in np.searchsorted(api.start, [since, until])))
    start, call = numbers(profile, "start"), api.of_kernel
    is_inside = (call >= calls.start) & (call < calls.stop)
    is_inside |= (call < 0) & (start >= since) & (start < until)
    rows = np.flatnonzero(is_inside)
    return Part(profile, rows, calls, _some(steps, np.sort(known), chosen, rows))


def _last_of_each(pid: Int64, rows: Int64) -> Int64:
    """The last of some rows of each process."""
    last = {int(pid[row]): row for row in rows.tolist()}
    return np.array(list(last.values()), np.int64)


def _some(steps: StepsOfKernels, known: Int64, chosen: Int64, kernels: Int64) -> StepsOfKernels:
    """Some steps, for some kernels.

    known : further steps than `chosen`, of unknown length: the end of their work begins the next
    """
    place = np.full(len(steps), -1, np.int32)
    place[known] = np.arange(len(known), dtype=np.int32)
    is_chosen = np.isin(known, chosen)
    columns = ("number", "pid", "start", "end", "gpu_start", "gpu_end", "length")
    return replace(
        steps,
        **{name: getattr(steps, name)[known] for name in columns},
        gpu_length=np.where(is_chosen, steps.gpu_length[known], -1),
        is_counted=steps.is_counted[known] & is_chosen,
        of_kernel=take(place, steps.of_kernel[kernels]),
    )
