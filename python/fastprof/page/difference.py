"""The page of `fastprof diff --html`: what changed between two captures, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fastprof._system.garbage import uncollected
from fastprof.analysis.diff.answer import (
    answer,
    capture_lines,
    notes,
    starved_of,
    times_of,
    work_line,
)
from fastprof.analysis.diff.compare import DiffData
from fastprof.analysis.diff.confidence import LEVEL
from fastprof.analysis.diff.side import COMPUTE
from fastprof.analysis.diff.waterfall import CALLS
from fastprof.model.heading import Heading
from fastprof.model.page import Page
from fastprof.model.quantity import quantity
from fastprof.model.table import ColumnData, Floats, Table, texts
from fastprof.page.build import build
from fastprof.page.section import Chart, Fact, Section

_BARS: Final = 14
_LEAST: Final = 0.01  # of the longest bar
_TABLES: Final = {
    "op": "Operators",
    "layer": "Layers",
    "line": "Source lines",
    "kernel": "Kernels",
}
_OF_IDLE: Final = ("part", "before_ns", "after_ns", "delta_ns", "error_ns", "share", "why")


def page_of_diff(found: DiffData) -> Page:
    """The page of a comparison: the answer, what made the change, and tables by several keys."""
    with uncollected():
        table = found.table()
        sections = [_answer(found), _changes(found, table), *_predicted(found), _parts(found)]
        title = f"{_names(found.before.names)} → {_names(found.after.names)}"
        return Page(build(title, [found.wall["verdict"]], sections))


def _names(names: tuple[str, ...]) -> str:
    """The name of the first file, and the number of the other ones."""
    first = names[0].replace("\\", "/").rsplit("/", 1)[-1] if names else "capture"
    return first + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _answer(found: DiffData) -> Section:
    lead = [answer(found.found, found.wall), *capture_lines(found.found)]
    if found.found.unit != CALLS:
        lead.append(work_line(found.found))
    return Section(
        "answer",
        "Did the change help?",
        lead,
        facts=[*_facts(found)],
        tables=[] if found.found.unit == CALLS else [("What a step consists of", _times(found))],
        missing=notes(found.found),
    )


def _facts(found: DiffData) -> Iterator[Fact]:
    wall = found.wall
    unit = "step" if found.found.unit == "step" else "capture"
    yield Fact(f"{unit} before", quantity(wall["before_ns"], "ns"))
    yield Fact(f"{unit} after", quantity(wall["after_ns"], "ns"))
    if wall["change"] is not None:
        yield Fact("change", f"{wall['change']:+.1%}", _interval(wall))
    yield Fact("verdict", wall["verdict"], wall["because"] or "")
    if found.found.unit != CALLS and (starved := starved_of(found.found)):
        yield Fact("starved kernels", f"{starved[0]:.1%} → {starved[1]:.1%}")


def _times(found: DiffData) -> Table:
    """Busy, idle, exposed and host times of a step, and the share of starved kernels."""
    times = times_of(found.found)
    before, after = (np.array([pair[i] for _, *pair in times], np.float64) for i in (0, 1))
    change = np.divide(after, before, out=np.full(len(times), np.nan), where=before > 0) - 1
    columns: dict[str, ColumnData] = {
        "name": texts([name for name, *_ in times]),
        "before_ns": Floats(before),
        "after_ns": Floats(after),
        "change": Floats(change),
    }
    return Table(columns, _TIMES)


_TIMES: Final = (
    Heading("name", "part"),
    Heading("before_ns", "before", "ns", same_unit="after_ns"),
    Heading("after_ns", "after", "ns"),
    Heading("change", "change", "share"),
)


def _interval(wall: dict[str, Any]) -> str:
    if wall["low"] is None:
        return "interval unknown"
    high = "unbounded" if wall["high"] is None else f"{wall['high']:+.1%}"
    return f"{LEVEL:.0%} interval {wall['low']:+.1%} to {high}"


def _changes(found: DiffData, table: Table) -> Section:
    """The waterfall from before to after, and its rows."""
    delta = np.ma.filled(table["delta_ns"], 0).astype(np.float64)
    large = np.abs(delta) >= max(_LEAST * float(np.abs(delta).max(initial=0)), 1)
    rows = np.flatnonzero(large)[:_BARS]
    total = found.found.unit != CALLS
    before, after = found.found.wall_ns
    names = [_label(table, row) for row in rows.tolist()]
    why = [table.columns["why"].at(row) or "" for row in rows.tolist()]
    chart = Chart(
        "waterfall",
        "The change of each part, the largest first",
        {
            "names": names,
            "why": why,
            "before": before if total else None,
            "after": after if total else None,
            "table": "changes-table-1",
        },
        {
            "row": rows.astype(np.int32),
            "delta": delta[rows],
            "error": np.asarray(table["error_ns"], np.float64)[rows],
        },
        ("plot.css", "waterfall.css"),
    )
    plain = replace(table, title="", lead=(), notes=())
    return Section(
        "changes",
        "What made the change",
        ["Each bar is a part of the step; the bars add up to the change of the step."],
        charts=[chart] if len(rows) else [],
        tables=[("All parts", plain)],
        missing=[] if len(rows) else ["no part changed"],
    )


def _predicted(found: DiffData) -> Iterator[Section]:
    """What the plan of BEFORE predicted for findings that are gone, if any are."""
    predicted = found.predictions
    if predicted is None or not (predicted.gone or predicted.because):
        return
    gone = predicted.gone
    columns: dict[str, ColumnData] = {
        "id": texts([each.id for each in gone]),
        "gone": Floats(np.array([each.gone for each in gone], np.float64)),
        "predicted_ns": Floats(np.array([each.predicted_ns for each in gone], np.float64)),
        "own_ns": Floats(np.array([each.own_ns for each in gone], np.float64)),
    }
    lines = list(predicted.lines())
    yield Section(
        "predicted",
        "What the advice predicted",
        lines[:1] if gone else [],
        tables=[("Findings of BEFORE that are gone", Table(columns, _PREDICTED))] if gone else [],
        missing=[] if gone else lines,
    )


_PREDICTED: Final = (
    Heading("id", "finding"),
    Heading("gone", "gone", "share"),
    Heading("predicted_ns", "predicted", "ns"),
    Heading("own_ns", "less idle time and kernels", "ns"),
)


def _label(table: Table, row: int) -> str:
    """The part and the keys of a row."""
    keys = [name for name in table.columns if name == "part" or not name.endswith(_SUFFIXES)]
    values = [table.columns[name].at(row) for name in keys if name != "why"]
    if values[0] == COMPUTE and any(each is not None for each in values[1:]):
        values = values[1:]
    return " ".join(str(each) for each in values if each is not None)


_SUFFIXES: Final = ("_ns", "share", "_before", "_after")


def _parts(found: DiffData) -> Section:
    """Tables by operator, layer, line and kernel, and idle time by cause."""
    tables = []
    for key, caption in _TABLES.items():
        table = found.table([key])
        column = table.columns[key]
        rows = [row for row in range(table.n_rows) if column.at(row) is not None]
        if rows:
            tables.append((caption, _some(table, rows)))
    table = found.table(["op"])
    part = table.columns["part"]
    idle = [row for row in range(table.n_rows) if str(part.at(row)).startswith("idle")]
    if idle:
        known = [name for name in _OF_IDLE if name in table]
        tables.append(("Idle time by cause", _some(table.select(known), idle)))
    return Section("tables", "Tables", tables=tables)


def _some(table: Table, rows: list[int]) -> Table:
    """Some rows, without the texts and totals of all."""
    return replace(table.take(rows), title="", lead=(), notes=(), total={})
