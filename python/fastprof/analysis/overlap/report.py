"""`overlap`: communication hidden behind compute and exposed, and the bandwidth of collectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from fastprof.analysis import keys
from fastprof.analysis.counted import steps_times_gpus
from fastprof.analysis.grouping import Floats64, Grouping, group, numbers
from fastprof.analysis.key_names import check_keys
from fastprof.analysis.overlap.columns import COLUMNS, DEFAULT_KEYS, key_heading
from fastprof.analysis.overlap.exposure import Exposure, exposure
from fastprof.analysis.overlap.text import NO_TIMES, lead, notes
from fastprof.analysis.registry import Where
from fastprof.analysis.roofline.limits import LARGEST
from fastprof.analysis.selection import selected
from fastprof.analysis.summary.measures import in_counted_steps, ratio, shown
from fastprof.model.arrays import Int64, unique
from fastprof.model.columns import Ints, Values, unknown
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Floats, Table, text_column
from fastprof.model.table_text import Layout
from fastprof.profile.data import ProfileData, left_out
from fastprof.profile.steps.kernel_steps import StepsOfKernels

Rows: TypeAlias = npt.NDArray[np.intp]

_SIZE: Final = "message_bytes"
# Messages are read from memory and written to it. Faster ones have other sizes than recorded.
_FASTEST: Final = LARGEST.bandwidth or np.inf


def overlap(
    profile: ProfileData,
    by: str | Sequence[str] | None = None,
    where: Where | None = None,
    steps: str | None = None,
) -> Table:
    """Time and bandwidth of collectives, the longest exposed first. See docs/reports.md.

    Each moment of communication counts once as hidden or exposed: for the kernel of its GPU that
    started first.

    Parameters
    ----------
    by : keys, see `fastprof.analysis.key_names`; by default device, collective, process_group,
        group_size, message_bytes, message_type and stream, each if the trace records it
    where : see `fastprof.analysis.selection`
    steps : what a step is, see `Profile.find_steps`

    Raises
    ------
    ReportError
        A key is unknown.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    BadInputError
        The file has changed: exports of Nsight Systems are read again for the payloads of NCCL's
        ranges.
    """
    names = (by,) if isinstance(by, str) else tuple(by or ())
    if names:
        check_keys(names)
    chosen = selected(profile, where)
    found_steps = profile.find_steps(steps)
    if "start" not in profile.names:
        return _table({name: unknown(0) for name in names or DEFAULT_KEYS}, {}, (NO_TIMES,))
    result, calls = exposure(profile), profile.source.messages.call
    rows = np.flatnonzero(calls >= 0 if chosen is None else (calls >= 0) & chosen)
    by_name = {name: keys.key_of(profile, name).take(rows) for name in names or DEFAULT_KEYS}
    if not names:
        by_name = {name: key for name, key in by_name.items() if _is_told(name, key)}
    kernels = _Kernels(profile, rows, result, found_steps)
    groups = group(list(by_name.values()), len(rows))
    of_groups = {name: Values(key.ids[groups.first], key.values) for name, key in by_name.items()}
    table = _table(of_groups, kernels.measures(groups), notes(profile, result, rows))
    everything = kernels.measures(Grouping(np.zeros(len(rows), np.int32), 1))
    total = {name: everything[name].at(0) for name in _TOTALS} if len(rows) else {}
    lines, facts = lead(result) if chosen is None else ((), {})
    return replace(table, total=total, lead=(*left_out(profile), *lines), facts=facts)


_TOTALS: Final = (
    *("calls", "kernels", "time_ns", "exposed_ns", "hidden_ns", "hidden_share"),
    *("step_exposed_ns", "bytes", "in_bytes", "out_bytes"),
)


def _is_told(name: str, key: Values) -> bool:
    """Whether a key is known; of devices, whether there are several."""
    if name == "collective":
        return True
    return len(unique(key.ids)) > 1 if name == "device" else bool((key.ids >= 0).any())


class _Kernels:
    """The communication kernels of the report, [kernels]."""

    def __init__(
        self, profile: ProfileData, rows: Rows, found: Exposure, steps: StepsOfKernels
    ) -> None:
        calls = profile.source.messages
        self._time = np.maximum(numbers(profile, "sil")[rows], 0).astype(np.int64)
        self._hidden, self._exposed = found.hidden[rows], found.exposed[rows]
        self._call = calls.call[rows]
        self._is_first = np.zeros(len(rows), bool)  # of the kernels of its call
        self._is_first[np.unique(self._call, return_index=True)[1]] = True
        message = calls.message.take(rows)
        parts = {
            "bytes": [value.size for value in message.values],
            "in_bytes": [value.given for value in message.values],
            "out_bytes": [value.got for value in message.values],
            "bus_bytes": [value.bus for value in message.values],
        }
        self._bytes = {  # of the call of each kernel, NaN if unknown
            name: np.array([*values, None], np.float64)[message.ids]
            for name, values in parts.items()
        }
        self._is_counted = in_counted_steps(steps)[rows]
        self._n_windows = steps_times_gpus(profile, steps)

    def measures(self, groups: Grouping) -> dict[str, ColumnData]:
        """The measures of each group; see `overlap_columns` for units and help."""
        time, hidden, exposed = (
            groups.stats(each).sum for each in (self._time, self._hidden, self._exposed)
        )
        calls = groups.distinct_counts(self._call)
        per_step = groups.sum_where(self._exposed, self._is_counted) / max(self._n_windows, 1)
        columns: dict[str, ColumnData] = {
            "calls": Ints(calls),
            "kernels": Ints(groups.counts),
            "time_ns": Ints(time),
            "mean_ns": Floats(ratio(time, calls)),
            "exposed_ns": Ints(exposed),
            "hidden_ns": Ints(hidden),
            "hidden_share": Floats(ratio(hidden, hidden + exposed)),
            "step_exposed_ns": Floats(per_step if self._n_windows else np.full(groups.n, np.nan)),
        }
        for name in ("bytes", "in_bytes", "out_bytes"):
            total, _ = self._sums(groups, name)
            columns[name] = Ints(np.nan_to_num(total, nan=-1).astype(np.int64))
        for name, rate in (("bytes", "algorithm_bytes_per_s"), ("bus_bytes", "bus_bytes_per_s")):
            result = ratio(*self._sums(groups, name)) * 1e9
            columns[rate] = Floats(np.where(result <= _FASTEST, result, np.nan))
        return columns

    def _sums(self, groups: Grouping, name: str) -> tuple[Floats64, Int64]:
        """Bytes of the calls of known size, NaN without any, and the time of their kernels."""
        sizes = self._bytes[name]
        is_known = ~np.isnan(sizes)
        total = groups.sums(np.nan_to_num(sizes), is_known & self._is_first)
        n_known = groups.sums(is_known.astype(np.float64))
        return np.where(n_known > 0, total, np.nan), groups.sum_where(self._time, is_known)


def _table(by: dict[str, Values], measures: dict[str, ColumnData], notes: tuple[str, ...]) -> Table:
    """Rows in order of exposed time."""
    none: ColumnData = Ints(np.empty(0, np.int64))
    columns = {column.key: measures.get(column.key, none) for column in COLUMNS}
    sizes = {name: _numbers(key) for name, key in by.items() if name == _SIZE}
    table = Table(
        {**by, **sizes, **columns},
        (*map(key_heading, by), *shown(COLUMNS, columns)),
        notes=notes,
    ).sort("exposed_ns")
    column = table.columns.get(_SIZE)
    if column is None:
        return table
    texts = [
        None if number is None else quantity(number, "bytes") for number in column.array().tolist()
    ]
    return replace(table, layout=Layout({_SIZE: text_column([text or "na" for text in texts])}))


def _numbers(key: Values) -> Ints:
    """A key of numbers as a column of numbers."""
    return Ints(np.array([*key.values, -1], np.int64)[key.ids])
