"""`summary`: time and work by any keys."""

from __future__ import annotations

from collections.abc import Sequence

from fastprof.analysis import keys
from fastprof.analysis.grouping import group
from fastprof.analysis.key_names import check_keys, heading_of
from fastprof.analysis.measures import measures, totals
from fastprof.analysis.selection import Where, selected
from fastprof.analysis.summary_columns import MEASURES
from fastprof.model.columns import Values
from fastprof.model.table import Cells, Table
from fastprof.profile.profile import Profile

__all__ = ["summary"]


def summary(
    profile: Profile, by: str | Sequence[str] = ("dir", "op"), where: Where | None = None
) -> Table:
    """Time and work of kernels by any keys, the longest first. See docs/reports.md.

    Parameters
    ----------
    by : keys, see `fastprof.analysis.key_names`
    where : see `fastprof.analysis.selection`

    Raises
    ------
    ReportError
        A key is unknown.
    """
    names = (by,) if isinstance(by, str) else tuple(by)
    check_keys(names)
    key_columns = [keys.key_of(profile, name) for name in names]
    groups = group(key_columns, len(profile), selected(profile, where))
    columns: dict[str, Cells] = {
        name: Values(key.ids[groups.first], key.values)
        for name, key in zip(names, key_columns, strict=True)
    }
    of_groups = measures(profile, groups)
    table = Table(
        {**columns, **of_groups},
        (*map(heading_of, names), *MEASURES),
        total=totals(of_groups),
    )
    return table.sort("gpu_ns")
