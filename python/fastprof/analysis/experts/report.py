"""`experts`: mixtures of experts by layer."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fastprof.analysis.experts.columns import COLUMNS, EXPERTS, RANKS
from fastprof.analysis.experts.work import (
    NOWHERE,
    ExpertWork,
    Shares,
    Sizes,
    expert_work,
    rows_of_experts,
    times_of_parts,
)
from fastprof.analysis.registry import Where
from fastprof.analysis.selection import selected
from fastprof.model.columns import Ints
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Floats, Table, text_column
from fastprof.profile.data import ProfileData
from fastprof.profile.facts import gpu_names

_TIMES: Final = ("products_ns", "routing_ns", "exchange_ns", "other_ns")
_UNKNOWN: Final = "rows of each expert or rank are not recorded"


def experts(profile: ProfileData, steps: str | None = None, where: Where | None = None) -> Table:
    """A row per layer of experts, the longest first. See docs/reports.md.

    Parameters
    ----------
    steps : what a step is, see `Profile.find_steps`
    where : only this work has time, see `fastprof.analysis.selection`

    Raises
    ------
    ReportError
        A key is unknown.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    BadInputError
        The file has changed since it was read.
    """
    rows_of_work = selected(profile, where)
    has_times = "start" in profile.names and len(profile) > 0
    work = expert_work(profile, rows_of_work) if has_times else None
    if work is None:
        none: ColumnData = Ints(np.empty(0, np.int64))
        note = "no experts: no operator, kernel or layer of this capture is one of a mixture"
        return Table(dict.fromkeys((h.key for h in COLUMNS), none), COLUMNS, notes=(note,))
    own_steps = profile.find_steps(steps)
    shares = rows_of_experts(profile, work, own_steps)
    exact = _exact_layers(work)
    rows = [
        _row(layer, times.tolist(), work, shares.get(layer, []), layer in exact)
        for layer, times in times_of_parts(profile, work).items()
    ]
    total = {name: sum(row[name] or 0 for row in rows) for name in ("gpu_ns", *_TIMES)}
    gpus = gpu_names(profile.about, profile.column("device"))
    lead = (", ".join(filter(None, [gpus, own_steps.description])), *_lead(rows), "")
    table = Table(_columns(rows), COLUMNS, lead=lead, notes=_notes(rows), total=total)
    return table.sort("gpu_ns")


def _exact_layers(work: ExpertWork) -> set[str]:
    """Layers with work that operators or layers tell."""
    ids = np.unique(work.layer.ids[(work.part >= 0) & work.is_exact])
    return {str(work.layer.values[number]) if number >= 0 else NOWHERE for number in ids.tolist()}


def _row(
    layer: str, times: list[int], work: ExpertWork, of_experts: list[Shares], is_exact: bool
) -> dict[str, Any]:
    calls, exchanges = work.calls.get(layer, []), work.exchanges.get(layer, [])
    shares, among = (of_experts, EXPERTS) if of_experts else (exchanges, RANKS)
    shares = [share for share in shares if sum(share.rows)]
    row: dict[str, Any] = {
        "layer": layer,
        "calls": sum(count for _, count in calls) or None,
        "among": None,
    }
    row |= _sizes(calls)
    if of_experts:
        row["experts"] = len(of_experts[0].rows)
    if shares:
        imbalances = [max(share.rows) / np.mean(share.rows) for share in shares]
        row |= {
            "among": among,
            "rows": float(np.mean([np.mean(share.rows) for share in shares])),
            "most_rows": float(np.mean([max(share.rows) for share in shares])),
            "imbalance": float(np.mean(imbalances)),
            "worst": float(max(imbalances)),
        }
    load = _load(exchanges)
    products = times[0]
    lost = None if load is None else products * max(1 - 1 / load, 0.0) if load else 0.0
    row |= {"load": load, "gpu_ns": sum(times), "lost_ns": lost, "exact": int(is_exact)}
    return row | dict(zip(_TIMES, times, strict=True))


def _sizes(calls: list[tuple[Sizes, int]]) -> dict[str, Any]:
    """Means of the sizes of calls, and the rows of an expert."""
    known = [(call.tokens, count) for call, count in calls if call.tokens is not None]
    tokens = sum(n * count for n, count in known) / sum(count for _, count in known) if known else 0
    number = next((call.experts for call, _ in calls if call.experts), None)
    chosen = next((call.chosen for call, _ in calls if call.chosen), None)
    rows = tokens * chosen / number if tokens and chosen and number else None
    return {
        "tokens": tokens or None, "experts": number, "chosen": chosen, "rows": rows,
        "most_rows": None, "imbalance": None, "worst": None,
    }  # fmt: skip


def _load(exchanges: list[Shares]) -> float | None:
    """Rows that the rank receives by those that it sends; None if not recorded."""
    known = [share for share in exchanges if share.received is not None]
    given = sum(sum(share.rows) for share in known)
    return sum(share.received or 0 for share in known) / given if given else None


def _columns(rows: list[dict[str, Any]]) -> dict[str, ColumnData]:
    columns: dict[str, ColumnData] = {}
    for heading in COLUMNS:
        values = [row[heading.key] for row in rows]
        if heading.key in ("layer", "among"):
            columns[heading.key] = text_column(values)
        elif heading.key in ("calls", "experts", "chosen", "exact", "gpu_ns", *_TIMES):
            columns[heading.key] = Ints(
                np.array([-1 if value is None else value for value in values], np.int64)
            )
        else:
            columns[heading.key] = Floats(
                np.array([np.nan if value is None else value for value in values], np.float64)
            )
    return columns


def _lead(rows: list[dict[str, Any]]) -> list[str]:
    """The time of all layers, and the least even one."""
    names = [name.removesuffix("_ns") for name in _TIMES]
    sums = [sum(row[name] for row in rows) for name in _TIMES]
    parts = ", ".join(
        f"{name} {quantity(time, 'ns')}" for name, time in zip(names, sums, strict=True) if time
    )
    lines = [f"{len(rows)} layer{'s' * (len(rows) > 1)} of experts: {parts}"]
    known = [row for row in rows if row["imbalance"] is not None]
    if known:
        worst = max(known, key=lambda row: row["imbalance"])
        lines.append(
            f"least even: {worst['layer']}, the largest of {worst['among']} has "
            f"{worst['imbalance']:.2f} times the mean rows"
        )
    else:
        lines.append(f"{_UNKNOWN}: how even the work is cannot be told from this capture")
    lost = sum(row["lost_ns"] or 0 for row in rows)
    if lost:
        lines.append(f"this rank gets more rows than it sends: {quantity(lost, 'ns')} lost to it")
    return lines


def _notes(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    notes = []
    if any(row["imbalance"] is None for row in rows):
        notes.append(
            f"{_UNKNOWN} for some layers: grouped products and DeepEP take them from tensors; "
            "all_to_all_single with split sizes and experts as layers of their own record them"
        )
    if any(not row["exact"] for row in rows):
        notes.append("layers with exact 0 are told by the names of kernels alone")
    return tuple(notes)
