"""The GPU work of a real trace as its file records it, in plain Python over JSON and SQL."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from oracle.kineto import nanoseconds
from real.open_traces import events
from support.real_data import open_read_only, real

_GPU_EVENTS = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
COMPUTE, COMMUNICATION, COPY = "compute", "communication", "copy"
_NSYS = ("pageable", "pinned", "device", "array", "managed", "device static", "managed static")
_DIRECTIONS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
_ACTIVITIES = ("KERNEL", "CONCURRENT_KERNEL", "GRAPH_TRACE", "MEMCPY", "MEMCPY2", "MEMSET")
_TABLES = "SELECT name FROM sqlite_master"


class Work(NamedTuple):
    """A kernel, graph, copy or memset; times in ns.

    process, correlation : of the call that launched it
    direction, memory, n_bytes : of copies and memsets
    """

    device: int
    start: int
    end: int
    kind: str
    correlation: int
    stream: int = -1
    process: int = 0
    direction: str | None = None
    memory: str | None = None
    n_bytes: int | None = None


class Call(NamedTuple):
    """An API call; times in ns."""

    thread: Any
    start: int
    end: int


def work_of(path: str) -> list[Work]:
    """All GPU work of a trace, in order of start."""
    result = work_of_events(events(path)) if ".json" in path else _of_database(path)
    return sorted(result, key=lambda each: each.start)


def calls_of(path: str) -> dict[tuple[int, int], Call]:
    """The first API call, of the runtime before the driver, of each process and correlation id."""
    calls: dict[tuple[int, int], Call] = {}
    for key, call in _calls_of_events(path) if ".json" in path else _calls_of_database(path):
        calls.setdefault(key, call)
    return calls


# NCCL's kernels, and those of all-reduces over symmetric memory.
_COLLECTIVES = ("nccl", "multimem_all_reduce")


def _kind_of(name: str) -> str:
    return COMMUNICATION if any(part in name.lower() for part in _COLLECTIVES) else COMPUTE


def times(event: dict[str, Any]) -> tuple[int, int]:
    """Start and end of an event of torch.profiler."""
    start = nanoseconds(event["ts"])
    return start, start + nanoseconds(event["dur"])


def work_of_events(events: Iterable[dict[str, Any]]) -> Iterator[Work]:
    for event in events:
        category, args = str(event.get("cat")).lower(), event.get("args", {})
        if event.get("ph") != "X" or category not in _GPU_EVENTS:
            continue
        ids = (args.get("correlation", -1), args.get("stream", -1))
        if category == "kernel":
            yield Work(args.get("device", -1), *times(event), _kind_of(event["name"]), *ids)
        else:
            name = re.fullmatch(r"Mem(?:cpy (\w+)|set) \((.*)\)", event["name"])
            about = (name[1] or "memset", name[2].lower(), args.get("bytes"))
            yield Work(args.get("device", -1), *times(event), COPY, *ids, 0, *about)


def _calls_of_events(path: str) -> Iterator[tuple[tuple[int, int], Call]]:
    for word in ("runtime", "driver"):
        for event in events(path):
            is_call = event.get("ph") == "X" and word in str(event.get("cat")).lower()
            if is_call and "dur" in event and "correlation" in event["args"]:
                call = Call((event["pid"], event["tid"]), *times(event))
                yield (0, event["args"]["correlation"]), call


def _of_database(path: str) -> Iterator[Work]:
    with open_read_only(real(path)) as file:
        tables = {name for (name,) in file.execute(_TABLES)}
        is_nsys = "StringTable" not in tables
        texts = "StringIds" if is_nsys else "StringTable"
        names = dict(file.execute(f"SELECT * FROM {texts}")) if texts in tables else {}
        memories = _NSYS if is_nsys else ("", *_NSYS)
        process = "globalPid >> 24" if is_nsys else "0"
        for activity in _ACTIVITIES:
            table = f"CUPTI_ACTIVITY_KIND_{activity}"
            if table not in tables:
                continue
            about = {
                "KERNEL": "shortName" if is_nsys else "name",
                "CONCURRENT_KERNEL": "name",
                "GRAPH_TRACE": "0",
                "MEMSET": f"{'memKind' if is_nsys else 'memoryKind'}, bytes",
            }.get(activity, "copyKind, srcKind, dstKind, bytes")
            columns = f'deviceId, start, "end", correlationId, {process}, {about}'
            for device, start, end, correlation, pid, *rest in file.execute(
                f"SELECT {columns} FROM {table}"
            ):
                own = (correlation, -1, pid)
                if activity.startswith("MEMCPY"):
                    kind, source, target, size = rest
                    memory = f"{memories[source]} -> {memories[target]}"
                    yield Work(device, start, end, COPY, *own, _DIRECTIONS[kind], memory, size)
                elif activity == "MEMSET":
                    yield Work(device, start, end, COPY, *own, "memset", memories[rest[0]], rest[1])
                else:
                    yield Work(device, start, end, _kind_of(names.get(rest[0], "")), *own)


def _calls_of_database(path: str) -> Iterator[tuple[tuple[int, int], Call]]:
    with open_read_only(real(path)) as file:
        tables = {name for (name,) in file.execute(_TABLES)}
        process, thread = (
            ("globalTid >> 24", "globalTid") if "StringTable" not in tables else ("0", "threadId")
        )
        for kind in ("RUNTIME", "DRIVER"):
            table = f"CUPTI_ACTIVITY_KIND_{kind}"
            sql = f'SELECT {process}, correlationId, {thread}, start, "end" FROM {table}'
            for pid, number, *call in (
                file.execute(f"{sql} ORDER BY start") if table in tables else ()
            ):
                yield (pid, number), Call(*call)


def union(work: Iterable[tuple[int, int]]) -> int:
    """The length of the union of intervals, start and end of each."""
    length, until = 0, None
    for start, end in sorted(work):
        length += max(end - (start if until is None else max(start, until)), 0)
        until = end if until is None else max(until, end)
    return length


def covered(work: Iterable[Work], begin: int, end: int, *kinds: str) -> int:
    """The part of a window, in ns, in which work of some kinds runs; work in order of start."""
    total, until = 0, begin
    for each in work:
        if each.kind in kinds:
            total += max(min(each.end, end) - max(each.start, until), 0)
            until = max(until, min(each.end, end))
    return total
