"""`fastprof.diff`: what changed between two captures, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastprof._system.garbage import uncollected
from fastprof.analysis.diff.captures import Captures, Opener, sides_of
from fastprof.analysis.diff.columns import DEFAULT_BY, diff_keys
from fastprof.analysis.diff.compare import DiffData
from fastprof.analysis.diff.confidence import THRESHOLD, judged
from fastprof.analysis.diff.side import combined
from fastprof.analysis.diff.waterfall import waterfall
from fastprof.analysis.registry import Where
from fastprof.api.open import Path, open_trace
from fastprof.api.profile import Profile

if TYPE_CHECKING:
    from fastprof.model.page import Page


class Diff(DiffData):
    """Two captures, compared.

    Attributes
    ----------
    before, after : Side
        The captures.
    same_work : bool
        Whether both do the same calls of the same shapes, but for 1 % of the GPU time.
    wall : dict
        The change of the step; see `DiffData.wall`.
    predictions : Predictions or None
        What the plan of BEFORE predicted for findings that are gone, beside what is measured.
    """

    def page(self) -> Page:
        """The comparison as a page for a browser: `diff.page().save("diff.html")`."""
        from fastprof.page.difference import page_of_diff

        return page_of_diff(self)


def _open_with_host(path: Path) -> Profile:
    return open_trace(path, host=True)


def diff(
    before: Captures,
    after: Captures,
    by: Sequence[str] | str = DEFAULT_BY,
    steps: str | None = None,
    where: Where | None = None,
    *,
    runs: Sequence[tuple[Captures, Captures]] = (),
    threshold: float = THRESHOLD,
    opened: Opener = _open_with_host,
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
        result = waterfall(*(combined(members) for members in zip(*measured, strict=True)))
        return Diff(result, judged(result, measured, threshold), keys)
