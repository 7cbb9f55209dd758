"""The GPU work of a real trace as its file records it, in plain Python over JSON and SQL."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from real.open_traces import events
from support.real_data import open_read_only, real

_GPU_EVENTS = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
COMPUTE, COMMUNICATION, COPY = "compute", "communication", "copy"


class Work(NamedTuple):
    """A kernel, graph, copy or memset; times in ns."""

    device: int
    start: int
    end: int
    kind: str
    correlation: int
    stream: int = -1


def work_of(path: str) -> list[Work]:
    """All GPU work of a trace, in order of start."""
    found = work_of_events(events(path)) if ".json" in path else _of_database(path)
    return sorted(found, key=lambda each: each.start)


# NCCL's kernels, and those of all-reduces over symmetric memory.
_COLLECTIVES = ("nccl", "multimem_all_reduce")


def _kind_of(name: str) -> str:
    return COMMUNICATION if any(part in name.lower() for part in _COLLECTIVES) else COMPUTE


def work_of_events(events: Iterable[dict[str, Any]]) -> Iterator[Work]:
    for each in events:
        category = str(each.get("cat")).lower()
        if each.get("ph") == "X" and category in _GPU_EVENTS:
            start, duration = (int(each[key] * 1000) for key in ("ts", "dur"))
            kind = _kind_of(each["name"]) if category == "kernel" else COPY
            args = each["args"]
            device, correlation = args.get("device", -1), args.get("correlation", -1)
            stream = args.get("stream", -1)
            yield Work(device, start, start + duration, kind, correlation, stream)


def _of_database(path: str) -> Iterator[Work]:
    with open_read_only(real(path)) as file:
        tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
        texts = "StringTable" if "StringTable" in tables else "StringIds"
        names = dict(file.execute(f"SELECT * FROM {texts}")) if texts in tables else {}
        for activity in ("KERNEL", "CONCURRENT_KERNEL", "GRAPH_TRACE", "MEMCPY", "MEMSET"):
            table = f"CUPTI_ACTIVITY_KIND_{activity}"
            if table not in tables:
                continue
            name = {"KERNEL": "shortName"}.get(activity, "0")
            name = "name" if texts == "StringTable" and "KERNEL" in activity else name
            columns = f'deviceId, start, "end", {name}, correlationId'
            rows = file.execute(f"SELECT {columns} FROM {table}")
            for device, start, end, text, correlation in rows:
                kind = COPY if activity.startswith("MEM") else _kind_of(names.get(text, ""))
                yield Work(device, start, end, kind, correlation)


def covered(work: Iterable[Work], begin: int, end: int, *kinds: str) -> int:
    """The part of a window, in ns, in which work of some kinds runs; work in order of start."""
    total, until = 0, begin
    for each in work:
        if each.kind in kinds:
            total += max(min(each.end, end) - max(each.start, until), 0)
            until = max(until, min(each.end, end))
    return total
