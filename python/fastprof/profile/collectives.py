"""The message of every communication kernel: collective, sizes, type and group."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof import ops
from fastprof._core import _path
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof.model.arrays import Int32
from fastprof.model.columns import Values
from fastprof.model.markers import Meaning
from fastprof.ops.collectives import messages
from fastprof.profile.lookups import Lookups

__all__ = ["COMMUNICATION", "messages_of"]

COMMUNICATION: Final = "communication"  # the class of kernels

# The sources of a message, the best first: the profiler's record, the operator's arguments.
_SIZED_RECORD, _SIZED_CALL, _RECORD, _CALL = range(4)


def messages_of(lookups: Lookups) -> Values:
    """[kernels] The `Message` of each communication kernel; other work has none.

    From the profiler's record of the call, else from the operator's arguments, whichever has sizes;
    without ranges around the launch, from the kernel's name.
    """
    names, _ = lookups.names
    is_communication = [ops.classify(name).kind == COMMUNICATION for name in names.values]
    rows = np.flatnonzero(np.array([*is_communication, False])[names.ids])
    label, name = _labels(lookups, rows), names.ids[rows]
    pair, first = alike([label, name])
    meanings = lookups.attribution.meanings
    found = [
        _message(None if i < 0 else meanings[i], names.values[j])
        for i, j in zip(label[first].tolist(), name[first].tolist(), strict=True)
    ]
    ids = np.full(len(lookups.frame), -1, np.int32)
    ids[rows] = pair
    return Values(ids, found).mapped(lambda message: message)


def _labels(lookups: Lookups, rows: Int32) -> Int32:
    """The label of the range that describes the message best, of the ranges around each launch."""
    attribution = lookups.attribution
    ranks = np.array([_rank(meaning) for meaning in attribution.meanings], np.uint8)
    best = _path.best(attribution.node_parent, attribution.node_label, ranks)
    return take(attribution.node_label, take(best, lookups.node[rows]))


def _rank(meaning: Meaning) -> int:
    if meaning.collective is not None:
        return _RECORD if messages.of_record(meaning.collective).size is None else _SIZED_RECORD
    found = messages.of_call(meaning.call)
    if found is None:
        return _path.NO_RANK
    return _CALL if found.size is None else _SIZED_CALL


def _message(meaning: Meaning | None, kernel: str) -> messages.Message:
    record = None if meaning is None else meaning.collective
    if record is not None:
        found: messages.Message | None = messages.of_record(record)
    else:
        found = messages.of_call(None if meaning is None else meaning.call, kernel)
    return messages.of_kernel(kernel, found)
