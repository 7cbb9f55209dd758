"""Move the times of the recorded step to a step of the run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def column(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)


@dataclass(frozen=True)
class Placement:
    """The begin of a step (ns), and its slowness relative to the recorded step.

    `slowness` is at least 1, so distinct times stay distinct and in order. Times of the recorded
    step from `waited_until` on move by `delay`.
    """

    begin: int
    slowness: float
    waited_until: int
    delay: int = 0

    def at(self, times: Ints) -> Ints:
        placed = (times * self.slowness).astype(np.int64) + self.begin
        placed[times >= self.waited_until] += self.delay
        return placed
