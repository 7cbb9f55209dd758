"""An Nsight Systems export -> rows of its tables; columns missing in a schema version are None."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

STRINGS = "StringIds"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
GRAPH_NODES = "CUDA_GRAPH_NODE_EVENTS"
RANGES = ("NVTX_EVENTS", "NVTX_EVENTS_V3", "NVTX_EVENTS_V2")
PUSH_POP = {"NvtxPushPopRange": 59, "NvtxtPushPopRange": 70}
START_END = {"NvtxStartEndRange": 60, "NvtxtStartEndRange": 71}
PROCESS_SHIFT, LOW_24_BITS = 24, 0xFFFFFF


class Kernel(NamedTuple):
    """GPU work; `process` is the part of a global id above the thread."""

    start: int
    end: int
    device: int | None
    stream: int | None
    process: int | None
    correlation: int | None
    name: Any  # id in StringIds; text for a graph
    grid_x: int | None = None
    grid_y: int | None = None
    grid_z: int | None = None
    block_x: int | None = None
    block_y: int | None = None
    block_z: int | None = None
    graph_node: int | None = None


class Tables:
    """A read-only connection with the list of existing columns."""

    def __init__(self, path: Path) -> None:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        self.connection = sqlite3.connect(uri, uri=True)
        names = self.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self.columns = {
            name: {row[1] for row in self.connection.execute(f'PRAGMA table_info("{name}")')}
            for (name,) in names.fetchall()
        }

    def select(self, table: str, *columns: str, where: str = "") -> Iterator[tuple[Any, ...]]:
        """Rows of a table in stored order; empty if there is no such table."""
        if table not in self.columns:
            return iter(())
        there = self.columns[table]
        chosen = ", ".join(f'"{column}"' if column in there else "NULL" for column in columns)
        condition = f" WHERE {where}" if where else ""
        return self.connection.execute(f'SELECT {chosen} FROM "{table}"{condition}')

    def kernels(self) -> list[Kernel]:
        """Kernels and CUDA graphs in order of start."""
        columns = self.columns.get(KERNELS, {"globalPid", "demangledName"})
        name = "demangledName" if "demangledName" in columns else "shortName"
        work = ("start", "end", "deviceId", "streamId", "globalPid", "correlationId")
        sizes = [size + axis for size in ("grid", "block") for axis in "XYZ"]
        rows = self.select(KERNELS, *work, name, *sizes, "graphNodeId")
        kernels = [
            Kernel(start, end, device, stream, pid and pid >> PROCESS_SHIFT, *others)
            for start, end, device, stream, pid, *others in rows
        ]
        for start, end, device, stream, pid, correlation, graph in self.select(
            GRAPHS, *work, "graphId"
        ):
            process = pid and pid >> PROCESS_SHIFT
            name = "CUDA graph" if graph is None else f"CUDA graph {graph}"
            kernels.append(Kernel(start, end, device, stream, process, correlation, name))
        kernels.sort(key=lambda kernel: kernel.start)
        return kernels

    def launches(self) -> Iterator[tuple[int, int, int, int | None]]:
        """correlation id, thread, start and name of the API calls that may have launched work."""
        ids = [
            f'SELECT correlationId FROM "{table}" WHERE correlationId >= 0'
            for table in (KERNELS, GRAPHS)
            if table in self.columns and "correlationId" in self.columns[table]
        ]
        where = f"correlationId IN ({' UNION ALL '.join(ids)}) AND globalTid IS NOT NULL"
        columns = ("correlationId", "globalTid", "start", "nameId")
        return self.select(CALLS, *columns, where=where) if ids else iter(())

    @property
    def tells_processes(self) -> bool:
        """Whether kernels have process ids; without them all belong to one process."""
        return KERNELS not in self.columns or "globalPid" in self.columns[KERNELS]

    def ranges(self) -> Iterator[tuple[Any, ...]]:
        """start, end, thread, text of the ranges that have a thread and a text.

        What ended on another thread belongs to none and is left out.
        """
        types = PUSH_POP | START_END
        types |= {
            name: number
            for name, number in self.select("ENUM_NSYS_EVENT_TYPE", "name", "id")
            if name in types
        }
        start_end = {types[name] for name in START_END}
        strings: dict[int, str] | None = None
        where = f"eventType IN ({', '.join(map(str, types.values()))})"
        columns = ("start", "end", "globalTid", "text", "textId", "eventType", "endGlobalTid")
        for start, end, thread, text, text_id, kind, end_thread in self.select(
            self._range_table(), *columns, where=where
        ):
            if text is None:
                strings = self.strings() if strings is None else strings
                text = strings.get(text_id)
            moved = end_thread is not None and end_thread != thread and kind in start_end
            if text is not None and thread is not None and not moved:
                yield start, end, thread, text

    def _range_table(self) -> str:
        present = [table for table in RANGES if table in self.columns]
        filled = [table for table in present if next(self.select(table, "start"), None)]
        return (filled or present or list(RANGES))[0]

    def thread_names(self) -> dict[int, str]:
        """Thread -> name; the last of several."""
        names = self.strings() if "ThreadNames" in self.columns else {}
        return {
            thread: names.get(name, "")
            for thread, name in self.select("ThreadNames", "globalTid", "nameId")
        }

    def strings(self) -> dict[int, str]:
        return dict(self.select(STRINGS, "id", "value"))
