"""The rows of a real trace as its file records them, with names: GPU work, API calls, ranges."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from real.open_traces import events, kept
from real.raw_work import times
from support.real_data import open_read_only, real

_WORK = """
SELECT brief.value, whole.value, start, end, deviceId, streamId, correlationId,
       globalPid >> 24 & 0xffffff, 0, 0, gridX, registersPerThread
FROM CUPTI_ACTIVITY_KIND_KERNEL
JOIN StringIds brief ON brief.id = shortName JOIN StringIds whole ON whole.id = demangledName
"""
_COPIES = """
SELECT '{name}', '{name}', start, end, deviceId, streamId, correlationId,
       globalPid >> 24 & 0xffffff, bytes, {kind}, 0, 0 FROM CUPTI_ACTIVITY_KIND_{table}
"""
_CALLS = """
SELECT value, start, end, globalTid & 0xffffff, correlationId, globalTid >> 24 & 0xffffff
FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId ORDER BY start
"""
_RANGES = """
SELECT coalesce(text, value), start, end, globalTid & 0xffffff, 0, globalTid >> 24 & 0xffffff
FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId WHERE eventType = 59 ORDER BY start
"""
_DIRECTIONS = {"1": "HtoD", "2": "DtoH", "8": "DtoD"}


class Work(NamedTuple):
    """A kernel, copy or memset; times in ns."""

    name: str
    full: str
    start: int
    end: int
    device: int
    stream: int
    correlation: int
    process: int
    n_bytes: int
    direction: str
    grid: int
    registers: int

    @property
    def ns(self) -> int:
        """Its duration."""
        return self.end - self.start


class Event(NamedTuple):
    """An API call or a range; times in ns."""

    name: str
    start: int
    end: int
    thread: Any
    correlation: int
    process: int

    @property
    def ns(self) -> int:
        """Its duration."""
        return self.end - self.start


@kept
def work(path: str) -> list[Work]:
    """All GPU work, in order of start."""
    rows = map(Work._make, _work_of_json(path) if ".json" in path else _work_of_sqlite(path))
    return sorted(rows, key=lambda row: row.start)


def kernels(path: str) -> list[Work]:
    """The kernels, in order of start."""
    return [row for row in work(path) if not row.direction]


def _work_of_sqlite(path: str) -> Iterator[tuple[Any, ...]]:
    with open_read_only(real(path)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        yield from (
            (*row[:8], 0, "", *row[10:]) for row in database.execute(_WORK)
        )  # fmt: skip
        for table, name, kind in (("MEMCPY", "memcpy", "copyKind"), ("MEMSET", "memset", "'set'")):
            if f"CUPTI_ACTIVITY_KIND_{table}" in tables:
                query = _COPIES.format(table=table, name=name, kind=kind)
                for row in database.execute(query):
                    yield *row[:9], _DIRECTIONS.get(str(row[9]), str(row[9])), *row[10:]


_CATEGORIES = {"kernel": "", "gpu_memcpy": "copy", "memcpy": "copy", "gpu_memset": "set",
               "memset": "set"}  # fmt: skip


def _work_of_json(path: str) -> Iterator[tuple[Any, ...]]:
    for event in complete(path, *_CATEGORIES):
        args = event.get("args", {})
        direction = re.search(r"(\w)to(\w)", event["name"])
        of = _CATEGORIES[str(event["cat"]).lower()]
        yield (
            event["name"], event["name"], *times(event),
            args.get("device", -1), args.get("stream", -1), args.get("correlation", -1),
            event["pid"], args.get("bytes", args.get("Memory bytes", 0)),
            of and (direction[0] if direction else of), (args.get("grid") or [0])[0],
            args.get("registers per thread", 0),
        )  # fmt: skip


def complete(path: str, *categories: str) -> list[dict[str, Any]]:
    """The complete events of some categories of torch.profiler."""
    return [
        event
        for event in events(path)
        if event.get("ph") == "X" and str(event.get("cat")).lower() in categories
    ]


@kept
def calls(path: str) -> list[Event]:
    """The calls of the CUDA runtime, in order of start."""
    return _events(path, _CALLS, "cuda_runtime", "runtime")


@kept
def ranges(path: str) -> list[Event]:
    """The ranges that are pushed and popped, in order of start."""
    return _events(path, _RANGES, "user_annotation")


def _events(path: str, query: str, *categories: str) -> list[Event]:
    if ".json" not in path:
        with open_read_only(real(path)) as database:
            return [
                Event(re.sub(r"_v\d{4,}$", "", name or ""), *row)
                for name, *row in database.execute(query)
            ]
    result = [
        Event(
            event["name"], *times(event), event["tid"],
            event.get("args", {}).get("correlation", -1), event["pid"],
        )
        for event in complete(path, *categories)
    ]  # fmt: skip
    return sorted(result, key=lambda each: each.start)


def launched_in(path: str, range_: Event) -> list[Work]:
    """The work that the process launches within a range, also on the thread of autograd."""
    inside = {
        (call.process, call.correlation)
        for call in calls(path)
        if call.process == range_.process and range_.start <= call.start <= range_.end
    }
    return [row for row in work(path) if (row.process, row.correlation) in inside]


def union(rows: Iterable[Work]) -> list[tuple[int, int]]:
    """The intervals in which any of some rows, in order of start, runs."""
    result: list[tuple[int, int]] = []
    for row in rows:
        if result and row.start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], row.end))
        else:
            result.append((row.start, row.end))
    return result


def sums(rows: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, int]:
    """ns by a key, the most first."""
    result: dict[Any, int] = {}
    for row in rows:
        result[key(row)] = result.get(key(row), 0) + row.ns
    return dict(sorted(result.items(), key=lambda pair: -pair[1]))
