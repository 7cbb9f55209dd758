"""Write rows as an Nsight Systems SQLite export."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from types import TracebackType

from bench.call_template import CALL_COLUMNS, CALL_CONSTANTS
from bench.gpu_template import COPY_COLUMNS, COPY_CONSTANTS, KERNEL_COLUMNS, KERNEL_CONSTANTS
from bench.identity import THREAD_NAMES, VIRTUAL_MACHINE, Identity
from bench.process import StepRows
from bench.range_template import RANGE_COLUMNS
from bench.strings import StringTable

SCHEMA = Path(__file__).with_name("schema.sql")
PAGE_CACHE_KIB = 65_536
PRAGMAS = (
    "PRAGMA journal_mode = OFF",
    "PRAGMA synchronous = OFF",
    "PRAGMA locking_mode = EXCLUSIVE",
    f"PRAGMA cache_size = -{PAGE_CACHE_KIB}",
)
EVENT_TYPES = {
    0: "Unknown",
    33: "NvtxCategory",
    34: "NvtxMark",
    39: "NvtxThread",
    59: "NvtxPushPopRange",
    60: "NvtxStartEndRange",
    65: "NvtxtMark",
    70: "NvtxtPushPopRange",
    71: "NvtxtStartEndRange",
    75: "NvtxDomainCreate",
    76: "NvtxDomainDestroy",
    79: "CudaDeviceKernel",
}
META_DATA = {
    "EXPORT_PRODUCT_NAME": "NVIDIA Nsight Systems",
    "EXPORT_PRODUCT_VERSION": "2025.1.3.140",
    "EXPORT_PRODUCT_DATE": "2025.1",
    "EXPORT_SCHEMA_VERSION": "3.17.2",
    "EXPORT_SCHEMA_VERSION_MAJOR": "3",
    "EXPORT_SCHEMA_VERSION_MINOR": "17",
    "EXPORT_SCHEMA_VERSION_MICRO": "2",
    "EXPORT_PLATFORM": "linux-desktop",
    "EXPORT_ARCH": "x64",
    "EXPORT_HOST": "made up by bench.generate",
}
GPU = {
    "vmId": VIRTUAL_MACHINE,
    "name": "NVIDIA H100 80GB HBM3",
    "isDiscrete": 1,
    "l2CacheSize": 52_428_800,
    "totalMemory": 85_029_158_912,
    "memoryBandwidth": 3_352_320_000_000,
    "clockRate": 1_980_000_000,
    "smCount": 132,
    "chipName": "GH100",
    "constantMemory": 65_536,
    "maxRegistersPerBlock": 65_536,
    "maxShmemPerBlock": 49_152,
    "maxShmemPerBlockOptin": 232_448,
    "maxShmemPerSm": 233_472,
    "maxRegistersPerSm": 65_536,
    "threadsPerWarp": 32,
    "asyncEngines": 3,
    "maxWarpsPerSm": 64,
    "maxBlocksPerSm": 32,
    "maxThreadsPerBlock": 1024,
    "computeMajor": 9,
    "computeMinor": 0,
    "smMajor": 9,
    "smMinor": 0,
}


def insert_sql(
    table: str, columns: Sequence[str], constants: Mapping[str, int] | None = None
) -> str:
    """INSERT with a parameter for each column, and the constants as literals."""
    fixed = constants or {}
    names = ", ".join([*columns, *fixed])
    values = ", ".join(["?"] * len(columns) + [str(value) for value in fixed.values()])
    return f"INSERT INTO {table} ({names}) VALUES ({values})"


INSERT_KERNEL = insert_sql("CUPTI_ACTIVITY_KIND_KERNEL", KERNEL_COLUMNS, KERNEL_CONSTANTS)
INSERT_COPY = insert_sql("CUPTI_ACTIVITY_KIND_MEMCPY", COPY_COLUMNS, COPY_CONSTANTS)
INSERT_CALL = insert_sql("CUPTI_ACTIVITY_KIND_RUNTIME", CALL_COLUMNS, CALL_CONSTANTS)
INSERT_RANGE = insert_sql("NVTX_EVENTS", RANGE_COLUMNS)
INSERT_GPU = insert_sql("TARGET_INFO_GPU", ["id", "busLocation", "cuDevice", *GPU])


class Export:
    """An export being written, in one transaction and without a journal; a context manager.

    An error leaves an invalid file: write to a temporary name and rename the file at the end.
    """

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        for pragma in PRAGMAS:
            self.connection.execute(pragma)
        self.connection.executescript(SCHEMA.read_text(encoding="utf-8"))
        self.connection.execute("BEGIN")

    def __enter__(self) -> Export:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.connection.execute("COMMIT")
        self.connection.close()

    def write_steps(self, steps: Sequence[StepRows]) -> None:
        """Write one step of all processes; rows are ordered by start across processes."""
        for sql, tables in (
            (INSERT_KERNEL, [step.kernels for step in steps]),
            (INSERT_COPY, [step.copies for step in steps]),
            (INSERT_CALL, [step.calls for step in steps]),
            (INSERT_RANGE, [step.ranges for step in steps]),
        ):
            rows = tables[0] if len(tables) == 1 else sorted(chain(*tables), key=itemgetter(0))
            self.connection.executemany(sql, rows)

    def write_strings(self, strings: StringTable) -> None:
        self.insert("StringIds", ("id", "value"), ((i, text) for text, i in strings.ids.items()))

    def write_targets(self, identities: Sequence[Identity], strings: StringTable) -> None:
        """Write the rows that do not come from a step: processes, threads, GPUs, metadata."""
        processes = ((item.global_pid, item.pid, "python3") for item in identities)
        self.insert("PROCESSES", ("globalPid", "pid", "name"), processes)
        threads = (
            (strings.id_of(name), 20, item.global_tid(thread))
            for item in identities
            for thread, name in THREAD_NAMES.items()
        )
        self.insert("ThreadNames", ("nameId", "priority", "globalTid"), threads)
        self.write_devices(len(identities))

    def write_devices(self, n: int) -> None:
        """Write `n` GPUs, the types of events, and metadata."""
        gpus = ((i, f"0000:{16 + i:02x}:00.0", i, *GPU.values()) for i in range(n))
        self.connection.executemany(INSERT_GPU, gpus)
        types = ((i, name, name) for i, name in EVENT_TYPES.items())
        self.insert("ENUM_NSYS_EVENT_TYPE", ("id", "name", "label"), types)
        self.insert("META_DATA_EXPORT", ("name", "value"), META_DATA.items())

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        self.connection.executemany(insert_sql(table, columns), rows)
