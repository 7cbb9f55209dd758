"""The host of the unrecorded run: its own time without that of the recorder."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from fastprof.analysis.recorder import unrecorded_step
from fastprof.analysis.replay.host_changes import host_scaled
from fastprof.analysis.replay.model import Model
from fastprof.analysis.replay.runs import Weights
from fastprof.profile.steps.of_kernels import StepsOfKernels

_LEAST: Final = 0.1  # of the host's own time: no recorder is known to slow a host down tenfold
_HALVINGS: Final = 10
_CLOSE: Final = 0.005  # of the length of a step


class Calibrated(NamedTuple):
    """The run without the recorder, from which changes start.

    Parameters
    ----------
    weights : those of `Model.base` where nothing is known
    wall : mean length of a step of its replay, ns
    factor : what remains of the host's own time; None where nothing is known
    """

    weights: Weights
    wall: float
    factor: float | None


def calibrated(model: Model, steps: StepsOfKernels) -> Calibrated:
    """Scale the host's own time until the median replayed step is as long as the unrecorded one.

    The run as recorded, if unrecorded steps were not measured or not shorter, or if no plausible
    factor explains them.

    steps : those of the whole run
    """
    recorded, typical = _replayed(model, model.base, None)
    measured = unrecorded_step(model.whole, steps)
    if measured is None or measured.median_ns >= typical:
        return recorded
    wanted, least, most = measured.median_ns, _LEAST, 1.0
    found, typical = _scaled(model, least)
    if typical > wanted * (1 + _CLOSE):
        return recorded
    for _ in range(_HALVINGS):
        if abs(typical - wanted) <= _CLOSE * wanted:
            break
        middle = (least + most) / 2
        found, typical = _scaled(model, middle)
        least, most = (middle, most) if typical < wanted else (least, middle)
    return found


def _scaled(model: Model, factor: float) -> tuple[Calibrated, float]:
    return _replayed(model, host_scaled(model, model.base, factor)[0], factor)


def _replayed(model: Model, weights: Weights, factor: float | None) -> tuple[Calibrated, float]:
    """The run with some weights, and the median length of its counted steps, ns."""
    wall = model.run(weights).wall
    typical = float(np.median(wall[model.is_counted])) if len(wall) else float("nan")
    return Calibrated(weights, model.mean(wall), factor), typical
