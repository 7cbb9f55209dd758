"""Builds NVProf SQLite files for tests: events in, a file as NVProf of 2017 to 2022 wrote it out.

file = NvprofFile()
file.push_pop(0, 100, "layer:one", tid=1)
file.launch(10, 20, corr=7, tid=1)
file.kernel(30, 40, corr=7, name="_Z5sgemmPf")
path = file.write(tmp_path / "one.sql")
"""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path
from typing import Any

PID = 100
START, END, MARK = 2, 4, 1

# What every version has of a kernel, and what CUDA 11's added.
_KERNEL_2016 = [
    "cacheConfig",
    "sharedMemoryConfig",
    "registersPerThread",
    "partitionedGlobalCacheRequested",
    "partitionedGlobalCacheExecuted",
    "start",
    "end",
    "completed",
    "deviceId",
    "contextId",
    "streamId",
    "gridX",
    "gridY",
    "gridZ",
    "blockX",
    "blockY",
    "blockZ",
    "staticSharedMemory",
    "dynamicSharedMemory",
    "localMemoryPerThread",
    "localMemoryTotal",
    "correlationId",
    "gridId",
    "name",
]
_KERNEL_2021 = [
    *_KERNEL_2016,
    *["queued", "submitted", "launchType", "isSharedMemoryCarveoutRequested"],
    *["sharedMemoryCarveoutRequested", "sharedMemoryExecuted", "graphNodeId", "graphId"],
]
_API = ["cbid", "start", "end", "processId", "threadId", "correlationId", "returnValue"]
_MARKER = ["flags", "timestamp", "id", "objectKind", "objectId", "name", "domain"]
_COPY = ["copyKind", "bytes", "start", "end", "deviceId", "contextId", "streamId", "correlationId"]
_SET = ["value", "bytes", "start", "end", "deviceId", "contextId", "streamId", "correlationId"]


class NvprofFile:
    """The events of one run."""

    def __init__(self, *, year: int = 2021, serialised: bool = False) -> None:
        kernel = "CUPTI_ACTIVITY_KIND_KERNEL" if serialised else None
        self._kernels = kernel or "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"
        self._columns = {
            self._kernels: _KERNEL_2021 if year >= 2021 else _KERNEL_2016,
            "CUPTI_ACTIVITY_KIND_RUNTIME": _API,
            "CUPTI_ACTIVITY_KIND_DRIVER": _API,
            "CUPTI_ACTIVITY_KIND_MARKER": _MARKER,
            "CUPTI_ACTIVITY_KIND_MEMCPY": _COPY,
            "CUPTI_ACTIVITY_KIND_MEMSET": _SET,
        }
        self._rows: list[tuple[str, dict[str, Any]]] = []
        self._strings: dict[str, int] = {}
        self._markers = 0

    def string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings) + 1)

    def add_table(self, table: str, columns: list[str]) -> NvprofFile:
        """A table that not every file has."""
        self._columns[table] = columns
        return self

    def row(self, table: str, **columns: Any) -> NvprofFile:
        self._rows.append((table, columns))
        return self

    def kernel(
        self,
        start: int,
        end: int,
        corr: int,
        *,
        name: str = "sgemm",
        device: int = 0,
        stream: int = 7,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (128, 1, 1),
        **others: Any,
    ) -> NvprofFile:
        extents = dict(zip(["gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"], grid + block,
                           strict=True))  # fmt: skip
        columns = {"start": start, "end": end, "correlationId": corr, "name": self.string(name)}
        columns |= {"deviceId": device, "contextId": 1, "streamId": stream, **extents}
        columns |= {"registersPerThread": 32, **others}
        return self.row(self._kernels, **columns)

    def launch(
        self, start: int, end: int, corr: int, tid: int, *, pid: int = PID, cbid: int = 211,
        driver: bool = False, result: int = 0,
    ) -> NvprofFile:  # fmt: skip
        """An API call. Thread ids are written as signed 32-bit numbers, as NVProf does."""
        signed = struct.unpack("<i", struct.pack("<I", tid & 0xFFFFFFFF))[0]
        table = f"CUPTI_ACTIVITY_KIND_{'DRIVER' if driver else 'RUNTIME'}"
        return self.row(table, cbid=cbid, start=start, end=end, processId=pid, threadId=signed,
                        correlationId=corr, returnValue=result)  # fmt: skip

    def copy(self, start: int, end: int, corr: int, kind: int, n_bytes: int) -> NvprofFile:
        return self.row("CUPTI_ACTIVITY_KIND_MEMCPY", start=start, end=end, correlationId=corr,
                        copyKind=kind, bytes=n_bytes, deviceId=0, contextId=1,
                        streamId=7)  # fmt: skip

    def set(self, start: int, end: int, corr: int, n_bytes: int) -> NvprofFile:
        return self.row("CUPTI_ACTIVITY_KIND_MEMSET", start=start, end=end, correlationId=corr,
                        bytes=n_bytes, value=0, deviceId=0, contextId=1, streamId=7)  # fmt: skip

    def marker(
        self, at: int, flags: int, number: int, text: str | None, tid: int, *, pid: int = PID,
        kind: int = 2,
    ) -> NvprofFile:  # fmt: skip
        name = 0 if text is None else self.string(text)
        return self.row("CUPTI_ACTIVITY_KIND_MARKER", flags=flags, timestamp=at, id=number,
                        objectKind=kind, objectId=struct.pack("<iQ", pid, tid), name=name,
                        domain=0)  # fmt: skip

    def push_pop(
        self, start: int, end: int | None, text: str, tid: int, *, pid: int = PID,
        end_tid: int | None = None,
    ) -> NvprofFile:  # fmt: skip
        """A range: a row for its start, and one for its end unless `end` is None."""
        self._markers += 1
        self.marker(start, START, self._markers, text, tid, pid=pid)
        if end is None:
            return self
        thread = tid if end_tid is None else end_tid
        return self.marker(end, END, self._markers, None, thread, pid=pid)

    def write(self, path: Path, without: tuple[str, ...] = ()) -> Path:
        """Write the file without the tables in `without`."""
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA synchronous = OFF")  # no wait for the disk
        with connection:
            connection.execute("CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY, value TEXT)")
            connection.executemany("INSERT INTO StringTable VALUES (?, ?)",
                                   ((i, text) for text, i in self._strings.items()))  # fmt: skip
            for table, columns in self._columns.items():
                if table not in without:
                    names = ", ".join(f"{name} INT NOT NULL DEFAULT 0" for name in columns)
                    connection.execute(f"CREATE TABLE {table}(_id_ INTEGER PRIMARY KEY, {names})")
            for table, row in self._rows:
                row = {key: value for key, value in row.items() if key in self._columns[table]}
                marks = ", ".join("?" * len(row))
                sql = f"INSERT INTO {table}({', '.join(row)}) VALUES ({marks})"
                connection.execute(sql, tuple(row.values()))
        connection.close()
        return path
