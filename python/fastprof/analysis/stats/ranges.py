"""Styles of ranges as nsys prints them, and the table of ranges."""

from __future__ import annotations

from typing import Final, cast

import numpy as np

from fastprof._core._pools import alike
from fastprof.analysis.stats.statistics import Statistics
from fastprof.model.arrays import Int64
from fastprof.model.columns import Values
from fastprof.model.computed import Computed
from fastprof.model.table import Cells
from fastprof.model.trace import NEVER
from fastprof.profile.instances import RangeInstances
from fastprof.profile.profile import Profile

__all__ = ["STYLES", "nvtx_sum", "styles_of"]

STYLES: Final = ["StartEnd", "PushPop"]


def styles_of(ranges: RangeInstances) -> Values:
    """[ranges] PushPop or StartEnd."""
    return Values(ranges.is_push_pop.astype(np.int32), STYLES)


def nvtx_sum(profile: Profile) -> list[Cells]:
    """Ranges by name and style. Ranges that were not closed are left out."""
    ranges, others = profile.ranges, profile.ranges.ended_elsewhere
    own, n_own = ranges.recorded_name, ranges.n_own
    domains = [*others.domain.values, ""]
    moved = [
        f"{domains[domain]}:{others.text.values[label]}"
        for domain, label in zip(others.domain.ids.tolist(), others.text.ids.tolist(), strict=True)
    ]
    style = styles_of(ranges).ids[:n_own]
    of_own, first = alike([own.ids[:n_own], style])
    place: dict[str, int] = {}
    if moved:
        alone = np.flatnonzero(style[first] == STYLES.index("StartEnd")).tolist()
        place = {own.values[own.ids[first[group]]]: group for group in alone}
    new = [name for name in dict.fromkeys(moved) if name not in place]
    place |= {name: len(first) + i for i, name in enumerate(new)}
    ids = np.concatenate([of_own, np.array([place[name] for name in moved], np.int32)])
    duration = np.concatenate(
        [_duration(ranges.start, ranges.end)[:n_own], _duration(others.start, others.end)]
    )
    stats = Statistics(ids, duration, len(first) + len(new))
    n = len(own.values)

    def name(number: int) -> str:
        return own.values[number] if number < n else new[number - n]

    of_first = [own.ids[first], np.arange(n, n + len(new), dtype=np.int32)]
    return [
        *stats.times(),
        Values(np.append(style[first], np.zeros(len(new), np.int32)), STYLES),
        Values(np.concatenate(of_first), cast("list[str]", Computed(n + len(new), name))),
    ]


def _duration(start: Int64, end: Int64) -> Int64:
    return np.where(end == NEVER, -1, end - start)
