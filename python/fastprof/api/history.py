"""`fastprof.open_history`: stored captures over many commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from fastprof._system.garbage import uncollected
from fastprof.analysis.diff.captures import Captures, Opener, conditions_of, sides_of
from fastprof.analysis.diff.profile_figures import mfu_and_memory
from fastprof.analysis.diff.store import Baseline, save
from fastprof.analysis.history.history import HistoryData, history
from fastprof.analysis.registry import Where
from fastprof.api.diff import Diff
from fastprof.api.open import Path, open_trace
from fastprof.profile.data import ProfileData

if TYPE_CHECKING:
    from fastprof.model.page import Page


class History(HistoryData):
    """The captures of a store.

    Attributes
    ----------
    captures : tuple of Stored
        Number, time, names, tags and figures of each, in the order of saving.
    """

    def page(self, figures: Sequence[str] = ()) -> Page:
        """The history as a page for a browser: `history.page().save("history.html")`."""
        from fastprof.page.history import page_of_history

        return page_of_history(self, figures)

    def diff(self, before: int, after: int) -> Diff:
        """Compare two captures of the store, by their numbers.

        Raises
        ------
        BaselineError
            There is no such capture, or it is damaged.
        """
        with uncollected():
            result = self.compared(before, after)
            return Diff(result.found, result.confidence, result.by)

    def add(
        self,
        captures: Captures,
        tags: Mapping[str, str] | None = None,
        steps: str | None = None,
        where: Where | None = None,
    ) -> History:
        """Save a capture, see `add_capture`; returns the history with it."""
        add_capture(self.store, captures, tags, steps, where)
        return open_history(self.store)


def open_history(
    store: Path, since: str | None = None, tags: Mapping[str, str] | None = None
) -> History:
    """The captures of a store that `fastprof diff --baseline STORE --save` or `add` made.

    Parameters
    ----------
    store : a file, or the directory that contains it
    since : only those from a date on, or from the first with a tag KEY=VALUE on
    tags : only captures with these tags

    Raises
    ------
    BaselineError
        There is none, or the file is damaged.
    ReportError
        The date is none, or no capture has the tag.
    """
    with uncollected():
        result = history(store, since, tags)
        return History(result.store, result.captures, result.notes)


def _open_with_host(path: Path) -> ProfileData:
    return open_trace(path, host=True)


def add_capture(
    store: Path,
    captures: Captures,
    tags: Mapping[str, str] | None = None,
    steps: str | None = None,
    where: Where | None = None,
    *,
    trim: str | None = None,
    opened: Opener = _open_with_host,
) -> tuple[FilePath, int]:
    """Add a capture to a store. The same capture again is another measurement.

    Parameters
    ----------
    store : a file, or a directory; created if it does not exist
    captures : a file or profile; a sequence is the ranks of one run
    tags : texts by key
    steps : what a step is, see `Profile.find_steps`
    where : only this work counts; see `fastprof.analysis.selection`
    trim : the part of the capture that `opened` trims it to
    opened : opens a trace

    Returns
    -------
    tuple of Path and int
        The file, and the number of the capture.

    Raises
    ------
    BadInputError
        A file cannot be read.
    BaselineError
        The store cannot be written, or is none.
    ReportError, StepsError
        See `fastprof.diff`.
    """
    of_profiles = []

    def measured(profile: ProfileData) -> ProfileData:
        of_profiles.append(mfu_and_memory(profile, steps, where))
        return profile

    with uncollected():
        members = captures if isinstance(captures, list | tuple) else [captures]
        for member in members:
            if isinstance(member, ProfileData):
                measured(member)
        (side,) = sides_of([captures], steps, where, lambda path: measured(opened(path)))
        baseline = Baseline(side, steps, conditions_of(where), trim)
        return save(baseline, store, tags, of_profiles)
