"""The gaps of all GPUs with their causes and places."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastprof.analysis.gpu_work import Gaps, GpuWork
from fastprof.analysis.idle_causes import Cause, Host, Split, split
from fastprof.analysis.idle_places import places
from fastprof.model.arrays import Bools, Int32, Int64, UInt8
from fastprof.model.columns import Values
from fastprof.profile.profile import Profile

__all__ = ["Examined", "examine"]


class Examined(NamedTuple):
    """The gaps of all GPUs.

    Parameters
    ----------
    devices : the numbers of the GPUs
    gaps, device : those that are long enough, and int32 [gaps], indices into `devices`
    short, short_device : the other ones
    main : uint8 [gaps], the `Cause` that takes most of each
    main_ns : int64 [gaps], the time that it takes
    totals : int64 [devices, causes], ns
    places : where to look, by name of `PLACES`, [gaps]
    n_late : how many launches start after their work
    """

    devices: list[int]
    gaps: Gaps
    device: Int32
    short: Gaps
    short_device: Int32
    main: UInt8
    main_ns: Int64
    totals: Int64
    places: dict[str, Values]
    n_late: int


def examine(
    profile: Profile, work: dict[int, GpuWork], shortest: int, data: str | None
) -> Examined:
    """Find the causes of all gaps of at least `shortest` ns; see `host_states` for `data`."""
    host = Host(profile, data)
    of_devices = [each.gaps for each in work.values()]
    is_long = [each.end - each.start >= shortest for each in of_devices]
    pairs = list(zip(of_devices, is_long, strict=True))
    found = [_chosen(each, rows) for each, rows in pairs]
    short = [_chosen(each, ~rows) for each, rows in pairs]
    causes = [split(each, host) for each in found]
    totals = np.array([each.totals for each in causes])
    totals[:, Cause.SHORT] = [(each.end - each.start).sum() for each in short]
    *columns, _, of_windows, n_late = zip(*causes, strict=True)
    sums = totals.sum(axis=0), np.sum(of_windows, axis=0)
    both = Split._make([*map(np.concatenate, columns), *sums, sum(n_late)])
    together = _joined(found)
    return Examined(
        list(work), together, _devices(found), _joined(short), _devices(short),
        both.main, both.ns, totals, places(together, both, host), both.n_late,
    )  # fmt: skip


def _chosen(of_device: Gaps, rows: Bools) -> Gaps:
    return Gaps._make(each[rows] for each in of_device)


def _joined(of_devices: list[Gaps]) -> Gaps:
    return Gaps._make(map(np.concatenate, zip(*of_devices, strict=True)))


def _devices(of_devices: list[Gaps]) -> Int32:
    counts = [len(each.start) for each in of_devices]
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)
