"""Files of rocmProfileData (.rpd) to a Recording."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core import _join, _pools
from fastprof._core._take import take
from fastprof.model.arrays import Int64
from fastprof.model.columns import Values, unknown
from fastprof.model.metadata import About
from fastprof.model.timeline import Recorded, RecordedCalls, RecordedRanges, RecordedSyncs
from fastprof.model.trace import Kernels, Launches, LostLaunches, Ranges, Recording
from fastprof.readers import trace_columns
from fastprof.readers.lost_launches import lost_calls
from fastprof.readers.rocpd import rpd_schema as schema
from fastprof.readers.rocpd.events import texts_of
from fastprof.readers.rocpd.rpd_calls import RpdCalls, read_ranges
from fastprof.readers.rocpd.rpd_work import read_ops, read_work
from fastprof.readers.sqlite.database import Database, TableColumns
from fastprof.readers.trace_columns import text


def read(database: Database, copies: bool = False) -> Recording:
    """Read a file; `host` is kept.

    copies : also read memory copies and memsets

    Raises
    ------
    BadInputError
        The file is damaged, or lacks a column that all versions have.
    """
    keys, labels = _pools.Keys(), _pools.Names()
    ops = read_ops(database, keys)
    calls = RpdCalls(database, keys)
    strings = texts_of(database, schema.STRINGS, keys)
    calls.classify(strings)
    kernels = read_work(database, ops, strings, copies)
    ranges, domain = read_ranges(database, calls, strings, keys, labels)
    launches = _read_launches(kernels, calls)
    lost = _lost(ops.call, kernels, calls, strings)
    trace_columns.complete_processes(kernels, len(calls.pids))
    return Recording(
        name=database.name,
        kernels=kernels,
        launches=launches,
        ranges=ranges,
        phases=Ranges(*(np.empty(0, column.dtype) for column in vars(ranges).values())),
        labels=labels.texts(),
        strings=strings,
        threads=calls.tids,
        process_of_thread=calls.process_of_thread,
        processes=calls.pids.astype(np.int32),
        warnings=_warnings(database, kernels, strings),
        about=_about(database),
        lost=lost,
        host=_recorded(calls, strings, ranges, domain),
    )


def _read_launches(kernels: Kernels, calls: RpdCalls) -> Launches:
    """The API calls that launched GPU work. Sets launch and process of kernels."""
    nowhere = np.zeros(len(kernels), np.int32)
    join = _join.Join(nowhere, kernels.correlation)
    join.offer(np.zeros(len(calls.id), np.int32), calls.id)
    place = join.rows(nowhere, kernels.correlation)
    used, launch = np.unique(place, return_inverse=True)
    kernels.launch = launch.astype(np.int32)
    if len(used) and used[0] < 0:
        used, kernels.launch = used[1:], kernels.launch - np.int32(1)
    columns: TableColumns = {
        "start": calls.start[used],
        "thread": calls.thread[used],
        "name": calls.name[used],
    }
    launches = Launches(**trace_columns.launches_in_order(columns, kernels))
    process = np.append(take(calls.process_of_thread, launches.thread), np.int32(-1))
    kernels.process = process[kernels.launch]
    return launches


def _lost(
    of_ops: Int64, kernels: Kernels, calls: RpdCalls, strings: list[str | None]
) -> LostLaunches:
    """The calls that launched kernels which the file lacks; none if it records no GPU work.

    of_ops : the call of each row of GPU work, of whatever kind
    """
    if not len(kernels):
        return LostLaunches()
    rows = np.flatnonzero(calls.is_call)
    worked = np.isin(calls.id[rows], of_ops)
    return lost_calls(
        strings, calls.name[rows], calls.start[rows], calls.thread[rows], worked,
        calls.process_of_thread,
    )  # fmt: skip


def _about(database: Database) -> About:
    about = About("rpd", tool="rocmProfileData")
    if {"tag", "value"} <= set(database.tables.get(schema.METADATA, ())):
        rows = database.rows(
            f"SELECT CAST(tag AS BLOB), CAST(value AS BLOB) FROM {schema.METADATA} NOT INDEXED"
        )
        known = {text(tag): text(value) for tag, value in rows}
        about.schema_version = known.get("schema_version")
    return about


def _warnings(database: Database, kernels: Kernels, strings: list[str | None]) -> list[str]:
    names = np.unique(kernels.configs.name)
    lost = sum(name < 0 or strings[name] is None for name in names.tolist())
    if not lost:
        return []
    return [f"{database.name}: {lost} names of GPU work are not in {schema.STRINGS}; they are na"]


def _recorded(
    calls: RpdCalls, strings: list[str | None], ranges: Ranges, domain: Values
) -> Recorded:
    """The ranges and API calls with their times."""
    none64, none32 = np.empty(0, np.int64), np.empty(0, np.int32)
    rows = np.flatnonzero(calls.is_call & (calls.thread >= 0))
    columns: dict[str, npt.NDArray[Any]] = {
        "start": calls.start, "end": calls.end, "thread": calls.thread, "name": calls.name,
        "correlation": calls.id,
    }  # fmt: skip
    return Recorded(
        ranges=RecordedRanges(
            ranges.start, ranges.end, ranges.thread, domain, np.ones(len(ranges), bool)
        ),
        phase_domain=unknown(0),
        calls=RecordedCalls(**{key: column[rows] for key, column in columns.items()}),
        syncs=RecordedSyncs(none64, none64, none32, none32, none32, none32, none64),
        strings=strings,
        threads=calls.tids,
        process_of_thread=calls.process_of_thread,
        processes=calls.pids.astype(np.int32),
    )
