"""Times of a recorded step -> times in the run."""

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
    """Where a step of a run begins (ns), and how much slower than the recorded one it is.

    `slowness` is at least 1, so times that were different stay different and in order. What
    happens from `waited_until` on, in the recorded step's time, moves by `delay`.
    """

    begin: int
    slowness: float
    waited_until: int
    delay: int = 0

    def at(self, times: Ints) -> Ints:
        placed = (times * self.slowness).astype(np.int64) + self.begin
        placed[times >= self.waited_until] += self.delay
        return placed
