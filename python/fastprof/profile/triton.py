"""What is recorded of Triton kernels."""

from __future__ import annotations

import numpy as np

from fastprof._core import _path
from fastprof._core._take import take
from fastprof.model.columns import Values
from fastprof.profile.lookups import Lookups


def configurations(lookups: Lookups) -> Values:
    """[kernels] Constants, warps and stages, of the range around the launch that has them."""
    attribution = lookups.attribution
    meanings = attribution.meanings
    ranks = np.array([_path.NO_RANK if m.triton is None else 0 for m in meanings], np.uint8)
    labels = take(attribution.ranges.label, attribution.frame_range)
    best = take(_path.best(attribution.frame_parent, labels, ranks), lookups.frame)
    return Values(take(labels, best), [m.triton for m in meanings]).mapped(lambda text: text)
