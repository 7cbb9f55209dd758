"""The length of the steps before a recording, which the recorder does not slow down."""

from __future__ import annotations

import time
from collections import deque
from itertools import pairwise
from statistics import median
from typing import Any, Final

_MOST: Final = 64  # steps that are kept


class UnrecordedSteps:
    """When the latest steps ended, on the host. A step costs one read of the clock.

    Nothing waits for the GPU: in a loop that runs steadily, steps end on the host as often as on
    the GPU.
    """

    def __init__(self) -> None:
        self._ends: deque[int] = deque(maxlen=_MOST + 1)
        self.ended_at = self._ends.append  # (ns of `time.perf_counter_ns`) -> None

    def ended(self) -> None:
        """A step ends, or the first one begins."""
        self._ends.append(time.perf_counter_ns())

    def forget(self) -> None:
        """Leave out the time until the next end."""
        self._ends.clear()

    def facts(self) -> dict[str, Any] | None:
        """`steps` and `median_ns` of the later half of the steps; None without any.

        The earlier half may have started the program up, or run ahead of the GPU.
        """
        ends = list(self._ends)
        lengths = [end - start for start, end in pairwise(ends)]
        later = lengths[len(lengths) // 2 :]
        return {"steps": len(later), "median_ns": round(median(later))} if later else None
