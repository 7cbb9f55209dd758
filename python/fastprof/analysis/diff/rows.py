"""The rows of a comparison: what makes the change of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fastprof.analysis.diff.headings import COLUMNS
from fastprof.analysis.diff.labels import labels
from fastprof.analysis.diff.reasons import SAME, Reasons
from fastprof.analysis.diff.side import values_of
from fastprof.analysis.diff.waterfall import CALLS, Waterfall
from fastprof.analysis.idle_causes import CAUSES
from fastprof.analysis.key_names import heading_of
from fastprof.analysis.measures import shown
from fastprof.model.columns import Ints
from fastprof.model.table import Floats, Table

__all__ = ["NONE", "rows_table"]

NONE: Final = np.iinfo(np.int64).min  # unknown: changes are negative, too
_SUMS: Final = ("own_ns", "gpu_ns", "clocks_ns", "calls", "kernels")

Key = tuple[str | None, ...]


class _Row:
    """Sums of the groups of a row, before and after."""

    def __init__(self) -> None:
        self.own_ns, self.gpu_ns, self.clocks_ns = [0, 0], [0, 0], [0, 0]
        self.calls, self.kernels = [0, 0], [0, 0]
        self.rows: dict[int, int] = {}  # those of the waterfall, and their change

    @property
    def delta(self) -> int:
        return self.own_ns[1] - self.own_ns[0] - sum(self.clocks_ns)


def rows_table(found: Waterfall, by: Sequence[str]) -> Table:
    """A row for each part and value of the keys, the largest change first."""
    rows = _grouped(found, by)
    reasons = Reasons(found)
    n_windows = [half.side.n_windows for half in found.halves]
    lines: list[dict[str, Any]] = []
    for key, row in rows.items():
        line = dict(zip(("part", *by), key, strict=True))
        line |= _numbers(row, n_windows)
        calls = (line["calls_before"], line["calls_after"])
        line["why"] = reasons.of(row.rows, row.own_ns, calls)
        if found.unit == CALLS and line["why"] in ("added", "removed"):
            line |= {"before_ns": None, "after_ns": None, "delta_ns": None, "count_ns": None}
        lines.append(line)
    if found.unit != CALLS:
        lines += _idle(found)
    if found.clocks is not None:
        lines.append(_clocks(found, rows))
    total = sum(line["delta_ns"] or 0 for line in lines)
    for line in lines:
        delta = line["delta_ns"]
        line["share"] = delta / total if total and delta is not None else None
    lines.sort(key=lambda line: _order(line, by))
    return _table(lines, by, found, total)


def _order(line: dict[str, Any], by: Sequence[str]) -> tuple[Any, ...]:
    keys = tuple(line.get(name) or "" for name in ("part", *by))
    return (
        -abs(line["delta_ns"] or 0),
        -max(line["gpu_after_ns"] or 0, line["gpu_before_ns"] or 0),
        keys,
    )


def _grouped(found: Waterfall, by: Sequence[str]) -> dict[Key, _Row]:
    rows: dict[Key, _Row] = {}
    keys = [labels(found, name) for name in ("part", *by)]
    for i, half in enumerate(found.halves):
        columns = [each[i] for each in keys]
        sums = [getattr(half, name) for name in _SUMS[:3]]
        sums += [getattr(half.side, name) for name in _SUMS[3:]]
        numbers = zip(*(each.tolist() for each in sums), strict=True)
        own_keys = zip(*columns, strict=True)
        for key, values, of in zip(own_keys, numbers, half.row.tolist(), strict=True):
            row = rows.setdefault(key, _Row())
            for name, value in zip(_SUMS, values, strict=True):
                getattr(row, name)[i] += value
            change = (values[0] if i else -values[0]) - values[2]
            row.rows[of] = row.rows.get(of, 0) + change
    return rows


def _numbers(row: _Row, n_windows: Sequence[int]) -> dict[str, Any]:
    (before, after), delta = row.own_ns, row.delta
    calls = [count / n for count, n in zip(row.calls, n_windows, strict=True)]
    kernels = [count / n for count, n in zip(row.kernels, n_windows, strict=True)]
    each = [ns / count if count else 0.0 for ns, count in zip(row.own_ns, calls, strict=True)]
    mean = sum(each) / 2 if all(calls) else sum(each)
    return {
        "before_ns": before,
        "after_ns": after,
        "delta_ns": delta,
        "count_ns": round((calls[1] - calls[0]) * mean),
        "gpu_before_ns": row.gpu_ns[0],
        "gpu_after_ns": row.gpu_ns[1],
        "calls_before": calls[0],
        "calls_after": calls[1],
        "kernels_before": kernels[0],
        "kernels_after": kernels[1],
    }


def _idle(found: Waterfall) -> list[dict[str, Any]]:
    lines = []
    for cause, name in enumerate(CAUSES):
        before, after = (int(half.idle_ns[cause]) for half in found.halves)
        if before or after:
            why = "slower" if after > before else "faster"
            if abs(after - before) <= SAME * max(before, after):
                why = "same"
            lines.append(_line(f"idle: {name}", before, after, after - before, why))
    return lines


def _clocks(found: Waterfall, rows: dict[Key, _Row]) -> dict[str, Any]:
    factor = found.clocks.factor if found.clocks else 1.0
    delta = sum(sum(row.clocks_ns) for row in rows.values())
    return _line("clocks", None, None, delta, f"kernels take {factor:.3f} times as long")


def _line(part: str, before: int | None, after: int | None, delta: int, why: str) -> dict[str, Any]:
    none = dict.fromkeys(each.key for each in COLUMNS)
    return {
        **none, "part": part, "before_ns": before, "after_ns": after, "delta_ns": delta, "why": why,
    }  # fmt: skip


def _table(lines: list[dict[str, Any]], by: Sequence[str], found: Waterfall, total: int) -> Table:
    columns: dict[str, Any] = {}
    for name in ("part", *by, *(each.key for each in COLUMNS[1:])):
        values = [line.get(name) for line in lines]
        if name in by or name in ("part", "why"):
            columns[name] = values_of(values)
        elif name.endswith("_ns"):
            known = [NONE if each is None else each for each in values]
            columns[name] = Ints(np.array(known, np.int64), none=NONE)
        else:
            columns[name] = Floats(np.array([np.nan if each is None else each for each in values]))
    before, after = found.wall_ns
    headings = [COLUMNS[0], *map(heading_of, by), *COLUMNS[1:]]
    totals = {"before_ns": before, "after_ns": after, "delta_ns": total}
    return Table(columns, shown(headings, columns), total=totals if found.unit != CALLS else {})
