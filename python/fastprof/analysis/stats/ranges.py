"""Styles of ranges as nsys prints them, and the table of ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import numpy as np

from fastprof._core._pools import alike
from fastprof.analysis.stats.statistics import Statistics, known_duration
from fastprof.model.columns import Values
from fastprof.model.computed import Computed
from fastprof.model.table import Cells
from fastprof.profile.instances import RangeInstances
from fastprof.profile.kept import begins_in_part
from fastprof.profile.profile import Profile

STYLES: Final = ["StartEnd", "PushPop"]


def styles_of(ranges: RangeInstances) -> Values:
    """[ranges] PushPop or StartEnd."""
    return Values(ranges.is_push_pop.astype(np.int32), STYLES)


def nvtx_sum(profile: Profile) -> list[Cells]:
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
