"""Accumulates block times by name, and the length of the steps before a recording."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final, Protocol

_MOST_WAITING = 512  # pairs of events, before completed ones are read


class CudaEvent(Protocol):
    """The methods used of torch.cuda.Event."""

    def query(self) -> bool: ...
    def synchronize(self) -> None: ...
    def elapsed_time(self, end: Any) -> float: ...


@dataclass(frozen=True)
class Timing:
    """Accumulated times of one name, in ns.

    Parameters
    ----------
    name : str
    clock : str
        "cuda": GPU time, with a resolution of about 0.5 us; "wall": wall clock.
    calls, total, min, max : int
    """

    name: str
    clock: str
    calls: int
    total: int
    min: int
    max: int

    @property
    def mean(self) -> float:
        return self.total / self.calls


@dataclass(frozen=True)
class Timings:
    """Measurements of all timers at the time `fastprof.timings` was called.

    Parameters
    ----------
    rows : tuple of Timing
        One per name and clock, by descending total.
    """

    rows: tuple[Timing, ...]

    def to_dict(self) -> dict[str, dict[str, dict[str, float]]]:
        """`{name: {clock: {"calls", "total", "mean", "min", "max"}}}`; times in ns."""
        result: dict[str, dict[str, dict[str, float]]] = {}
        for row in self.rows:
            result.setdefault(row.name, {})[row.clock] = {
                key: getattr(row, key) for key in ("calls", "total", "mean", "min", "max")
            }
        return result

    def reset(self) -> None:
        """Clear all measurements. Running blocks still count when they end."""
        forget_all()

    def __str__(self) -> str:
        if not self.rows:
            return "nothing was timed"
        lines = [["name", "clock", "calls", "total ms", "mean ms", "min ms", "max ms"]]
        for row in self.rows:
            times = (row.total, row.mean, row.min, row.max)
            lines.append(
                [row.name, row.clock, str(row.calls), *(f"{time / 1e6:.3f}" for time in times)]
            )
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(_line(line, widths) for line in lines)


def _line(cells: list[str], widths: list[int]) -> str:
    left = [f"{cell:<{width}}" for cell, width in zip(cells[:2], widths[:2], strict=True)]
    right = [f"{cell:>{width}}" for cell, width in zip(cells[2:], widths[2:], strict=True)]
    return "  ".join(left + right)


class _Measured:
    """The measurements of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rows: dict[tuple[str, str], Timing] = {}
        self.waiting: list[tuple[str, str, CudaEvent, CudaEvent]] = []
        self.most_waiting = _MOST_WAITING

    def count(self, name: str, clock: str, time: int) -> None:
        row = self.rows.get((name, clock), Timing(name, clock, 0, 0, time, time))
        self.rows[name, clock] = Timing(
            name, clock, row.calls + 1, row.total + time, min(row.min, time), max(row.max, time)
        )

    def count_waiting(self, wait: bool) -> None:
        """Count completed pairs of events; with `wait`, wait for all and count them."""
        left = []
        for name, clock, start, end in self.waiting:
            if wait:
                end.synchronize()
            elif not end.query():
                left.append((name, clock, start, end))
                continue
            self.count(name, clock, round(start.elapsed_time(end) * 1e6))
        self.waiting = left
        self.most_waiting = max(_MOST_WAITING, 2 * len(left))


_all = _Measured()


def add(name: str, clock: str, time: int | tuple[CudaEvent, CudaEvent]) -> None:
    """Count a block, by its time in ns or by the recorded events at its start and end."""
    to = _all
    with to.lock:
        if isinstance(time, int):
            to.count(name, clock, time)
            return
        to.waiting.append((name, clock, *time))
        if len(to.waiting) >= to.most_waiting:
            to.count_waiting(wait=False)


def measured() -> Timings:
    """All measurements so far. Waits for pending events."""
    of = _all
    with of.lock:
        of.count_waiting(wait=True)
        rows = sorted(of.rows.values(), key=lambda row: (-row.total, row.name))
    return Timings(tuple(rows))


def forget_all() -> None:
    """Clear all measurements. Also runs in a forked child, which cannot use the parent's events."""
    global _all
    _all = _Measured()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_all)


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
