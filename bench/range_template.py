"""Rows of the NVTX table for any step, from the ranges of the recorded step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.identity import Identity
from bench.placement import Placement, column
from bench.recorder import START_END, STILL_OPEN, Counter, Range
from bench.strings import StringTable

RANGE_COLUMNS = (
    "start",
    "end",
    "text",
    "rangeId",
    "eventType",
    "globalTid",
    "endGlobalTid",
    "textId",
    "domainId",
)
LINE = "\n"


class RangeTemplate:
    """The ranges of one process, ordered by start; all start before `capture_end`.

    Ranges still open at that time have a NULL end.
    """

    def __init__(
        self, ranges: Sequence[Range], identity: Identity, strings: StringTable, capture_end: float
    ) -> None:
        ranges = sorted(ranges, key=lambda record: record.start)
        self.starts = column(record.start for record in ranges)
        self.ends = column(record.end for record in ranges)
        self.open = np.flatnonzero((self.ends == STILL_OPEN) | (self.ends >= capture_end)).tolist()
        self.inline = [i for i, record in enumerate(ranges) if not record.text.registered]
        self.start_end = [i for i, record in enumerate(ranges) if record.event_type == START_END]
        texts = [ranges[i].text for i in self.inline]
        self.form = LINE.join(text.form for text in texts)
        numbers = [number for text in texts for number in text.numbers]
        self.counters = column(counter for counter, _ in numbers)
        self.offsets = column(offset for _, offset in numbers)
        self.values = [range_values(record, identity, strings) for record in ranges]

    def play(
        self, placement: Placement, step: int, counts: dict[Counter, int]
    ) -> list[tuple[Any, ...]]:
        """The rows of one step, with RANGE_COLUMNS; `counts`: first values of the counters."""
        n = len(self.starts)
        ends: list[int | None] = placement.at(self.ends).tolist()
        for i in self.open:
            ends[i] = None
        texts: list[str | None] = [None] * n
        for i, text in zip(self.inline, self.texts(counts), strict=True):
            texts[i] = text
        range_ids: list[int | None] = [None] * n
        for n_before, i in enumerate(self.start_end):
            range_ids[i] = 1 + step * len(self.start_end) + n_before
        return [
            (start, end, text, range_id, *values)
            for start, end, text, range_id, values in zip(
                placement.at(self.starts).tolist(), ends, texts, range_ids, self.values, strict=True
            )
        ]

    def texts(self, counts: dict[Counter, int]) -> list[str]:
        """All inline texts, formatted together."""
        bases = column(counts[counter] for counter in Counter)
        numbers = bases[self.counters] + self.offsets
        return (self.form % tuple(numbers.tolist())).split(LINE) if self.inline else []


def range_values(record: Range, identity: Identity, strings: StringTable) -> tuple[Any, ...]:
    """The columns of a range that are the same in each step, from eventType on."""
    return (
        record.event_type,
        identity.global_tid(record.thread),
        None if record.end_thread is None else identity.global_tid(record.end_thread),
        strings.id_of(record.text.form) if record.text.registered else None,
        record.domain,
    )
