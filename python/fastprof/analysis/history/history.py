"""Stored captures as a table over time, and the captures at which the level of a figure changes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import NamedTuple, dataclass
from fastprof.analysis.diff.compare import DiffData
from fastprof.analysis.diff.confidence import THRESHOLD, judged
from fastprof.analysis.diff.side import COMPUTE
from fastprof.analysis.diff.store import Stored, captures, load
from fastprof.analysis.diff.waterfall import waterfall
from fastprof.analysis.history.change_points import SHORTEST, change_points
from fastprof.analysis.history.columns import COLUMNS, FIGURES, GROUPS, MOST, heading_of
from fastprof.errors import ReportError
from fastprof.model.columns import Ints
from fastprof.model.heading import Heading, unknown_name
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Floats, Table, text_column

_ROWS: Final = 3  # of the comparison that explains a change
_LEAST: Final = 0.05  # of the largest row
_KEYS: Final = ("layer", "op")


class HistoryChange(NamedTuple):
    """A change of the level of a figure.

    Parameters
    ----------
    figure : of FIGURES, or op:NAME, layer:NAME
    before, after : the last capture of the old level, the first one of the new level
    old, new : the levels: medians of all captures between this change and its neighbours
    rows : what made the difference of both captures: label and ns, the largest first
    """

    figure: str
    before: Stored
    after: Stored
    old: float
    new: float
    rows: tuple[tuple[str, int], ...] = ()

    @property
    def share(self) -> float | None:
        """The change as a share of the old level; None if that is 0."""
        return self.new / self.old - 1 if self.old else None

    def text(self) -> str:
        """The levels, and the change as a share."""
        heading = heading_of(self.figure)
        old, new = (quantity(level, heading.unit) for level in (self.old, self.new))
        share = "" if self.share is None else f", {self.share:+.1%}"
        return f"{heading.header} {old} -> {new}{share}"

    def facts(self) -> dict[str, Any]:
        """The change for JSON, in raw units."""
        return {
            "figure": self.figure,
            "capture": self.after.id,
            "tags": dict(self.after.tags),
            "before": self.before.id,
            "before_tags": dict(self.before.tags),
            "old": self.old,
            "new": self.new,
            "change": self.share,
            "rows": [{"part": label, "delta_ns": ns} for label, ns in self.rows],
        }


@dataclass(frozen=True)
class HistoryData:
    """The captures of a store; `fastprof.History` adds the page, and saving.

    Parameters
    ----------
    store : the file, or the directory that contains it
    captures : in the order of saving
    notes : what is left out, one line each
    """

    store: str
    captures: tuple[Stored, ...]
    notes: tuple[str, ...] = ()

    def figures(self, names: Sequence[str] = ()) -> tuple[str, ...]:
        """Check figures, and replace groups such as `ops` by the largest of the newest capture.

        names : by default those of FIGURES that a capture has

        Raises
        ------
        ReportError
            A name is unknown.
        """
        if not names:
            return tuple(name for name in FIGURES if np.isfinite(self.series(name)).any())
        result: list[str] = []
        for name in names:
            if name in GROUPS:
                result += self._largest(GROUPS[name])
            elif name in FIGURES or np.isfinite(self.series(name)).any():
                result.append(name)
            else:
                known = [*FIGURES, *GROUPS, *(f"{key}:NAME" for key in GROUPS.values())]
                raise ReportError(unknown_name("figure", name, known))
        return tuple(dict.fromkeys(result))

    def series(self, figure: str) -> npt.NDArray[np.float64]:
        """The values of a figure, [captures]; NaN where unknown."""
        kind, colon, name = figure.partition(":")
        if colon:
            values = [capture.figures.parts.get(kind, {}).get(name) for capture in self.captures]
        else:
            key = heading_of(figure).key
            values = [getattr(capture.figures, key, None) for capture in self.captures]
        return np.array([np.nan if value is None else value for value in values], np.float64)

    def changes(
        self, figures: Sequence[str] = (), threshold: float = THRESHOLD
    ) -> tuple[HistoryChange, ...]:
        """The changes of the level of figures, in order of the captures.

        figures : see `figures`
        threshold : smaller changes are left out, a share
        """
        result = [
            change
            for figure in self.figures(figures)
            for change in self._changes_of(figure)
            if change.share is None or abs(change.share) >= threshold
        ]
        result.sort(key=lambda change: change.after.id)
        rows: dict[tuple[int, int], tuple[tuple[str, int], ...]] = {}
        for i, change in enumerate(result):
            pair = (change.before.id, change.after.id)
            if change.figure != "memory":
                if pair not in rows:
                    rows[pair] = _largest_rows(self.compared(*pair))
                result[i] = change._replace(rows=rows[pair])
        return tuple(result)

    def compared(self, before: int, after: int) -> DiffData:
        """Compare two captures of the store.

        before, after : their numbers

        Raises
        ------
        BaselineError
            There is no such capture, or it is damaged.
        """
        sides = [load(self.store, number).side for number in (before, after)]
        result = waterfall(*sides)
        return DiffData(result, judged(result, [(sides[0], sides[1])], THRESHOLD))

    def table(self, figures: Sequence[str] = (), threshold: float = THRESHOLD) -> Table:
        """A row for each capture, the newest first; the lines above tell the changes."""
        names = self.figures(figures)
        changes = self.changes(names, threshold)
        order = np.arange(len(self.captures))[::-1]
        table = Table(
            self._columns(names, changes),
            self._headings(names),
            title=self._title(),
            lead=(*_lines(changes, self.store), ""),
            notes=(*self.notes, *self._too_few()),
            facts={"store": self.store, "changes": [change.facts() for change in changes]},
        )
        return table.take(order)

    def _changes_of(self, figure: str) -> Iterator[HistoryChange]:
        values = self.series(figure)
        known = np.flatnonzero(np.isfinite(values))
        places = change_points(values[known])
        bounds = [0, *places, len(known)]
        for i, place in enumerate(places):
            old = float(np.median(values[known[bounds[i] : place]]))
            new = float(np.median(values[known[place : bounds[i + 2]]]))
            before, after = (self.captures[known[at]] for at in (place - 1, place))
            yield HistoryChange(figure, before, after, old, new)

    def _largest(self, kind: str) -> list[str]:
        times = self.captures[-1].figures.parts.get(kind, {}) if self.captures else {}
        return [f"{kind}:{name}" for name in list(times)[:MOST]]

    def _columns(
        self, figures: Sequence[str], changes: Sequence[HistoryChange]
    ) -> dict[str, ColumnData]:
        rows = self.captures
        marks: dict[int, list[str]] = {}
        for change in changes:
            share = "" if change.share is None else f" {change.share:+.1%}"
            marks.setdefault(change.after.id, []).append(
                f"{heading_of(change.figure).header}{share}"
            )
        steps = [-1 if capture.figures.steps is None else capture.figures.steps for capture in rows]
        of_figures = (*figures, *(name for name in self._more() if name not in figures))
        return {
            "capture": Ints(np.array([capture.id for capture in rows], np.int64)),
            "saved": text_column([_time(capture.saved_ns) for capture in rows]),
            "tags": text_column([_tags(capture.tags) for capture in rows]),
            **{heading_of(name).key: Floats(self.series(name)) for name in of_figures},
            "steps": Ints(np.array(steps, np.int64)),
            "change": text_column([", ".join(marks.get(capture.id, ())) for capture in rows]),
            "names": text_column([", ".join(capture.names) for capture in rows]),
            "version": text_column([capture.version for capture in rows]),
        }

    def _more(self) -> list[str]:
        """The figures that JSON and CSV have besides."""
        return [*FIGURES, *(name for kind in GROUPS.values() for name in self._largest(kind))]

    def _headings(self, shown: Sequence[str]) -> tuple[Heading, ...]:
        keys = {heading_of(name).key for name in shown}
        of_figures = {heading_of(name).key for name in (*shown, *self._more())}
        more = [heading_of(name) for name in (*shown, *self._more()) if ":" in name]
        headings = {heading.key: heading for heading in (*COLUMNS, *more)}
        return tuple(
            replace(heading, in_text=key in keys) if key in of_figures else heading
            for key, heading in headings.items()
        )

    def _title(self) -> str:
        n = len(self.captures)
        if not n:
            return "no captures"
        first, last = (_time(self.captures[i].saved_ns) for i in (0, -1))
        return f"{n} capture{'s' * (n > 1)}, saved from {first} to {last}"

    def _too_few(self) -> Iterator[str]:
        if len(self.captures) < SHORTEST:
            yield (
                f"changes of level are judged from {SHORTEST} captures on, found "
                f"{len(self.captures)}"
            )


def history(
    store: str | os.PathLike[str], since: str | None = None, tags: Mapping[str, str] | None = None
) -> HistoryData:
    """The captures of a store, which are measured as the newest one.

    Parameters
    ----------
    since : only those saved from this date on (ISO 8601, UTC), or KEY=VALUE: from the first capture
        with this tag on
    tags : only captures with these tags

    Raises
    ------
    BaselineError
        There is none, or the file is damaged.
    ReportError
        The date is none, or no capture has the tag.
    """
    every = captures(store)
    wanted = dict(tags or {}).items()
    chosen = [each for each in _since(every, since) if wanted <= dict(each.tags).items()]
    if not chosen:
        return HistoryData(os.fspath(store), (), ("no capture fits",) if every else ())
    measured = chosen[-1].measured
    alike = tuple(each for each in chosen if each.measured == measured)
    n_others = len(chosen) - len(alike)
    notes = (
        f"left out: {n_others} captures measured with other --steps, --where or --trim than the "
        "newest",
    )
    return HistoryData(os.fspath(store), alike, notes if n_others else ())


def _since(every: list[Stored], since: str | None) -> list[Stored]:
    if since is None:
        return every
    key, equals, value = since.partition("=")
    if equals:
        for i, each in enumerate(every):
            if each.tags.get(key.strip()) == value:
                return every[i:]
        raise ReportError(f"no capture has the tag {since!r}")
    try:
        date = datetime.fromisoformat(since.strip())
    except ValueError:
        raise ReportError(
            f"expected a date such as 2026-03-01 or a tag KEY=VALUE, found {since!r}"
        ) from None
    date = date if date.tzinfo else date.replace(tzinfo=timezone.utc)
    return [each for each in every if each.saved_ns >= date.timestamp() * 1e9]


def _time(ns: int) -> str:
    try:
        return datetime.fromtimestamp(ns // 10**9, timezone.utc).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "na"


def _tags(tags: Mapping[str, str]) -> str | None:
    return " ".join(f"{key}={value}" for key, value in tags.items()) or None


def by_capture(changes: Sequence[HistoryChange]) -> list[list[HistoryChange]]:
    """The changes between the same two captures together."""
    groups: dict[tuple[int, int], list[HistoryChange]] = {}
    for change in changes:
        groups.setdefault((change.before.id, change.after.id), []).append(change)
    return list(groups.values())


def _lines(changes: Sequence[HistoryChange], store: str) -> Iterator[str]:
    """The changes in words."""
    for group in by_capture(changes):
        before, after = group[0].before.label(), group[0].after.label()
        yield f"from capture {after} on: {'; '.join(change.text() for change in group)}"
        rows = next((change.rows for change in group if change.rows), ())
        why = "".join(f"; {label} {signed(ns)}" for label, ns in rows)
        yield f"  compared with {before}{why}"
    if changes:
        yield f"all of it: fastprof history {store} --explain {changes[-1].after.id}"
    else:
        yield "no change of level found"


def signed(ns: int) -> str:
    """A time with its sign."""
    return f"{'+' if ns > 0 else ''}{quantity(ns, 'ns')}"


def _largest_rows(compared: DiffData) -> tuple[tuple[str, int], ...]:
    """The largest rows of a comparison: label and change of the step, ns."""
    table = compared.table(_KEYS)
    rows = []
    for row in table.head(_ROWS).rows():
        values = [row[key] for key in _KEYS if row[key] is not None]
        is_plain = row["part"] == COMPUTE and values
        label = " ".join(values if is_plain else [row["part"], *values])
        rows.append((label, int(row["delta_ns"] or 0)))
    least = _LEAST * max((abs(ns) for _, ns in rows), default=0)
    return tuple((label, ns) for label, ns in rows if ns and abs(ns) >= least)
