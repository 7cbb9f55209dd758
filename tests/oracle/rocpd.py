"""A rocpd database, by SQL that joins whole rows: all work, calls, ranges and launches."""

import json
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

API = re.compile(r"[A-Z_]+_API(_EXT)?\Z|rocm_(?!marker|rccl)\w+_api\Z")
RANGE = re.compile(r"MARKER_CORE(_RANGE)?_API|rocm_marker_api|RCCL_API|rocm_rccl_api")
NEITHER = re.compile(
    r"(rocm_)?(kernel_dispatch|memory_copy|memory_allocat|scratch_memory)|kfd_|\w*sampling", re.I
)
TRACK = ["pid", "tid", "agent_id", "queue_id", "stream_id"]


@dataclass(frozen=True)
class Work:
    """A kernel or copy. `grid` counts threads, `launch` is start, name, thread of a call."""

    start: int
    end: int
    name: str | None
    device: int
    stream: int
    pid: int
    stack: int
    size: int
    grid: tuple[int, ...]
    launch: tuple[int, str, int] | None


@dataclass(frozen=True)
class Region:
    """A call of an API, or a range: `name` is its message if it has one."""

    start: int
    end: int
    name: str
    pid: int
    tid: int
    stack: int
    is_range: bool


@dataclass(frozen=True)
class Contents:
    kernels: list[Work]
    copies: list[Work]
    calls: list[Region]
    ranges: list[Region]


def read(path: Path) -> Contents:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        tables = [
            row["name"]
            for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        suffixes = [
            table.removeprefix("rocpd_region")
            for table in tables
            if table.startswith("rocpd_region")
        ]
        result = Contents([], [], [], [])
        for suffix in suffixes:
            _run(_Run(connection, suffix, set(tables)), result)
        return result
    finally:
        connection.close()


class _Run:
    def __init__(self, connection: sqlite3.Connection, suffix: str, tables: set[str]) -> None:
        self.connection, self.suffix, self.tables = connection, suffix, tables
        self.strings = {row["id"]: row["string"] for row in self.rows("string")}
        categories = {row["id"]: row["name"] for row in self.rows("info_category")} or self.strings
        self.events = {row["id"]: dict(row) for row in self.rows("event")}
        for event in self.events.values():
            event["category"] = categories.get(event["category_id"])
        self.tracks = {row["id"]: dict(row) for row in self.rows("track")}
        self.processes = {row["id"]: row["pid"] for row in self.rows("info_process")}
        self.threads = {row["id"]: row["tid"] for row in self.rows("info_thread")}
        self.agents = {row["id"]: dict(row) for row in self.rows("info_agent")}
        self.kernels = {row["id"]: row["display_name"] for row in self.rows("info_kernel_symbol")}

    def rows(self, table: str) -> Iterator[sqlite3.Row]:
        name = f"rocpd_{table}{self.suffix}"
        if name in self.tables:
            yield from self.connection.execute(f'SELECT * FROM "{name}" ORDER BY id')

    def placed(self, table: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Each row with the columns of its track, and its event."""
        for row in self.rows(table):
            fields = dict(row)
            if "track_id" in fields:
                track = self.tracks.get(fields["track_id"], {})
                fields |= {name: track.get(name) for name in TRACK if name not in fields}
            yield fields, self.events.get(fields["event_id"], {})

    def device(self, *ids: Any) -> int:
        """The first of some agents that is a GPU; -1 for none."""
        gpus = [self.agents[i] for i in ids if i in self.agents and self.agents[i]["type"] == "GPU"]
        return gpus[0]["type_index"] if gpus else -1


def _run(run: _Run, found: Contents) -> None:
    kernels = list(run.placed("kernel_dispatch"))
    copies = list(run.placed("memory_copy"))
    work = {(row["start"], row["end"]) for row, _ in (*kernels, *copies)}
    launches: dict[Any, tuple[int, str, int]] = {}
    for row, event in run.placed("region"):
        category = event.get("category") or ""
        name = run.strings[row["name_id"]]
        message = json.loads(event.get("extdata") or "{}").get("message")
        tid = run.threads.get(row["tid"], row["tid"])
        pid = run.processes.get(row["pid"], row["pid"])
        is_range = RANGE.match(category) is not None
        is_call = not is_range and API.match(category) is not None
        if not is_range and not is_call:
            if NEITHER.match(category) or (row["start"], row["end"]) in work:
                continue
            is_range = True
        end = max(row["start"], row["end"])
        stack = event.get("stack_id") or -1
        text = message if is_range and message is not None else name
        region = Region(row["start"], end, text, pid, tid, stack, is_range)
        (found.ranges if is_range else found.calls).append(region)
        if is_call and stack > 0:
            launches.setdefault((pid, stack), (row["start"], name, tid))
    for row, event in kernels:
        name = run.kernels.get(row["kernel_id"])
        grid = tuple(row[f"grid_size_{axis}"] for axis in "xyz")
        found.kernels.append(_work(run, row, event, launches, name, [row["agent_id"]], 0, grid))
    for row, event in copies:
        name = run.strings[row["name_id"]]
        agents = [row["src_agent_id"], row["dst_agent_id"]]
        found.copies.append(_work(run, row, event, launches, name, agents, row["size"], ()))


def _work(
    run: _Run,
    row: dict[str, Any],
    event: dict[str, Any],
    launches: dict[Any, tuple[int, str, int]],
    name: str | None,
    agents: list[Any],
    size: int,
    grid: tuple[int, ...],
) -> Work:
    pid = run.processes.get(row["pid"], row["pid"])
    stack = event.get("stack_id") or -1
    device = run.device(*agents)
    stream = -1 if row["stream_id"] is None else row["stream_id"]
    launch = launches.get((pid, stack))
    return Work(
        row["start"], row["end"], name, device, stream, pid, stack, size, grid, launch
    )  # fmt: skip
