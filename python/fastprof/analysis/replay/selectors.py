"""The kernels that a selector such as op=linear means."""

from __future__ import annotations

from fastprof.analysis.cells import cells_of
from fastprof.analysis.key_names import condition
from fastprof.analysis.keys import key_of
from fastprof.analysis.replay.model import Model
from fastprof.analysis.selection import selected
from fastprof.errors import ReportError
from fastprof.model.arrays import Bools
from fastprof.model.names import unknown_name


def kernels_of(model: Model, selector: str) -> Bools:
    """[kernels] Those that a selector KEY=PATTERN or KEY!=PATTERN fits.

    Raises
    ------
    ReportError
        The selector is malformed, its key is unknown, or no kernel fits; the message names the
        nearest.
    """
    cells = cells_of(model.whole, (), [selector])
    found = selected(cells, [selector])
    if found is None or not found.any():
        name, _, pattern = condition(selector)
        values = [str(each) for each in key_of(cells, name).values]
        if not values:
            raise ReportError(f"{selector}: {name} is not recorded in {model.whole.name}")
        raise ReportError(f"{selector}: {unknown_name(name, pattern, values)}")
    return cells.flags(found)
