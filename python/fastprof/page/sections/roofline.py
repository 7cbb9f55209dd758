"""Section: GPU time against the time at the GPU's peak rates, by operator and shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fastprof.analysis.key_names import heading_of
from fastprof.analysis.roofline.points import BY, PLACES, places_of, points_of, roofs_of
from fastprof.analysis.roofline.utilisation import devices_with
from fastprof.model.columns import Values
from fastprof.model.numbers import quantity
from fastprof.model.table import Table, text_column
from fastprof.page.section import UPLOT, Chart, PageSource, Section
from fastprof.profile.recording_hints import advice_on

_MOST: Final = 2000  # points
_OF_TOOLTIP: Final = ("calls", "ideal_ns", "flop_per_s", "bytes_per_s", "tc_share", "intensity")
_LABELS: Final = (*BY, *PLACES, "bound", "compute_type")
_NUMBERS: Final = {
    "intensity": "intensity",
    "rate": "flop_per_s",
    "ns": "gpu_ns",
    "step": "step_ns",
    "lost": "lost_ns",
    "share": "peak_share",
}


def section(source: PageSource) -> Section:
    """A circle per operator and shape, the roofs of the GPU, and the table of `roofline`."""
    profile = source.profile
    table = source.table("roofline")
    if not table.n_rows:
        why = advice_on(profile.about, profile.contents, "op")
        return Section("roofline", "Roofline", missing=[why])
    table = _with_places(table, places_of(profile, table))
    rows = points_of(table, _MOST)
    devices = devices_with(profile, **source.peaks)
    roofs = roofs_of(table, devices.values())
    missing = [] if len(rows) else ["no operator has known FLOPs and bytes: the chart is empty"]
    if not roofs.bandwidth and not roofs.peaks:
        missing.append("the peaks of the GPU are unknown: --gpu NAME, or --peak and --bandwidth")
    chart = Chart(
        "scatter",
        "Rate over arithmetic intensity of each operator and shape, with the roofs of the GPU",
        {
            "bandwidth": roofs.bandwidth,
            "peaks": roofs.peaks,
            "labels": {name: _used(table.columns[name], rows)[1] for name in _LABELS},
            "table": "roofline-table-1",
        },
        {
            "row": rows.astype(np.int32),
            **{name: _used(table.columns[name], rows)[0] for name in _LABELS},
            **{name: _floats(table, key)[rows] for name, key in _NUMBERS.items()},
        },
        UPLOT,
    )
    return Section(
        "roofline",
        "Roofline",
        [*_lead(table, rows)],
        charts=[chart] if len(rows) else [],
        tables=[("GPU time against the time at peak rates, by operator and shape", table)],
        missing=missing,
    )


def _lead(table: Table, rows: np.ndarray) -> Iterator[str]:
    """How to read the chart, and what it leaves out."""
    yield (
        "A circle is an operator with a shape; its area is GPU time. On the line it runs at the "
        "peak rate of the GPU; below, the distance is lost time."
    )
    time = np.ma.filled(table["gpu_ns"], 0)
    rest = int(time.sum() - time[rows].sum())
    if rest:
        why = "FLOPs or bytes are 0, unknown, or more than the GPU can do"
        if len(rows) == _MOST:
            why = f"the chart has the {_MOST} longest, {why} of others"
        yield (
            f"{table.n_rows - len(rows)} of {table.n_rows} rows, {quantity(rest, 'ns')}, are in "
            f"the table only: {why}."
        )


def _with_places(table: Table, places: dict[str, Values]) -> Table:
    """The table with layer, line and kind behind the keys."""
    known = {name: place for name, place in places.items() if (place.ids >= 0).any()}
    columns: dict[str, Any] = {name: table.columns[name] for name in BY}
    rest = {name: column for name, column in table.columns.items() if name not in BY}
    headings = [
        replace(heading_of(name), in_text=name in known, about=f"{name} with most of the time")
        for name in places
    ]
    others = [
        replace(heading, in_text=heading.in_text and heading.key not in _OF_TOOLTIP)
        for heading in table.headings[len(BY) :]
    ]
    return replace(
        table,
        columns={**columns, **places, **rest},
        headings=(*table.headings[: len(BY)], *headings, *others),
    )


def _used(column: Any, rows: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Ids of some rows into the texts that occur in them; -1 for unknown."""
    named = text_column([None if (value := column.at(row)) is None else str(value) for row in rows])
    return named.ids, named.values


def _floats(table: Table, name: str) -> np.ndarray:
    column: Any = table[name]
    return np.ma.filled(np.ma.asarray(column, np.float64), np.nan)
