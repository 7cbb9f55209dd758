"""`counters`: hardware counters of kernels by any keys, and the bytes that kernels moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fastprof.analysis import keys
from fastprof.analysis.counters.columns import COLUMNS
from fastprof.analysis.grouping import Floats64, Grouping, group, numbers
from fastprof.analysis.key_names import check_keys, heading_of
from fastprof.analysis.registry import Where
from fastprof.analysis.selection import selected
from fastprof.analysis.summary.measures import ratio, shown
from fastprof.model.arrays import Bools
from fastprof.model.columns import Ints, Values
from fastprof.model.heading import Heading
from fastprof.model.table import ColumnData, Floats, Table
from fastprof.profile.counters import HOW, Counters
from fastprof.profile.data import ProfileData
from fastprof.profile.facts import gpu_names

# Kilobytes, by the descriptions of ROCm's counters.
FETCHED, WRITTEN = "FETCH_SIZE", "WRITE_SIZE"
_KILOBYTE: Final = 1024


def counters(
    profile: ProfileData, by: str | Sequence[str] | None = None, where: Where | None = None
) -> Table:
    """Sums of hardware counters by any keys, longest GPU time first. See docs/reports.md.

    Parameters
    ----------
    by : keys, see `fastprof.analysis.key_names`; by default kernel
    where : see `fastprof.analysis.selection`

    Raises
    ------
    ReportError
        A key is unknown.
    BadInputError
        The file has changed since it was read.
    """
    names = (by,) if isinstance(by, str) else tuple(by or ("kernel",))
    check_keys(names)
    recorded = profile.counters
    rows = _rows(profile, recorded, selected(profile, where))
    if not rows.any():
        return _empty(names, "the file has no counters" if not recorded else "no such kernels")
    by_name = {name: keys.key_of(profile, name) for name in names}
    groups = group(list(by_name.values()), len(profile), rows)
    columns: dict[str, ColumnData] = {
        name: Values(key.ids[groups.first], key.values) for name, key in by_name.items()
    }
    measured = _measures(profile, recorded, groups)
    whole = Grouping(np.where(rows, np.int32(0), np.int32(-1)), 1)
    total = {name: column.at(0) for name, column in _measures(profile, recorded, whole).items()}
    own = [Heading(name, name, "", f"sum of {name}") for name in recorded]
    gpus = gpu_names(profile.about, profile.column("device"))
    return Table(
        {**columns, **measured},
        (*map(heading_of, names), *shown((*COLUMNS, *own), measured)),
        lead=(f"{gpus}: {int(rows.sum())} kernels with counters", "") if gpus else (),
        total=total,
    ).sort("gpu_ns")


def _rows(profile: ProfileData, recorded: Counters, chosen: Bools | None) -> Bools:
    """The kernels that have a counter."""
    rows = np.zeros(len(profile), bool)
    for values in recorded.values():
        rows |= ~np.isnan(values)
    return rows if chosen is None else rows & chosen


def _measures(profile: ProfileData, recorded: Counters, groups: Grouping) -> dict[str, ColumnData]:
    time = np.maximum(numbers(profile, "sil"), 0)
    nothing = np.full(len(profile), np.nan)
    fetched, written = (recorded.get(name, nothing) * _KILOBYTE for name in (FETCHED, WRITTEN))
    moved = fetched + written
    model = numbers(profile, "bytes").astype(np.float64)
    model[model < 0] = np.nan
    both = np.where(np.isnan(moved), np.nan, model), np.where(np.isnan(model), np.nan, moved)
    return {
        "kernels": Ints(groups.counts),
        "gpu_ns": Ints(groups.stats(time).sum),
        "moved_bytes": Floats(_sums(groups, moved)),
        "fetched_bytes": Floats(_sums(groups, fetched)),
        "written_bytes": Floats(_sums(groups, written)),
        "bytes_per_s": Floats(_rate(groups, moved, time)),
        "model_bytes": Floats(_sums(groups, model)),
        "moved_by_model": Floats(ratio(_sums(groups, both[1]), _sums(groups, both[0]))),
        **{name: Floats(_sums(groups, values)) for name, values in recorded.items()},
    }


def _sums(groups: Grouping, values: Floats64) -> Floats64:
    """[groups] Sums of the known values; NaN without any."""
    known = ~np.isnan(values)
    result = groups.sums(np.where(known, values, 0.0))
    return np.where(groups.sums(known) > 0, result, np.nan)


def _rate(groups: Grouping, moved: Floats64, time: Floats64) -> Floats64:
    """[groups] Bytes per second of the kernels whose bytes are known."""
    return ratio(_sums(groups, moved), groups.sums(np.where(np.isnan(moved), 0, time))) * 1e9


def _empty(names: Sequence[str], why: str) -> Table:
    none: ColumnData = Ints(np.empty(0, np.int64))
    columns = dict.fromkeys((*names, *(column.key for column in COLUMNS)), none)
    return Table(columns, (*map(heading_of, names), *COLUMNS), notes=(f"{why}: {HOW}",))
