"""Rows of the runtime table for any step, from the API calls of the recorded step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.identity import Identity
from bench.placement import Placement, column
from bench.recorder import ApiCall
from bench.strings import StringTable

RUNTIME_CLASS, DRIVER_CLASS = 0, 1
CALL_COLUMNS = ("start", "end", "correlationId", "eventClass", "globalTid", "nameId")
CALL_CONSTANTS = {"returnValue": 0}


class CallTemplate:
    """The API calls of one process, ordered by start."""

    def __init__(self, calls: Sequence[ApiCall], identity: Identity, strings: StringTable) -> None:
        calls = sorted(calls, key=lambda call: call.start)
        self.starts = column(call.start for call in calls)
        self.ends = column(call.end for call in calls)
        self.correlations = column(call.correlation for call in calls)
        self.event_classes = [
            RUNTIME_CLASS if call.name.startswith("cuda") else DRIVER_CLASS for call in calls
        ]
        self.threads = [identity.global_tid(call.thread) for call in calls]
        self.names = [strings.id_of(call.name) for call in calls]

    def play(self, placement: Placement, first_correlation: int) -> list[tuple[Any, ...]]:
        """One step's rows, in the order of CALL_COLUMNS."""
        return list(
            zip(
                placement.at(self.starts).tolist(),
                placement.at(self.ends).tolist(),
                (self.correlations + first_correlation).tolist(),
                self.event_classes,
                self.threads,
                self.names,
                strict=True,
            )
        )
