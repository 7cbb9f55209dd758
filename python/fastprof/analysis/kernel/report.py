"""`kernel`: one kernel, copy or memset explained, with what runs around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from fastprof.analysis.find.rows import origin_of, since, starts
from fastprof.analysis.grouping import numbers
from fastprof.analysis.kernel.columns import AFTER, BEFORE, BESIDE, COLUMNS, NEIGHBOURS, THIS
from fastprof.analysis.kernel.explained import explained
from fastprof.analysis.kernel.lines import lines_of
from fastprof.analysis.kernel.stream import on_stream_of
from fastprof.analysis.keys import key_of
from fastprof.analysis.roofline.utilisation import devices_with
from fastprof.analysis.summary.measures import shown
from fastprof.errors import ReportError
from fastprof.model.arrays import Int64
from fastprof.model.columns import Ints
from fastprof.model.table import ColumnData, Table, text_column
from fastprof.model.trace import NO_TIME
from fastprof.profile.data import ProfileData

_KEYS: Final = ("kernel", "op", "shape", "layer", "device", "stream")
_MOST_BESIDE: Final = 10


def kernel(
    profile: ProfileData,
    idx: int | Sequence[int] = (),
    neighbours: int = NEIGHBOURS,
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
) -> Table:
    """One kernel, copy or memset explained. See docs/reports.md.

    The rows are the kernels around it; `facts["kernel"]` has all that is known of it, and
    `facts["reasons"]` why the rest is unknown.

    Parameters
    ----------
    idx : its number, from 1; by default, the kernel with the longest time
    neighbours : rows before and after it on its stream
    gpu, peak, bandwidth : see `fastprof.model.devices.with_figures`

    Raises
    ------
    ReportError
        There is no such kernel, or more than one number.
    BadInputError
        The file has changed since it was read.
    """
    given = [idx] if isinstance(idx, int) else list(idx)
    if len(given) > 1:
        raise ReportError(f"expected the number of one kernel, found {len(given)}")
    if given and not 1 <= given[0] <= len(profile):
        raise ReportError(f"there is no kernel {given[0]}: the file has {len(profile)}")
    devices = devices_with(profile, gpu, peak, bandwidth)
    if not len(profile):
        return _table(profile, np.empty(0, np.int64), [], -1)
    row = given[0] - 1 if given else int(np.argmax(_lengths(profile)))
    facts, reasons = explained(profile, row, devices)
    rows, what = _around(profile, row, neighbours)
    table = _table(profile, rows, what, row)
    return Table(
        table.columns,
        table.headings,
        lead=(*lines_of(facts, reasons), ""),
        facts={"kernel": facts, "reasons": reasons},
    )


def _lengths(profile: ProfileData) -> Int64:
    return np.maximum(np.asarray(numbers(profile, "sil"), np.int64), 0)


def _around(profile: ProfileData, row: int, n: int) -> tuple[Int64, list[str]]:
    """Rows of the kernels around one, and what each is, in order of start."""
    start, length = starts(profile), _lengths(profile)
    if start[row] == NO_TIME:
        return np.array([row]), [THIS]
    lane = on_stream_of(profile, row)
    place = int(np.searchsorted(lane, row))
    near = {int(each): BEFORE for each in lane[max(0, place - n) : place]}
    near |= {row: THIS} | {int(each): AFTER for each in lane[place + 1 : place + 1 + n]}
    same_gpu = np.asarray(numbers(profile, "device")) == numbers(profile, "device")[row]
    same_gpu[lane] = False
    beside = np.flatnonzero(
        same_gpu & (start < start[row] + length[row]) & (start + length > start[row])
    )
    beside = beside[np.argsort(-length[beside], kind="stable")[: _MOST_BESIDE if n else 0]]
    near |= dict.fromkeys(beside.tolist(), BESIDE)
    order = sorted(near)
    return np.array(order, np.int64), [near[each] for each in order]


def _table(profile: ProfileData, rows: Int64, what: list[str], row: int) -> Table:
    """The table of the kernels around one.

    rows : the kernels
    what : what each of them is
    row : the one
    """
    start, length = starts(profile)[rows], _lengths(profile)[rows]
    overlap = np.full(len(rows), -1, np.int64)
    gap = np.full(len(rows), -1, np.int64)
    on_stream = np.array([each != BESIDE for each in what], bool)
    if len(rows) and start[0] != NO_TIME:
        this = int(np.searchsorted(rows, row))
        end = start + length
        shared = np.minimum(end, end[this]) - np.maximum(start, start[this])
        overlap = np.where(on_stream, -1, np.maximum(shared, 0))
        lane = np.flatnonzero(on_stream)
        gap[lane[1:]] = np.maximum(start[lane[1:]] - end[lane[:-1]], 0)
    columns: dict[str, ColumnData] = {
        "what": text_column(what),
        "idx": Ints(rows + 1),
        "at_ns": since(start, origin_of(profile)),
        "start": Ints(start, int(NO_TIME)),
        "gap_ns": Ints(gap),
        "gpu_ns": Ints(length),
        "overlap_ns": Ints(overlap),
        **{name: key_of(profile, name).take(rows) for name in _KEYS},
    }
    ordered = {heading.key: columns[heading.key] for heading in COLUMNS}
    return Table(ordered, shown(COLUMNS, ordered))
