"""Slices and calls of ranks as arrays for the script of their time line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.model.arrays import Int64
from fastprof.page.sections.timeline import planes
from fastprof.ranks.run.pictures import KINDS, ChainSlices
from fastprof.ranks.run.record import CallSignature, Label
from fastprof.ranks.run.result import RunData

Arrays = dict[str, Any]


class Instance(NamedTuple):
    """The texts of an instance: kind, size and type; group, layer and line."""

    title: str
    about: str


class RunEvents:
    """What a time line of ranks shows.

    Parameters
    ----------
    run : the run
    pieces : the slices of each rank
    calls : int64 [calls], rows of RunCalls of each rank
    label_text : the text of a label
    instance_of : the texts of a signature

    Attributes
    ----------
    origin : the earliest time, ns on the clock of the run
    """

    def __init__(
        self,
        run: RunData,
        pieces: dict[int, ChainSlices],
        calls: dict[int, Int64],
        label_text: Callable[[Label], str],
        instance_of: Callable[[CallSignature], Instance],
    ) -> None:
        self.run, self.pieces, self.calls = run, pieces, calls
        self.label_text, self.instance_of = label_text, instance_of
        starts = [own.start for own in pieces.values()]
        starts += [run.waits.arrival[own] for own in calls.values()]
        starts = [own for own in starts if len(own)]
        self.origin = int(min((own.min() for own in starts), default=0))
        of_call = run.waits.instances.of_call
        some = np.concatenate([np.empty(0, np.int64), *calls.values()])
        some = np.concatenate([some, *(own.call[own.call >= 0] for own in pieces.values())])
        result = np.unique(of_call[some])
        self.instances: Int64 = result[result >= 0].astype(np.int64)

    def instance(self, calls: Int64) -> Int64:
        """The place of the instance of each call from 1, 0 for none; -1 is no call."""
        of = np.append(self.run.waits.instances.of_call, -1)[calls].astype(np.int64)
        return np.where(of >= 0, np.searchsorted(self.instances, of) + 1, 0)


class _Texts:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        return list(self._numbers)


def lane_arrays(events: RunEvents) -> tuple[Arrays, Arrays]:
    """The data (ranks, lanes, texts) and arrays of the chart; see lanes_data.js."""
    texts = _Texts()
    texts.number("")
    lanes, pieces, calls = [], [], []
    for rank, own in events.pieces.items():
        lanes.append({"rank": rank, "channel": -1, "events": len(own)})
        pieces.append(_of_pieces(events, rank, own, texts))
        for channel, rows in _by_channel(events, events.calls[rank]):
            lanes.append({"rank": rank, "channel": channel, "events": len(rows)})
            calls.append(_of_calls(events, rows))
    run = events.run
    data = {
        "lanes": lanes,
        "ranks": {rank: run.numbers[rank] for rank in events.pieces},
        "kinds": list(KINDS),
        "signatures": [
            [*map(texts.number, events.instance_of(signature))]
            for signature in run.waits.instances.calls.signatures
        ],
    }
    arrays = {f"piece.{name}": planes(column) for name, column in _joined(pieces).items()}
    arrays |= {f"call.{name}": planes(column) for name, column in _joined(calls).items()}
    arrays |= {f"instance.{name}": planes(column) for name, column in _of_instances(events).items()}
    data |= {"n": [len(events.instances)], "texts": texts.all()}
    return data, arrays


def _joined(parts: list[dict[str, Int64]]) -> dict[str, Int64]:
    names = parts[0] if parts else {}
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def _by_channel(events: RunEvents, rows: Int64) -> list[tuple[int, Int64]]:
    """The calls of each communication stream of a rank."""
    run_calls = events.run.waits.instances.calls
    channels = np.array([signature.channel for signature in run_calls.signatures] or [0])
    channel = channels[run_calls.signature[rows]]
    return [(number, rows[channel == number]) for number in np.unique(channel).tolist()]


def _times(events: RunEvents, start: Int64, end: Int64) -> dict[str, Int64]:
    """The start, as its distance from the one before, and the length."""
    return {
        "start": np.diff(start, prepend=events.origin),
        "length": np.maximum(end - start, 0),
    }


def _of_pieces(events: RunEvents, rank: int, own: ChainSlices, texts: _Texts) -> dict[str, Int64]:
    labels = events.run.records[rank].labels
    used, place = np.unique(own.label, return_inverse=True)
    names = np.array(
        [texts.number(events.label_text(labels[i]) if i >= 0 else "") for i in used.tolist()],
        np.int64,
    )
    return {
        **_times(events, own.start, own.end),
        "kind": own.kind.astype(np.int64),
        "text": names[place] if len(names) else place,
        "count": own.count.astype(np.int64),
        "instance": events.instance(own.call),
    }


def _of_calls(events: RunEvents, rows: Int64) -> dict[str, Int64]:
    waits = events.run.waits
    start, end = waits.arrival[rows], waits.end[rows]
    wait = np.where(events.instance(rows) > 0, waits.wait[rows], 0)
    return {
        **_times(events, start, end),
        "wait": np.clip(wait, 0, np.maximum(end - start, 0)),
        "signature": waits.instances.calls.signature[rows].astype(np.int64),
        "instance": events.instance(rows),
    }


def _of_instances(events: RunEvents) -> dict[str, Int64]:
    waits, some = events.run.waits, events.instances
    order, bounds = waits.members
    counts = np.diff(bounds)
    last = waits.last_arrival[some]
    first = last.copy()
    for i, (begin, n) in enumerate(zip(bounds[some].tolist(), counts[some].tolist(), strict=True)):
        first[i] = waits.arrival[order[begin : begin + n]].min(initial=last[i])
    numbers = np.array(events.run.numbers or [0], np.int64)
    return {
        "at": np.maximum(last - events.origin, 0),
        "late": last - first,
        "last": np.where(waits.is_shared[some], numbers[waits.last[some]] + 1, 0),
        "transfer": waits.transfer[some],
        "ranks": counts[some],
        "missing": waits.missing[some].astype(np.int64),
        "signature": waits.instances.signature[some].astype(np.int64),
    }
