"""Ranges and calls of the API by name, kind, thread and time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.find import columns as headings
from fastprof.analysis.find.rows import Found, Limits, since
from fastprof.analysis.grouping import numbers
from fastprof.analysis.registry import Where
from fastprof.analysis.selection import selected, unmatched
from fastprof.analysis.stats.gpu import printed
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Column, Ints, Values
from fastprof.model.metadata import About
from fastprof.model.numbers import without_numbers
from fastprof.model.table import ColumnData
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.coverage import RANGES
from fastprof.profile.data import ProfileData
from fastprof.profile.instances import ApiCalls, Instances, RangeInstances


class _HostRows:
    """Ranges or API calls, for `selected`: they have some keys, others are unknown.

    keys : by name, each [rows]
    folded : makes the key `range`, which takes long, of ranges
    """

    def __init__(
        self,
        about: About,
        n: int,
        keys: dict[str, Values],
        folded: Callable[[], Values] | None = None,
    ) -> None:
        self.about, self.names, self._n, self._keys = about, list[str](), n, keys
        self._folded = folded

    def __len__(self) -> int:
        return self._n

    def column(self, name: str) -> Column:
        """There are no columns."""
        raise KeyError(name)

    def own_key(self, name: str) -> Values | None:
        """The values of a key, None if ranges and API calls do not have it."""
        if name == "range" and self._folded is not None:
            return self._folded()
        return self._keys.get(name)


def _of_threads(events: Instances) -> dict[str, Values]:
    """The keys thread and process."""
    threads = events.threads
    return {
        "thread": Values(events.thread, threads.tid.tolist()),
        "process": Values(events.thread, threads.pid.tolist()),
    }


def _lengths(events: Instances) -> Int64:
    """[events] Durations, -1 if they were not closed."""
    result: Int64 = np.where(events.end == NEVER, -1, events.end - events.start)
    return result


def _fitting(source: _HostRows, where: Where | None, limits: Limits, events: Instances) -> Int64:
    """The rows that fit all conditions, in order of start."""
    start, length = events.start[: len(source)], _lengths(events)[: len(source)]
    fits = limits.fits(start, length) & limits.begins_between(start)
    rows = selected(source, where)
    return np.flatnonzero(fits if rows is None else fits & rows)


def found_ranges(profile: ProfileData, where: Where | None, limits: Limits) -> Found:
    """The ranges of the trace itself, without those of graph captures."""
    ranges = profile.ranges
    own = slice(ranges.n_own)
    kinds = [RANGES[meaning.kind] for meaning in ranges.meanings]
    names = ranges.name.take(own).mapped(lambda name: name)
    keys = {
        "name": names,
        "kind": Values(ranges.label[own], kinds).mapped(lambda kind: kind),
        **{key: values.take(own) for key, values in _of_threads(ranges).items()},
    }
    source = _HostRows(profile.about, ranges.n_own, keys, lambda: names.mapped(without_numbers))
    rows = _fitting(source, where, limits, ranges)

    def columns(picked: Int64) -> dict[str, ColumnData]:
        gpu, kernels = _launched_inside(profile, ranges, picked)
        parents = ranges.parent[picked]
        return {
            "at_ns": since(ranges.start[picked], limits.origin),
            "start": Ints(ranges.start[picked], int(NO_TIME)),
            "wall_ns": Ints(_lengths(ranges)[picked]),
            "gpu_ns": Ints(gpu),
            "kernels": Ints(kernels),
            "name": names.take(picked),
            "level": Ints(ranges.level[picked].astype(np.int64)),
            "parent": Values(take(names.ids, parents), names.values),
            **{key: keys[key].take(picked) for key in ("kind", "thread", "process")},
        }

    notes = tuple(unmatched(source, where)) if where and not len(rows) else ()
    return Found(rows, ranges.n_own, columns, headings.RANGES, notes)


def _launched_inside(
    profile: ProfileData, ranges: RangeInstances, rows: Int64
) -> tuple[Int64, Int64]:
    """[rows] GPU time and number of kernels launched within some ranges.

    They are launched on the thread of the range, or on autograd's, for which it waits.
    """
    gpu, counts = np.zeros((2, len(rows)), np.int64)
    kernel, thread, begin = _launches(profile, ranges)
    length = np.maximum(np.asarray(numbers(profile, "sil"), np.int64)[kernel], 0)
    for each in np.unique(ranges.thread[rows]).tolist():
        own = np.flatnonzero(thread == each)
        own = own[np.argsort(begin[own], kind="stable")]
        before = np.concatenate([[0], np.cumsum(length[own])])
        of_thread = np.flatnonzero(ranges.thread[rows] == each)
        first = np.searchsorted(begin[own], ranges.start[rows[of_thread]], "left")
        last = np.searchsorted(begin[own], ranges.end[rows[of_thread]], "right")
        gpu[of_thread], counts[of_thread] = before[last] - before[first], last - first
    return gpu, counts


def _launches(profile: ProfileData, ranges: RangeInstances) -> tuple[Int64, Int32, Int64]:
    """[launches] Kernel, thread and time of each launch, ns.

    Those of a thread that another waits for are launches of the waiting thread too, at the start of
    its innermost user's range.
    """
    api = profile.api
    kernel = np.flatnonzero(api.of_kernel >= 0)
    thread = api.thread[api.of_kernel[kernel]]
    begin = api.start[api.of_kernel[kernel]]
    around = np.ascontiguousarray(numbers(profile, "range")[kernel], np.int32)
    waiting = take(ranges.thread, around)
    other = np.flatnonzero((around >= 0) & (waiting != thread))
    return (
        np.concatenate([kernel, kernel[other]]),
        np.concatenate([thread, waiting[other]]),
        np.concatenate([begin, ranges.start[around[other]]]),
    )


def found_api(profile: ProfileData, where: Where | None, limits: Limits) -> Found:
    """The calls of the CUDA or HIP API."""
    api = profile.api
    names = printed(api.name)
    keys = {"name": names, "kind": api.call_class, "launch": names, **_of_threads(api)}
    source = _HostRows(profile.about, len(api), keys)
    rows = _fitting(source, where, limits, api)

    def columns(picked: Int64) -> dict[str, ColumnData]:
        return {
            "at_ns": since(api.start[picked], limits.origin),
            "start": Ints(api.start[picked], int(NO_TIME)),
            "wall_ns": Ints(_lengths(api)[picked]),
            **{key: keys[key].take(picked) for key in ("name", "kind")},
            "idx": Ints(_first_kernels(api)[picked] + 1, 0),
            **{key: keys[key].take(picked) for key in ("thread", "process")},
        }

    notes = tuple(unmatched(source, where)) if where and not len(rows) else ()
    return Found(rows, len(api), columns, headings.API, notes)


def _first_kernels(api: ApiCalls) -> Int64:
    """[calls] The first kernel that each launches, -1 for none."""
    result = np.full(len(api) + 1, -1, np.int64)
    result[api.of_kernel[::-1]] = np.arange(len(api.of_kernel) - 1, -1, -1)
    return result[:-1]
