"""Work on threads of the autograd engine is backward work, whatever its ranges are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from bench.baseline.frames import Launch, Range
from bench.baseline.meanings import TORCH
from bench.baseline.tables import PROCESS_SHIFT

NAME = re.compile(r"pt_autograd_\d+")


def engine_threads(ranges: Iterable[Range], names: dict[int, str]) -> set[int]:
    """Threads of that name, and those with backward ranges and no numbers of a forward pass."""
    backward, forward = set(), set()
    for _, _, thread, (meaning, seq, _) in ranges:
        if meaning.backward:
            backward.add(thread)
        elif meaning.kind == TORCH and seq:
            forward.add(thread)
    return {thread for thread, name in names.items() if NAME.search(name)} | (backward - forward)


def marked(ranges: list[Range], engine: set[int]) -> list[Range]:
    """The same ranges; outermost ones on engine threads are marked as the engine's."""
    variants: dict[int, Any] = {}
    open_until: dict[int, int] = {}
    result = []
    for start, end, thread, (meaning, seq, op_id) in ranges:
        if thread in engine and not (meaning.backward or meaning.recompute):
            outermost = open_until.get(thread, -1) <= start
            if outermost:
                meaning = variants.setdefault(id(meaning), meaning.saying("engine"))
        open_until[thread] = max(open_until.get(thread, -1), end)
        result.append((start, end, thread, (meaning, seq, op_id)))
    return result


class Probes:
    """Launches that stand for those of the engine, on the threads that may have waited."""

    def __init__(self, launches: Iterable[Launch], threads: set[int], engine: set[int]) -> None:
        launches = list(launches)
        counts = Counter(launch.thread for launch in launches)
        order = sorted(threads, key=lambda thread: (-counts[thread], thread))
        self.of_launch = {
            id(launch): [
                Launch(launch.start, thread)
                for thread in order
                if thread >> PROCESS_SHIFT == launch.thread >> PROCESS_SHIFT
            ]
            for launch in launches
            if launch.thread in engine
        }
        self.settled: dict[int, bool] = {}
        self.launches = [probe for probes in self.of_launch.values() for probe in probes]

    def settle(self, launch: Launch) -> bool:
        """Give a launch of the engine outside all ranges the frame of the waiting thread, if any.

        Returns whether it is such a launch.
        """
        if id(launch) not in self.settled:
            frames = (probe.frame for probe in self.of_launch.get(id(launch), ()))
            waiting = next((frame for frame in frames if frame is not None), None)
            self.settled[id(launch)] = launch.frame is None and id(launch) in self.of_launch
            launch.frame = launch.frame or waiting
        return self.settled[id(launch)]
