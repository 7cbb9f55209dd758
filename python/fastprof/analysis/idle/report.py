"""`idle`: why the GPU has no work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from fastprof._core._groups import sum_where
from fastprof._core._pools import pairs
from fastprof.analysis import keys
from fastprof.analysis.gpu_work import WorkOfDevices, answered_work
from fastprof.analysis.grouping import Grouping, group, numbers, texts
from fastprof.analysis.host.compilations import compilation_lines
from fastprof.analysis.idle.causes import CAUSES, Cause
from fastprof.analysis.idle.columns import BY, COLUMNS, OF_GAPS
from fastprof.analysis.idle.gaps import PLACES, Examined, examine, places_of
from fastprof.analysis.idle.text import clock_lines, notes, overview
from fastprof.analysis.recorder import recorder_lines
from fastprof.errors import ReportError
from fastprof.model.arrays import Int32, Int64, unique
from fastprof.model.columns import Ints, Values
from fastprof.model.heading import Heading
from fastprof.model.table import ColumnData, Floats, Table
from fastprof.profile.data import ProfileData, left_out

_N: Final = len(Cause)
_Where: TypeAlias = dict[str, Values]  # the places of gaps, see `places_of`


def idle(
    profile: ProfileData,
    gaps: int | None = None,
    min: float = 1.0,  # noqa: A002
    data: str | None = None,
    by: str = "cause",
    steps: str | None = None,
) -> Table:
    """Why each GPU has no work, the longest time first. See docs/reports.md.

    Parameters
    ----------
    gaps : list this many gaps, the longest first
    min : gaps shorter than this many us are not examined
    data : regular expression of names of ranges that load data
    by : cause; step or range of the work after the gap; line or layer where the host is for most
        of the gap, else of the work after it
    steps : what a step is, see `Profile.find_steps`

    Raises
    ------
    ReportError
        `by` or `data` is invalid.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    BadInputError
        The file has changed since it was read.
    """
    if by not in BY:
        raise ReportError(f"expected by to be one of {', '.join(BY)}; found {by!r}")
    work = answered_work(profile)
    if not work:
        headings = COLUMNS if gaps is None else OF_GAPS
        none = {heading.key: Ints(np.empty(0, np.int64)) for heading in headings}
        return Table(dict(none), headings, notes=notes(profile, 0))
    examined = examine(profile, work, round(min * 1000), data)
    where = places_of(profile, examined)
    if gaps is not None:
        table = _listed(profile, examined, where, gaps, steps)
    elif by == "cause":
        table = _by_cause(examined, where, work)
    else:
        table = _by_key(profile, examined, where, work, by, steps)
    lines, facts = overview(profile)
    own = (
        *notes(profile, examined.causes.n_late),
        *compilation_lines(profile),
        *clock_lines(profile, steps),
        *recorder_lines(profile, profile.find_steps(steps)),
    )
    return replace(table, lead=(*left_out(profile), *lines), facts=facts, notes=own)


def _by_cause(examined: Examined, where: _Where, work: WorkOfDevices) -> Table:
    """A row for each GPU and cause, those of a GPU in order of time."""
    parts, short = examined.causes.parts, examined.short_device * np.int64(_N) + Cause.SHORT
    own = examined.device[parts.gap] * np.int64(_N) + parts.cause
    present = unique(np.concatenate([own, short]))
    n = len(present)

    def place(of: Int64) -> Int32:
        return np.searchsorted(present, of).astype(np.int32)

    groups = Grouping(place(examined.device * np.int64(_N) + examined.causes.main), n)
    of_short, length = Grouping(place(short), n), examined.short.end - examined.short.start
    ns = sum_where(place(own), parts.ns, None, n) + of_short.stats(length).sum
    counts = groups.counts + of_short.counts
    longest = groups.stats(examined.gaps.end - examined.gaps.start).max
    longest = np.where(present % _N == Cause.SHORT, of_short.stats(length).max, longest)
    order = np.lexsort((-ns, present // _N))
    device, cause = present[order] // _N, present[order] % _N
    most = _most(examined, where, groups)
    columns: dict[str, ColumnData] = {
        "cause": Values(cause.astype(np.int32), list(CAUSES)),
        "gaps": Ints(counts[order]),
        "longest_ns": Ints(np.where(counts > 0, longest, -1)[order]),
        **{name: most[name].take(order) for name in most},
    }
    return _table(examined, work, device, ns[order], columns)


def _by_key(
    profile: ProfileData,
    examined: Examined,
    where: _Where,
    work: WorkOfDevices,
    by: str,
    steps: str | None,
) -> Table:
    """A row for each GPU and step or range of the next work, or line or layer of the host."""
    if by == "step":
        number = profile.find_steps(steps).column()
        of_kernels = Values(number.ids - np.int32(1), number.distinct[1:].tolist())
    else:
        of_kernels = keys.key_of(profile, by)
    after = np.concatenate([examined.gaps.after, examined.short.after])
    device = np.concatenate([examined.device, examined.short_device])
    main = np.concatenate(
        [examined.causes.main, np.full(len(examined.short.after), Cause.SHORT, np.uint8)]
    )
    length = np.concatenate([gaps.end - gaps.start for gaps in (examined.gaps, examined.short)])
    key = Values(of_kernels.ids[after], of_kernels.values)
    if by in _OF_HOST:
        key = _at_host(where[by], key)
    groups = group([Values(device, examined.devices.tolist()), key], len(after))
    by_cause = np.bincount(groups.ids * np.int64(_N) + main, length, groups.n * _N)
    stats, first = groups.stats(length), groups.first
    most = _most(examined, where, Grouping(groups.ids[: len(examined.causes.main)], groups.n))
    columns: dict[str, ColumnData] = {
        by: Values(key.ids[first], key.values),
        "cause": Values(by_cause.reshape(-1, _N).argmax(axis=1).astype(np.int32), list(CAUSES)),
        "gaps": Ints(groups.counts),
        "longest_ns": Ints(stats.max),
        **{name: most[name] for name in most if name != by},
    }
    table = _table(examined, work, device[first], stats.sum, columns, by)
    return table.sort("step") if by == "step" else table.sort("ns")


_OF_HOST: Final = ("line", "layer")


def _at_host(places: Values, of_work: Values) -> Values:
    """The place of the host in each gap, else that of the work after it.

    Parameters
    ----------
    places : [gaps], unknown where no place has most of the gap
    of_work : [gaps and short gaps]
    """
    ids = of_work.ids.copy()
    known = np.flatnonzero(places.ids >= 0)
    ids[known] = len(of_work.values) + places.ids[known]
    return Values(ids, [*of_work.values, *places.values]).mapped(lambda text: text)


def _table(
    examined: Examined,
    work: WorkOfDevices,
    device: Int32 | Int64,
    ns: Int64,
    columns: dict[str, ColumnData],
    by: str = "",
) -> Table:
    first, last = work.parts.spans
    spans = last - first
    total, n_gaps = int(ns.sum()), len(examined.causes.main) + len(examined.short_device)
    numbers: dict[str, ColumnData] = {
        "device": Ints(examined.devices[device]),
        "ns": Ints(ns),
        "share": Floats(ns / np.maximum(spans[device], 1)),
    }
    both = columns | numbers
    names = [column.key for column in COLUMNS if column.key in both]
    ordered = [by, *(name for name in names if name != by)] if by else names
    return Table(
        {name: both[name] for name in ordered},
        _shown([_heading(name, name == by) for name in ordered], both, len(work)),
        total={"ns": total, "share": total / max(int(spans.sum()), 1), "gaps": n_gaps},
    )


def _heading(name: str, is_key: bool) -> Heading:
    """The heading of a column; text keeps that of the key."""
    heading = next(column for column in COLUMNS if column.key == name)
    return replace(heading, rank=0, min_width=24) if is_key else heading


def _shown(
    headings: Sequence[Heading], columns: dict[str, ColumnData], n_devices: int
) -> tuple[Heading, ...]:
    """Text omits the GPU if there is one, and places that are not known."""

    def in_text(name: str) -> bool:
        column = columns[name]
        if name == "device":
            return n_devices > 1
        return not (name in PLACES and isinstance(column, Values) and (column.ids < 0).all())

    return tuple(
        replace(heading, in_text=heading.in_text and in_text(heading.key)) for heading in headings
    )


def _most(examined: Examined, where: _Where, groups: Grouping) -> dict[str, Values]:
    """The place that takes most of the time of the main cause in each group, by name, [groups].

    Unknown where more of the time is at no such place.
    """
    most = {}
    for name, values in where.items():
        none = len(values.values)
        ids = np.where(values.ids < 0, np.int32(none), values.ids)
        ids = heaviest(Values(ids, [*values.values, None]), groups, examined.causes.ns).ids
        most[name] = Values(np.where(ids == none, np.int32(-1), ids), values.values)
    return most


def heaviest(place: Values, groups: Grouping, ns: Int64) -> Values:
    """The value that takes most of the time of each group."""
    rows = np.flatnonzero((place.ids >= 0) & (groups.ids >= 0))
    pair, first = pairs(groups.ids[rows], place.ids[rows])
    weight = np.bincount(pair, ns[rows], len(first))
    rows = rows[first[np.argsort(weight, kind="stable")]]  # the last one of each group stays
    most = np.full(groups.n, -1, np.int32)
    most[groups.ids[rows]] = place.ids[rows]
    return Values(most, place.values)


def _listed(
    profile: ProfileData, examined: Examined, where: _Where, n: int, steps: str | None
) -> Table:
    """The longest gaps, in order of length."""
    length = examined.gaps.end - examined.gaps.start
    rows = np.argsort(-length, kind="stable")[:n]
    start, after = examined.gaps.start[rows], examined.gaps.after[rows]
    names = texts(profile, "kernel")
    first = numbers(profile, "start").min()
    step = profile.find_steps(steps).column()
    columns: dict[str, ColumnData] = {
        "at_ns": Ints(start - first),
        "start_ns": Ints(start, none=-(2**63)),
        "ns": Ints(length[rows]),
        "cause": Values(examined.causes.main[rows].astype(np.int32), list(CAUSES)),
        "device": Ints(examined.devices[examined.device[rows]]),
        "before": Values(names.ids[examined.gaps.before[rows]], names.values),
        "after": Values(names.ids[after], names.values),
        "step": Ints(step.distinct[step.ids[after]]),
        **{name: Values(values.ids[rows], values.values) for name, values in where.items()},
    }
    return Table(
        {heading.key: columns[heading.key] for heading in OF_GAPS},
        _shown(OF_GAPS, columns, len(examined.devices)),
        total={"ns": int(length[rows].sum())},
    )
