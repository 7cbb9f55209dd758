"""The time between tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.steps.windows import Windows
from fastprof.model.arrays import Int64, rows_by
from fastprof.model.numbers import quantity
from fastprof.profile.serving.names import Iteration

PERCENTILES: Final = (50, 90, 99)


class BetweenTokens(NamedTuple):
    """The times between tokens of requests.

    Parameters
    ----------
    ns : int64 [intervals], ascending
    requests : int64 [intervals], how many requests wait so long
    """

    ns: Int64
    requests: Int64

    def percentile(self, percent: float) -> int | None:
        """The shortest time that at least so many per cent of the tokens take at most; None
        without intervals."""
        if not len(self.ns):
            return None
        reached = np.cumsum(self.requests) >= percent / 100 * self.requests.sum()
        return int(self.ns[int(np.argmax(reached))])

    def facts(self) -> dict[str, Any]:
        """For JSON: the number of tokens, and percentiles in ns."""
        return {
            "tokens": int(self.requests.sum()),
            **{f"p{percent}_ns": self.percentile(percent) for percent in PERCENTILES},
        }

    def text(self) -> str:
        """A sentence."""
        if not len(self.ns):
            return "time between tokens: unknown, fewer than two iterations that generate"
        parts = [
            f"p{percent} {quantity(self.percentile(percent) or 0, 'ns')}" for percent in PERCENTILES
        ]
        n = int(self.requests.sum())
        return f"time between tokens: {', '.join(parts)} ({n} token{'s' * (n > 1)})"


def between_tokens(windows: Windows, told: Sequence[Iteration]) -> BetweenTokens:
    """The times between the ends of the GPU work of iterations that generate, next to each other.

    An iteration yields a token for each of its generating requests; iterations of prefill in
    between delay them. Each process counts once, on its first GPU.

    told : [windows]
    """
    generating = np.array([each.generating for each in told], np.int64)
    rows = np.flatnonzero(generating > 0)
    times, weights = [], []
    pids = windows.lanes.pid[windows.lane[rows]]
    for _, own in rows_by(pids):
        lane = windows.lane[rows[own]]
        chosen = rows[own[lane == lane.min()]]
        chosen = chosen[np.argsort(windows.end[chosen], kind="stable")]
        times.append(np.diff(windows.end[chosen]))
        weights.append(np.minimum(generating[chosen[1:]], generating[chosen[:-1]]))
    if not times:
        return BetweenTokens(np.empty(0, np.int64), np.empty(0, np.int64))
    ns, requests = np.concatenate(times), np.concatenate(weights)
    order = np.argsort(ns, kind="stable")
    return BetweenTokens(ns[order], requests[order])
