"""Metadata of an NVProf file: schema version, GPUs, names of processes and threads."""

from __future__ import annotations

from typing import Any

from fastprof.errors import BadInputError
from fastprof.model.metadata import About, GpuFigures, positive
from fastprof.readers.nvprof import schema
from fastprof.readers.sqlite.database import Database
from fastprof.readers.trace_columns import text

_DEVICES = "CUPTI_ACTIVITY_KIND_DEVICE"
_NAMES = "CUPTI_ACTIVITY_KIND_NAME"
# CUpti_ActivityObjectKind: objectId is a 32-bit process, of a thread then a 64-bit thread.
_PROCESS, _THREAD = 1, 2


def read(database: Database) -> tuple[About, list[str]]:
    """The metadata, and warnings."""
    about = About("nvprof", tool="NVProf")
    try:
        if "version" in database.tables.get("Version", ()):
            for (version,) in database.rows("SELECT version FROM Version"):
                about.schema_version = str(version)
        gpus = _named(database, _DEVICES, ["id"])
        about.gpus = {device: name for device, name in gpus if isinstance(device, int)}
        about.gpu_figures = _figures(database)
        for kind, place, name in _named(database, _NAMES, ["objectKind", "objectId"]):
            if kind in (_PROCESS, _THREAD) and isinstance(place, bytes) and len(place) >= 8:
                pid, tid = (int.from_bytes(place[i : i + 4], "little") for i in (0, 4))
                if kind == _PROCESS:
                    about.processes[pid] = name
                else:
                    about.threads[pid, tid] = name
    except BadInputError as error:
        return about, [f"metadata cannot be read: {error}"]
    return about, []


def _figures(database: Database) -> dict[int, GpuFigures]:
    """Figures by device. The file has clocks in kHz and bandwidth in kB/s."""
    columns = (
        *("id", "numMultiprocessors", "coreClockRate", "globalMemoryBandwidth"),
        *("computeCapabilityMajor", "computeCapabilityMinor", "globalMemorySize"),
    )
    if not set(columns) <= set(database.tables.get(_DEVICES, ())):
        return {}
    rows = database.rows(f"SELECT {', '.join(columns)} FROM {_DEVICES} ORDER BY id")
    return {
        device: GpuFigures(
            sms=positive(sms),
            clock=_thousands(clock),
            bandwidth=_thousands(bandwidth),
            capability=f"{major}.{minor}" if positive(major) else None,
            memory=positive(memory),
        )
        for device, sms, clock, bandwidth, major, minor, memory in rows
        if isinstance(device, int)
    }


def _thousands(value: Any) -> int | None:
    number = positive(value)
    return None if number is None else number * 1000


def _named(database: Database, table: str, columns: list[str]) -> list[tuple[Any, ...]]:
    """Columns of a table and the text of its `name`; no rows if a column is missing."""
    if not {*columns, "name"} <= set(database.tables.get(table, ())):
        return []
    rows = database.rows(
        f"SELECT {', '.join(columns)}, CAST(value AS BLOB) FROM {table} "
        f"JOIN {schema.STRINGS} ON {schema.STRINGS}._id_ = name ORDER BY {columns[0]}"
    )
    return [(*values, text(name) or "") for *values, name in rows]
