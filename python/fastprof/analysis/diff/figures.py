"""The figures of a stored capture: its step, MFU and memory, and its largest operators, layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from fastprof._system.classes import dataclass
from fastprof.analysis.diff.side import Side

PARTS: Final = ("op", "layer")
_MOST: Final = 30  # operators and layers each


@dataclass(frozen=True)
class Figures:
    """The figures of a capture: means over steps and GPUs, None if unknown.

    Parameters
    ----------
    steps : the number of steps; None if the capture has none: times are then those of all of it
    step_ns, busy_ns, idle_ns : length of a step, its part with and without GPU work, ns
    mfu : model FLOPs utilisation, a share
    peak_bytes : the most memory of a GPU, bytes
    parts : the busy time of a step by `op` and `layer`, ns, of the largest of each
    """

    steps: int | None
    step_ns: float | None
    busy_ns: float | None
    idle_ns: float | None
    mfu: float | None
    peak_bytes: float | None
    parts: Mapping[str, Mapping[str, float]]


def figures_of(
    side: Side, of_profiles: Sequence[tuple[float | None, float | None]] = ()
) -> Figures:
    """The figures of a side.

    of_profiles : of each rank, see `fastprof.analysis.diff.profile_figures`
    """
    mfus = [mfu for mfu, _ in of_profiles if mfu is not None]
    peaks = [peak for _, peak in of_profiles if peak is not None]
    return Figures(
        steps=len(np.unique(side.windows["step"])) if side.has_steps else None,
        step_ns=_mean(side, "wall_ns"),
        busy_ns=_mean(side, "busy_ns"),
        idle_ns=_mean(side, "idle_ns"),
        mfu=float(np.mean(mfus)) if mfus and len(mfus) == len(of_profiles) else None,
        peak_bytes=max(peaks, default=None),
        parts={key: _largest(side, key) for key in PARTS},
    )


def _mean(side: Side, name: str) -> float | None:
    values = side.windows[name]
    return float(values.mean()) if (values >= 0).all() else None


def _largest(side: Side, key: str) -> dict[str, float]:
    """The busy time of a step that is each value's own, ns, the largest first."""
    column = side.keys[key]
    known = column.ids >= 0
    sums = np.bincount(column.ids[known], side.own[known], len(column.values)) / side.n_windows
    order: Iterable[int] = np.argsort(-sums, kind="stable")[:_MOST].tolist()
    return {str(column.values[i]): float(sums[i]) for i in order if sums[i] > 0}
