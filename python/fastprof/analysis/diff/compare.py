"""`fastprof.diff`: what changed between two captures, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

from fastprof._system.classes import dataclass
from fastprof._system.garbage import uncollected
from fastprof.analysis.diff.answer import answer, lines, notes
from fastprof.analysis.diff.captures import Captures, Opener, sides_of
from fastprof.analysis.diff.columns import DEFAULT_BY, diff_keys
from fastprof.analysis.diff.confidence import THRESHOLD, Confidence, judged, wall_of
from fastprof.analysis.diff.predictions import Predictions, predictions
from fastprof.analysis.diff.rows import rows_table
from fastprof.analysis.diff.side import Side, combined
from fastprof.analysis.diff.waterfall import Waterfall, waterfall
from fastprof.model.page import Page
from fastprof.model.table import Table
from fastprof.profile.load import open_with_host
from fastprof.profile.reports import Where, imported


@dataclass(frozen=True)
class Diff:
    """Two captures, compared.

    Parameters
    ----------
    found : the rows of the comparison
    confidence : whether the change of the step is more than noise
    by : keys of the rows
    """

    found: Waterfall
    confidence: Confidence
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
    def predictions(self) -> Predictions | None:
        """What the plan of BEFORE predicted for findings that are gone, beside what is measured.

        None if no part of the step is shorter.
        """
        with uncollected():
            return predictions(self.found)

    def pair(self) -> dict[str, Any] | None:
        """What is predicted and measured, for a store of baselines; None if nothing is gone."""
        found = self.predictions
        if found is None or not found.gone:
            return None
        return {
            "before": list(self.before.names),
            "after": list(self.after.names),
            "ids": list(dict.fromkeys(each.id for each in found.gone)),
            "predicted_ns": round(found.predicted_ns),
            "measured_ns": round(found.measured_ns),
        }

    @cached_property
    def wall(self) -> dict[str, Any]:
        """The change of the step.

        `before_ns` and `after_ns`: mean steps in ns, without steps the captures. `change`: a share,
        `low` and `high` its interval; None if unknown. `verdict`: faster, same, slower or not
        judged, `because`, `samples`.
        """
        return wall_of(self.found, self.confidence)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def page(self) -> Page:
        """The comparison as a page for a browser: `diff.page().save("diff.html")`."""
        # Pages are in a room above this one.
        return cast("Page", imported("fastprof.page.difference:page_of_diff")(self))

    def table(self, by: Sequence[str] | str | None = None) -> Table:
        """What makes the change, the largest part first."""
        table = rows_table(self.found, self.by if by is None else diff_keys(by))
        facts = {
            "before": list(self.before.names),
            "after": list(self.after.names),
            "wall": self.wall,
            "same_work": self.same_work,
            "predicted": self.predictions.facts() if self.predictions else None,
        }
        return replace(
            table,
            title=answer(self.found, self.wall),
            lead=lines(self.found),
            notes=(*notes(self.found), *(self.predictions.lines() if self.predictions else ())),
            facts=facts,
        )


def diff(
    before: Captures,
    after: Captures,
    by: Sequence[str] | str = DEFAULT_BY,
    steps: str | None = None,
    where: Where | None = None,
    *,
    runs: Sequence[tuple[Captures, Captures]] = (),
    threshold: float = THRESHOLD,
    opened: Opener = open_with_host,
) -> Diff:
    """Compare two captures, or two runs of several ranks.

    Parameters
    ----------
    before, after : files, profiles, sides, or directories that contain a baseline; a sequence is
        the ranks of one run
    by : keys of the rows, see `fastprof.analysis.diff.columns`
    steps : what a step is, see `Profile.find_steps`
    where : only this work counts; see `fastprof.analysis.selection`
    runs : further runs, before and after of each; the interval is that between runs
    threshold : smaller changes are "same", a share
    opened : opens a trace

    Raises
    ------
    BadInputError
        A file cannot be read.
    BaselineError
        A baseline is damaged, or was measured with other steps or another selection.
    ReportError
        A capture has no GPU work or no times, or a key or condition is invalid.
    StepsError
        The source of steps is unknown, or a file has no such steps.
    """
    keys = diff_keys(by)
    pairs = [(before, after), *runs]
    with uncollected():
        sides = sides_of([each for pair in pairs for each in pair], steps, where, opened)
        measured = list(zip(sides[::2], sides[1::2], strict=True))
        found = waterfall(*(combined(each) for each in zip(*measured, strict=True)))
        return Diff(found, judged(found, measured, threshold), keys)
