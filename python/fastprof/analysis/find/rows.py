"""What `find` selects by time, and the rows that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.find.columns import duration, times_of
from fastprof.analysis.grouping import numbers
from fastprof.errors import ReportError
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Ints
from fastprof.model.heading import Heading
from fastprof.model.table import ColumnData
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.data import ProfileData
from fastprof.profile.recording_hints import advice_on


class Found(NamedTuple):
    """What was found.

    Parameters
    ----------
    rows : int64 [found], in order of start
    n_all : how many there are without any condition
    columns : returns the columns of some rows
    headings : of these columns
    notes : why there is nothing
    """

    rows: Int64
    n_all: int
    columns: Callable[[Int64], dict[str, ColumnData]]
    headings: tuple[Heading, ...]
    notes: tuple[str, ...] = ()


class Limits(NamedTuple):
    """Conditions on times, ns; those on the clock of the trace are NO_TIME or NEVER if not given.

    Parameters
    ----------
    origin : start of the first GPU work; 0 without any
    begin, end : only what is in progress between them
    longer, shorter : at least the one, less than the other
    after, before : numbers of kernels, from 1; None if not given
    since, until : only what starts after the one and before the other, those of these kernels
    """

    origin: int
    begin: int
    end: int
    longer: int
    shorter: int
    after: int | None
    before: int | None
    since: int
    until: int

    def fits(self, start: Int64, length: Int64) -> Bools:
        """Whether intervals fit; a length of -1 is unknown.

        `after` and `before` are left to `begins_between` and to kernels, which have numbers.
        """
        result: Bools = np.ones(len(start), bool)
        if self.begin != NO_TIME:
            result &= start + np.maximum(length, 0) > self.begin
        if self.end != NEVER:
            result &= start < self.end
        if self.longer:
            result &= length >= self.longer
        if self.shorter != NEVER:
            result &= (length >= 0) & (length < self.shorter)
        return result

    def begins_between(self, start: Int64) -> Bools:
        """Whether intervals start between the kernels `after` and `before`."""
        result: Bools = (start > self.since) & (start < self.until)
        return result


def limits_of(
    profile: ProfileData,
    between: str | None,
    longer: str | None,
    shorter: str | None,
    after: int | None,
    before: int | None,
) -> Limits:
    """The conditions of the options of `find`.

    Raises
    ------
    ReportError
        An option is invalid, or there is no kernel of the number.
    """
    start = starts(profile)
    origin = origin_of(profile)
    begin, end = (None, None) if between is None else times_of(between)
    for number in (after, before):
        if number is not None and not 1 <= number <= len(profile):
            raise ReportError(f"there is no kernel {number}: the file has {len(profile)}")
    return Limits(
        origin,
        int(NO_TIME) if begin is None else origin + begin,
        int(NEVER) if end is None else origin + end,
        0 if longer is None else duration(longer),
        int(NEVER) if shorter is None else duration(shorter),
        after,
        before,
        int(NO_TIME) if after is None else int(start[after - 1]),
        int(NEVER) if before is None else int(start[before - 1]),
    )


def starts(profile: ProfileData) -> Int64:
    """[kernels] The start of each on the clock of the trace, NO_TIME if unknown."""
    if "start" not in profile.names:
        return np.full(len(profile), NO_TIME, np.int64)
    return np.ascontiguousarray(numbers(profile, "start"), np.int64)


def origin_of(profile: ProfileData) -> int:
    """The start of the first GPU work on the clock of the trace; 0 without any."""
    span = profile.contents.span
    return 0 if span is None else span[0]


def since(start: Int64, origin: int) -> Ints:
    """Times since the origin; unknown ones stay unknown."""
    return Ints(np.where(start == NO_TIME, NO_TIME, start - origin), int(NO_TIME))


_DEPTHS: Final = {"op": "op", "shape": "shapes", "line": "source line", "layer": "layer"}


def why_unknown(profile: ProfileData, names: Iterable[str]) -> dict[str, str]:
    """What to record, by the name of the column: op, shape, line or layer."""
    about, contents = profile.about, profile.contents
    return {name: advice_on(about, contents, _DEPTHS[name]) for name in names}
