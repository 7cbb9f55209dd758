"""The cells of reports that tell source lines, layers and operators apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastprof.analysis.cells import ReportCells, cells_of
from fastprof.analysis.registry import Where
from fastprof.profile.data import ProfileData


def parts_of(
    profile: ProfileData, by: Sequence[str] = (), where: Where | None = None
) -> ReportCells:
    """The cells as for `cells_of`; those of kernels that torch.compile generated are split into the
    parts of their work, if its artefacts are known (`analysis.split`)."""
    work, cells = profile.source.compiled_work, cells_of(profile, by, where)
    if work is None or not work.shares:
        return cells
    from fastprof.analysis.split import SplitCells

    return SplitCells(cells.refined([work.site + np.int32(1)]), work)
