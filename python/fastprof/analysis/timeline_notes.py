"""Defects of recorded times, as notes below a report."""

from __future__ import annotations

import numpy as np

from fastprof.analysis import keys
from fastprof.analysis.columns import numbers
from fastprof.analysis.grouping import group
from fastprof.model.quantity import quantity
from fastprof.model.trace import NO_TIME
from fastprof.profile.profile import Profile

__all__ = ["timeline_notes"]

_STREAM = ("process", "device", "context", "stream")
_RADIX = 1 << 16  # NumPy sorts numbers of 16 bits in linear time


def timeline_notes(profile: Profile) -> tuple[str, ...]:
    """A line per kind of defect: missing launches, clocks that differ, overlaps on a stream."""
    if "start" not in profile.names or not len(profile):
        return ()
    start, launched = numbers(profile, "start"), numbers(profile, "launch_start")
    early = np.where(launched == NO_TIME, 0, launched - start)
    counts = [(int(np.count_nonzero(launched == NO_TIME)), 0), _positive(early), _overlaps(profile)]
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


def _positive(times: np.ndarray) -> tuple[int, int]:
    """How many times are positive, and the longest."""
    return int(np.count_nonzero(times > 0)), int(times.max(initial=0))


def _overlaps(profile: Profile) -> tuple[int, int]:
    """How much work starts before the preceding one of its stream ends, and by how much at most."""
    streams = group([keys.key_of(profile, name) for name in _STREAM], len(profile))
    ids = streams.ids.astype(np.uint16) if streams.n < _RADIX else streams.ids
    order = np.argsort(ids, kind="stable")
    start = numbers(profile, "start")[order]
    end = start + np.maximum(numbers(profile, "sil")[order], 0)
    is_same = ids[order][1:] == ids[order][:-1]
    return _positive(np.where(is_same, end[:-1] - start[1:], 0))
