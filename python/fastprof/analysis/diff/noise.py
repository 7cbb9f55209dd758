"""The standard error of mean times, from their spread over the steps of a capture."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof.analysis.diff.side import Side
from fastprof.model.arrays import Int64

_LEAST: Final = 2  # degrees of freedom: three steps of one GPU

Floats64 = npt.NDArray[np.float64]


def errors(side: Side, line: Int64, n_lines: int) -> Floats64:
    """The standard error of the mean busy time of lines in a window, ns [lines].

    NaN if there are fewer than three steps. Windows of a GPU are compared with each other only.

    line : int64 [groups], the line of each group
    """
    n = side.n_windows
    places, place = np.unique(line[side.group] * n + side.window, return_inverse=True)
    times = np.bincount(place, side.own_ns, len(places))
    of_line, window = np.divmod(places, n)
    lane, sizes = _lanes(side)
    n_lanes = len(sizes)
    cell = of_line * n_lanes + lane[window]
    known = np.bincount(cell, minlength=n_lines * n_lanes)
    mean = np.bincount(cell, times, n_lines * n_lanes) / np.tile(sizes, n_lines)
    squares = np.bincount(cell, (times - mean[cell]) ** 2, n_lines * n_lanes)
    without = (np.tile(sizes, n_lines) - known) * mean**2  # windows that a line has no work in
    of_lanes = (squares + without).reshape(n_lines, n_lanes)
    return _error(of_lanes.sum(axis=1), n, n_lanes)


def idle_errors(side: Side) -> Floats64:
    """The standard error of the mean idle time by cause, ns [causes]; see `errors`."""
    lane, sizes = _lanes(side)
    squares = np.zeros(side.idle.shape[1])
    for each in range(len(sizes)):
        times = side.idle[lane == each]
        squares += ((times - times.mean(axis=0)) ** 2).sum(axis=0)
    return _error(squares, side.n_windows, len(sizes))


def _lanes(side: Side) -> tuple[Int64, Int64]:
    """The number of the GPU of each window, and the windows of each."""
    columns = [side.windows[name] for name in ("rank", "pid", "device")]
    _, lane, sizes = np.unique(
        np.stack(columns, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    return lane.reshape(-1), sizes


def _error(squares: Floats64, n: int, n_lanes: int) -> Floats64:
    degrees = n - n_lanes
    if degrees < _LEAST:
        return np.full(len(squares), np.nan)
    return np.asarray(np.sqrt(squares / degrees / n))
