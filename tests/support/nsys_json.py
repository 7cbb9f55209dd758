"""Writes the rows of an SQLite export of nsys as its JSON export has them.

The messages and their fields are those of the protobuf descriptors in nsys 2023.4: 64-bit integers
are strings, fields without a value are left out.
"""

import json
import sqlite3
from pathlib import Path
from typing import Any

_BASE = {"correlationId", "deviceId", "contextId", "streamId", "globalPid", "greenContextId"}
_WIDE = {
    "contextId", "streamId", "globalPid", "globalTid", "demangledName", "shortName", "mangledName",
    "gridId", "graphNodeId", "sizebytes", "copyKind", "name", "Timestamp", "EndTimestamp",
    "GlobalTid", "EndGlobalTid", "DomainId", "address", "bytes", "startNs", "endNs",
}  # fmt: skip
_NESTED = {
    "CUPTI_ACTIVITY_KIND_KERNEL": (79, "kernel"),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (80, "memcpy"),
    "CUPTI_ACTIVITY_KIND_MEMSET": (80, "memset"),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (106, "sync"),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (130, "graph"),
}
_RENAMED = {"start": "startNs", "end": "endNs"}
_NVTX = {
    "start": "Timestamp", "end": "EndTimestamp", "text": "Text", "globalTid": "GlobalTid",
    "endGlobalTid": "EndGlobalTid", "textId": "TextId", "domainId": "DomainId", "eventType": "Type",
}  # fmt: skip

Event = dict[str, Any]


def write(export: Path, path: Path, *, separate_strings: bool = False) -> Path:
    """Write the strings, GPU work, API calls, ranges and allocations of an export as JSON lines."""
    with sqlite3.connect(f"file:{export}?mode=ro&immutable=1", uri=True) as database:
        database.row_factory = sqlite3.Row
        database.text_factory = lambda data: data.decode("utf-8", "replace")
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}

        def rows(table: str) -> list[Event]:
            if table not in tables:
                return []
            found = database.execute(f'SELECT * FROM "{table}"')
            return [
                {key: row[key] for key in row.keys() if row[key] is not None}  # noqa: SIM118
                for row in found
            ]

        lines = _strings(rows("StringIds"), separate_strings)
        for table, (number, nested) in _NESTED.items():
            lines += [_gpu_work(row, number, nested) for row in rows(table)]
        lines += [_call(row, 48) for row in rows("CUPTI_ACTIVITY_KIND_RUNTIME")]
        lines += [_node(row) for row in rows("CUDA_GRAPH_NODE_EVENTS")]
        lines += [_range(row) for row in rows("NVTX_EVENTS")]
        lines += [_memory(row) for row in rows("CUDA_GPU_MEMORY_USAGE_EVENTS")]
        lines += _thread_names(rows("ThreadNames"), separate_strings)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n\n" for line in lines))
    return path


def _strings(rows: list[Event], separate: bool) -> list[Event]:
    if separate:
        return [{"type": "String", "id": str(row["id"]), "value": row["value"]} for row in rows]
    texts = dict.fromkeys(range(max((row["id"] for row in rows), default=-1) + 1), "")
    texts |= {row["id"]: row["value"] for row in rows}
    return [{"data": list(texts.values()), "files": []}]


def _thread_names(rows: list[Event], separate: bool) -> list[Event]:
    key = "nameId" if separate else "nameIdx"
    named = [{key: str(row["nameId"]), "globalTid": str(row["globalTid"])} for row in rows]
    return [{"type": "ThreadName", **row} for row in named] if separate else [{"data": named}]


def _message(values: Event) -> Event:
    return {key: str(value) if key in _WIDE else value for key, value in values.items()}


def _gpu_work(row: Event, number: int, nested: str) -> Event:
    outer = {_RENAMED.get(k, k): v for k, v in row.items() if k in _BASE | _RENAMED.keys()}
    names = {"bytes": "sizebytes"} if nested.startswith("mem") else {}
    inner = {names.get(k, k): v for k, v in row.items() if k not in _BASE | _RENAMED.keys()}
    return {"Type": number, "CudaEvent": {**_message(outer), nested: _message(inner)}}


def _call(row: Event, number: int, **others: Event) -> Event:
    names = _RENAMED | {"nameId": "name"}
    event = {names.get(k, k): v for k, v in row.items() if k != "callchainId"}
    return {"Type": number, "TraceProcessEvent": {**_message(event), **others}}


def _node(row: Event) -> Event:
    own = {"graphNodeId", "originalGraphNodeId"}
    node = {key: str(row[key]) for key in own & row.keys()}
    others = {key: value for key, value in row.items() if key not in own} | {"eventClass": 77}
    return _call(others, 113, cudaGraphNodeCreation=node)


def _range(row: Event) -> Event:
    event = {_NVTX[k]: v for k, v in row.items() if k in _NVTX}
    return {"Type": row["eventType"], "NvtxEvent": {**_message(event), "NsTime": True}}


def _memory(row: Event) -> Event:
    own = row | {"type": ("allocation", "deallocation")[row["memoryOperationType"]]}
    del own["memoryOperationType"]
    event = {_RENAMED.get(k, k): v for k, v in own.items()}
    return {"Type": 117, "CudaMemoryUsageEvent": _message(event)}
