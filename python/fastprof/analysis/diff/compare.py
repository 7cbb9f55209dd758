"""`fastprof.diff`: what changed between two captures, and why."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fastprof.analysis.diff.headings import DEFAULT_BY
from fastprof.analysis.diff.measure import side_of
from fastprof.analysis.diff.notes import notes, overview
from fastprof.analysis.diff.rows import rows_table
from fastprof.analysis.diff.side import Side, combined
from fastprof.analysis.diff.waterfall import CALLS, STEPS, Waterfall, waterfall
from fastprof.analysis.selection import Where
from fastprof.model.table import Table
from fastprof.profile.load import open as open_profile
from fastprof.profile.profile import Profile

__all__ = ["Diff", "diff"]

Capture = str | os.PathLike[str] | Profile | Side


@dataclass(frozen=True)
class Diff:
    """Two captures, compared.

    Parameters
    ----------
    found : the rows of the comparison
    by : keys of the rows
    """

    found: Waterfall
    by: tuple[str, ...] = DEFAULT_BY

    @property
    def before(self) -> Side:
        """The capture before."""
        return self.found.before.side

    @property
    def after(self) -> Side:
        """The capture after."""
        return self.found.after.side

    @property
    def same_work(self) -> bool:
        """Whether both do the same calls of the same shapes, but for 1 % of the GPU time."""
        return self.found.same_work

    @cached_property
    def wall(self) -> dict[str, Any]:
        """The step: `before_ns` and `after_ns`, means in ns; `change`, None without steps.

        Without steps, the times are those of the captures.
        """
        before, after = self.found.wall_ns
        if self.found.unit == CALLS:
            before, after = (_mean_wall(side) for side in (self.before, self.after))
        change = after / before - 1 if before and self.found.unit == STEPS else None
        return {"before_ns": before, "after_ns": after, "change": change}

    def table(self, by: Sequence[str] | None = None) -> Table:
        """What makes the change, the largest part first."""
        table = rows_table(self.found, self.by if by is None else tuple(by))
        facts = {"wall": self.wall, "same_work": self.same_work}
        return replace(table, lead=self._lead(), notes=notes(self.found), facts=facts)

    def _lead(self) -> tuple[str, ...]:
        sides = zip(("before", "after"), (self.before, self.after), strict=True)
        return (
            *(
                f"{name}: {', '.join(filter(None, [*side.names, side.gpus, side.steps]))}"
                for name, side in sides
            ),
            overview(self.found, self.wall),
            "",
        )


def _mean_wall(side: Side) -> int:
    return round(int(side.windows["wall_ns"].sum()) / side.n_windows)


def diff(
    before: Capture | Sequence[Capture],
    after: Capture | Sequence[Capture],
    by: Sequence[str] | str = DEFAULT_BY,
    steps: str | None = None,
    where: Where | None = None,
) -> Diff:
    """Compare two captures, or two runs of several ranks.

    Parameters
    ----------
    before, after : files, profiles or sides; a sequence is the ranks of one run
    by : keys of the rows, see `fastprof.analysis.diff.headings`
    steps : what a step is, see `Profile.find_steps`
    where : only this work counts; see `fastprof.analysis.selection`

    Raises
    ------
    BadInputError
        A file cannot be read.
    ReportError
        A capture has no GPU work or no times, or a key or condition is invalid.
    StepsError
        The source of steps is unknown, or a file has no such steps.
    """
    sides = [_side(each, steps, where) for each in (before, after)]
    keys = tuple(by.split(",")) if isinstance(by, str) else tuple(by)
    return Diff(waterfall(*sides), keys)


def _side(capture: Capture | Sequence[Capture], steps: str | None, where: Where | None) -> Side:
    if isinstance(capture, str | os.PathLike | Profile | Side):
        return _of_one(capture, steps, where)
    return combined([_of_one(each, steps, where) for each in capture])


def _of_one(capture: Capture, steps: str | None, where: Where | None) -> Side:
    if isinstance(capture, Side):
        return capture
    profile = capture if isinstance(capture, Profile) else open_profile(capture)
    return side_of(profile, steps, where)
