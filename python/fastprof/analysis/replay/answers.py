"""The answers to changes: each alone, and all together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from fastprof.analysis.replay.calibration import Calibrated
from fastprof.analysis.replay.changes import Change
from fastprof.analysis.replay.model import Model
from fastprof.analysis.replay.path import path_of
from fastprof.analysis.replay.runs import Weights

TOGETHER: Final = "all together"
_STEPS: Final = 8  # whose critical paths are examined


class Answer(NamedTuple):
    """What a change does.

    Parameters
    ----------
    name : of the change
    wall : mean length of a step, ns
    saved : ns
    binds, binds_share : the resource with most of the critical path, and its share
    changed : kernels or host calls that the change concerns
    """

    name: str
    wall: float
    saved: float
    binds: str
    binds_share: float
    changed: int


def answers_of(
    model: Model, changes: Sequence[Change], start: Calibrated
) -> tuple[list[Answer], Weights]:
    """Each change alone, then all together if there are several; and the weights of these.

    start : the run without changes
    """
    found, total, n_total = [], start.weights, 0
    for each in changes:
        alone, n = each.apply(model, start.weights)
        found.append(_answer(model, each.name, alone, n, start.wall))
        total, n = each.apply(model, total) if n_total else (alone, n)
        n_total += n
    if len(changes) > 1:
        found.append(_answer(model, TOGETHER, total, n_total, start.wall))
    return found, total


def _answer(model: Model, name: str, weights: Weights, n: int, base: float) -> Answer:
    replayed = model.run(weights)
    wall = model.mean(replayed.wall)
    path = path_of(model, replayed, _STEPS)
    return Answer(name, wall, base - wall, *path.binds(), n)
