"""The work on the stream of a kernel."""

from __future__ import annotations

import numpy as np

from fastprof.analysis.grouping import numbers
from fastprof.model.arrays import Int64
from fastprof.profile.data import ProfileData


def on_stream_of(profile: ProfileData, row: int) -> Int64:
    """The rows of the work on the stream of a kernel, in order of start."""
    fits = np.ones(len(profile), bool)
    for name in ("device", "stream", "pid"):
        if name in profile.names:
            column = np.asarray(numbers(profile, name))
            fits &= column == column[row]
    return np.flatnonzero(fits)
