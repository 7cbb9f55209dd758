"""Weights of the exports of trees: collapsed stacks, speedscope, pstats."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof.analysis.stacks.tree import DIRECTIONS, Stacks
from fastprof.errors import ReportError

_MEASURE_OF: Final = {"ns": "ns", "flops": "flops", "bytes": "bytes", "lost": "lost_ns"}


def own_weights(tree: Stacks, weight: str) -> npt.NDArray[np.int64]:
    """[n, 3] The weight of the kernels of each node, by direction; 0 where unknown.

    Raises
    ------
    ReportError
        Nothing has such a weight.
    """
    measure = _MEASURE_OF[weight]
    found = np.stack([tree.own(measure, each) for each in DIRECTIONS], axis=1)
    whole = np.rint(np.nan_to_num(found.astype(np.float64))) if measure == "lost_ns" else found
    result = np.maximum(whole, 0).astype(np.int64)
    if weight != "ns" and not result.any() and tree.own("ns").any():
        raise ReportError(
            f"--weight {weight}: no operator of this capture has known {weight}; "
            "`fastprof info` says what to record"
        )
    return result


def paths_of(tree: Stacks) -> list[tuple[int, ...]]:
    """The nodes from below the root to each node, itself included; empty for the root."""
    paths: list[tuple[int, ...]] = [()]
    for row, parent in enumerate(tree.parent.tolist()[1:], 1):
        paths.append((*paths[parent], row))
    return paths
