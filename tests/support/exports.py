"""Builds Nsight Systems SQLite exports for tests: events in, a file of any year's schema out.

export = Export()
export.push_pop(0, 100, "layer:one", tid=1)
export.launch(10, 20, corr=7, tid=1)
export.kernel(30, 40, corr=7, name="sgemm")
path = export.write(tmp_path / "one.sqlite", schema="2024")
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from support import nsys_schemas

PID = 100
VM = 1 << 48  # the part of a global id above process and thread, as in real files


def global_tid(pid: int, tid: int) -> int:
    """The globalTid of a thread; with tid 0 the globalPid of the process."""
    return VM | pid << 24 | tid


class Export:
    """The events of one capture. All methods accept further columns of their row by name.

    Parameters
    ----------
    event_types : mapping of str to int, optional
        The numbers of the NVTX events, where they should differ from those that nsys uses.
    """

    def __init__(self, event_types: Mapping[str, int] = nsys_schemas.EVENT_TYPES) -> None:
        self.event_types = dict(event_types)
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._ids: dict[str, int] = {}

    def kernel(
        self,
        start: int,
        end: int,
        corr: int | None,
        *,
        name: str = "sgemm",
        demangled: str | None = None,
        mangled: str | None = None,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (128, 1, 1),
        graph_node: int | None = None,
        **others: Any,
    ) -> Export:
        """A kernel. `name` is the short one, and the demangled and mangled one if they are None.

        `others` are `pid`, `device`, `context`, `stream` and columns.
        """
        names = {
            "shortName": self.string(name),
            "demangledName": self.string(name if demangled is None else demangled),
            "mangledName": self.string(name if mangled is None else mangled),
        }
        extents = {
            **dict(zip(("gridX", "gridY", "gridZ"), grid, strict=True)),
            **dict(zip(("blockX", "blockY", "blockZ"), block, strict=True)),
        }
        columns = {"registersPerThread": 32, "graphNodeId": graph_node, **names, **extents}
        return self._activity("CUPTI_ACTIVITY_KIND_KERNEL", start, end, corr, **(columns | others))

    def graph_trace(
        self,
        start: int,
        end: int,
        corr: int | None,
        *,
        graph: int = 1,
        graph_exec: int = 2,
        **others: Any,
    ) -> Export:
        """One launch of a CUDA graph, as a graph-level capture tells it; `others` as `kernel`."""
        columns = {"graphId": graph, "graphExecId": graph_exec}
        table = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
        return self._activity(table, start, end, corr, **(columns | others))

    def copy(
        self, start: int, end: int, corr: int | None, kind: int, n_bytes: int, **others: Any
    ) -> Export:
        """A memory copy; `kind` as CUPTI counts them (1 is HtoD), `others` as `kernel`."""
        columns = {"bytes": n_bytes, "copyKind": kind}
        table = "CUPTI_ACTIVITY_KIND_MEMCPY"
        return self._activity(table, start, end, corr, **(columns | others))

    def memset(self, start: int, end: int, corr: int | None, n_bytes: int, **others: Any) -> Export:
        """A memset; `others` as `kernel`."""
        columns = {"bytes": n_bytes, "value": 0}
        table = "CUPTI_ACTIVITY_KIND_MEMSET"
        return self._activity(table, start, end, corr, **(columns | others))

    def launch(
        self,
        start: int,
        end: int,
        corr: int | None,
        tid: int,
        name: str = "cudaLaunchKernel_v7000",
        *,
        pid: int = PID,
        **columns: Any,
    ) -> Export:
        """A call of the CUDA runtime. For one of the driver give `eventClass=1`."""
        thread = {"globalTid": global_tid(pid, tid), "nameId": self.string(name)}
        own = {"start": start, "end": end, "correlationId": corr, **thread}
        return self.row("CUPTI_ACTIVITY_KIND_RUNTIME", **(own | columns))

    def work(
        self,
        at: int,
        tid: int = 1,
        name: str = "elementwise_kernel",
        duration: int = 10,
        *,
        pid: int = PID,
        **columns: Any,
    ) -> Export:
        """A kernel with its launch at a time, with the next correlation id."""
        corr = self._count("CUPTI_ACTIVITY_KIND_RUNTIME") + 1
        self.launch(at, at, corr, tid, pid=pid)
        return self.kernel(at + 1, at + 1 + duration, corr, name=name, pid=pid, **columns)

    def nest(self, start: int, end: int, *texts: str, tid: int = 1) -> Export:
        """Push/pop ranges inside each other, outermost first."""
        for inset, text in enumerate(texts):
            self.push_pop(start + inset, end - inset, text, tid)
        return self

    def push_pop(
        self,
        start: int,
        end: int | None,
        text: str | None,
        tid: int,
        domain: int = 0,
        registered: bool = False,
        *,
        pid: int = PID,
        event: str = "NvtxPushPopRange",
        **columns: Any,
    ) -> Export:
        """A push/pop range; `registered` text is in StringIds. end None: it was never closed.

        `event` makes it another of `nsys_schemas.EVENT_TYPES`.
        """
        own = {"start": start, "end": end, "eventType": self.event_types[event]}
        own |= {"globalTid": global_tid(pid, tid), "domainId": domain}
        own["text"] = None if registered else text
        own["textId"] = self.string(text) if registered and text is not None else None
        return self.row("NVTX_EVENTS", **(own | columns))

    def start_end(
        self,
        start: int,
        end: int | None,
        text: str | None,
        tid: int,
        end_tid: int | None = None,
        **others: Any,
    ) -> Export:
        """A start/end range, which another thread may have ended; `others` as for `push_pop`."""
        others = {"event": "NvtxStartEndRange", "rangeId": self._count("NVTX_EVENTS"), **others}
        if end_tid is not None:
            others["endGlobalTid"] = global_tid(others.get("pid", PID), end_tid)
        return self.push_pop(start, end, text, tid, **others)

    def mark(self, at: int, text: str | None, tid: int, **others: Any) -> Export:
        """A mark; with `event` a thread's name (NvtxThread), a domain's (NvtxDomainCreate), …"""
        return self.push_pop(at, None, text, tid, **{"event": "NvtxMark", **others})

    def graph_node_event(
        self,
        start: int,
        end: int,
        tid: int,
        node: int,
        original: int | None = None,
        *,
        pid: int = PID,
        **columns: Any,
    ) -> Export:
        """The making of a node of a CUDA graph; `original` is the node that it is a clone of."""
        thread = {"globalTid": global_tid(pid, tid), "nameId": self.string("Graph Node Creation")}
        nodes = {"graphNodeId": node, "originalGraphNodeId": original}
        own = {"start": start, "end": end, "eventClass": 95, **thread, **nodes}
        return self.row("CUDA_GRAPH_NODE_EVENTS", **(own | columns))

    def gpu(
        self,
        name: str = "NVIDIA A100-SXM4-80GB",
        device: int = 0,
        compute: tuple[int, int] = (8, 0),
        **columns: Any,
    ) -> Export:
        """A GPU of the machine."""
        own = {"vmId": VM, "id": device, "cuDevice": device, "name": name}
        own |= {"computeMajor": compute[0], "computeMinor": compute[1]}
        return self.row("TARGET_INFO_GPU", **(own | columns))

    def row(self, table: str, **columns: Any) -> Export:
        """A row of any table; columns that the written schema does not have are left out."""
        unknown = columns.keys() - nsys_schemas.column_names(table)
        if unknown:
            raise ValueError(f"{table} never had a column {', '.join(sorted(unknown))}")
        self._rows.setdefault(table, []).append(columns)
        return self

    def string(self, text: str) -> int:
        """The StringIds id of a text."""
        return self._ids.setdefault(text, len(self._ids) + 1)

    def write(
        self,
        path: Path,
        schema: str = "2024",
        *,
        nvtx_table: str = "NVTX_EVENTS",
        without_tables: Collection[str] = (),
        without_columns: Mapping[str, Collection[str]] | None = None,
        with_tables: Collection[str] = (),
        shuffle_seed: int | None = None,
        page_size: int | None = None,
    ) -> Path:
        """Write the export.

        Parameters
        ----------
        path : Path
            The file to make; it must not exist.
        schema : str
            One of `nsys_schemas.SCHEMAS`: the year of the Nsight Systems to write as.
        nvtx_table : str
            The name that the table of NVTX events goes by: it has been NVTX_EVENTS, and newer
            exports may add _V2 or _V3.
        without_tables, without_columns : collection of str, mapping of table to columns
            What to leave out (tables by the names of the schema). Without the column textId,
            registered texts are written as the others.
        with_tables : collection of str
            Tables to make even though no row of theirs was given; StringIds always is.
        shuffle_seed : int, optional
            Put rows into a random order. Else they are sorted by start, as nsys does it.
        page_size : int, optional
            Of the SQLite file, 512 to 65536.

        Returns
        -------
        Path
            The same path.
        """
        tables = nsys_schemas.tables(schema)
        rows = {**{table: [] for table in with_tables}, **self._rows, **self._about(schema)}
        unknown = (rows.keys() | set(without_tables) | (without_columns or {}).keys()) - {*tables}
        if unknown:
            raise ValueError(f"schema {schema} has no table {', '.join(sorted(unknown))}")
        with path.open("xb"):
            pass
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA synchronous = OFF")  # no wait for the disk
        try:
            if page_size is not None:
                connection.execute(f"PRAGMA page_size = {page_size}")
            with connection:
                for table in [table for table in tables if table in rows]:
                    if table in without_tables:
                        continue
                    left_out = (without_columns or {}).get(table, ())
                    columns = [column for column in tables[table] if column.name not in left_out]
                    name = nvtx_table if table == "NVTX_EVENTS" else table
                    connection.execute(nsys_schemas.create_table(schema, name, columns))
                    values = self._values(rows[table], columns, shuffle_seed)
                    places = ", ".join("?" * len(columns))
                    connection.executemany(f"INSERT INTO {name} VALUES ({places})", values)
        finally:
            connection.close()
        return path

    def _activity(
        self,
        table: str,
        start: int,
        end: int,
        corr: int | None,
        *,
        pid: int = PID,
        device: int = 0,
        context: int = 1,
        stream: int = 7,
        **columns: Any,
    ) -> Export:
        place = {"deviceId": device, "contextId": context, "streamId": stream}
        own = {"start": start, "end": end, "correlationId": corr, "globalPid": global_tid(pid, 0)}
        return self.row(table, **(own | place | columns))

    def _count(self, table: str) -> int:
        return len(self._rows.get(table, ()))

    def _about(self, schema: str) -> dict[str, list[dict[str, Any]]]:
        """The rows that are in every export of a schema, whatever was captured."""
        about: dict[str, list[dict[str, Any]]] = {
            "StringIds": [{"id": id_, "value": text} for text, id_ in self._ids.items()]
        }
        if schema in nsys_schemas.VERSIONS:
            version, product = nsys_schemas.VERSIONS[schema]
            about["EXPORT_META_DATA" if schema < "2024" else "META_DATA_EXPORT"] = [
                {"name": "EXPORT_PRODUCT_NAME", "value": "NVIDIA Nsight Systems"},
                {"name": "EXPORT_PRODUCT_VERSION", "value": product},
                {"name": "EXPORT_SCHEMA_VERSION", "value": version},
            ]
            about["ENUM_NSYS_EVENT_TYPE"] = [
                {"id": id_, "name": name, "label": name} for name, id_ in self.event_types.items()
            ]
        if schema >= "2024":
            about["META_DATA_CAPTURE"] = self._rows.get("META_DATA_CAPTURE", [])
        return about

    def _values(
        self,
        rows: Iterable[Mapping[str, Any]],
        columns: Iterable[nsys_schemas.Column],
        shuffle_seed: int | None,
    ) -> list[tuple[Any, ...]]:
        """The rows' values in the order in which they are written."""
        columns = list(columns)
        rows = [dict(row) for row in sorted(rows, key=lambda row: row.get("start", 0))]
        if shuffle_seed is not None:
            random.Random(shuffle_seed).shuffle(rows)
        if "textId" not in {column.name for column in columns}:
            texts = {id_: text for text, id_ in self._ids.items()}
            rows = [
                {**row, "text": row.get("text") or texts.get(row.get("textId"))} for row in rows
            ]
        return [tuple(row.get(column.name, column.default) for column in columns) for row in rows]
