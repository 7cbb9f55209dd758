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
    clock_text,
    clocks_of,
    notes,
    starved_of,
    times_of,
    work_line,
)
from fastprof.analysis.diff.compare import DiffData
from fastprof.analysis.diff.confidence import LEVEL
from fastprof.analysis.diff.side import COMPUTE
from fastprof.analysis.diff.waterfall import CALLS
from fastprof.analysis.layers.report import NO_LAYER
from fastprof.analysis.stacks.tree import NodeTree
from fastprof.model.heading import Heading
from fastprof.model.numbers import quantity
from fastprof.model.page import Page
from fastprof.model.table import ColumnData, Floats, Table, text_column
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


def page_of_diff(data: DiffData) -> Page:
    """The page of a comparison: the answer, what made the change, and tables by several keys."""
    with uncollected():
        table = data.table()
        sections = [
            _answer(data), _changes(data, table), *_predicted(data), _where(data), _parts(data),
        ]  # fmt: skip
        title = f"{_names(data.before.names)} → {_names(data.after.names)}"
        return Page(build(title, [data.wall["verdict"]], sections))


def _names(names: tuple[str, ...]) -> str:
    """The name of the first file, and the number of the other ones."""
    first = names[0].replace("\\", "/").rsplit("/", 1)[-1] if names else "capture"
    return first + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _answer(data: DiffData) -> Section:
    lead = [answer(data.found, data.wall), *capture_lines(data.found)]
    if data.found.unit != CALLS:
        lead.append(work_line(data.found))
    return Section(
        "answer",
        "Did the change help?",
        lead,
        facts=[*_facts(data)],
        tables=[] if data.found.unit == CALLS else [("What a step consists of", _times(data))],
        missing=notes(data.found),
    )


def _facts(data: DiffData) -> Iterator[Fact]:
    wall = data.wall
    unit = "step" if data.found.unit == "step" else "capture"
    yield Fact(f"{unit} before", quantity(wall["before_ns"], "ns"))
    yield Fact(f"{unit} after", quantity(wall["after_ns"], "ns"))
    if wall["change"] is not None:
        yield Fact("change", f"{wall['change']:+.1%}", _interval(wall))
    yield Fact("verdict", wall["verdict"], wall["because"] or "")
    if data.found.unit != CALLS and (starved := starved_of(data.found)):
        yield Fact("starved kernels", f"{starved[0]:.1%} → {starved[1]:.1%}")
    if data.found.unit != CALLS and (clocks := clocks_of(data.found)):
        yield Fact("SM clock", clock_text(*clocks))


def _times(data: DiffData) -> Table:
    """Busy, idle, exposed and host times of a step, and the share of starved kernels."""
    times = times_of(data.found)
    before, after = (np.array([pair[i] for _, *pair in times], np.float64) for i in (0, 1))
    change = np.divide(after, before, out=np.full(len(times), np.nan), where=before > 0) - 1
    columns: dict[str, ColumnData] = {
        "name": text_column([name for name, *_ in times]),
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


def _changes(data: DiffData, table: Table) -> Section:
    """The waterfall from before to after, and its rows."""
    delta = np.ma.filled(table["delta_ns"], 0).astype(np.float64)
    large = np.abs(delta) >= max(_LEAST * float(np.abs(delta).max(initial=0)), 1)
    rows = np.flatnonzero(large)[:_BARS]
    total = data.found.unit != CALLS
    before, after = data.found.wall_ns
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


_KEYS: Final = ("layer", "op", "kernel")


def _where(data: DiffData) -> Section:
    """An icicle of both captures: idle time, and GPU time by layer, operator and kernel."""
    table = data.table(_KEYS)
    tree = NodeTree()
    nodes = np.array([tree.inside(0, _chain(row)) for row in table.rows()], np.int64)
    parent, type_, name = tree.columns()
    times = {
        key: np.bincount(nodes, np.ma.filled(table[key], 0), len(parent))
        for key in ("before_ns", "after_ns")
    }
    at = np.flatnonzero((times["before_ns"] > 0) | (times["after_ns"] > 0))
    none = np.full(len(parent), -1, np.int32)
    arrays: dict[str, Any] = {
        "parent": parent, "name": name.ids, "type": type_.ids, "phase": none, "kind": none,
        "at": (3 * at).astype(np.int32), **{key: values[at] for key, values in times.items()},
    }  # fmt: skip
    view = {
        "title": "Layers", "names": [str(value) for value in name.values], "types": type_.values,
        "phases": [], "kinds": [],
    }  # fmt: skip
    chart = Chart(
        "flame",
        f"A {'step' if data.found.unit == 'step' else data.found.unit} before and after: idle time "
        "by cause, GPU time by layer, operator and kernel. Width is time after the change; colour "
        "is the change. Click a part to zoom in, press Escape to go back.",
        {"views": [view]},
        {f"{key}0": array for key, array in arrays.items()},
        ("flame.css", "flame_tree.js", "flame_draw.js", "flame_parts.js"),
    )
    return Section(
        "where", "Where the change is", charts=[chart] if len(at) else [],
        missing=[] if len(at) else ["no part has a time"],
    )  # fmt: skip


def _chain(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The types and names from outside to inside of a row of the comparison."""
    if row["part"] != COMPUTE:
        yield "part", row["part"]
    if all(row[key] is None for key in _KEYS):
        return
    layers = (row["layer"] or NO_LAYER).split(":") if row["part"] == COMPUTE else ()
    yield from (("layer", name) for name in layers)
    yield from ((key, str(row[key])) for key in _KEYS[1:] if row[key] is not None)


def _predicted(data: DiffData) -> Iterator[Section]:
    """What the plan of BEFORE predicted for findings that are gone, if any are."""
    predicted = data.predictions
    if predicted is None or not (predicted.gone or predicted.because):
        return
    gone = predicted.gone
    columns: dict[str, ColumnData] = {
        "id": text_column([prediction.id for prediction in gone]),
        "gone": Floats(np.array([prediction.gone for prediction in gone], np.float64)),
        "predicted_ns": Floats(
            np.array([prediction.predicted_ns for prediction in gone], np.float64)
        ),
        "own_ns": Floats(np.array([prediction.own_ns for prediction in gone], np.float64)),
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
    if values[0] == COMPUTE and any(value is not None for value in values[1:]):
        values = values[1:]
    return " ".join(str(value) for value in values if value is not None)


_SUFFIXES: Final = ("_ns", "share", "_before", "_after")


def _parts(data: DiffData) -> Section:
    """Tables by operator, layer, line and kernel, and idle time by cause."""
    tables = []
    for key, caption in _TABLES.items():
        table = data.table([key])
        column = table.columns[key]
        rows = [row for row in range(table.n_rows) if column.at(row) is not None]
        if rows:
            tables.append((caption, _some(table, rows)))
    table = data.table(["op"])
    part = table.columns["part"]
    idle = [row for row in range(table.n_rows) if str(part.at(row)).startswith("idle")]
    if idle:
        known = [name for name in _OF_IDLE if name in table]
        tables.append(("Idle time by cause", _some(table.select(known), idle)))
    return Section("tables", "Tables", tables=tables)


def _some(table: Table, rows: list[int]) -> Table:
    """Some rows, without the texts and totals of all."""
    return replace(table.take(rows), title="", lead=(), notes=(), total={})
