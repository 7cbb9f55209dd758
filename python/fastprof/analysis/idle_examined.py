"""The gaps of GPUs with their causes and places."""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import dataclass
from fastprof.analysis.gpu_work import Gaps, WorkOfDevices, answered_work
from fastprof.analysis.idle_causes import Host, Split, split
from fastprof.analysis.idle_places import places
from fastprof.model.arrays import Int32
from fastprof.model.columns import Values
from fastprof.profile.kept import kept
from fastprof.profile.profile import Profile

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


def examine(
    profile: Profile,
    work: WorkOfDevices,
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
    work: WorkOfDevices,
    shortest: int,
    data: str | None,
    is_kept: bool = False,
) -> Examined:
    host, gaps = Host(profile, data), work.parts.gaps()
    part = work.parts.of_kernels(len(profile))[gaps.after]
    is_long = gaps.end - gaps.start >= shortest
    long, short = (Gaps._make(each[of] for each in gaps) for of in (is_long, ~is_long))
    return Examined(
        list(work), long, part[is_long], short, part[~is_long], split(long, host), data, is_kept,
    )  # fmt: skip


def places_of(profile: Profile, found: Examined) -> dict[str, Values]:
    """Where to look for the causes of `found.gaps`, by name of `PLACES`, [gaps]."""
    return kept(profile, _places_of_all) if found.is_kept else _places(profile, found)


def _places(profile: Profile, found: Examined) -> dict[str, Values]:
    return places(found.gaps, found.causes, Host(profile, found.data))


def _places_of_all(profile: Profile) -> dict[str, Values]:
    return _places(profile, kept(profile, _of_all))
