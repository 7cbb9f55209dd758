"""`stats`: the tables of nsys stats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from fastprof._system.threads import SecondThread
from fastprof.analysis.stats import gpu, ranges
from fastprof.analysis.stats import gpu as calls
from fastprof.analysis.stats import ranges as projection
from fastprof.analysis.stats.columns import TABLES, table_name
from fastprof.model.table import ColumnData, Table, Tables
from fastprof.profile.data import ProfileData

_MAKERS: Final[dict[str, Callable[[ProfileData], list[ColumnData]]]] = {
    "nvtx_sum": ranges.nvtx_sum,
    "cuda_api_sum": calls.cuda_api_sum,
    "cuda_gpu_kern_sum": gpu.cuda_gpu_kern_sum,
    "cuda_gpu_mem_time_sum": gpu.cuda_gpu_mem_time_sum,
    "cuda_gpu_mem_size_sum": gpu.cuda_gpu_mem_size_sum,
    "cuda_kern_exec_sum": calls.cuda_kern_exec_sum,
    "nvtx_kern_sum": projection.nvtx_kern_sum,
    "nvtx_gpu_proj_sum": projection.nvtx_gpu_proj_sum,
    "nvtx_gpu_proj_trace": projection.nvtx_gpu_proj_trace,
}
_ASCENDING, _DESCENDING = True, False
# How nsys sorts tables; the others by their total, largest first.
_ORDER: Final[dict[str, tuple[tuple[str, bool], ...]]] = {
    "cuda_gpu_kern_sum": (
        ("Total Time (ns)", _DESCENDING),
        ("Instances", _ASCENDING),
        ("Name", _ASCENDING),
    ),
    "cuda_kern_exec_sum": (("TAvg (ns)", _DESCENDING),),
    "nvtx_kern_sum": (
        ("NVTX Range", _ASCENDING),
        ("PID", _ASCENDING),
        ("TID", _ASCENDING),
        ("Total Time (ns)", _DESCENDING),
    ),
    "nvtx_gpu_proj_trace": (
        ("Projected Start (ns)", _ASCENDING),
        ("Projected Duration (ns)", _DESCENDING),
    ),
}
_TOTALS: Final = ("Total Proj Time (ns)", "Total Time (ns)", "Total (MB)")


def stats(profile: ProfileData, names: Sequence[str] = ()) -> Table:
    """The tables of `nsys stats`, with its names of columns, of any trace. See docs/reports.md.

    Parameters
    ----------
    names : names of tables; by default those of nsys that the file has data for

    Returns
    -------
    Table, or Tables (a mapping of names to tables) unless one name is given

    Raises
    ------
    ReportError
        There is no such table.
    """
    chosen = [table_name(name) for name in names]
    if len(chosen) == 1:
        return _table(profile, chosen[0])
    if not chosen:
        chosen = [name for name, table in TABLES.items() if table.is_default]
        if "start" not in profile.names:  # dict lines
            chosen = ["cuda_gpu_kern_sum"]
    tables = _tables(profile, chosen)
    filled = {name: table for name, table in tables.items() if table.n_rows or names}
    return cast(Table, Tables(filled or tables))


def _tables(profile: ProfileData, names: Sequence[str]) -> dict[str, Table]:
    """The tables by name. The table of ranges is made on a second thread."""
    if _LARGEST not in names:
        return {name: _table(profile, name) for name in names}
    _ = profile.ranges  # read before two threads need them
    with SecondThread() as second:
        largest = second.submit(_table, profile, _LARGEST)
        tables = {name: _table(profile, name) for name in names if name != _LARGEST}
        tables[_LARGEST] = largest.result()
    return {name: tables[name] for name in names}


_LARGEST: Final = "nvtx_sum"


def _table(profile: ProfileData, name: str) -> Table:
    kind, columns = TABLES[name], _MAKERS[name](profile)
    table = Table(
        dict(zip(kind.columns, columns, strict=True)), kind.headings, f"{kind.title} ({name})"
    )
    rows = _in_order(table, name)
    counts = next((text for text in ("Instances", "Num Calls", "Count") if text in table), None)
    if counts is not None:  # groups without members are left out
        rows = rows[np.ma.getdata(table[counts])[rows] > 0]
    return table.take(rows)


def _in_order(table: Table, name: str) -> npt.NDArray[np.intp]:
    """The rows of a table in the order of nsys."""
    keys = _ORDER.get(name)
    if keys is None:
        return table.order(next(total for total in _TOTALS if total in table), ascending=False)
    rows = np.arange(table.n_rows)
    for column, is_ascending in reversed(keys):
        rows = rows[table.take(rows).order(column, ascending=is_ascending)]
    return rows
