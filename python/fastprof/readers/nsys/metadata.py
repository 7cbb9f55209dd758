"""Metadata of an Nsight Systems export: versions, GPUs, names of processes and threads.

Only small tables are read. Exports up to 2021 record no version.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from fastprof._system.regex import regex
from fastprof.errors import BadInputError
from fastprof.model.metadata import (
    UNRECORDED,
    About,
    GpuFigures,
    Unrecorded,
    median_unrecorded,
    positive,
    unrecorded_of,
)
from fastprof.readers.nsys import schema
from fastprof.readers.nsys.schema import table_rows
from fastprof.readers.sqlite.database import Database
from fastprof.readers.trace_columns import text

# Names of the same table in different versions.
_EXPORT_TABLES = ("META_DATA_EXPORT", "EXPORT_META_DATA")
_CAPTURE_TABLE = "META_DATA_CAPTURE"
# Other settings belong to other tools or contain environment variables, which are private.
_SETTINGS = "name = 'CAPTURE_EVENT_TYPE' OR name LIKE 'CUDA_%'"


def read(database: Database, threads: Collection[tuple[int, int]]) -> tuple[About, list[str]]:
    """The metadata, and warnings.

    threads : process and thread ids of the threads to name
    """
    about = About("nsys", tool="NVIDIA Nsight Systems")
    try:
        _read_versions(database, about)
        about.gpus = _read_gpus(database)
        about.gpu_figures = _read_figures(database, about.gpus)
        about.unrecorded = _read_unrecorded(database)
        about.diagnostics = _read_diagnostics(database, {pid for pid, _ in threads})
        about.processes, about.threads = _read_names(database, set(threads))
    except BadInputError as error:
        return about, [f"metadata cannot be read: {error}"]
    return about, []


def _read_versions(database: Database, about: About) -> None:
    for table in _EXPORT_TABLES:
        values = {
            text(name): text(value) for name, value in table_rows(database, table, "name value")
        }
        about.tool = values.get("EXPORT_PRODUCT_NAME") or about.tool
        about.tool_version = values.get("EXPORT_PRODUCT_VERSION") or about.tool_version
        about.schema_version = values.get("EXPORT_SCHEMA_VERSION") or about.schema_version
    for name, value in table_rows(database, _CAPTURE_TABLE, "name value", _SETTINGS):
        key = text(name) or ""
        if key == "CAPTURE_EVENT_TYPE":
            about.settings.setdefault(key, []).append(text(value))
        else:
            about.settings[key] = text(value)


def _read_unrecorded(database: Database) -> Unrecorded | None:
    """What `fastprof.capture` has marked; a damaged mark counts as none."""
    is_ours = f"value >= '{UNRECORDED} ' AND value < '{UNRECORDED}!'"
    facts = []
    for (value,) in table_rows(database, "StringIds", "value", is_ours):
        with suppress(ValueError):  # another text with this beginning
            facts.append(json.loads((text(value) or "")[len(UNRECORDED) :]))
    return median_unrecorded(map(unrecorded_of, facts))


_WARNING = 2  # ENUM_DIAGNOSTIC_SEVERITY_LEVEL; 3 is an error
_LACKS_EVENTS = regex(r"(?i)not all (?:cuda|nvtx) events|\b(?:drop|los[te]|overflow|discard)")
_MOST_DIAGNOSTICS = 8


def _read_diagnostics(database: Database, pids: Collection[int]) -> list[str]:
    """Warnings of nsys, each once, that events of these processes may be missing."""
    shift, low = schema.PROCESS_SHIFT, schema.LOW_24_BITS
    result: dict[str, None] = {}
    for severity, key, value in table_rows(database, "DIAGNOSTIC_EVENT", "severity globalPid text"):
        if severity not in (_WARNING, _WARNING + 1):
            continue
        pid = key >> shift & low if isinstance(key, int) else 0
        line = " ".join((text(value) or "").split())
        if (not pid or pid in pids) and _LACKS_EVENTS.search(line):
            result[line.removesuffix(".")] = None
    return list(result)[:_MOST_DIAGNOSTICS]


def _read_gpus(database: Database) -> dict[int, str]:
    """Names by device, for unambiguous devices only.

    Kernels use device numbers of their process (CUDA_VISIBLE_DEVICES), GPUs are numbered per
    machine. TARGET_INFO_CUDA_DEVICE maps both. Without it, names are used only if all GPUs have the
    same.
    """
    gpus = table_rows(database, "TARGET_INFO_GPU", "id name")
    name_of = {number: text(name) for number, name in gpus}
    result: dict[Any, set[str | None]] = {}
    for gpu, device in table_rows(database, "TARGET_INFO_CUDA_DEVICE", "gpuId cudaId"):
        result.setdefault(device, set()).add(name_of.get(gpu))
    if len(set(name_of.values())) == 1:
        in_cuda = [device for (device,) in table_rows(database, "TARGET_INFO_GPU", "cuDevice")]
        known = in_cuda and all(isinstance(device, int) for device in in_cuda)
        for device in in_cuda if known else name_of:
            result.setdefault(device, set()).update(name_of.values())
    return {
        device: name
        for device in sorted(device for device in result if isinstance(device, int))
        for name in result[device]
        if len(result[device]) == 1 and name
    }


def _read_figures(database: Database, gpus: dict[int, str]) -> dict[int, GpuFigures]:
    """Figures by device, by GPU name; none if GPUs of the same name differ."""
    columns = "name smCount clockRate memoryBandwidth computeMajor computeMinor totalMemory"
    result: dict[str, set[GpuFigures]] = {}
    for name, sms, clock, bandwidth, major, minor, memory in table_rows(
        database, "TARGET_INFO_GPU", columns
    ):
        figures = GpuFigures(
            sms=positive(sms),
            clock=positive(clock),
            bandwidth=positive(bandwidth),
            capability=f"{major}.{minor}" if positive(major) else None,
            memory=positive(memory),
        )
        result.setdefault(text(name) or "", set()).add(figures)
    return {
        device: figures
        for device, name in gpus.items()
        for figures in result.get(name, ())
        if len(result[name]) == 1
    }


def _read_names(
    database: Database, threads: set[tuple[int, int]]
) -> tuple[dict[int, str], dict[tuple[int, int], str]]:
    """Names of the given processes and threads."""
    pids = ", ".join(str(pid) for pid in sorted({pid for pid, _ in threads}))
    processes = {
        pid: text(name) or ""
        for pid, name in table_rows(database, "PROCESSES", "pid name", f"pid IN ({pids})")
    }
    shift, low = schema.PROCESS_SHIFT, schema.LOW_24_BITS
    if not {"nameId", "globalTid"} <= set(database.tables.get("ThreadNames", ())):
        return processes, {}
    rows = database.rows(
        f"SELECT globalTid, CAST(value AS BLOB) FROM ThreadNames JOIN {schema.STRINGS} "
        f"ON {schema.STRINGS}.id = nameId WHERE (globalTid >> {shift}) & {low} IN ({pids})"
    )
    names = {
        (number >> shift & low, number & low): text(name) or ""
        for number, name in rows
        if isinstance(number, int)
    }
    return processes, {thread: name for thread, name in names.items() if thread in threads}
