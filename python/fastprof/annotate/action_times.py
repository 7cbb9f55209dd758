"""Counts and times named actions, in any thread."""

from __future__ import annotations

import threading
import time

from fastprof.annotate.timings import Timing


class ActionTimes:
    """Wall-clock times of actions. An action may overlap itself, in one thread or in several."""

    def __init__(self) -> None:
        self._started: dict[tuple[int, str], list[int]] = {}  # by thread and name
        self._rows: dict[str, Timing] = {}

    def start(self, name: str) -> None:
        """Begin an action."""
        key = threading.get_ident(), name
        self._started.setdefault(key, []).append(time.perf_counter_ns())

    def stop(self, name: str) -> None:
        """End the action of this name begun last in this thread; no effect if there is none."""
        started = self._started.get((threading.get_ident(), name))
        if not started:
            return
        took = time.perf_counter_ns() - started.pop()
        row = self._rows.get(name, Timing(name, "wall", 0, 0, took, took))
        self._rows[name] = Timing(
            name, "wall", row.calls + 1, row.total + took, min(row.min, took), max(row.max, took)
        )

    def rows(self) -> list[Timing]:
        """One Timing per action, by descending total."""
        return sorted(self._rows.values(), key=lambda row: (-row.total, row.name))
