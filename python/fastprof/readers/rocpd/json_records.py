"""The records in the JSON of rocprofv3 (`*_results.json`, also gzipped) as columns.

Source of names: write_json of rocprofiler-sdk (source/lib/output/generateJSON.cpp) and the
serialisation of its records (cxx/serialization/save.hpp). The text is one object with a list, an
element for each process. Columns are looked for by name: versions differ in what they add.
"""

from __future__ import annotations

import json
import os
from typing import Any

from fastprof._core._records import NONE, ROOT, RecordReader
from fastprof._system.classes import dataclass
from fastprof._system.file_state import ChangeGuard
from fastprof.errors import BadInputError
from fastprof.model.arrays import Int64
from fastprof.readers.json_text import TextBlocks, feed
from fastprof.readers.sqlite.database import Progress

_ROOT = "rocprofiler-sdk-tool"
_RECORD = "record again with rocprofv3 --output-format json, and let the program end by itself"

_SPAN = {
    "kind": "kind",
    "operation": "operation",
    "thread": "thread_id",
    "correlation": "correlation_id/internal",
    "start": "start_timestamp",
    "end": "end_timestamp",
}
_CALL = {**_SPAN, "ancestor": "correlation_id/ancestor"}
_DISPATCH = {
    **_SPAN,
    "agent": "dispatch_info/agent_id/handle",
    "queue": "dispatch_info/queue_id/handle",
    "stream": "stream_id/handle",
    "kernel": "dispatch_info/kernel_id",
    "shared_memory": "dispatch_info/group_segment_size",
    **{f"grid_{axis}": f"dispatch_info/grid_size/{axis}" for axis in "xyz"},
    **{f"block_{axis}": f"dispatch_info/workgroup_size/{axis}" for axis in "xyz"},
}
# With counters (--pmc), kernels have a record of another kind, and often no other.
_COUNTED = {
    name: place if place in ("thread_id", "stream_id/handle") else f"dispatch_data/{place}"
    for name, place in _DISPATCH.items()
    if name not in ("kind", "operation")
}
_COPY = {
    **_SPAN,
    "source": "src_agent_id/handle",
    "target": "dst_agent_id/handle",
    "stream": "stream_id/handle",
    "bytes": "bytes",
}
_ALLOCATION = {
    **_SPAN,
    "agent": "agent_id/handle",
    "address": "address",
    "bytes": "allocation_size",
}
_SYMBOL = {
    "kernel": "kernel_id",
    "text": "formatted_kernel_name",
    "mangled": "kernel_name",
    "registers": "arch_vgpr_count",
    "more_registers": "accum_vgpr_count",
}
# The tables by their names here: the path of the records, and their columns. "" is a whole value.
_TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "kernels": ("buffer_records/kernel_dispatch", _DISPATCH),
    "counted": ("callback_records/counter_collection", _COUNTED),
    "copies": ("buffer_records/memory_copy", _COPY),
    "allocations": ("buffer_records/memory_allocation", _ALLOCATION),
    "hip": ("buffer_records/hip_api", _CALL),
    "hsa": ("buffer_records/hsa_api", _CALL),
    "rccl": ("buffer_records/rccl_api", _CALL),
    "markers": ("buffer_records/marker_api", _SPAN),
    "messages": ("strings/marker_api", {"correlation": "key", "text": "value"}),
    "symbols": ("kernel_symbols", _SYMBOL),
    "metadata": ("metadata", {"text": ""}),
    "agents": ("agents", {"text": ""}),
    "operations": ("strings/buffer_records", {"text": ""}),
}
# What is only read for counters.
_COUNTERS: dict[str, dict[str, str]] = {
    "kernels": {"dispatch": "dispatch_info/dispatch_id"},
    "counted": {"dispatch": "dispatch_data/dispatch_info/dispatch_id", "text": "records"},
}
_OF_COUNTERS = "counters"
_TEXTS = {"text", "mangled"}

Columns = dict[str, Int64]


@dataclass()
class RocprofProcess:
    """What the file says of one process.

    Attributes
    ----------
    pid : int, -1 if not recorded
    config : the settings of rocprofv3
    agents : dict of int to dict
        The agents, CPUs and GPUs, by handle.
    operations : list of (str, list of str)
        Kind of record and its operations; the numbers in records are indices.
    counters : list
        The hardware counters as they are in the file, if read.
    """

    pid: int
    config: dict[str, Any]
    agents: dict[int, dict[str, Any]]
    operations: list[tuple[str, list[str]]]
    counters: list[Any]

    def operation(self, kind: int, number: int) -> str:
        """The name of an operation; "kind N, operation M" if the file lacks it."""
        if 0 <= kind < len(self.operations) and 0 <= number < len(self.operations[kind][1]):
            return self.operations[kind][1][number]
        return f"kind {kind}, operation {number}"

    def kind(self, number: int) -> str:
        """The name of a kind of record, "" if the file lacks it."""
        return self.operations[number][0] if 0 <= number < len(self.operations) else ""


@dataclass()
class RocprofFile:
    """The contents of one file.

    Attributes
    ----------
    tables : dict of dict of ndarray
        Columns by table and name, int64, in the order of the file; NONE where missing. `ROOT` is
        the process of the record, an index into `processes`. Times are ns. `text` and `mangled`
        index `texts`.
    """

    name: str
    tables: dict[str, Columns]
    texts: list[str]
    processes: list[RocprofProcess]
    warnings: list[str]


def read(
    path: str | os.PathLike[str],
    name: str,
    progress: Progress | None = None,
    counters: bool = False,
) -> RocprofFile:
    """Read all records of a file.

    counters : also read the values of counters, as texts, and the number of each dispatch

    Raises
    ------
    BadInputError
        The file is damaged or cut off before its records.
    NotEnoughMemoryError
        It inflates to far more text than a recording of its size.

    Notes
    -----
    Time is linear in the size of the text. Memory: the columns, the distinct texts, a few blocks,
    and the largest record.
    """
    tables = _TABLES
    if counters:
        tables = {
            table: (place, columns | _COUNTERS.get(table, {}))
            for table, (place, columns) in _TABLES.items()
        } | {_OF_COUNTERS: (_OF_COUNTERS, {"text": ""})}
    paths = {f"{_ROOT}/{place}": columns for place, columns in tables.values()}
    reader = RecordReader(name, _ROOT, paths, _TEXTS)
    with open(path, "rb", buffering=0) as file:
        guard = ChangeGuard(file.fileno(), name)
        blocks = TextBlocks(file, name)
        n_bytes, n_unread = feed(reader, blocks, progress, os.path.getsize(path))
        guard.check()
    warnings = _warnings(reader, blocks, n_bytes, n_unread)
    texts = reader.texts()
    columns = dict(zip(tables, reader.finish().values(), strict=True))
    if warnings and not any(len(columns[table][ROOT]) for table in list(_TABLES)[:8]):
        raise BadInputError(f"{warnings[0]}; none of its records is left: {_RECORD}")
    return RocprofFile(name, columns, texts, _processes(columns, texts), warnings)


def _warnings(reader: RecordReader, blocks: TextBlocks, n_bytes: int, n_unread: int) -> list[str]:
    """Problems of the text, one sentence each."""
    where = f"byte {n_bytes - n_unread} of the JSON text"
    if blocks.damage:
        return [
            f"{reader.name}: {blocks.damage}; the {n_bytes} bytes of JSON before that were read"
        ]
    if reader.is_damaged:
        return [f"{reader.name}: malformed JSON after {where}: the rest was not read"]
    if not reader.is_whole:
        return [f"{reader.name}: the JSON is cut off after {where}"]
    if n_unread:
        return [f"{reader.name}: {n_unread} bytes after the JSON were not read"]
    return []


def _processes(columns: dict[str, Columns], texts: list[str]) -> list[RocprofProcess]:
    """The facts of each process; damaged ones are unknown."""
    n = 1 + max((int(table[ROOT].max(initial=-1)) for table in columns.values()), default=-1)
    result: dict[str, list[Any]] = {}
    for table in ("metadata", "agents", "operations", _OF_COUNTERS):
        result[table] = [None] * n
        if table not in columns:
            continue
        rows = (columns[table][key].tolist() for key in (ROOT, "text"))
        for process, text in zip(*rows, strict=True):
            result[table][process] = parsed(texts[text])
    return [
        RocprofProcess(
            pid=_number(_dict(metadata).get("pid")),
            config=_dict(_dict(metadata).get("config")),
            agents=_agents(agents),
            operations=_operations(operations),
            counters=_list(counters),
        )
        for metadata, agents, operations, counters in zip(*result.values(), strict=True)
    ]


def parsed(text: str) -> Any:
    """A value; None if it is damaged."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _agents(value: Any) -> dict[int, dict[str, Any]]:
    """The agents by handle."""
    result = {}
    for agent in _list(value):
        agent = _dict(agent)
        handle = handle_of(agent.get("id"))
        if handle >= 0:
            result[handle] = agent
    return result


def _operations(value: Any) -> list[tuple[str, list[str]]]:
    return [
        (
            str(_dict(each).get("kind", "")),
            [str(name) for name in _list(_dict(each).get("operations"))],
        )
        for each in _list(value)
    ]


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def handle_of(value: Any) -> int:
    """A handle: an object with it, in some versions the number itself; -1 if it is damaged."""
    return _number(value.get("handle") if isinstance(value, dict) else value)


def _number(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 1 << 63 else -1


__all__ = [
    "NONE",
    "ROOT",
    "Columns",
    "RocprofFile",
    "RocprofProcess",
    "handle_of",
    "parsed",
    "read",
]
