"""The rows of `memory`: sums over blocks by any keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.grouping import Grouping, group
from fastprof.analysis.host.cpu_events import CpuEvents, Measure, counted, joined_ids
from fastprof.analysis.memory.blocks import Blocks
from fastprof.analysis.memory.columns import COLUMNS, EARLIER, memory_heading
from fastprof.analysis.summary.measures import ratio
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.table import ColumnData, Floats, Table

_NONE: Final = np.iinfo(np.int64).min


class Net(NamedTuple):
    """Allocated less freed bytes of CPU events, and the keys of these events."""

    events: CpuEvents
    measure: Measure
    keys: Mapping[str, Values]


def rows_of(blocks: Blocks, by: Mapping[str, Values], rows: Bools | None, net: Net | None) -> Table:
    """A row for each combination of keys, the largest at the peak first.

    Blocks from before the capture are a row if all rows are selected.

    Parameters
    ----------
    by : the keys of the recorded blocks
    rows : the selected recorded blocks; None for all
    net : what CPU events allocate less what they free; None omits these columns
    """
    n, is_all = int(blocks.is_recorded.sum()), rows is None
    both = list(by.values())
    if net is not None:
        both = [_joined(each, net.keys[name]) for name, each in by.items()]
        changes = (net.measure.total != 0) | (net.measure.own != 0)
        rows = np.append(np.full(n, True), changes)
    groups = group(both, n + (0 if net is None else len(net.events)), rows)
    columns = {
        name: Values(key.ids[groups.first], key.values) for name, key in zip(by, both, strict=True)
    }
    found = _sums(blocks, Grouping(groups.ids[:n], groups.n))
    if net is not None:
        found |= _net_sums(net, Grouping(groups.ids[n:], groups.n), "op" in by)
    earlier = _earlier(blocks, found) if is_all else {}
    if earlier:
        columns = _with_earlier(columns)
        found = {name: np.append(each, earlier.get(name, _NONE)) for name, each in found.items()}
    return _table(columns, found)


def _table(columns: Mapping[str, Values], found: Mapping[str, Int64]) -> Table:
    total = {name: _total(each) for name, each in found.items() if name != "total_bytes"}
    at_peak = found["at_peak_bytes"]
    cells: dict[str, ColumnData] = {name: Ints(each, _NONE) for name, each in found.items()}
    cells["at_peak_share"] = Floats(ratio(at_peak, np.full(len(at_peak), total["at_peak_bytes"])))
    headings = [each for each in COLUMNS if each.key in cells]
    table = Table(
        {**columns, **{each.key: cells[each.key] for each in headings}},
        (*map(memory_heading, columns), *headings),
        total=total,
    )
    return table.take(np.lexsort((-found["allocated_bytes"], -at_peak)))


def empty_table(note: str, facts: Mapping[str, Any]) -> Table:
    """A table without rows, with the reason."""
    none: dict[str, ColumnData] = {each.key: Ints(np.empty(0, np.int64)) for each in COLUMNS}
    return Table(none, COLUMNS, notes=(note,), facts=facts)


def _joined(left: Values, right: Values) -> Values:
    values = Values(joined_ids(left, right), [*left.values, *right.values])
    return values.mapped(lambda value: value)


def _sums(blocks: Blocks, groups: Grouping) -> dict[str, Int64]:
    own = blocks.is_recorded
    size = blocks.size[own]
    at_peak = blocks.is_live(_peaks(blocks))[own]
    at_end = blocks.is_live_at_end[own]

    def sums(values: Int64) -> Int64:
        return np.asarray(groups.stats(values, _NONE).sum)

    return {
        "at_peak_bytes": sums(np.where(at_peak, size, 0)),
        "at_peak_blocks": sums(at_peak.astype(np.int64)),
        "allocated_bytes": sums(size),
        "allocations": np.asarray(groups.counts),
        "at_end_bytes": sums(np.where(at_end, size, 0)),
        "at_end_blocks": sums(at_end.astype(np.int64)),
    }


def _peaks(blocks: Blocks) -> Int64:
    """[blocks] The event after which the memory of each block has its peak."""
    peaks = np.array([use.peak_event for use in blocks.uses], np.int64)
    return peaks[blocks.memory] if len(peaks) else np.empty(0, np.int64)


def _earlier(blocks: Blocks, found: Mapping[str, Int64]) -> dict[str, int]:
    """The blocks from before the capture; those that it does not free only if totals are known.

    Empty if there are none.
    """
    uses = blocks.uses
    if all(use.start is not None for use in uses):
        peak = sum(use.base + use.peak_above for use in uses) - int(found["at_peak_bytes"].sum())
        end = sum(use.base + int(use.above[-1]) for use in uses) - int(found["at_end_bytes"].sum())
    else:
        is_early = ~blocks.is_recorded
        peak = int(blocks.size[is_early & blocks.is_live(_peaks(blocks))].sum())
        end = _NONE if peak or is_early.any() else 0
    if not peak and not end:
        return {}
    return {"at_peak_bytes": peak, "at_end_bytes": end, "allocated_bytes": 0, "allocations": 0}


def _with_earlier(columns: Mapping[str, Values]) -> dict[str, Values]:
    """The keys with those of the row of earlier blocks: the first is EARLIER, others unknown."""
    found: dict[str, Values] = {}
    for name, key in columns.items():
        new = -1 if found else len(key.values)
        values = key.values if found else [*key.values, EARLIER]
        found[name] = Values(np.append(key.ids, np.int32(new)), values)
    return found


def _net_sums(net: Net, groups: Grouping, nested: bool) -> dict[str, Int64]:
    included = counted(net.events, groups, nested)
    total = groups.stats(np.where(included, net.measure.total, 0), _NONE).sum
    own = groups.stats(net.measure.own, _NONE).sum
    return {"self_bytes": np.asarray(own), "total_bytes": np.asarray(total)}


def _total(values: Int64) -> Any:
    known = values[values != _NONE]
    return int(known.sum())
