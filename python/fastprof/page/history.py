"""The page of `fastprof history --html`: a line chart for each figure, the changes marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from fastprof._system.garbage import uncollected
from fastprof.analysis.history.columns import FIGURES, GROUPS, heading_of
from fastprof.analysis.history.history import HistoryChange, HistoryData, by_capture, signed
from fastprof.model.numbers import quantity
from fastprof.model.page import Page
from fastprof.page.build import build
from fastprof.page.section import Card, Chart, Fact, Section

_MOST_CARDS: Final = 30
_SECTIONS: Final = (
    ("figures", "The step", ()),
    ("ops", "Operators", ("ops",)),
    ("layers", "Layers", ("layers",)),
)


def page_of_history(data: HistoryData, figures: Sequence[str] = ()) -> Page:
    """The page of the captures of a store.

    figures : those of the charts, see `HistoryData.figures`; by default all that are known, and
        the largest operators and layers

    Raises
    ------
    ReportError
        A figure is unknown.
    """
    with uncollected():
        known = data.figures(figures)
        shown = known if figures else data.figures((*known, *GROUPS))
        changes = data.changes(shown)
        sections = [_changes(data, changes), *_charts(data, shown, changes), _captures(data)]
        title = f"History of {data.store.replace(chr(92), '/').rstrip('/').rsplit('/', 1)[-1]}"
        n = len(data.captures)
        about = [f"{n} capture{'s' * (n != 1)}", f"changes at {len(by_capture(changes))} of them"]
        return Page(build(title, about, sections))


def _changes(data: HistoryData, changes: Sequence[HistoryChange]) -> Section:
    groups = by_capture(changes)
    newest = [_card(group) for group in reversed(groups)][:_MOST_CARDS]
    n_more = len(groups) - len(newest)
    missing = [f"{n_more} earlier changes are not listed here"] if n_more else []
    return Section(
        "changes",
        "What changed",
        [] if changes else ["No change of the level of a figure found."],
        facts=[*_facts(data)],
        cards=newest,
        missing=[*data.notes, *missing],
    )


def _facts(data: HistoryData) -> Iterator[Fact]:
    """The figures of the newest capture."""
    for figure in data.figures():
        value = data.series(figure)[-1]
        if np.isfinite(value):
            heading = heading_of(figure)
            yield Fact(heading.header, quantity(float(value), heading.unit), "newest capture")


def _card(changes: Sequence[HistoryChange]) -> Card:
    """The changes from a capture on."""
    before, after = changes[0].before, changes[0].after
    first = max(changes, key=lambda change: abs(change.share or 0))
    badge = "" if first.share is None else f"{heading_of(first.figure).header} {first.share:+.1%}"
    because = next((change.rows for change in changes if change.rows), ())
    rows = [("what", "; ".join(change.text() for change in changes))]
    if because:
        rows.append(("why", "; ".join(f"{label} {signed(ns)}" for label, ns in because)))
    rows.append(("compared with", f"capture {before.label()}"))
    return Card(f"From capture {after.label()} on", badge, rows)


def _charts(
    data: HistoryData, figures: Sequence[str], changes: Sequence[HistoryChange]
) -> Iterator[Section]:
    labels = [capture.label() for capture in data.captures]
    places = {each.id: i for i, each in enumerate(data.captures)}
    for name, title, kinds in _SECTIONS:
        prefixes = tuple(f"{GROUPS[kind]}:" for kind in kinds)
        own = [
            figure
            for figure in figures
            if (figure.startswith(prefixes) if kinds else figure in FIGURES)
        ]
        if own and labels:
            charts = [_chart(data, each, labels, places, changes) for each in own]
            yield Section(name, title, charts=charts)


def _chart(
    data: HistoryData,
    figure: str,
    labels: Sequence[str],
    places: dict[int, int],
    changes: Sequence[HistoryChange],
) -> Chart:
    heading = heading_of(figure)
    own = [change for change in changes if change.figure == figure]
    return Chart(
        "series",
        f"{heading.header}: {heading.about}",
        {
            "unit": heading.unit,
            "name": heading.header,
            "labels": labels,
            "changes": [{"at": places[change.after.id], "text": change.text()} for change in own],
            "levels": [[change.old, change.new] for change in own],
        },
        {"values": data.series(figure)},
        ("series.css",),
    )


def _captures(data: HistoryData) -> Section:
    table = replace(data.table(), title="", lead=(), notes=())
    shown = [name for name in table.columns if table.heading(name).in_text]
    return Section(
        "captures", "Captures", tables=[("All captures, the newest first", table.select(shown))]
    )
