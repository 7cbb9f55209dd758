"""The JSON of rocprofv3 to a Recording: kernels, copies, API calls, ranges and allocations."""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _column, _join, _nest, _pools
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Values, unknown
from fastprof.model.metadata import PINNED, About, Memory
from fastprof.model.timeline import Recorded, RecordedCalls, RecordedRanges, RecordedSyncs
from fastprof.model.trace import NEVER, Kernels, Launches, LostLaunches, Ranges, Recording
from fastprof.readers import trace_columns
from fastprof.readers.lost_launches import lost_calls
from fastprof.readers.rocpd import json_records
from fastprof.readers.rocpd.agents import devices_of, gpus_of
from fastprof.readers.rocpd.json_records import NONE, ROOT, Columns, RocprofFile
from fastprof.readers.rocpd.json_work import Texts, read_work
from fastprof.readers.rocpd.work_columns import known
from fastprof.readers.sqlite.database import Progress, TableColumns

# The tables of API calls, in the order in which they take a correlation id.
_CALLS: Final = ("hip", "hsa", "rccl")
# Operations of marker_api that are ranges, pushed and popped or started and stopped, of all
# versions: rocprofiler-sdk/marker/api_id.h.
_PUSHED: Final = ("roctxRangePushA", "roctxRangePop", "roctxThreadRangeA")
_STARTED: Final = ("roctxRangeStartA", "roctxRangeStop", "roctxProcessRangeA")
_RCCL: Final = "RCCL"  # the domain of the ranges of its calls
_ALLOCATIONS: Final = ("MEMORY_ALLOCATION_ALLOCATE", "MEMORY_ALLOCATION_VMEM_ALLOCATE")
_FREES: Final = ("MEMORY_ALLOCATION_FREE", "MEMORY_ALLOCATION_VMEM_FREE")
_ON_GPU = 1  # c10::DeviceType
_DEEPEST: Final = 8  # calls around a call


def read(
    path: str | os.PathLike[str], copies: bool = False, progress: Progress | None = None
) -> Recording:
    """Read a file; `host` is kept.

    copies : also read memory copies
    progress : called repeatedly with the bytes read so far

    Raises
    ------
    BadInputError
        It is damaged before its first record.
    """
    file = json_records.read(path, os.fsdecode(path), progress)
    texts, threads, labels = Texts(file), _Threads(file), _pools.Names()
    kernels = read_work(file, texts, copies)
    calls = _read_calls(file, texts, threads)
    all_calls = calls
    launches, calls = _read_launches(kernels, calls)
    ranges, kinds = _read_ranges(file, texts, threads, labels)
    trace_columns.complete_processes(kernels, len(threads.pids))
    return Recording(
        name=file.name,
        kernels=kernels,
        launches=launches,
        ranges=ranges,
        phases=Ranges(*(np.empty(0, column.dtype) for column in vars(ranges).values())),
        labels=labels.texts(),
        strings=texts.strings,
        threads=threads.numbers,
        process_of_thread=threads.process,
        processes=threads.pids,
        warnings=file.warnings,
        about=_about(file, texts),
        lost=_lost(kernels, all_calls, texts, threads),
        host=_recorded(texts, threads, calls, ranges, kinds),
    )


class _Threads:
    """The threads of the host's records, by process and thread id.

    Attributes
    ----------
    numbers : int64 [threads], thread ids
    process : int32 [threads], index into pids
    pids : int32 [processes]
    """

    def __init__(self, file: RocprofFile) -> None:
        tables = [file.tables[name] for name in (*_CALLS, "markers")]
        both = (np.concatenate([table[key] for table in tables]) for key in (ROOT, "thread"))
        process, number = both
        has_id = number >= 0
        keys = _key(process[has_id], number[has_id])
        self._keys, first = np.unique(keys, return_index=True)
        self.numbers = number[has_id][first]
        self.process = process[has_id][first].astype(np.int32)
        self.pids = np.array([process.pid for process in file.processes], np.int64).astype(np.int32)

    def find(self, columns: Columns) -> Int32:
        """The thread of each record, -1 if unknown."""
        place = np.searchsorted(self._keys, _key(columns[ROOT], columns["thread"]))
        return np.where(columns["thread"] >= 0, place, -1).astype(np.int32)


def _key(process: Int64, number: Int64) -> Int64:
    result: Int64 = process << 40 | number & ((1 << 40) - 1)
    return result


class _Calls(NamedTuple):
    """The API calls, HIP's first; `is_rccl` marks those that are ranges too."""

    process: Int32
    start: Int64
    end: Int64
    thread: Int32
    name: Int32
    correlation: Int64
    ancestor: Int64
    is_rccl: Bools

    def take(self, rows: Int32 | Bools) -> _Calls:
        """Some of the calls."""
        return _Calls(**{key: column[rows] for key, column in self._asdict().items()})


def _read_calls(file: RocprofFile, texts: Texts, threads: _Threads) -> _Calls:
    parts = []
    for table in _CALLS:
        rows = file.tables[table]
        calls = _Calls(
            process=rows[ROOT].astype(np.int32),
            start=rows["start"],
            end=_ends(rows),
            thread=threads.find(rows),
            name=texts.operation_names(rows),
            correlation=known(rows["correlation"]),
            ancestor=known(rows["ancestor"]),
            is_rccl=np.full(len(rows[ROOT]), table == "rccl"),
        )
        parts.append(calls.take((calls.thread >= 0) & (calls.start != NONE)))
    columns = [part._asdict() for part in parts]
    return _Calls(
        **{key: np.concatenate([column[key] for column in columns]) for key in columns[0]}
    )


def _ends(rows: Columns) -> Int64:
    """The ends; NEVER if not recorded, never before the start."""
    end = np.where(rows["end"] == NONE, NEVER, rows["end"])
    return np.maximum(end, rows["start"])


def _read_launches(kernels: Kernels, calls: _Calls) -> tuple[Launches, _Calls]:
    """The API calls that launched GPU work; and all, without those of RCCL that launched none.

    Sets the launches of kernels.
    """
    _follow_ancestors(kernels, calls)
    place = _calls_with(calls, kernels.process, kernels.correlation)
    used, launch = np.unique(place, return_inverse=True)
    kernels.launch = launch.astype(np.int32)
    if len(used) and used[0] < 0:
        used, kernels.launch = used[1:], kernels.launch - np.int32(1)
    own = calls.take(used)
    columns: TableColumns = {"start": own.start, "thread": own.thread, "name": own.name}
    kept = ~calls.is_rccl
    kept[used] = True
    return Launches(**trace_columns.launches_in_order(columns, kernels)), calls.take(kept)


def _lost(kernels: Kernels, calls: _Calls, texts: Texts, threads: _Threads) -> LostLaunches:
    """The calls that launched kernels which the file lacks; none if it records no kernels.

    kernels : with the ids of their launches, see `_follow_ancestors`
    """
    if not len(kernels):
        return LostLaunches()
    join = _join.Join(kernels.process, kernels.correlation)
    worked = np.zeros(len(calls.start), bool)
    worked[join.matching(calls.process, calls.correlation)] = True
    return lost_calls(texts.strings, calls.name, calls.start, calls.thread, worked, threads.process)


def _follow_ancestors(kernels: Kernels, calls: _Calls) -> None:
    """Replace the ids of calls of HSA that launched kernels by those of the calls around them.

    `ancestor` is the id of the call around a call, 0 for none; older versions lack it.
    """
    if not np.any(calls.ancestor > 0):
        return
    for _ in range(_DEEPEST):
        call = _calls_with(calls, kernels.process, kernels.correlation)
        above = np.where(call < 0, -1, take(calls.ancestor, call))
        known_call = _calls_with(calls, kernels.process, above) >= 0
        moves = (above > 0) & known_call & (above != kernels.correlation)
        if not moves.any():
            return
        kernels.correlation = np.where(moves, above, kernels.correlation)


def _calls_with(calls: _Calls, process: Int32, correlation: Int64) -> Int32:
    """The row of the first call with each id, -1 for none."""
    join = _join.Join(process, correlation)
    join.offer(calls.process, calls.correlation)
    return join.rows(process, correlation)


class _RangeKinds(NamedTuple):
    """What `Recorded` has of ranges, in their order: see `RecordedRanges`."""

    domain: Values
    is_push_pop: Bools


def _read_ranges(
    file: RocprofFile, texts: Texts, threads: _Threads, labels: _pools.Names
) -> tuple[Ranges, _RangeKinds]:
    """The ranges of roctx and the calls of RCCL, in order; marks are skipped."""
    rows, of_rccl = file.tables["markers"], file.tables["rccl"]
    operation = texts.operation_names(rows)
    pushed, started = (_among(texts, operation, names) for names in (_PUSHED, _STARTED))
    rows = {key: column[pushed | started] for key, column in rows.items()}
    parts = [
        _times(rows, threads) | _named(file, rows, labels),
        _times(of_rccl, threads) | _of_calls(texts, of_rccl, labels),
    ]
    parts[0]["is_push_pop"] = pushed[pushed | started]
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    is_known = (columns["thread"] >= 0) & (columns["label"] >= 0) & (columns["start"] != NONE)
    columns = {key: column[is_known] for key, column in columns.items()}
    order = _nest.order(columns["start"], columns["end"])
    if order is not None:
        columns = {key: column[order] for key, column in columns.items()}
    kinds = _RangeKinds(Values(columns.pop("domain"), [_RCCL]), columns.pop("is_push_pop"))
    return Ranges(**columns), kinds


def _times(rows: Columns, threads: _Threads) -> dict[str, npt.NDArray[Any]]:
    return {"start": rows["start"], "end": _ends(rows), "thread": threads.find(rows)}


def _of_calls(texts: Texts, rows: Columns, labels: _pools.Names) -> dict[str, npt.NDArray[Any]]:
    """The names of calls as those of ranges."""
    used, place = np.unique(texts.operation_names(rows), return_inverse=True)
    label, seq, op_id = _column.split_range_names(labels, [texts.strings[i] for i in used])
    return {
        "label": label[place],
        "seq": seq[place],
        "op_id": op_id[place],
        "domain": np.zeros(len(place), np.int32),
        "is_push_pop": np.ones(len(place), bool),
    }


def _among(texts: Texts, operation: Int32, names: tuple[str, ...]) -> Bools:
    """Whether the name of each operation is one of these."""
    result = np.zeros(len(operation), bool)
    for name in names:
        result |= operation == texts.add(name)
    return result


def _named(file: RocprofFile, rows: Columns, labels: _pools.Names) -> dict[str, npt.NDArray[Any]]:
    """The label and torch's numbers of each marker, whose message has its correlation id."""
    messages = file.tables["messages"]
    process = rows[ROOT].astype(np.int32)
    join = _join.Join(process, rows["correlation"])
    join.offer(messages[ROOT].astype(np.int32), messages["correlation"])
    row = join.rows(process, rows["correlation"])
    text = np.append(messages["text"], -1)[row]
    used, place = np.unique(text, return_inverse=True)
    names = [file.texts[i] if i >= 0 else None for i in used.tolist()]
    label, seq, op_id = _column.split_range_names(labels, names)
    return {
        "label": label[place],
        "seq": seq[place],
        "op_id": op_id[place],
        "domain": np.full(len(place), -1, np.int32),
    }


def _about(file: RocprofFile, texts: Texts) -> About:
    gpus, figures = gpus_of([process.agents for process in file.processes])
    config = file.processes[0].config if file.processes else {}
    return About(
        "rocprof",
        tool="rocprofv3",
        settings={key: value for key, value in config.items() if type(value) in (bool, int)},
        gpus=gpus,
        gpu_figures=figures,
        memory=_memory(file, texts),
    )


def _memory(file: RocprofFile, texts: Texts) -> Memory:
    """Allocations and frees in order of time.

    A free has the address alone: its size and GPU are those of the last allocation there. Frees of
    other addresses are skipped; HIP frees null pointers too.
    """
    rows = file.tables["allocations"]
    operation = texts.operation_names(rows)
    allocates, frees = (_among(texts, operation, names) for names in (_ALLOCATIONS, _FREES))
    order = np.argsort(rows["start"], kind="stable")
    order = order[(allocates | frees)[order] & (rows["start"][order] != NONE)]
    rows = {key: column[order] for key, column in rows.items()}
    is_free = frees[order]
    rows["device"] = devices_of(
        [process.agents for process in file.processes], rows[ROOT], rows["agent"]
    )
    before = _allocation_before(rows, is_free)
    for key in ("bytes", "device"):
        rows[key] = np.where(is_free, rows[key][before], rows[key])
    rows["bytes"] = np.where(is_free, -rows["bytes"], rows["bytes"])
    kept = ~is_free | (before >= 0)
    rows = {key: column[kept] for key, column in rows.items()}
    pids = np.array([process.pid for process in file.processes], np.int64)
    return Memory(
        time=rows["start"],
        address=known(rows["address"]),
        bytes=rows["bytes"],
        device_type=np.where(rows["device"] >= 0, _ON_GPU, PINNED).astype(np.int32),
        device=rows["device"].astype(np.int32),
        total_allocated=np.full(len(rows[ROOT]), -1, np.int64),
        total_reserved=np.full(len(rows[ROOT]), -1, np.int64),
        pid=take(pids, rows[ROOT].astype(np.int32)),
        tid=known(rows["thread"]),
        correlation=known(rows["correlation"]),
    )


def _allocation_before(rows: Columns, is_free: Bools) -> Int64:
    """The row of the allocation that each row frees, -1 for none; rows are in order of time."""
    order = np.lexsort((np.arange(len(is_free)), rows["address"], rows[ROOT]))
    same = np.zeros(len(order), bool)
    same[1:] = (np.diff(rows["address"][order]) == 0) & (np.diff(rows[ROOT][order]) == 0)
    previous = np.append(np.int64(-1), order[:-1]) if len(order) else order
    pairs = same & is_free[order] & ~is_free[previous]
    result = np.full(len(order), -1, np.int64)
    result[order] = np.where(pairs, previous, -1)
    return result


def _recorded(
    texts: Texts, threads: _Threads, calls: _Calls, ranges: Ranges, kinds: _RangeKinds
) -> Recorded:
    """The ranges and API calls with their times; calls of RCCL are ranges only."""
    none64, none32 = np.empty(0, np.int64), np.empty(0, np.int32)
    return Recorded(
        ranges=RecordedRanges(ranges.start, ranges.end, ranges.thread, *kinds),
        phase_domain=unknown(0),
        calls=RecordedCalls(
            start=calls.start,
            end=calls.end,
            thread=calls.thread,
            name=calls.name,
            correlation=calls.correlation,
        ),
        syncs=RecordedSyncs(none64, none64, none32, none32, none32, none32, none64),
        strings=texts.strings,
        threads=threads.numbers,
        process_of_thread=threads.process,
        processes=threads.pids,
    )
