"""Converts an NVProf file to an equivalent Nsight Systems export.

Tests compare the report on the export with PyProf's output for the NVProf file.
"""

import shutil
import sqlite3
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from support import processes
from support.exports import Export
from support.real_data import open_read_only

_KERNEL_TABLES = ("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "CUPTI_ACTIVITY_KIND_KERNEL")
# Later ones win: if a kernel's id is in both, the runtime call counts.
_CALL_TABLES = ("CUPTI_ACTIVITY_KIND_DRIVER", "CUPTI_ACTIVITY_KIND_RUNTIME")
_OBJECT_IS_THREAD = 2
_MARK, _START, _END = 1, 2, 4


@dataclass
class Conversion:
    """An export and the values that it cannot represent.

    NVProf's thread ids have 32 bits, those of an export 24: the export's threads are 1, 2, … and
    `threads` maps them to NVProf's ids. `epoch` was subtracted from all times.
    """

    export: Export = field(default_factory=Export)
    threads: dict[int, int] = field(default_factory=dict)
    epoch: int = 0
    _numbers: dict[int, int] = field(default_factory=dict)

    def thread(self, nvprof_thread: int) -> int:
        """The export's number of a thread."""
        nvprof_thread &= 0xFFFFFFFF
        number = self._numbers.setdefault(nvprof_thread, len(self._numbers) + 1)
        self.threads[number] = nvprof_thread
        return number


def convert(path: Path) -> Conversion:
    """Read an NVProf file: its kernels, their launches, its ranges and marks."""
    connection = open_read_only(path)
    connection.row_factory = sqlite3.Row
    try:
        result = Conversion()
        texts = dict(connection.execute("SELECT _id_, value FROM StringTable"))
        process_of_launch = _add_launches(connection, result)
        _add_kernels(connection, result, texts, process_of_launch)
        _add_ranges(connection, result, texts)
        return result
    finally:
        connection.close()


def short_name(demangled: str) -> str:
    """PyProf's short name of a demangled kernel name."""
    name = demangled.split("<")[0]
    for word in ("void ", "at::", "cuda::", "native::", "(anonymous namespace)::"):
        name = name.replace(word, "")
    return name.split("(")[0]


def demangle(names: Iterable[str]) -> dict[str, str]:
    """Mangled -> demangled, by c++filt; unchanged if it is not installed."""
    names = list(names)
    program = shutil.which("c++filt")
    if program is None or not names:
        return {name: name for name in names}
    done = processes.ran([program], input="\n".join(names), check=True)
    return dict(zip(names, done.stdout.splitlines(), strict=True))


def _tables(connection: sqlite3.Connection, wanted: Iterable[str]) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    present = {name for (name,) in connection.execute(query)}
    return [table for table in wanted if table in present]


def _add_launches(connection: sqlite3.Connection, result: Conversion) -> dict[int, int]:
    """Add the calls; return the process of each correlation id."""
    calls = {}
    for table in _tables(connection, _CALL_TABLES):
        for row in connection.execute(f"SELECT * FROM {table}"):
            calls[row["correlationId"]] = row
    result.epoch = min((row["start"] for row in calls.values()), default=0)
    for corr, row in calls.items():
        result.export.launch(
            row["start"] - result.epoch,
            row["end"] - result.epoch,
            corr,
            result.thread(row["threadId"]),
            name=f"callback_{row['cbid']}",
            pid=row["processId"],
        )
    return {corr: row["processId"] for corr, row in calls.items()}


def _add_kernels(
    connection: sqlite3.Connection,
    result: Conversion,
    texts: dict[int, str],
    process_of_launch: dict[int, int],
) -> None:
    for table in _tables(connection, _KERNEL_TABLES):
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
        demangled = demangle({texts[row["name"]] for row in rows})
        for row in rows:
            mangled = texts[row["name"]]
            result.export.kernel(
                row["start"] - result.epoch,
                row["end"] - result.epoch,
                row["correlationId"],
                name=short_name(demangled[mangled]),
                demangled=demangled[mangled],
                mangled=mangled,
                pid=process_of_launch[row["correlationId"]],
                device=row["deviceId"],
                context=row["contextId"],
                stream=row["streamId"],
                grid=(row["gridX"], row["gridY"], row["gridZ"]),
                block=(row["blockX"], row["blockY"], row["blockZ"]),
                registersPerThread=row["registersPerThread"],
            )


def _add_ranges(connection: sqlite3.Connection, result: Conversion, texts: dict[int, str]) -> None:
    if not _tables(connection, ["CUPTI_ACTIVITY_KIND_MARKER"]):
        return
    open_ranges = {}
    query = "SELECT * FROM CUPTI_ACTIVITY_KIND_MARKER ORDER BY timestamp, _id_"
    for row in connection.execute(query):
        if row["objectKind"] != _OBJECT_IS_THREAD:
            continue
        pid, thread = struct.unpack_from("<iq", row["objectId"])
        at = row["timestamp"] - result.epoch
        if row["flags"] == _START:
            open_ranges[row["id"]] = (at, texts[row["name"]], pid, thread)
        elif row["flags"] == _MARK:
            result.export.mark(at, texts[row["name"]], result.thread(thread), pid=pid)
        elif row["flags"] == _END and row["id"] in open_ranges:
            start, text, pid, thread = open_ranges.pop(row["id"])
            result.export.push_pop(start, at, text, result.thread(thread), pid=pid)
    for start, text, pid, thread in open_ranges.values():
        result.export.push_pop(start, None, text, result.thread(thread), pid=pid)
