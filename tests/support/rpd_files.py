"""Writes files of rocmProfileData (.rpd) of schema versions 1 to 3 for tests; times in ns.

The tables and columns are those of tableSchema.cmd of ROCm/rocmProfileData.

trace = RpdFile(version=2)
trace.call(10, 20, 7)
trace.kernel(30, 40, 7, "gemm")
path = trace.write(tmp_path / "trace.rpd")
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

PID, TID = 100, 101

_KERNEL = "gridX gridY gridZ workgroupX workgroupY workgroupZ groupSegmentSize privateSegmentSize"
_TABLES = {
    "rocpd_string": "id string",
    "rocpd_op": "id gpuId queueId sequenceId start end description_id opType_id",
    "rocpd_api_ops": "id api_id op_id",
    "rocpd_metadata": "id tag value",
    "rocpd_monitor": "id deviceType deviceId monitorType start end value",
}
_OF_VERSION = {
    1: {
        "rocpd_api": "id pid tid start end apiName_id args_id",
        "rocpd_kernelop": f"op_ptr_id {_KERNEL} codeObject_id kernelName_id",
        "rocpd_copyop": "op_ptr_id size src dst sync pinned",
    },
    2: {
        "rocpd_api": "id pid tid start end apiName_id args_id",
        "rocpd_kernelapi": f"api_ptr_id stream {_KERNEL} codeObject_id kernelName_id",
        "rocpd_copyapi": "api_ptr_id stream size width height kind dst src dstDevice srcDevice",
    },
    3: {
        "rocpd_ustring": "id string",
        "rocpd_api": "id pid tid start end apiName_id category_id domain_id args_id",
        "rocpd_kernelapi": f"api_ptr_id stream {_KERNEL} kernelName_id",
        "rocpd_copyapi": "api_ptr_id stream size width height kind dst src dstDevice srcDevice",
    },
}
_TEXTS = ("string", "tag", "value", "stream", "deviceType", "monitorType", "dst", "src")


class RpdFile:
    """The rows of a file."""

    def __init__(self, version: int = 3) -> None:
        self.version = version
        self.tables: dict[str, list[dict[str, Any]]] = {
            name: [] for name in _TABLES | _OF_VERSION[version]
        }
        self.add("rocpd_metadata", id=1, tag="schema_version", value=str(version))
        self.text("")

    def add(self, table: str, **row: Any) -> RpdFile:
        self.tables[table].append(row)
        return self

    def text(self, text: str, table: str = "rocpd_string") -> int:
        """The id of a text."""
        rows = self.tables[table]
        known = [row["id"] for row in rows if row["string"] == text]
        if not known:
            rows.append({"id": 1000 + 3 * len(rows), "string": text})
        return known[0] if known else rows[-1]["id"]

    def call(self, start: int, end: int, number: int, name: str = "hipLaunchKernel", *,
             args: str = "", domain: str = "hip", pid: int = PID, tid: int = TID,
             ) -> RpdFile:  # fmt: skip
        rare = "rocpd_ustring" if self.version == 3 and args else "rocpd_string"
        others = {}
        if self.version == 3:
            others = {"domain_id": self.text(domain), "category_id": self.text("")}
        return self.add("rocpd_api", id=number, pid=pid, tid=tid, start=start, end=end,
                        apiName_id=self.text(name), args_id=self.text(args, rare),
                        **others)  # fmt: skip

    def marker(self, start: int, end: int, number: int, text: str, **others: Any) -> RpdFile:
        return self.call(start, end, number, "UserMarker", args=text, domain="roctx", **others)

    def _op(self, start: int, end: int, call: int, kind: str, name: str, gpu: int,
            queue: int) -> int:  # fmt: skip
        number = 1 + len(self.tables["rocpd_op"])
        self.add("rocpd_op", id=number, gpuId=gpu, queueId=queue, sequenceId=0, start=start,
                 end=end, description_id=self.text(name), opType_id=self.text(kind))  # fmt: skip
        self.add("rocpd_api_ops", id=number, api_id=call, op_id=number)
        return number

    def kernel(self, start: int, end: int, call: int, name: str = "gemm", *, gpu: int = 0,
               queue: int = 2, stream: str = "0x7f00", grid: tuple[int, int, int] = (512, 2, 1),
               block: tuple[int, int, int] = (256, 1, 1)) -> RpdFile:  # fmt: skip
        number = self._op(start, end, call, "KernelExecution", name, gpu, queue)
        key = {"op_ptr_id": number} if self.version == 1 else {"api_ptr_id": call, "stream": stream}
        sizes = dict(zip(_KERNEL.split(), (*grid, *block, 64, 0), strict=True))
        table = "rocpd_kernelop" if self.version == 1 else "rocpd_kernelapi"
        return self.add(table, **key, **sizes, kernelName_id=self.text(name))

    def copy(self, start: int, end: int, call: int, n_bytes: int = 0,
             kind: str = "CopyHostToDevice", gpu: int = 0) -> RpdFile:  # fmt: skip
        number = self._op(start, end, call, kind, "", gpu, 0)
        if "Fill" in kind or any(
            row.get("api_ptr_id") == call for row in self.tables.get("rocpd_copyapi", ())
        ):
            return self
        if self.version == 1:
            return self.add("rocpd_copyop", op_ptr_id=number, size=n_bytes)
        return self.add("rocpd_copyapi", api_ptr_id=call, stream="0x7f00", size=n_bytes)

    def write(self, path: Path) -> Path:
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as connection:
            for table, columns in (_TABLES | _OF_VERSION[self.version]).items():
                names = columns.split()
                types = [
                    f'"{name}" '
                    + ("varchar(4096)" if name in _TEXTS else "integer")
                    + (" NOT NULL PRIMARY KEY AUTOINCREMENT" * (name == "id"))
                    for name in names
                ]
                connection.execute(f"CREATE TABLE {table} ({', '.join(types)})")
                for row in self.tables[table]:
                    marks = ", ".join("?" * len(row))
                    named = ", ".join(map(_quoted, row))
                    values = list(row.values())
                    connection.execute(f"INSERT INTO {table} ({named}) VALUES ({marks})", values)
            connection.execute("CREATE VIEW op AS SELECT id FROM rocpd_op")
        connection.close()
        return path


def _quoted(name: str) -> str:
    return f'"{name}"'
