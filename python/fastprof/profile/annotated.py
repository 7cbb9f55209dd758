"""Columns of kernels of CUDA graphs by the annotations of their nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof.model.columns import SharedValues, Values, unknown
from fastprof.model.markers.annotations import BACKWARD, FORWARD, Annotation, read_annotation
from fastprof.model.trace import Trace


def notes_of(trace: Trace) -> Values:
    """[kernels] The `Annotation` of each kernel; unknown without."""
    configs, rows = trace.kernels.configs, trace.kernels.config
    if configs.annotation is None:
        return unknown(len(rows))
    used, place = alike([configs.annotation])
    results: dict[Annotation, int] = {}
    of_used = []
    for config in place.tolist():
        number = int(configs.annotation[config])
        note = read_annotation(trace.strings[number] or "") if number >= 0 else None
        of_used.append(-1 if note is None else results.setdefault(note, len(results)))
    return SharedValues(rows, take(np.array(of_used, np.int32), used), list(results))


def with_layers(layers: Values, trace: Trace) -> Values:
    """The layers of kernels, with those of their annotations inside of the recorded ones."""
    return _with(layers, trace, lambda path, note: inner_layers(path or (), note.layers))


def with_directions(directions: Values, trace: Trace) -> Values:
    """The directions of kernels, `fprop` or `bprop`; those of their annotations come first."""
    return _with(directions, trace, lambda own, note: _DIRECTIONS.get(note.direction) or own)


_DIRECTIONS: Final = {FORWARD: "fprop", BACKWARD: "bprop"}
# The columns that annotations change.
COLUMNS: Final = {"layer": with_layers, "dir": with_directions}


def _with(own: Values, trace: Trace, changed: Callable[[Any, Annotation], Any]) -> Values:
    """[kernels] The values that a function makes of those of annotated kernels."""
    if trace.kernels.configs.annotation is None:
        return own
    notes = notes_of(trace)
    pair, first = alike([own.ids, notes.ids])
    of_pair = []
    for row in first.tolist():
        note, value = notes.at(row), own.at(row)
        of_pair.append(value if note is None else changed(value, note))
    return Values(pair, of_pair).mapped(lambda value: value or None)


def inner_layers(recorded: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
    """Recorded layers and those of a part of their work, which may begin with or repeat these."""
    if recorded[len(recorded) - len(own) :] == own:  # also of the capture
        return recorded
    return own if own[: len(recorded)] == recorded else (*recorded, *own)
