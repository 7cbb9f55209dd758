"""Times of blocks and pairs of CUDA events -> calls, total, mean, least and largest, by name."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any, Protocol

_MOST_WAITING = 512  # pairs of events, before those that are past are read


class Event(Protocol):
    """What is used of a torch.cuda.Event."""

    def query(self) -> bool: ...
    def synchronize(self) -> None: ...
    def elapsed_time(self, end: Any) -> float: ...


@dataclass(frozen=True)
class Timing:
    """The times of one name, in ns.

    Parameters
    ----------
    name : str
    clock : str
        "cuda": on the GPU, to half a microsecond; "wall": of the wall clock.
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
    """What timers measured, as it was when `fastprof.timings` was called.

    Parameters
    ----------
    rows : tuple of Timing
        By name and clock, the longest in total first.
    """

    rows: tuple[Timing, ...]

    def to_dict(self) -> dict[str, dict[str, dict[str, float]]]:
        """calls, total, mean, min and max (ns) by name and clock."""
        found: dict[str, dict[str, dict[str, float]]] = {}
        for row in self.rows:
            found.setdefault(row.name, {})[row.clock] = {
                key: getattr(row, key) for key in ("calls", "total", "mean", "min", "max")
            }
        return found

    def reset(self) -> None:
        """Forget all that any timer measured; blocks that run still count when they end."""
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
    """All that was measured in this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rows: dict[tuple[str, str], Timing] = {}
        self.waiting: list[tuple[str, str, Event, Event]] = []
        self.most_waiting = _MOST_WAITING

    def count(self, name: str, clock: str, time: int) -> None:
        row = self.rows.get((name, clock), Timing(name, clock, 0, 0, time, time))
        self.rows[name, clock] = Timing(
            name, clock, row.calls + 1, row.total + time, min(row.min, time), max(row.max, time)
        )

    def count_waiting(self, wait: bool) -> None:
        """Count the pairs that are past; with `wait` all."""
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


def add(name: str, clock: str, time: int | tuple[Event, Event]) -> None:
    """Count a block: its time in ns, or the events at its ends, which were recorded."""
    to = _all
    with to.lock:
        if isinstance(time, int):
            to.count(name, clock, time)
            return
        to.waiting.append((name, clock, *time))
        if len(to.waiting) >= to.most_waiting:
            to.count_waiting(wait=False)


def measured() -> Timings:
    """What was measured so far; it waits for the events."""
    of = _all
    with of.lock:
        of.count_waiting(wait=True)
        rows = sorted(of.rows.values(), key=lambda row: (-row.total, row.name))
    return Timings(tuple(rows))


def forget_all() -> None:
    """Begin anew, in a child process too: the events of its parent are none of its own."""
    global _all
    _all = _Measured()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_all)
