"""The host of the unrecorded run: its own time without that of the recorder."""

from __future__ import annotations

from typing import Final, NamedTuple

from fastprof.analysis.recorder import unrecorded_step
from fastprof.analysis.replay.host_changes import host_scaled
from fastprof.analysis.replay.model import Model, Weights

__all__ = ["Calibrated", "calibrated"]

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


def calibrated(model: Model) -> Calibrated:
    """Scale the host's own time until replayed steps are as long as the unrecorded ones.

    The run as recorded, if unrecorded steps were not measured or not shorter, or if no plausible
    factor explains them.
    """
    recorded = model.mean(model.run(model.base).wall)
    as_recorded = Calibrated(model.base, recorded, None)
    measured = unrecorded_step(model.whole, model.whole_steps)
    if measured is None or measured.median_ns >= recorded:
        return as_recorded

    def at(factor: float) -> Calibrated:
        weights, _ = host_scaled(model, model.base, factor)
        return Calibrated(weights, model.mean(model.run(weights).wall), factor)

    least, most, found = _LEAST, 1.0, at(_LEAST)
    if found.wall > measured.median_ns * (1 + _CLOSE):
        return as_recorded
    for _ in range(_HALVINGS):
        if abs(found.wall - measured.median_ns) <= _CLOSE * measured.median_ns:
            break
        middle = (least + most) / 2
        found = at(middle)
        least, most = (middle, most) if found.wall < measured.median_ns else (least, middle)
    return found
