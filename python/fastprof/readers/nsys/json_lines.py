"""Events of Nsight Systems as JSON, a line each (nsys export --type json, jsonlines), to SQLite.

A line is an event as nsys stores it: {"Type":79,"CudaEvent":{"startNs":"1","kernel":{...}}}. Others
hold the strings by number, and the names of threads; with --separate-strings each has its own line.
64-bit integers are strings, as protobuf writes them. The events become rows of the tables that the
SQLite export has, in a file in the cache directory of exports, which is read as any export. JSON
lacks what nsys does not store as events: names of GPUs, GPU metrics, versions, payloads' schemas.

Source: "JSON and Text Format Description" of https://docs.nvidia.com/nsight-systems/, the messages
in the protobuf descriptors of nsys 2023.4, and the numbers in its ENUM_NSYS_EVENT_CLASS.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from fastprof._system.classes import NamedTuple
from fastprof._system.file_state import state_of
from fastprof.errors import BadInputError
from fastprof.readers.json_text import TextBlocks
from fastprof.readers.nsys import schema
from fastprof.readers.nsys.report import EXPORT, cache_path, new_database, write_to_cache
from fastprof.readers.sqlite.database import Progress

_ROWS: Final = 1 << 14  # of a table that are written at a time
_DAMAGED: Final = (ValueError, TypeError, KeyError, AttributeError, IndexError)

Event = dict[str, Any]


class _Table(NamedTuple):
    """A table of the SQLite export.

    columns : separated by spaces; NAME=KEY if the events have another name
    texts : the columns that are no integers
    """

    name: str
    columns: str
    texts: tuple[str, ...] = ()

    def names(self) -> list[str]:
        return [column.partition("=")[0] for column in self.columns.split()]

    def keys(self) -> list[tuple[str, bool]]:
        """The key in events of each column, and whether it is a text."""
        pairs = (column.partition("=") for column in self.columns.split())
        return [(key or name, name in self.texts) for name, _, key in pairs]


_TIMES: Final = "start=startNs end=endNs "
_WORK: Final = f"{_TIMES}deviceId contextId streamId correlationId globalPid "
_THREAD: Final = "start=Timestamp globalTid=GlobalTid "
_KERNEL: Final = _Table(
    schema.KERNELS,
    f"{_WORK}demangledName shortName gridX gridY gridZ blockX blockY blockZ registersPerThread "
    "staticSharedMemory dynamicSharedMemory graphNodeId graphId",
)
_COPY: Final = _Table(
    schema.COPIES, f"{_WORK}bytes=sizebytes copyKind srcKind dstKind graphNodeId graphId"
)
_SET: Final = _Table(schema.SETS, f"{_WORK}bytes=sizebytes memKind graphNodeId graphId")
# The numbers of kinds differ between versions, so they are left out: unknown.
_SYNC: Final = _Table(schema.SYNCS, _WORK)
_GRAPH: Final = _Table(schema.GRAPHS, f"{_WORK}graphId graphExecId")
_OF_GPU: Final = {
    "kernel": _KERNEL, "memcpy": _COPY, "memset": _SET, "sync": _SYNC, "graph": _GRAPH,
}  # fmt: skip
_CALL: Final = _Table(
    schema.LAUNCHES, f"{_TIMES}eventClass globalTid correlationId nameId=name returnValue"
)
_OS_CALL: Final = _Table(schema.OS_CALLS, f"{_TIMES}eventClass globalTid nameId=name")
_NODE: Final = _Table(
    schema.GRAPH_NODES, f"{_TIMES}globalTid nameId=name graphNodeId originalGraphNodeId"
)
# By eventClass, from ENUM_NSYS_EVENT_CLASS.
_OF_CLASS: Final = {0: _CALL, 1: _CALL, 27: _OS_CALL, 31: _OS_CALL, 32: _OS_CALL, 77: _NODE}
_RANGE: Final = _Table(
    schema.RANGES[0],
    f"{_THREAD}end=EndTimestamp eventType=Type text=Text textId=TextId endGlobalTid=EndGlobalTid "
    "domainId=DomainId",
    ("text",),
)
_SWITCH: Final = _Table(schema.SWITCHES, f"{_THREAD}isSchedIn=SchedIn")
_SAMPLE: Final = _Table(schema.SAMPLES, f"{_THREAD}id cpu=Cpu")
_CHAIN: Final = _Table(schema.CALL_CHAINS, "id symbol=Symbol stackDepth")
_MEMORY: Final = _Table(
    schema.MEMORY,
    "start=startNs globalPid deviceId address bytes memKind memoryOperationType=type correlationId",
)
_CPU_FAULT: Final = _Table(schema.CPU_FAULTS, "start=startNs globalPid address")
_GPU_FAULT: Final = _Table(schema.GPU_FAULTS, f"{_TIMES}globalPid deviceId numberOfPageFaults")
_PROCESS: Final = _Table("PROCESSES", "globalPid=GlobalPid pid name=Command", ("name",))
_DIAGNOSTIC: Final = _Table(
    "DIAGNOSTIC_EVENT", "severity=Level globalPid=GlobalProcess text=Text", ("text",)
)
_STRING: Final = _Table(schema.STRINGS, "id value", ("value",))
_THREAD_NAME: Final = _Table("ThreadNames", "nameId globalTid")
_TABLES: Final = (
    _STRING, *_OF_GPU.values(), _CALL, _OS_CALL, _NODE, _RANGE, _SWITCH, _SAMPLE, _CHAIN, _MEMORY,
    _CPU_FAULT, _GPU_FAULT, _PROCESS, _DIAGNOSTIC, _THREAD_NAME,
)  # fmt: skip
# Names of enumerations that events hold in place of the number.
_NUMBERS: Final = {
    "allocation": 0, "deallocation": 1, "Info": 1, "Warning": 2, "Error": 3,
}  # fmt: skip


def export_json(
    path: str | os.PathLike[str], progress: Progress | None = None
) -> tuple[Path, list[str]]:
    """The path of an SQLite file with the events of a JSON export, and notices for the user.

    Raises
    ------
    BadInputError
        The file is damaged, or its times are no nanoseconds; or the cache is not writable.
    """
    name, state = os.fsdecode(path), state_of(path)
    cached = cache_path(path, f"{state.size}-{state.modified}")
    if not cached.is_file():
        write_to_cache(name, cached, lambda made: _write(name, made, progress), EXPORT)
    return cached, [
        f"{name}: exports as JSON have no names of GPUs and no GPU metrics; complete: {EXPORT}"
    ]


def _write(name: str, made: Path, progress: Progress | None) -> None:
    with new_database(made) as database:
        tables = _Rows(database)
        for number, event in _events(name, progress):
            try:
                _add(tables, event)
            except _DAMAGED as error:
                raise BadInputError(
                    f"{name}: line {number} cannot be read: {error!r}; {EXPORT}"
                ) from error
        tables.finish()
    if not tables.n_events:
        raise BadInputError(f"{name}: no events of Nsight Systems in it; {EXPORT}")


def _events(name: str, progress: Progress | None) -> Iterator[tuple[int, Event]]:
    """The objects of the file, and the numbers of their lines."""
    with open(name, "rb") as file:
        blocks, number = TextBlocks(file, name), 0
        try:
            for number, line in enumerate(_lines(blocks), start=1):
                if progress is not None and not number % _ROWS:
                    progress(name, number, 0)
                if line.strip():
                    yield number, json.loads(line)
            problem: object = blocks.damage
        except (ValueError, OSError, RecursionError) as error:
            problem = blocks.damage or error
        if problem:
            raise BadInputError(
                f"{name}: damaged near line {number}: {problem}; get the file again, or run: "
                f"{EXPORT}"
            )


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    parts: list[bytes] = []  # of the line that the next block may end
    for block in blocks:
        first, *others = block.split(b"\n")
        parts.append(first)
        for line in others:
            yield b"".join(parts)
            parts = [line]
    yield b"".join(parts)


class _Rows:
    """Rows of tables on their way into a database; a table exists from its first row on.

    Attributes
    ----------
    n_events : rows of events
    n_samples : CPU samples, which JSON does not number
    """

    def __init__(self, database: Any) -> None:
        self.n_events = self.n_samples = 0
        self._database = database
        self._rows: dict[str, list[list[Any]]] = {}
        self._keys = {table.name: table.keys() for table in _TABLES}
        self._statements: dict[str, str] = {}
        self._create(_STRING)

    def add(self, table: _Table, event: Event) -> None:
        row = [
            event.get(key) if is_text else _number(event.get(key))
            for key, is_text in self._keys[table.name]
        ]
        self._append(table, row)
        self.n_events += 1

    def add_string(self, number: int, text: str) -> None:
        self._append(_STRING, [number, text])

    def finish(self) -> None:
        for name in self._rows:
            self._flush(name)

    def _append(self, table: _Table, row: list[Any]) -> None:
        if table.name not in self._rows:
            self._create(table)
        rows = self._rows[table.name]
        rows.append(row)
        if len(rows) >= _ROWS:
            self._flush(table.name)

    def _create(self, table: _Table) -> None:
        columns = ", ".join(f'"{name}"' for name in table.names())
        self._database.execute(f'CREATE TABLE "{table.name}" ({columns})')
        places = ", ".join("?" * len(table.names()))
        self._statements[table.name] = f'INSERT INTO "{table.name}" VALUES ({places})'
        self._rows[table.name] = []

    def _flush(self, name: str) -> None:
        self._database.executemany(self._statements[name], self._rows[name])
        self._rows[name].clear()


def _number(value: Any) -> int | None:
    """An integer as SQLite holds it; uint64 has the same bits as int64."""
    if value is None:
        return None
    number = int(_NUMBERS.get(value, value))
    return number - (1 << 64) if number >= 1 << 63 else number


def _add(rows: _Rows, event: Event) -> None:
    """Add the rows of an object: an event, or strings and names of threads."""
    for key, add in _ADDING.items():
        if key in event:
            add(rows, event[key])
            return
    if event.get("type") == "String":
        rows.add_string(int(event["id"]), event["value"])
    elif event.get("type") == "ThreadName":
        rows.add(_THREAD_NAME, event)
    elif "data" in event:
        _add_names(rows, event["data"])


def _add_names(rows: _Rows, data: list[Any]) -> None:
    """Strings in the order of their numbers, or names of threads."""
    for number, item in enumerate(data):
        if isinstance(item, str):
            rows.add_string(number, item)
        else:
            rows.add(_THREAD_NAME, {**item, "nameId": item["nameIdx"]})


def _add_gpu_work(rows: _Rows, event: Event) -> None:
    for key, table in _OF_GPU.items():
        if key in event:
            own = {**event, **event[key]}
            for name in _OF_GRAPHS:
                if not int(own.get(name, 0)):
                    own.pop(name, None)  # 0 is none, which SQLite exports leave out
            rows.add(table, own)
            return


_OF_GRAPHS: Final = ("graphNodeId", "graphId")


def _add_call(rows: _Rows, event: Event) -> None:
    table = _OF_CLASS.get(event["eventClass"])
    if table is not None:
        value = event.get("returnValue", event.get("returnValue32"))
        rows.add(table, {**event, **event.get("cudaGraphNodeCreation", {}), "returnValue": value})


def _add_timed(table: _Table) -> Callable[[_Rows, Event], None]:
    def add(rows: _Rows, event: Event) -> None:
        if event.get("NsTime") is not True:
            raise ValueError("its time is not in nanoseconds")
        rows.add(table, event)

    return add


def _add_sample(rows: _Rows, event: Event) -> None:
    rows.n_samples += 1
    _add_timed(_SAMPLE)(rows, {**event, "id": rows.n_samples})
    for frame in event.get("Callchain", [])[:1]:
        rows.add(_CHAIN, {**frame, "id": rows.n_samples, "stackDepth": 0})


def _add_process(rows: _Rows, event: Event) -> None:
    process = int(event["GlobalPid"]) >> schema.PROCESS_SHIFT & schema.LOW_24_BITS
    rows.add(_PROCESS, {**event, "pid": process})


def _added_to(table: _Table) -> Callable[[_Rows, Event], None]:
    return lambda rows, event: rows.add(table, event)


# By the key of the event.
_ADDING: Final[dict[str, Callable[[_Rows, Any], None]]] = {
    "TraceProcessEvent": _add_call,
    "CudaEvent": _add_gpu_work,
    "NvtxEvent": _add_timed(_RANGE),
    "SchedEvent": _add_timed(_SWITCH),
    "CompositeEvent": _add_sample,
    "CudaMemoryUsageEvent": _added_to(_MEMORY),
    "CudaUvmCpuPageFaultEvent": _added_to(_CPU_FAULT),
    "CudaUvmGpuPageFaultEvent": _added_to(_GPU_FAULT),
    "CommEvent": _add_process,
    "DiagnosticEvent": _added_to(_DIAGNOSTIC),
}
