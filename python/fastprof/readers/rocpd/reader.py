"""rocpd databases to a Recording."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastprof._core import _pools
from fastprof._system.classes import dataclass
from fastprof._system.memory import give_back
from fastprof.model.arrays import Int32
from fastprof.model.columns import unknown
from fastprof.model.timeline import Recorded, RecordedRanges, RecordedSyncs
from fastprof.model.trace import Activity, Kernels, Launches, Ranges, Recording
from fastprof.readers import cupti as gpu_work
from fastprof.readers import trace_columns
from fastprof.readers.cupti import WorkColumns
from fastprof.readers.rocpd import metadata, regions, schema, work
from fastprof.readers.rocpd.events import Events
from fastprof.readers.rocpd.places import Places
from fastprof.readers.rocpd.schema import Run
from fastprof.readers.sqlite.connected import BothThreads
from fastprof.readers.sqlite.database import Database

# Ids of calls are unique within a run; those of further runs get the number of the run in front.
_RUN_SHIFT = 40


@dataclass(frozen=True, eq=False)
class _Contents:
    """The rows of all runs."""

    places: Places
    kernels: Kernels
    labels: _pools.Names
    host: regions.RegionRows

    def process_of_thread(self) -> Int32:
        return np.array([process for process, _ in self.places.threads], np.int32)


def read(database: Database, copies: bool = False, host: bool = False) -> Recording:
    """Read a database.

    copies : also read memory copies
    host : also keep all API calls

    Raises
    ------
    BadInputError
        The file is damaged, compressed, or lacks a column that all versions have.
    """
    contents = _read(database, copies, host)
    places, kernels = contents.places, contents.kernels
    columns = contents.host.launches(kernels)
    lost = contents.host.lost(kernels, places.strings)
    columns = trace_columns.launches_in_order(columns, kernels)
    trace_columns.complete_processes(kernels, len(places.pids))
    about, problems = metadata.read(database, schema.runs_of(database.tables), places)
    columns_of_ranges = contents.host.ranges(last=not host)
    ranges = trace_columns.ranges_in_order(columns_of_ranges, slice(None))
    give_back()
    return Recording(
        name=database.name,
        kernels=kernels,
        launches=Launches(columns["start"], columns["globalTid"], columns["nameId"]),
        ranges=ranges,
        phases=_no_ranges(),
        labels=contents.labels.texts(),
        strings=places.strings,
        threads=np.array([tid for _, tid in places.threads], np.int64),
        process_of_thread=contents.process_of_thread(),
        processes=np.array(places.pids, np.int32),
        warnings=_warnings(database, places) + problems,
        about=about,
        lost=lost,
        host=_recorded(database, contents) if host else None,
    )


def read_timeline(database: Database) -> Recorded:
    """The ranges and all API calls, with their times.

    Raises
    ------
    BadInputError
        As for `read`.
    """
    return _recorded(database, _read(database, False, True))


def _recorded(database: Database, contents: _Contents) -> Recorded:
    places, columns = contents.places, contents.host.ranges(last=False)
    start, end, thread, name = trace_columns.in_order(
        columns, slice(None), ("start", "end", "globalTid", "nameId")
    )
    return Recorded(
        ranges=RecordedRanges(
            start=start,
            end=end,
            thread=thread,
            domain=unknown(len(start)),
            is_push_pop=regions.are_pushed(name, places.strings),
        ),
        phase_domain=unknown(0),
        calls=contents.host.calls(),
        syncs=_no_syncs(),
        memory=metadata.memory(database, schema.runs_of(database.tables), places),
        strings=places.strings,
        threads=np.array([tid for _, tid in places.threads], np.int64),
        process_of_thread=contents.process_of_thread(),
        processes=np.array(places.pids, np.int32),
    )


def _read(database: Database, copies: bool, calls: bool) -> _Contents:
    """calls : also those that launched nothing"""
    runs = schema.runs_of(database.tables)
    with BothThreads(database) as threads:
        contents = _read_runs(database, threads, runs, copies, calls)
    give_back()
    return contents


def _read_runs(
    database: Database, threads: BothThreads, runs: Sequence[Run], copies: bool, calls: bool
) -> _Contents:
    places, labels = Places(database, runs), _pools.Names()
    kinds: dict[Activity, list[WorkColumns]] = {Activity.KERNEL: [], Activity.MEMCPY: []}
    of_runs = []
    for run in runs:
        schema.refuse_compressed(database, run)
        places.enter(run)
        events = Events(database, threads, run, labels)
        works = [work.read_dispatches(threads, run, places, events)]
        if copies:
            works.append(work.read_copies(database, threads, run, places, events))
            work.complete_devices(works[0].configs, works[1].configs)
        own = regions.read(database, threads, run, places, events, labels, None if calls else works)
        del events  # large
        regions.skip_repeated_work(own, works, work.event_rows(works))
        if run.number:
            _number(own, works, run.number)
        of_runs.append(own)
        for kind, columns in zip(kinds, works, strict=False):
            kinds[kind].append(columns)
    tables = {
        kind: gpu_work.one_after_the_other(columns) for kind, columns in kinds.items() if columns
    }
    del kinds, works  # large
    kernels = gpu_work.kernels_of(tables, work.PROCESS)
    process_of_thread = np.array([process for process, _ in places.threads], np.int32)
    return _Contents(places, kernels, labels, regions.RegionRows(of_runs, process_of_thread))


def _number(own: regions.Regions, works: list[WorkColumns], number: int) -> None:
    """Make the ids of calls unique among all runs, in place."""
    for ids in (own.stack, *own.parents, *(rows["correlationId"] for rows, _ in works)):
        ids[ids > 0] += number << _RUN_SHIFT


def _warnings(database: Database, places: Places) -> list[str]:
    warnings = []
    if places.lost:
        ids = ", ".join(str(number) for number in places.lost[:3])
        warnings.append(
            f"{database.name}: {len(places.lost)} kernels are not in rocpd_info_kernel_symbol "
            f"(ids {ids}); they print as na"
        )
    if places.problem:
        warnings.append(f"{database.name}: {places.problem}")
    return warnings


def _no_ranges() -> Ranges:
    int64, int32 = np.empty(0, np.int64), np.empty(0, np.int32)
    return Ranges(int64, int64, int32, int32, int64, int64)


def _no_syncs() -> RecordedSyncs:
    int64, int32 = np.empty(0, np.int64), np.empty(0, np.int32)
    return RecordedSyncs(int64, int64, int32, int32, int32, int32, int64)
