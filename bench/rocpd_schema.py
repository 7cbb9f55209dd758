"""The tables of rocpd databases of three versions, as data, and how to create them.

Columns are those of rocpd_tables.sql of ROCm/rocm-systems, without foreign keys, which do not
change how rows are stored. 3.0.2 adds graphs; in 4.1.0, rocpd_track has the place of a row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

VERSIONS: Final = ("3.0.0", "3.0.2", "4.1.0")
WITH_GRAPHS: Final = "3.0.2"
WITH_TRACKS: Final = "4.1.0"

_ID = "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT"
_KEY = f"{_ID}, guid TEXT DEFAULT '{{guid}}' NOT NULL"
_JSON = "extdata JSONB DEFAULT '{}' NOT NULL"
_TIMES = "start BIGINT NOT NULL, end BIGINT NOT NULL"
_OWNER = "nid INTEGER NOT NULL, pid INTEGER NOT NULL"
_TRACK = "track_id INTEGER NOT NULL"
_GRAPH = "graph_exec_id INTEGER NOT NULL DEFAULT 0, graph_node_id INTEGER NOT NULL DEFAULT 0, "
_SIZES = ", ".join(
    f"{size}_size_{axis} INTEGER NOT NULL" for size in ("workgroup", "grid") for axis in "xyz"
)
_NAMED = f"{_KEY}, {_OWNER}, name TEXT, {_JSON}"
_PLACE = "tid INTEGER, agent_id INTEGER, queue_id INTEGER, stream_id INTEGER"

_SHARED: Final = {
    "metadata": f"{_ID}, tag TEXT NOT NULL, value TEXT NOT NULL",
    "string": f"{_KEY}, string TEXT NOT NULL UNIQUE ON CONFLICT ABORT",
    "info_node": f"{_KEY}, hash BIGINT NOT NULL UNIQUE, machine_id TEXT NOT NULL UNIQUE, "
    "system_name TEXT, hostname TEXT, release TEXT, version TEXT, hardware_name TEXT, "
    "domain_name TEXT",
    "info_process": f"{_KEY}, nid INTEGER NOT NULL, ppid INTEGER, pid INTEGER NOT NULL, "
    "init BIGINT, fini BIGINT, start BIGINT, end BIGINT, command TEXT, "
    f"environment JSONB DEFAULT '{{}}' NOT NULL, {_JSON}",
    "info_thread": f"{_KEY}, nid INTEGER NOT NULL, ppid INTEGER, pid INTEGER NOT NULL, "
    f"tid INTEGER NOT NULL, name TEXT, start BIGINT, end BIGINT, {_JSON}",
    "info_agent": f"{_KEY}, {_OWNER}, type TEXT, absolute_index INTEGER, logical_index INTEGER, "
    "type_index INTEGER, uuid INTEGER, name TEXT, model_name TEXT, vendor_name TEXT, "
    f"product_name TEXT, {_JSON}",
    "info_queue": _NAMED,
    "info_stream": _NAMED,
    "info_pmc": f"{_KEY}, {_OWNER}, agent_id INTEGER, target_arch TEXT, event_code INT, "
    "instance_id INTEGER, name TEXT NOT NULL, symbol TEXT NOT NULL, description TEXT, "
    "long_description TEXT DEFAULT '', component TEXT, units TEXT DEFAULT '', value_type TEXT, "
    f"block TEXT, expression TEXT, is_constant INTEGER, is_derived INTEGER, {_JSON}",
    "info_code_object": f"{_KEY}, {_OWNER}, agent_id INTEGER, uri TEXT, load_base BIGINT, "
    f"load_size BIGINT, load_delta BIGINT, storage_type TEXT, {_JSON}",
    "info_kernel_symbol": f"{_KEY}, {_OWNER}, code_object_id INTEGER NOT NULL, kernel_name TEXT, "
    "display_name TEXT, kernel_object INTEGER, kernarg_segment_size INTEGER, "
    "kernarg_segment_alignment INTEGER, group_segment_size INTEGER, private_segment_size INTEGER, "
    f"sgpr_count INTEGER, arch_vgpr_count INTEGER, accum_vgpr_count INTEGER, {_JSON}",
    "arg": f"{_KEY}, event_id INTEGER NOT NULL, position INTEGER NOT NULL, type TEXT NOT NULL, "
    f"name TEXT NOT NULL, value TEXT, {_JSON}",
    "pmc_event": f"{_KEY}, event_id INTEGER, pmc_id INTEGER NOT NULL, value REAL DEFAULT 0.0, "
    "extdata JSONB DEFAULT '{}'",
    "sample": f"{_KEY}, {_TRACK}, timestamp BIGINT NOT NULL, event_id INTEGER, {_JSON}",
}  # fmt: skip
_EVENT = (
    f"{_KEY}, category_id INTEGER, stack_id INTEGER, parent_stack_id INTEGER, "
    "correlation_id INTEGER, "
)


def _rows(graph: str) -> dict[str, str]:
    """Tables whose rows have their place themselves."""
    return {
        "track": f"{_KEY}, nid INTEGER NOT NULL, pid INTEGER, tid INTEGER, name_id INTEGER, "
        f"{_JSON}",
        "event": f"{_EVENT}call_stack JSONB DEFAULT '{{}}' NOT NULL, "
        f"line_info JSONB DEFAULT '{{}}' NOT NULL, {_JSON}",
        "region": f"{_KEY}, {_OWNER}, tid INTEGER NOT NULL, {_TIMES}, name_id INTEGER NOT NULL, "
        f"event_id INTEGER, {_JSON}",
        "kernel_dispatch": f"{_KEY}, {_OWNER}, tid INTEGER, agent_id INTEGER NOT NULL, "
        "kernel_id INTEGER NOT NULL, dispatch_id INTEGER NOT NULL, queue_id INTEGER NOT NULL, "
        f"stream_id INTEGER NOT NULL, {_TIMES}, private_segment_size INTEGER, "
        f"group_segment_size INTEGER, {_SIZES}, {graph}region_name_id INTEGER, "
        f"event_id INTEGER, {_JSON}",
        "memory_copy": f"{_KEY}, {_OWNER}, tid INTEGER, {_TIMES}, name_id INTEGER NOT NULL, "
        "dst_agent_id INTEGER, dst_address INTEGER, src_agent_id INTEGER, src_address INTEGER, "
        f"size INTEGER NOT NULL, queue_id INTEGER, stream_id INTEGER, {graph}"
        f"region_name_id INTEGER, event_id INTEGER, {_JSON}",
        "memory_allocate": f"{_KEY}, {_OWNER}, tid INTEGER, agent_id INTEGER, type TEXT, "
        f"level TEXT, {_TIMES}, address INTEGER, size INTEGER NOT NULL, queue_id INTEGER, "
        f"stream_id INTEGER, event_id INTEGER, {_JSON}",
    }


_OF_TRACKS: Final = {
    "track": f"{_KEY}, nid INTEGER NOT NULL, ppid INTEGER, pid INTEGER, {_PLACE}, "
    f"name_id INTEGER, {_JSON}",
    "info_category": f"{_KEY}, name TEXT NOT NULL, {_JSON}",
    "event": f"{_EVENT}{_JSON}",
    "region": f"{_KEY}, {_TRACK}, name_id INTEGER NOT NULL, {_TIMES}, event_id INTEGER, {_JSON}",
    "kernel_dispatch": f"{_KEY}, {_TRACK}, kernel_id INTEGER NOT NULL, "
    f"dispatch_id INTEGER NOT NULL, {_TIMES}, private_segment_size INTEGER, "
    f"group_segment_size INTEGER, {_SIZES}, region_name_id INTEGER, event_id INTEGER, {_JSON}",
    "memory_copy": f"{_KEY}, {_TRACK}, {_TIMES}, name_id INTEGER NOT NULL, "
    "dst_agent_id INTEGER, dst_address INTEGER, src_agent_id INTEGER, src_address INTEGER, "
    f"size INTEGER NOT NULL, region_name_id INTEGER, event_id INTEGER, {_JSON}",
    "memory_allocate": f"{_KEY}, {_TRACK}, type TEXT, level TEXT, {_TIMES}, "
    "name_id INTEGER NOT NULL, address INTEGER, size INTEGER NOT NULL, region_name_id INTEGER, "
    f"event_id INTEGER, {_JSON}",
}  # fmt: skip
_GRAPH_LAUNCH: Final = {
    "graph_launch": f"{_KEY}, {_OWNER}, tid INTEGER, agent_id INTEGER, queue_id INTEGER, "
    f"{_TIMES}, graph_exec_id INTEGER NOT NULL, kernel_dispatch_count INTEGER NOT NULL DEFAULT 0, "
    f"event_id INTEGER, {_JSON}",
}
TABLES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "3.0.0": {**_SHARED, **_rows("")},
        WITH_GRAPHS: {**_SHARED, **_rows(_GRAPH), **_GRAPH_LAUNCH},
        WITH_TRACKS: {**_SHARED, **_OF_TRACKS},
    }
)


def create(connection: sqlite3.Connection, version: str, suffix: str) -> None:
    """Create the tables of a run, and its metadata.

    suffix : of all tables, such as _0199c5e1
    """
    for name, columns in TABLES[version].items():
        columns = columns.replace("'{guid}'", f"'{suffix.removeprefix('_')}'")
        connection.execute(f'CREATE TABLE "rocpd_{name}{suffix}" ({columns})')
    connection.executemany(
        f'INSERT INTO "rocpd_metadata{suffix}" (tag, value) VALUES (?, ?)',
        [("schema_version", version), ("uuid", suffix), ("guid", suffix.removeprefix("_"))],
    )


def add_views(connection: sqlite3.Connection, version: str, suffix: str) -> None:
    """A view of each table of the last run without its suffix, as people query them."""
    for name in TABLES[version]:
        connection.execute(f'CREATE VIEW "rocpd_{name}" AS SELECT * FROM "rocpd_{name}{suffix}"')
