"""CPU time and memory by any keys, beside the GPU time: `summary --cpu`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fastprof.analysis import keys
from fastprof.analysis.cells import ReportCells as KernelCells
from fastprof.analysis.counted import headed
from fastprof.analysis.grouping import Grouping, group
from fastprof.analysis.host.cpu_events import CpuEvents, Measure, counted, joined_ids
from fastprof.analysis.key_names import heading_of
from fastprof.analysis.registry import Where
from fastprof.analysis.roofline.ideal import Ideals
from fastprof.analysis.selection import selected
from fastprof.analysis.summary.columns import CPU_MEASURES, MEASURES
from fastprof.analysis.summary.measures import TimeInSteps, measures, ratio, shown, totals
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.table import ColumnData, Floats, Table

_NONE: Final = np.iinfo(np.int64).min


def cpu_table(
    cells: KernelCells,
    events: CpuEvents,
    names: Sequence[str],
    in_steps: TimeInSteps,
    ideal: Ideals,
    where: Where | None = None,
) -> Table:
    """CPU measures by any keys, and GPU measures if the trace has GPU work.

    Kernels and CPU events with equal keys are one row. GPU measures are those of `summary`.
    """
    both = [_joined(keys.key_of(cells, name), keys.key_of(events, name)) for name in names]
    n = len(cells)
    groups = group(both, n + len(events), _rows(cells, events, where))
    columns: dict[str, ColumnData] = {
        name: Values(key.ids[groups.first], key.values)
        for name, key in zip(names, both, strict=True)
    }
    of_cpu = _measures(events, Grouping(groups.ids[n:], groups.n), nested="op" in names)
    total = _totals(of_cpu)
    if n:
        of_cpu["cpu_calls"] = of_cpu.pop("calls")
        total["cpu_calls"] = total.pop("calls")
        of_gpu = measures(cells, Grouping(groups.ids[:n], groups.n), in_steps, ideal)
        columns |= {name: of_cpu[name] for name in of_cpu} | of_gpu
        total |= totals(of_gpu)
    else:
        columns |= of_cpu
    headings = headed(
        (*map(heading_of, names), *shown((*CPU_MEASURES, *MEASURES), columns)), cells.profile
    )
    table = Table(columns, headings, total=total).sort("cpu_self_ns")
    return table.sort("gpu_ns") if n else table


def _joined(left: Values, right: Values) -> Values:
    """The rows of one key after those of another; equal values have one id."""
    return Values(joined_ids(left, right), [*left.values, *right.values]).mapped(
        lambda value: value
    )


def _rows(cells: KernelCells, events: CpuEvents, where: Where | None) -> Bools | None:
    of_cells, of_events = selected(cells, where), selected(events, where)
    if of_cells is None or of_events is None:
        return None
    return np.concatenate([of_cells, of_events])


def _measures(events: CpuEvents, groups: Grouping, nested: bool) -> dict[str, ColumnData]:
    """The CPU measures of each group; for `nested` see `cpu_events.counted`."""
    included = counted(events, groups, nested)

    def sums(values: Int64) -> Int64:
        return np.asarray(groups.stats(values, _NONE).sum)

    def total(measure: Measure) -> Int64:
        return sums(np.where(included, measure.total, 0))

    own = sums(events.time.own)
    columns: dict[str, ColumnData] = {
        "calls": Ints(groups.counts),
        "cpu_self_ns": Ints(own, _NONE),
        "cpu_share": Floats(ratio(own, np.full(groups.n, own.sum()))),
        "cpu_ns": Ints(total(events.time), _NONE),
        "cpu_mean_ns": Floats(ratio(total(events.time), sums(included.astype(np.int64)))),
    }
    for place, measure in events.memory.items():
        columns[f"{place}_memory"] = Ints(total(measure), _NONE)
        columns[f"{place}_self_memory"] = Ints(sums(measure.own), _NONE)
    return columns


def _totals(columns: dict[str, ColumnData]) -> dict[str, Any]:
    """Sums of the measures that exclude events inside."""
    return {
        name: int(np.asarray(column.array()).sum())
        for name, column in columns.items()
        if name == "calls" or "_self_" in name
    }
