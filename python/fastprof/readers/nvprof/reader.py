"""NVProf's SQLite files to a Recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _join, _pools
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.trace import (
    NEVER,
    Activity,
    Kernels,
    Launches,
    LostLaunches,
    Ranges,
    Recording,
)
from fastprof.readers import cupti as gpu_work
from fastprof.readers import trace_columns
from fastprof.readers.cupti import WorkColumns, one_after_the_other
from fastprof.readers.graph_captures import BEGINS, ENDS, capture_names
from fastprof.readers.lost_launches import lost_calls
from fastprof.readers.nvprof import metadata, schema
from fastprof.readers.nvprof.call_names import CALL_NAMES, demangled
from fastprof.readers.sqlite.database import Database, Field, TableColumns

RECORD_AGAIN = "record it again: nvprof -f -o net.sql python train.py"


def read(database: Database, copies: bool = False) -> Recording:
    """Read an NVProf file.

    copies : also read memory copies and memsets

    Raises
    ------
    BadInputError
        The file is damaged, or lacks a table or column that all versions have.
    """
    pools = schema.NvprofPools()
    kernels = _read_kernels(database, pools, copies)
    launches, lost, strings_of_calls = _read_launches(database, pools, kernels)
    ranges, phases = read_ranges(database, pools)
    strings, warnings = trace_columns.read_strings(
        database, schema.STRINGS, schema.string_fields, pools.strings, kernels, RECORD_AGAIN
    )
    strings, problem = demangled(strings)
    if problem:
        warnings.append(f"{database.name}: {problem}")
    launches.name[:] = np.where(launches.name >= 0, launches.name + len(strings), -1)
    threads = pools.threads.values()
    about, problems = metadata.read(database)
    return Recording(
        name=database.name,
        kernels=kernels,
        launches=launches,
        ranges=ranges,
        phases=phases,
        labels=pools.labels.texts(),
        strings=strings + strings_of_calls,
        threads=threads & schema.LOW_32_BITS,
        process_of_thread=process_of_thread_in(pools)[:-1],
        processes=pools.processes.values().astype(np.int32),
        warnings=warnings + problems,
        about=about,
        lost=lost,
    )


def _read_kernels(database: Database, pools: schema.NvprofPools, copies: bool) -> Kernels:
    """GPU work in order of start; process, launch and origin are -1."""

    def scan(tables: Sequence[str], fields: list[Field]) -> WorkColumns:
        return one_after_the_other([gpu_work.scan(database, table, fields) for table in tables])

    kinds = {Activity.KERNEL: scan(schema.KERNELS, schema.kernel_fields(pools))}
    if copies:
        kinds[Activity.MEMCPY] = scan(schema.COPIES, schema.copy_fields())
        kinds[Activity.MEMSET] = scan([schema.SETS], schema.copy_fields())
    for _, configs in kinds.values():
        for key in ("graphId", "graphNodeId"):
            configs[key][configs[key] == 0] = -1  # 0 is none
    return gpu_work.kernels_of(kinds, None)


def _read_launches(
    database: Database, pools: schema.NvprofPools, kernels: Kernels
) -> tuple[Launches, LostLaunches, list[str | None]]:
    """API calls that launched a kernel, those whose kernel is not there, and the names of calls.

    Sets launch and process of kernels.

    The file does not record the process of kernels. It is the process of the launch.
    """
    nowhere = np.zeros(len(kernels), np.int32)
    join = _join.Join(nowhere, kernels.correlation)
    one_process = _pools.Keys()
    one_process.intern(0)
    parts: list[TableColumns] = []
    names: dict[str, int] = {}
    for table, known in zip(schema.LAUNCHES, CALL_NAMES, strict=True):
        # Treats all as one process.
        keep = _join.LaunchFilter(join, one_process, 63, _launching(known))
        columns = database.scan(
            table, schema.launch_fields(pools), keep=keep, capacity=len(kernels)
        )
        columns["name"] = name_calls(columns.pop("cbid"), known, names)
        columns["table"] = np.full(len(columns["name"]), len(parts), np.int32)
        parts.append(columns)
    columns = trace_columns.joined(parts)
    everywhere = np.zeros(len(columns["name"]), np.int32)
    worked = np.zeros(len(everywhere), bool)
    worked[join.matching(everywhere, columns["correlationId"])] = True
    lost = _lost(columns, worked, list(names), pools) if len(kernels) else LostLaunches()
    columns = {name: columns[name][worked] for name in _OF_LAUNCHES}
    correlation = columns.pop("correlationId")
    join.offer(everywhere[: len(correlation)], correlation)
    kernels.launch = join.rows(nowhere, kernels.correlation)
    columns = trace_columns.launches_in_order(columns, kernels)
    of_thread = process_of_thread_in(pools)
    of_launch = np.append(of_thread[columns["thread"]], np.int32(-1))
    kernels.process[:] = of_launch[kernels.launch]
    trace_columns.complete_processes(kernels, len(pools.processes))
    launches = Launches(columns["start"], columns["thread"], columns["name"])
    return launches, lost, list(names)


_OF_LAUNCHES: Final = ("start", "thread", "name", "correlationId")


def _launching(known: dict[int, str]) -> Int64:
    """The ids of functions that launch kernels, or begin and end the capture of a graph."""
    effects = capture_names(list(known.values()))[:-1].tolist()
    wanted = (Activity.KERNEL, BEGINS, ENDS)
    ids = [cbid for cbid, effect in zip(known, effects, strict=True) if effect in wanted]
    return np.array(ids, np.int64)


def _lost(
    columns: TableColumns, worked: Bools, names: list[str | None], pools: schema.NvprofPools
) -> LostLaunches:
    """The calls that launched kernels which the file lacks; those that failed launched none.

    A call of the runtime makes one of the driver, which may have an id of its own: so calls of the
    driver count only in files without those of the runtime.
    """
    is_of_runtime = columns["table"] == 0
    worked = worked | (columns["returnValue"] > 0)
    if is_of_runtime.any():
        worked |= ~is_of_runtime
    of_thread = process_of_thread_in(pools)[:-1]
    return lost_calls(
        names, columns["name"], columns["start"], columns["thread"], worked, of_thread
    )


def name_calls(cbid: Int32, known: dict[int, str], names: dict[str, int]) -> Int32:
    """The index of each call's name in `names`, to which new names are added."""
    used, place = np.unique(cbid, return_inverse=True)
    texts = [known.get(number, f"cbid {number}") for number in used.tolist()]
    ids = np.array([names.setdefault(text, len(names)) for text in texts], np.int32)
    return ids[place] if len(ids) else cbid


def process_of_thread_in(pools: schema.NvprofPools) -> Int32:
    """The process of each thread index; -1 at the end, for thread -1."""
    threads = pools.threads.values()
    of_thread = [pools.processes.intern(int(thread) >> schema.PROCESS_SHIFT) for thread in threads]
    return np.array([*of_thread, -1], np.int32)


def read_ranges(database: Database, pools: schema.NvprofPools) -> tuple[Ranges, Ranges]:
    """Sorted ranges, and separately those that ended on another thread.

    A range is a start row and an end row with the same id. Marks and ends without a start are
    skipped.
    """
    columns = database.scan(schema.MARKERS, schema.marker_fields(pools))
    thread = _threads_of_objects(pools)[columns["object"]]
    thread[columns["objectKind"] != schema.OF_THREAD] = -1
    flags = columns["flags"]
    starts = np.flatnonzero((flags & schema.START != 0) & (thread >= 0) & (columns["text"] >= 0))
    ends = np.flatnonzero(flags & schema.END != 0)
    end_row = _ends(columns["id"], starts, ends)
    closed = end_row >= 0
    end = np.where(closed, columns["timestamp"][end_row], NEVER)
    end_thread = np.where(closed, thread[end_row], -1)
    own = thread[starts]
    read = {
        "start": columns["timestamp"][starts],
        "end": end,
        "globalTid": own,
        "text": columns["text"][starts],
        "text_seq": columns["text_seq"][starts],
        "text_op_id": columns["text_op_id"][starts],
    }
    moved = (end_thread >= 0) & (end_thread != own)
    return trace_columns.ranges_in_order(dict(read), ~moved), trace_columns.ranges_in_order(
        read, moved
    )


def _ends(ids: Int64, starts: npt.NDArray[np.intp], ends: npt.NDArray[np.intp]) -> Int64:
    """The end row of each start: the next row with its id, -1 for none."""
    rows = np.concatenate([starts, ends])
    order = np.lexsort((rows, ids[rows]))
    of_start = order < len(starts)
    following = np.append(order[1:], -1) if len(order) else order
    pairs = of_start & (following >= len(starts))
    pairs[pairs] = ids[rows[order[pairs]]] == ids[rows[following[pairs]]]
    out = np.full(len(starts), -1, np.int64)
    out[order[pairs]] = rows[following[pairs]]
    return out


def _threads_of_objects(pools: schema.NvprofPools) -> Int32:
    """The thread of each objectId: a 32-bit process and a 64-bit thread, little-endian; -1 last."""
    threads = []
    for text in pools.objects.texts():
        blob = bytes.fromhex(text)
        process, thread = blob[:4], blob[4:8]  # NVProf itself compares 32 bits of the thread
        if len(blob) < 8:
            threads.append(-1)
            continue
        number = int.from_bytes(process, "little", signed=True) << schema.PROCESS_SHIFT
        threads.append(pools.threads.intern(number | int.from_bytes(thread, "little")))
    return np.array([*threads, -1], np.int32)
