"""Starts and stops of named actions, in any thread, to how often each ran and how long."""

from __future__ import annotations

import threading
import time

from fastprof.annotate.timings import Timing


class ActionTimes:
    """The wall clock of actions; one may run several times at once, in one thread or in several."""

    def __init__(self) -> None:
        self._started: dict[tuple[int, str], list[int]] = {}  # by thread and name
        self._rows: dict[str, Timing] = {}

    def start(self, name: str) -> None:
        """An action begins."""
        key = threading.get_ident(), name
        self._started.setdefault(key, []).append(time.perf_counter_ns())

    def stop(self, name: str) -> None:
        """The action of this name that began last in this thread ends; nothing if there is none."""
        started = self._started.get((threading.get_ident(), name))
        if not started:
            return
        took = time.perf_counter_ns() - started.pop()
        row = self._rows.get(name, Timing(name, "wall", 0, 0, took, took))
        self._rows[name] = Timing(
            name, "wall", row.calls + 1, row.total + took, min(row.min, took), max(row.max, took)
        )

    def rows(self) -> list[Timing]:
        """The longest in total first."""
        return sorted(self._rows.values(), key=lambda row: (-row.total, row.name))
