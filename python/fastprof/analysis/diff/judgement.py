"""Whether the steps of two sides differ by more than noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof.analysis.diff.confidence import NOT_JUDGED, Confidence, confidence
from fastprof.analysis.diff.side import Side
from fastprof.analysis.diff.waterfall import CALLS, STEPS, Waterfall


def judged(found: Waterfall, runs: Sequence[tuple[Side, Side]], threshold: float) -> Confidence:
    """Compare the steps of two sides, or of several runs of each.

    Parameters
    ----------
    runs : before and after of each run
    threshold : smaller changes are "same", a share
    """
    if found.unit != STEPS:
        return Confidence(None, None, None, NOT_JUDGED, "expected steps in both captures")
    before, after = ([lengths_of_steps(pair[i]) for pair in runs] for i in (0, 1))
    if len(runs) == 1:
        return confidence(before[0], after[0], threshold)
    old, new = ([float(each.mean()) for each in steps] for steps in (before, after))
    return confidence(old, new, threshold, of_runs=True)


def lengths_of_steps(side: Side) -> npt.NDArray[np.float64]:
    """The length of each step in order, ns: the mean of all GPUs and ranks."""
    _, place = np.unique(side.windows["step"], return_inverse=True)
    return np.bincount(place, side.windows["wall_ns"]) / np.bincount(place)


def wall_of(found: Waterfall, judgement: Confidence) -> dict[str, Any]:
    """The fact `wall` of a comparison.

    `before_ns` and `after_ns`, means in ns, of the step; without steps, of the captures;
    `before_median_ns` and `after_median_ns`. `change`, a share of the mean, and its interval from
    `low` to `high` are None if unknown. `verdict`, `because`, `samples`.
    """
    before, after = found.wall_ns
    if found.unit == CALLS:
        before, after = (_mean_wall(half.side) for half in found.halves)
    medians = [float(np.median(lengths_of_steps(half.side))) for half in found.halves]
    return {
        "before_ns": before,
        "after_ns": after,
        "before_median_ns": medians[0],
        "after_median_ns": medians[1],
        "change": after / before - 1 if before and found.unit == STEPS else None,
        "low": judgement.low,
        "high": judgement.high,
        "verdict": judgement.verdict,
        "because": judgement.because or None,
        "samples": judgement.samples or None,
    }


def _mean_wall(side: Side) -> int:
    return round(int(side.windows["wall_ns"].sum()) / side.n_windows)
