"""An Nsight Systems export, NVProf file or rocpd database -> Capture, by SQL and range texts."""

import ast
import re
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oracle import rocpd
from oracle.capture import Capture, Kernel, Range, Thread
from oracle.nesting import Instants, nest, tell_waiting
from oracle.nodes import is_node

ACTIVITY = "CUPTI_ACTIVITY_KIND_"
PUSH_POP = (59, 70)
START, END = 2, 4  # flags of NVProf's markers
# PyTorch's suffixes of a range name, last first.
SUFFIX = re.compile(
    r"(?P<name>.*?)(?:, seq = (?P<seq>\d+))?(?:, op_id = (?P<op_id>\d+))?"
    r"(?:, sizes = (?P<sizes>\[.*\]))?(?:, input_op_ids = \[.*\])?\Z",
    re.S,
)
AUTOGRAD_THREAD = re.compile(r"pt_autograd_\d+\Z")


def read(path: Path) -> Capture:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        if any(table.startswith("rocpd_region") for table in tables):
            return _rocpd(path)
        return (_nsys if "StringIds" in tables else _nvprof)(connection, tables)
    finally:
        connection.close()


def _nsys(connection: sqlite3.Connection, tables: set[str]) -> Capture:
    strings = dict(connection.execute("SELECT id, value FROM StringIds"))
    ranges = []
    if "NVTX_EVENTS" in tables:
        rows = connection.execute(
            "SELECT start, end, text, textId, globalTid FROM NVTX_EVENTS "
            f"WHERE eventType IN {PUSH_POP} ORDER BY start"
        )
        ranges = [
            _range(strings[text_id] if text is None else text, start, end, _thread(tid))
            for start, end, text, text_id, tid in rows
            if text is not None or text_id is not None
        ]
    named = connection.execute("SELECT nameId, globalTid FROM ThreadNames").fetchall() if (
        "ThreadNames" in tables
    ) else []  # fmt: skip
    engine = {_thread(tid) for name, tid in named if AUTOGRAD_THREAD.match(strings.get(name) or "")}
    calls = _select(
        connection, tables, ["RUNTIME"], "globalTid / 0x1000000, correlationId, start, globalTid"
    )
    launches = {(process, number): (start, _thread(tid)) for process, number, start, tid in calls}
    rows = _select(
        connection, tables, ["KERNEL"],
        "start, end, demangledName, deviceId, globalPid / 0x1000000, correlationId",
    )  # fmt: skip
    kernels = [
        (start, end, strings[name], device, number, launches.get((process, number)))
        for start, end, name, device, process, number in rows
    ]
    return _capture(ranges, kernels, engine)


def _nvprof(connection: sqlite3.Connection, tables: set[str]) -> Capture:
    strings = dict(connection.execute("SELECT _id_, value FROM StringTable"))
    begun: dict[int, tuple[int, str, Thread]] = {}
    ranges = []
    for flags, number, start, name, owner in _select(
        connection, tables, ["MARKER"], "flags, id, timestamp, name, objectId"
    ):
        if flags & START:
            begun[number] = start, strings[name], struct.unpack_from("<iq", owner)
        elif flags & END and number in begun:
            first, text, thread = begun.pop(number)
            ranges.append(_range(text, first, start, (thread[0], thread[1] & 0xFFFFFFFF)))
    launches = {}
    for number, start, process, thread in _select(
        connection, tables, ["DRIVER", "RUNTIME"], "correlationId, start, processId, threadId"
    ):
        launches[number] = start, (process, thread & 0xFFFFFFFF)
    rows = _select(
        connection, tables, ["CONCURRENT_KERNEL", "KERNEL"],
        "start, end, name, deviceId, correlationId",
    )  # fmt: skip
    kernels = [
        (start, end, strings[name], device, number, launches.get(number))
        for start, end, name, device, number in rows
    ]
    return _capture(ranges, kernels, set())


def _rocpd(path: Path) -> Capture:
    contents = rocpd.read(path)
    ranges = [
        _range(each.name, each.start, each.end, (each.pid, each.tid))
        for each in sorted(contents.ranges, key=lambda each: each.start)
    ]
    kernels = [
        (
            *(kernel.start, kernel.end, kernel.name, kernel.device, kernel.stack),
            kernel.launch and (kernel.launch[0], (kernel.pid, kernel.launch[2])),
        )
        for kernel in contents.kernels
    ]
    return _capture(ranges, kernels, set())


def _select(
    connection: sqlite3.Connection, tables: set[str], kinds: list[str], what: str
) -> Iterator[tuple[Any, ...]]:
    for kind in kinds:
        if ACTIVITY + kind in tables:
            yield from connection.execute(f"SELECT {what} FROM {ACTIVITY}{kind}")


def _thread(global_tid: int) -> Thread:
    return global_tid // 0x1000000 % 0x1000000, global_tid % 0x1000000


def _concrete(value: Any) -> str:
    return str(list(value) if isinstance(value, tuple) else value)


def _range(text: str, start: int, end: int | None, thread: Thread) -> Range:
    end = 1 << 62 if end is None else end
    if text.startswith("{'"):
        each = Range(text, start, end, thread, "marker")
        if text.startswith("{'mod': ") and "'op': " in text:
            marker = ast.literal_eval(text)
            each.name = "aten::" + marker["op"]
            each.dims = [
                list(arg["shape"]) if arg["type"] == "tensor" else [] for arg in marker["args"]
            ]
            each.concrete = [_concrete(arg.get("value", "")) for arg in marker["args"]]
        return each
    match = SUFFIX.match(text)
    if match is None or match["seq"] is match["op_id"] is None:
        return Range(text, start, end, thread, "user")
    return Range(
        match["name"],
        start,
        end,
        thread,
        "op",
        seq=None if match["seq"] is None else int(match["seq"]),
        dims=ast.literal_eval(match["sizes"]) if match["sizes"] else None,
    )


def _capture(ranges: list[Range], kernels: list[Any], engine: set[Thread]) -> Capture:
    nest(ranges)
    at = Instants(ranges)
    nodes = {range_.thread for range_ in ranges if is_node(range_.name) and not range_.parent}
    engine = engine | nodes
    made = []
    for start, end, name, device, number, launch in kernels:
        result = None
        if launch is not None:
            launched, thread = launch
            result = at.innermost(thread, launched) or (
                _waiting(at, thread, launched) if thread in engine else None
            )
        made.append(
            Kernel(
                start=start,
                duration=end - start,
                name=name,
                device=device,
                correlation=number,
                thread=launch and launch[1],
                launched=launch and launch[0],
                range=result,
            )
        )
    tell_waiting(made, engine, at)
    return Capture(ranges, made, engine)


def _waiting(at: Instants, thread: Thread, instant: int) -> Range | None:
    """The innermost range that a thread of the process has open, which waits for the engine."""
    for other in at.threads():
        if other[0] == thread[0] and other != thread:
            result = at.innermost(other, instant)
            if result is not None:
                return result
    return None
