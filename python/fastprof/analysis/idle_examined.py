"""The gaps of GPUs with their causes and places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from fastprof._core._groups import sum_where
from fastprof._system.classes import dataclass
from fastprof.analysis.gpu_work import Gaps, GpuWork, answered_work
from fastprof.analysis.idle_causes import Cause, Host, Split, split
from fastprof.analysis.idle_places import places
from fastprof.model.arrays import Int32, Int64, joined
from fastprof.model.columns import Values
from fastprof.profile.kept import kept
from fastprof.profile.profile import Profile

__all__ = ["SHORTEST", "Examined", "examine", "places_of"]

SHORTEST: Final = 1000  # ns; the causes of shorter gaps are not examined


@dataclass(frozen=True)
class Examined:
    """The gaps of GPUs.

    Parameters
    ----------
    devices : the numbers of the GPUs
    gaps, device : those that are long enough, and int32 [gaps], indices into `devices`
    short, short_device : the other ones
    causes : Split of `gaps`
    data : see `examine`
    is_kept : whether these are all gaps of a profile, which are kept
    """

    devices: list[int]
    gaps: Gaps
    device: Int32
    short: Gaps
    short_device: Int32
    causes: Split
    data: str | None
    is_kept: bool

    def totals(self) -> Int64:
        """The time of each cause, ns [devices, causes]."""
        return self.of_windows(self.device, self.short_device, len(self.devices))

    def of_windows(self, window: Int32, short: Int32, n_windows: int) -> Int64:
        """The time of each cause, ns [windows, causes].

        window, short : the windows of `gaps` and of `short`, -1 for none
        """
        found = self.causes.parts.of_windows(window, n_windows)
        length = self.short.end - self.short.start
        found[:, Cause.SHORT] += sum_where(short, length, None, n_windows)
        return found


def examine(
    profile: Profile,
    work: Mapping[int, GpuWork],
    shortest: int = SHORTEST,
    data: str | None = None,
) -> Examined:
    """Find the causes of all gaps of at least `shortest` ns; see `host_states` for `data`.

    Those of `answered_work` are kept, with the default values of the other parameters.
    """
    if work is answered_work(profile) and shortest == SHORTEST and data is None:
        return kept(profile, _of_all)
    return _examined(profile, work, shortest, data)


def _of_all(profile: Profile) -> Examined:
    return _examined(profile, answered_work(profile), SHORTEST, None, True)


def _examined(
    profile: Profile,
    work: Mapping[int, GpuWork],
    shortest: int,
    data: str | None,
    is_kept: bool = False,
) -> Examined:
    host = Host(profile, data)
    found, short = zip(*(_divided(each.gaps(), shortest) for each in work.values()), strict=True)
    gaps = Gaps(*joined(found))
    return Examined(
        list(work), gaps, _devices(found), Gaps(*joined(short)), _devices(short),
        split(gaps, host), data, is_kept,
    )  # fmt: skip


def places_of(profile: Profile, found: Examined) -> dict[str, Values]:
    """Where to look for the causes of `found.gaps`, by name of `PLACES`, [gaps]."""
    return kept(profile, _places_of_all) if found.is_kept else _places(profile, found)


def _places(profile: Profile, found: Examined) -> dict[str, Values]:
    return places(found.gaps, found.causes, Host(profile, found.data))


def _places_of_all(profile: Profile) -> dict[str, Values]:
    return _places(profile, kept(profile, _of_all))


def _divided(gaps: Gaps, shortest: int) -> tuple[Gaps, Gaps]:
    """The gaps of at least `shortest` ns, and the other ones."""
    is_long = gaps.end - gaps.start >= shortest
    if is_long.all():
        return gaps, Gaps._make(each[:0] for each in gaps)
    return Gaps._make(each[is_long] for each in gaps), Gaps._make(each[~is_long] for each in gaps)


def _devices(of_devices: Sequence[Gaps]) -> Int32:
    counts = [len(each.start) for each in of_devices]
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)
