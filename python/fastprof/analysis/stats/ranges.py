"""Names and styles of ranges as nsys prints them, and the table of ranges."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof._core._pools import alike
from fastprof.analysis.stats.statistics import Statistics
from fastprof.model.arrays import Int64
from fastprof.model.columns import Values
from fastprof.model.markers import Kind
from fastprof.model.table import Cells
from fastprof.model.trace import NEVER
from fastprof.profile.instances import RangeInstances
from fastprof.profile.profile import Profile

__all__ = ["STYLES", "names_of", "nvtx_sum", "styles_of"]

STYLES: Final = ["StartEnd", "PushPop"]


def names_of(ranges: RangeInstances) -> Values:
    """[ranges] `DOMAIN:NAME` with torch's numbers; the default domain has no name."""
    ids, first = alike([ranges.label, ranges.seq, ranges.op_id, ranges.domain.ids])
    domains = [*ranges.domain.values, ""]
    keys = zip(
        *(
            column[first].tolist()
            for column in (ranges.label, ranges.seq, ranges.op_id, ranges.domain.ids)
        ),
        strict=True,
    )
    whole = []
    for label, seq, op_id, domain in keys:
        meaning = ranges.meanings[label]
        text = meaning.label
        if meaning.kind == Kind.TORCH and (seq >= 0 or op_id >= 0):
            head, tail = meaning.name, text[len(meaning.name) :]
            numbers = f", seq = {seq}" if seq >= 0 else ""
            text = head + numbers + (f", op_id = {op_id}" if op_id >= 0 else "") + tail
        whole.append(f"{domains[domain]}:{text}")
    return Values(ids, whole).mapped(lambda name: name)


def styles_of(ranges: RangeInstances) -> Values:
    """[ranges] PushPop or StartEnd."""
    return Values(ranges.is_push_pop.astype(np.int32), STYLES)


def nvtx_sum(profile: Profile) -> list[Cells]:
    """Ranges by name and style. Ranges that were not closed are left out."""
    ranges = profile.ranges
    others = ranges.ended_elsewhere
    own = names_of(ranges)
    domains = [*others.domain.values, ""]
    text_of: dict[str, int] = {name: place for place, name in enumerate(own.values)}
    moved = [
        text_of.setdefault(f"{domains[domain]}:{others.text.values[label]}", len(text_of))
        for domain, label in zip(others.domain.ids.tolist(), others.text.ids.tolist(), strict=True)
    ]
    name = np.concatenate([own.ids[: ranges.n_own], np.array(moved, np.int32)])
    style = np.concatenate([styles_of(ranges).ids[: ranges.n_own], np.zeros(len(moved), np.int32)])
    ids, first = alike([name, style])
    duration = np.concatenate(
        [_duration(ranges.start, ranges.end)[: ranges.n_own], _duration(others.start, others.end)]
    )
    stats = Statistics(ids, duration, len(first))
    return [
        *stats.times(), Values(style[first], STYLES), Values(name[first], list(text_of))
    ]  # fmt: skip


def _duration(start: Int64, end: Int64) -> Int64:
    return np.where(end == NEVER, -1, end - start)
