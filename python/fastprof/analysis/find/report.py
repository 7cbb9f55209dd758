"""`find`: kernels, calls, ranges and API calls by what is known of them, in order of time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from fastprof._core._pools import alike
from fastprof.analysis.find import columns as headings
from fastprof.analysis.find.host import found_api, found_ranges
from fastprof.analysis.find.rows import Found, Limits, limits_of, since, starts, why_unknown
from fastprof.analysis.grouping import Grouping, numbers
from fastprof.analysis.keys import key_of
from fastprof.analysis.registry import Where
from fastprof.analysis.selection import selected, unmatched
from fastprof.analysis.summary.measures import shown
from fastprof.errors import ReportError
from fastprof.model.arrays import Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Table
from fastprof.model.trace import NO_TIME
from fastprof.profile.data import ProfileData

_KEYS: Final = (
    *("op", "shape", "layer", "line", "device", "stream", "dir", "phase", "kind"),
    *("range", "step"),
)


def find(
    profile: ProfileData,
    of: str = "kernels",
    where: Where | None = None,
    between: str | None = None,
    longer: str | None = None,
    shorter: str | None = None,
    after: int | None = None,
    before: int | None = None,
    nth: str | int | None = None,
) -> Table:
    """Kernels, calls, ranges or API calls in order of start, a row each. See docs/reports.md.

    Parameters
    ----------
    of : kernels, calls, ranges or api
    where : see `fastprof.analysis.selection`; ranges and API calls have the keys name, kind,
        thread and process
    between : A:B, times since the first GPU work; only what is in progress between them
    longer, shorter : durations such as 1ms; at least the one, and less than the other
    after, before : numbers of kernels; only what begins after the one, and before the other
    nth : which occurrences of what is left: 3, -1, "2:5"

    Raises
    ------
    ReportError
        An option is invalid, or there is no kernel of the number.
    BadInputError
        The file has changed since it was read, or is dict lines, which have no ranges and calls.
    """
    if of not in headings.OF:
        raise ReportError(f"expected of to be one of {', '.join(headings.OF)}; found {of!r}")
    chosen = slice(None) if nth is None else headings.nth(str(nth))
    limits = limits_of(profile, between, longer, shorter, after, before)
    find_rows = {
        "kernels": _kernels, "calls": _calls, "ranges": found_ranges, "api": found_api,
    }[of]  # fmt: skip
    return _table(find_rows(profile, where, limits), of, chosen)


def _table(found: Found, of: str, chosen: slice) -> Table:
    """The table of what was found.

    chosen : which occurrences
    """
    place = np.arange(len(found.rows), dtype=np.int64)[chosen]
    columns: dict[str, ColumnData] = {
        "n": Ints(place + 1),
        **found.columns(found.rows[place]),
    }
    total = {}
    lead = f"{len(found.rows)} of {found.n_all} {_NAMES[of]}"
    if of in ("kernels", "calls"):
        gpu = columns["gpu_ns"]
        total = {"gpu_ns": int(np.maximum(gpu.known(), 0).sum()) if isinstance(gpu, Ints) else 0}
    if len(place) < len(found.rows):
        lead += f", of which {len(place)} chosen"
    if total:
        lead += f", {quantity(total['gpu_ns'], 'ns')} of GPU time"
    facts = {"n_found": len(found.rows), "n_all": found.n_all}
    return Table(
        columns,
        shown(found.headings, columns),
        lead=(lead,),
        notes=found.notes,
        total=total,
        facts=facts,
    )


_NAMES: Final = {
    "kernels": "kernels, copies and memsets",
    "calls": "calls of operators",
    "ranges": "ranges",
    "api": "calls of the API",
}


def _kernel_rows(profile: ProfileData, where: Where | None, limits: Limits) -> Int64:
    """Rows of kernels that fit, but for their length."""
    rows = selected(profile, where)
    result = np.ones(len(profile), bool) if rows is None else rows.copy()
    if limits.after is not None:
        result[: limits.after] = False
    if limits.before is not None:
        result[limits.before - 1 :] = False
    return np.flatnonzero(result)


def _notes(
    profile: ProfileData, where: Where | None, keys: Mapping[str, Values], n: int
) -> tuple[str, ...]:
    """Why there is nothing, by the conditions of `where`; why columns are unknown.

    keys : of all kernels, by name
    n : number of rows
    """
    if not n:
        return tuple(unmatched(profile, where)) if where else ()
    unknown = [name for name in ("op", "shape", "line") if not keys[name].values]
    return tuple(dict.fromkeys(filter(None, why_unknown(profile, unknown).values())))


def _kernels(profile: ProfileData, where: Where | None, limits: Limits) -> Found:
    start, length = starts(profile), np.asarray(numbers(profile, "sil"), np.int64)
    rows = _kernel_rows(profile, where, limits)
    rows = rows[limits.fits(start[rows], length[rows])]
    keys = {name: key_of(profile, name) for name in ("kernel", *_KEYS, "name")}

    def columns(picked: Int64) -> dict[str, ColumnData]:
        own: dict[str, ColumnData] = {
            "idx": Ints(picked + 1),
            "at_ns": since(start[picked], limits.origin),
            "start": Ints(start[picked], int(NO_TIME)),
            "gpu_ns": Ints(length[picked]),
            **{name: key.take(picked) for name, key in keys.items()},
            "call": Ints(numbers(profile, "call")[picked]),
        }
        return {heading.key: own[heading.key] for heading in headings.KERNELS[1:]}

    notes = _notes(profile, where, keys, len(rows))
    return Found(rows, len(profile), columns, headings.KERNELS, notes)


def _calls(profile: ProfileData, where: Where | None, limits: Limits) -> Found:
    """Calls with selected kernels; their times are those of these kernels."""
    start, length = starts(profile), np.asarray(numbers(profile, "sil"), np.int64)
    call = np.ascontiguousarray(numbers(profile, "call"), np.int64)
    kernels = _kernel_rows(profile, where, limits)
    kernels = kernels[call[kernels] >= 0]
    ids, first = alike([call[kernels]])
    calls = Grouping(ids, len(first))
    begin = start[kernels[first]]  # kernels are in order of start
    gpu = calls.stats(length[kernels]).sum
    end = calls.stats(start[kernels] + np.maximum(length[kernels], 0), int(NO_TIME)).max
    rows = np.flatnonzero(limits.fits(begin, end - begin))
    rows = rows[np.argsort(begin[rows], kind="stable")]
    keys = {name: key_of(profile, name) for name in _KEYS}

    def columns(picked: Int64) -> dict[str, ColumnData]:
        of_first = kernels[first[picked]]
        own: dict[str, ColumnData] = {
            "call": Ints(call[of_first]),
            "at_ns": since(begin[picked], limits.origin),
            "start": Ints(begin[picked], int(NO_TIME)),
            "wall_ns": Ints((end - begin)[picked]),
            "gpu_ns": Ints(gpu[picked]),
            "kernels": Ints(calls.counts[picked]),
            **{name: key.take(of_first) for name, key in keys.items()},
            "idx": Ints(of_first + 1),
        }
        return {heading.key: own[heading.key] for heading in headings.CALLS[1:]}

    notes = _notes(profile, where, keys, len(rows))
    n_all = int(np.count_nonzero(np.bincount(call[call >= 0])))
    return Found(rows, n_all, columns, headings.CALLS, notes)
