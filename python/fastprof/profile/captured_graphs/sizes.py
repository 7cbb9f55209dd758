"""Grid and block of replayed kernels from the API calls of the capture.

ROCm records no sizes for replayed kernels, but records them for captured calls.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core._pools import alike
from fastprof.model.trace import Configs, Trace

Rows = npt.NDArray[np.int64]


def give_sizes(trace: Trace, row: Rows, captured: Rows) -> None:
    """Set grid and block of kernels without sizes, in place.

    row, captured : rows of Trace.kernels, and their rows of Trace.captured
    """
    kernels, calls = trace.kernels, trace.captured
    if calls is None:
        return
    configs = kernels.configs
    unknown = np.all(configs.grid[kernels.config[row]] < 0, axis=1)
    unknown &= np.all(calls.grid[captured] >= 0, axis=1)
    row, captured = row[unknown], captured[unknown]
    if not len(row):
        return
    grid, block = calls.grid[captured], calls.block[captured]
    kind, first = alike([kernels.config[row], grid, block])
    like = kernels.config[row[first]]
    changed = {"grid": grid[first], "block": block[first]}
    columns: dict[str, Any] = {each.name: getattr(configs, each.name) for each in fields(Configs)}
    for name, column in columns.items():
        if column is not None:
            columns[name] = np.concatenate([column, changed.get(name, column[like])])
    kernels.config = kernels.config.copy()
    kernels.config[row] = kind + np.int32(len(configs))
    kernels.configs = Configs(**columns)
