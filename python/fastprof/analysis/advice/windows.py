"""The steps that findings describe: typical ones, as the mean over steps and GPUs."""

from __future__ import annotations

import numpy as np

from fastprof.analysis.steps_outliers import is_outlier
from fastprof.analysis.steps_windows import Windows
from fastprof.model.arrays import Int64
from fastprof.profile.steps.of_kernels import StepsOfKernels

__all__ = ["typical"]


def typical(windows: Windows, steps: StepsOfKernels) -> Int64:
    """The rows that count: no warm-up, no cut step, no outlier, no unknown time before its work.

    A GPU whose steps are all of this kind keeps them.
    """
    chosen = []
    counted = steps.is_counted[windows.step] & windows.is_known
    for lane, rows in windows.by_lane():
        averaged = counted[rows] & ~windows.is_cut[rows]
        is_normal = averaged & ~is_outlier(windows.wall[rows], averaged)
        starts_known = windows.start[rows] >= lane.work.span[0]
        for fits in (is_normal & starts_known, is_normal, counted[rows], windows.is_known[rows]):
            if fits.any():
                chosen.append(rows[fits])
                break
    return np.sort(np.concatenate(chosen)) if chosen else np.empty(0, np.int64)
