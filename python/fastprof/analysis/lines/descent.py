"""The own line that takes nearly all, such as `model(x)`: lines of libraries below it tell more."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof.model.arrays import Bools, unique
from fastprof.model.columns import Values

_NEARLY_ALL: Final = 0.8  # of the time with lines, in one of them


def below_one_line(lines: Values, inner: Values, ns: npt.NDArray[Any]) -> tuple[int, Bools] | None:
    """The id of the line that takes nearly all, and the rows below it with a line of a library.

    None if there is no such line, or it is all that is recorded.

    Parameters
    ----------
    lines : own lines [n]
    inner : the innermost lines of libraries [n]
    ns : GPU time [n]
    """
    known = lines.ids >= 0
    if not known.any():
        return None
    by_line = np.bincount(lines.ids[known], np.maximum(ns, 0)[known], len(lines.values))
    longest = int(by_line.argmax())
    below = (lines.ids == longest) & (inner.ids >= 0)
    is_all = by_line[longest] > _NEARLY_ALL * by_line.sum()
    return (longest, below) if is_all and len(unique(inner.ids[below])) > 1 else None
