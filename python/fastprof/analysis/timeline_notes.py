"""Defects of recorded times, as notes below a report."""

from __future__ import annotations

import numpy as np

from fastprof._core._cells import overlaps
from fastprof.analysis import keys
from fastprof.analysis.columns import numbers
from fastprof.analysis.grouping import group
from fastprof.model.quantity import quantity
from fastprof.model.trace import NO_TIME
from fastprof.profile.profile import Profile

_STREAM = ("process", "device", "context", "stream")


def timeline_notes(profile: Profile) -> tuple[str, ...]:
    """A line per kind of defect: missing launches, clocks that differ, overlaps on a stream."""
    if "start" not in profile.names or not len(profile):
        return ()
    start, launched = numbers(profile, "start"), numbers(profile, "launch_start")
    early = np.flatnonzero(launched > start)  # without a launch, it is the least number
    longest = int((launched[early] - start[early]).max(initial=0))
    n_unknown = int(np.count_nonzero(launched == NO_TIME))
    counts = [(n_unknown, 0), (len(early), longest), _overlaps(profile)]
    return tuple(
        text.format(n, quantity(longest, "ns"))
        for text, (n, longest) in zip(_TEXTS, counts, strict=True)
        if n
    )


_TEXTS = (
    "launch not recorded: {} kernels and copies",
    "clocks differ: {} kernels and copies start before their launch, by up to {}; host times are "
    "shifted against GPU times",
    "overlap on one stream: {} kernels and copies start before the preceding one ends, by up to "
    "{}; time in which several run counts once",
)


def _overlaps(profile: Profile) -> tuple[int, int]:
    """How much work starts before the preceding one of its stream ends, and by how much at most."""
    streams = group([keys.key_of(profile, name) for name in _STREAM], len(profile))
    start, length = (
        np.ascontiguousarray(numbers(profile, name), np.int64) for name in ("start", "sil")
    )
    return overlaps(start, length, streams.ids, streams.n)
