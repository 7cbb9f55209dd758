"""Small rocpd databases, row by row, with the traps of real ones."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from bench import rocpd_schema

NODE = 1
CPU, GPU_0, GPU_1 = 0, 1, 2
HIP, HSA, RANGE, RCCL = "HIP_RUNTIME_API", "HSA_CORE_API", "MARKER_CORE_RANGE_API", "RCCL_API"
_PLACE = ("nid", "pid", "tid", "agent_id", "queue_id", "stream_id")


class Rocpd:
    """The rows of one run. Methods return the run; keywords replace columns of the row.

    Parameters
    ----------
    version : one of bench.rocpd_schema.VERSIONS
    suffix : of its tables
    pid : the process, whose main thread is 1 more
    """

    def __init__(
        self, version: str = "3.0.0", suffix: str = "_0199c5e1_7a3d", pid: int = 100
    ) -> None:
        self.version, self.suffix, self.pid = version, suffix, pid
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in self.tables}
        self._ids: dict[tuple[str, Any], int] = {}
        self.add("info_node", id=NODE, hash=NODE, machine_id="machine")
        self.add("info_process", id=pid, nid=NODE, pid=pid, command="python3 train.py")
        self.agent(CPU, "CPU", 0, "AMD EPYC").agent(GPU_0, "GPU", 0).agent(GPU_1, "GPU", 1)

    @property
    def tables(self) -> dict[str, str]:
        return dict(rocpd_schema.TABLES[self.version])

    def add(self, table: str, **columns: Any) -> Rocpd:
        """A row of any table."""
        self.rows[table].append(columns)
        return self

    def agent(
        self, number: int, kind: str, index: int | None, product: str = "AMD Instinct MI300X"
    ) -> Rocpd:
        return self.add(
            "info_agent", id=number, nid=NODE, pid=self.pid, type=kind, absolute_index=number,
            type_index=index, name="gfx942" if kind == "GPU" else product, product_name=product,
        )  # fmt: skip

    def string(self, text: str) -> int:
        return self._once("string", text, {"string": text})

    def _once(self, table: str, key: Any, columns: dict[str, Any]) -> int:
        number = self._ids.setdefault((table, key), len(self.rows[table]) + 1)
        if number > len(self.rows[table]):
            self.add(table, id=number, **columns)
        return number

    def category(self, text: str | None) -> int | None:
        if text is None:
            return None
        if self.version == rocpd_schema.WITH_TRACKS:
            return self._once("info_category", text, {"name": text})
        return self.string(text)

    def event(
        self, category: str | None, stack: int | None, parent: int | None = 0, **others: Any
    ) -> int:
        """An event; returns its id."""
        number = len(self.rows["event"]) + 1
        columns = {"category_id": self.category(category), "stack_id": stack}
        self.add(
            "event", id=number, **columns, parent_stack_id=parent, correlation_id=0, **others
        )  # fmt: skip
        return number

    def thread(self, tid: int | None) -> int | None:
        """The id of a thread, which is not its number in the operating system."""
        if tid is None:
            return None
        columns = {"nid": NODE, "pid": self.pid, "tid": tid}
        return self._once("info_thread", tid, columns)

    def symbol(self, name: str | None, **others: Any) -> int:
        columns = {"nid": NODE, "pid": self.pid, "code_object_id": 1, "display_name": name}
        counts = {"arch_vgpr_count": 24, "accum_vgpr_count": 8, "kernel_name": name}
        return self._once("info_kernel_symbol", name, columns | counts | others)

    def kernel(
        self, start: int, end: int, stack: int | None, name: str | None = "gemm", *,
        category: str = "KERNEL_DISPATCH", agent: int = GPU_0, stream: int = 1, queue: int = 1,
        grid: tuple[int, int, int] = (256, 2, 1), block: tuple[int, int, int] = (128, 1, 1),
        **others: Any,
    ) -> Rocpd:  # fmt: skip
        """A dispatch; `grid` counts threads."""
        sizes = {
            f"{size}_size_{axis}": side
            for size, sides in (("grid", grid), ("workgroup", block))
            for axis, side in zip("xyz", sides, strict=True)
        }
        columns = {
            "kernel_id": self.symbol(name), "dispatch_id": 1, "start": start, "end": end,
            "group_segment_size": 512, "event_id": self.event(category, stack), **sizes,
        }  # fmt: skip
        place = {"agent_id": agent, "queue_id": queue, "stream_id": stream}
        return self._placed("kernel_dispatch", place | columns | others)

    def copy(
        self, start: int, end: int, stack: int | None, size: int = 4096, *,
        name: str = "MEMORY_COPY_HOST_TO_DEVICE", source: int | None = CPU,
        target: int | None = GPU_0, stream: int = 1, **others: Any,
    ) -> Rocpd:  # fmt: skip
        columns = {
            "name_id": self.string(name), "start": start, "end": end, "src_agent_id": source,
            "dst_agent_id": target, "size": size, "event_id": self.event("MEMORY_COPY", stack),
        }  # fmt: skip
        place = {"queue_id": 0, "stream_id": stream}
        return self._placed("memory_copy", place | columns | others)

    def region(
        self, start: int, end: int, name: str, category: str | None, stack: int | None, *,
        tid: int | None = None, parent: int = 0, message: str | None = None,
        arguments: dict[str, str] | None = None, **others: Any,
    ) -> Rocpd:  # fmt: skip
        """A call or range of a thread, with an event."""
        told = {} if message is None else {"extdata": json.dumps({"message": message})}
        event = self.event(category, stack, parent, **told)
        for place, (key, value) in enumerate((arguments or {}).items()):
            self.add("arg", event_id=event, position=place, type="", name=key, value=value)
        columns = {
            "tid": self.thread(self.pid + 1 if tid is None else tid), "start": start, "end": end,
            "name_id": self.string(name), "event_id": event,
        }  # fmt: skip
        return self._placed("region", columns | others)

    def call(self, start: int, end: int, stack: int, name: str = "hipLaunchKernel", **others: Any):
        return self.region(start, end, name, others.pop("category", HIP), stack, **others)

    def range(self, start: int, end: int, message: str, stack: int = 0, **others: Any) -> Rocpd:
        return self.region(
            start, end, "roctxRangePushA", RANGE, stack, message=message, **others
        )  # fmt: skip

    def allocation(
        self, start: int, address: int, size: int, kind: str = "ALLOC", *,
        agent: int | None = GPU_0, level: str = "REAL", stack: int = 0, **others: Any,
    ) -> Rocpd:  # fmt: skip
        columns = {
            "type": kind, "level": level, "start": start, "end": start + 10, "address": address,
            "size": size, "event_id": self.event("MEMORY_ALLOCATION", stack), "name_id": 1,
        }  # fmt: skip
        place = {"agent_id": agent, "tid": self.thread(self.pid + 1)}
        if self.version != rocpd_schema.WITH_TRACKS:
            del columns["name_id"]
        return self._placed("memory_allocate", place | columns | others)

    def counter(self, name: str, *values: float, event: int | None = None) -> Rocpd:
        """Values of a counter of the last event, one per part of the GPU."""
        columns = {"nid": NODE, "pid": self.pid, "agent_id": GPU_0, "symbol": name, "name": name}
        number = self._once("info_pmc", name, columns)
        event = len(self.rows["event"]) if event is None else event
        for value in values:
            self.add("pmc_event", event_id=event, pmc_id=number, value=value)
        return self

    def _placed(self, table: str, columns: dict[str, Any]) -> Rocpd:
        """A row with its place: columns of its own, or a track."""
        columns = {"nid": NODE, "pid": self.pid} | columns
        if self.version != rocpd_schema.WITH_TRACKS:
            return self.add(table, **columns)
        place = {name: columns.pop(name, None) for name in _PLACE}
        track = self._once("track", tuple(place.items()), place)
        return self.add(table, track_id=track, **columns)

    def write(
        self, path: Path, *others: Rocpd, without: tuple[str, ...] = (), page_size: int = 4096
    ) -> Path:
        """Write this run and others to a file, without some tables."""
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA page_size = {page_size}")
            connection.execute("BEGIN")
            for run in (self, *others):
                rocpd_schema.create(connection, run.version, run.suffix)
                for table, rows in run.rows.items():
                    for row in rows:
                        names = ", ".join(f'"{name}"' for name in row)
                        values = ", ".join("?" * len(row))
                        connection.execute(
                            f'INSERT INTO "rocpd_{table}{run.suffix}" ({names}) VALUES ({values})',
                            list(row.values()),
                        )
                for table in without:
                    connection.execute(f'DROP TABLE "rocpd_{table}{run.suffix}"')
            connection.execute("COMMIT")
        return path
