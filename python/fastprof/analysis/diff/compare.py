"""What changed between two captures, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from fastprof._system.classes import dataclass
from fastprof._system.garbage import uncollected
from fastprof._system.threads import computed_once
from fastprof.analysis.diff.answer import answer, lines, notes
from fastprof.analysis.diff.columns import DEFAULT_BY, diff_keys
from fastprof.analysis.diff.confidence import Confidence, wall_of
from fastprof.analysis.diff.predictions import Predictions, predictions
from fastprof.analysis.diff.rows import rows_table
from fastprof.analysis.diff.side import Side
from fastprof.analysis.diff.waterfall import Waterfall
from fastprof.model.table import Table, first_lines

_LINES_OF_REPR: Final = 30


@dataclass(frozen=True)
class DiffData:
    """Two captures, compared; `fastprof.Diff` adds the page.

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

    @computed_once
    def predictions(self) -> Predictions | None:
        """What the plan of BEFORE predicted for findings that are gone, beside what is measured.

        None if no part of the step is shorter.
        """
        with uncollected():
            return predictions(self.found)

    def pair(self) -> dict[str, Any] | None:
        """What is predicted and measured, for a store of baselines; None if nothing is gone."""
        result = self.predictions
        if result is None or not result.gone:
            return None
        return {
            "before": list(self.before.names),
            "after": list(self.after.names),
            "ids": list(dict.fromkeys(prediction.id for prediction in result.gone)),
            "predicted_ns": round(result.predicted_ns),
            "measured_ns": round(result.measured_ns),
        }

    @computed_once
    def wall(self) -> dict[str, Any]:
        """The change of the step.

        `before_ns` and `after_ns`: mean steps in ns, without steps the captures. `change`: a share,
        `low` and `high` its interval; None if unknown. `verdict`: faster, same, slower or not
        judged, `because`, `samples`.
        """
        return wall_of(self.found, self.confidence)

    def __repr__(self) -> str:
        """The comparison in a screen; `table().text()` is all of it."""
        return "\n".join(first_lines(self.table(), _LINES_OF_REPR))

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

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
