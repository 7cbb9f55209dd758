"""Files that are large in one dimension: a million nested ranges, a million threads, gzip bombs.

Each is made from a seed like a mutant; the mutant's number is the size.
"""

import gzip
import json
from collections.abc import Callable

import apsw

from fuzz.chance import Chance

_COUNT = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1) "
_KERNELS, _CALLS, _RANGES = _TABLES = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "NVTX_EVENTS",
)
_THREAD = (1 << 48) + (100 << 24) + 1
Columns = dict[str, str]


def _export(
    kernels: Columns, calls: Columns, ranges: Columns, *, one: tuple[str, ...] = ()
) -> Callable[[bytes, Chance], bytes]:
    """An export with n rows in each of three tables, modified copies of their first ones.

    The columns are expressions of i, the row, and ?1, n. Tables in `one` get one row.
    """

    def make(content: bytes, chance: Chance) -> bytes:
        connection = apsw.Connection(":memory:")
        connection.deserialize("main", content)
        connection.execute("PRAGMA journal_mode = MEMORY")
        for table, columns in zip(_TABLES, (kernels, calls, ranges), strict=True):
            connection.execute(f"CREATE TEMP TABLE kept_{table} AS SELECT * FROM {table} LIMIT 1")
            connection.execute(f"DELETE FROM {table}")
            told = connection.execute(f"PRAGMA table_info({table})").fetchall()
            names = [f'"{name}"' for _, name, *_ in told]
            values = [columns.get(name, f'"{name}"') for _, name, *_ in told]
            connection.execute(
                f"{_COUNT}INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} "
                f"FROM n, kept_{table}{' WHERE i = ?1 - 1' if table in one else ''}",
                (chance.number,),
            )
        return connection.serialize("main")

    return make


_nested = _export(
    {"start": "4 * ?1", "end": "4 * ?1 + 9", "correlationId": "7", "graphNodeId": "NULL"},
    {"start": "2 * ?1", "end": "2 * ?1 + 1", "correlationId": "7", "globalTid": f"{_THREAD}"},
    {"start": "i", "end": "4 * ?1 - i", "globalTid": f"{_THREAD}", "text": "'range ' || i % 1000"},
    one=(_KERNELS, _CALLS),
)
_threads = _export(
    {"start": "i * 10", "end": "i * 10 + 5", "correlationId": "i", "graphNodeId": "NULL"},
    {"start": "i * 5", "end": "i * 5 + 1", "correlationId": "i", "globalTid": f"{_THREAD} + i"},
    {"start": "i * 5", "end": "i * 5 + 3", "globalTid": f"{_THREAD} + i", "text": "'a'"},
)
_processes = _export(
    {"start": "i * 10", "end": "i * 10 + 5", "correlationId": "i * 1000003",
     "globalPid": "((1 << 24) + i) << 24"},
    {"start": "i * 5", "end": "i * 5 + 1", "correlationId": "i * 1000003",
     "globalTid": "(((1 << 24) + i) << 24) + 1"},
    {"start": "i * 5", "end": "i * 5 + 3", "globalTid": "(((1 << 24) + i) << 24) + 1"},
)  # fmt: skip
_crossing = _export(
    {"start": "4 * ?1", "end": "4 * ?1 + 9", "correlationId": "7"},
    {"start": "2 * ?1", "end": "2 * ?1 + 1", "correlationId": "7", "globalTid": f"{_THREAD}"},
    {"start": "2 * i", "end": "2 * i + ?1", "globalTid": f"{_THREAD}", "domainId": "i % 7"},
    one=(_KERNELS, _CALLS),
)
_names = _export(
    {"start": "i * 10", "end": "i * 10 + 5", "correlationId": "i", "graphNodeId": "NULL"},
    {"start": "i * 5", "end": "i * 5 + 1", "correlationId": "i", "globalTid": f"{_THREAD}"},
    {"start": "i * 5", "end": "i * 5 + 3", "globalTid": f"{_THREAD}", "text": "'layer:' || i"},
)


def _events(content: bytes, chance: Chance) -> bytes:
    """n times a thread, an operator, a call and a kernel."""
    wanted = ("cpu_op", "cuda_runtime", "kernel")
    events = {event.get("cat"): event for event in json.loads(content)["traceEvents"]}
    parts = []
    for i in range(chance.number):
        for at, cat in enumerate(wanted):
            event = dict(events[cat], ts=i * 10 + at, dur=9 - at)
            event["tid"] = i if cat != "kernel" else 7
            event["args"] = {"correlation": i} if cat != "cpu_op" else {"Sequence number": i}
            parts.append(json.dumps(event))
    return ("[" + ",".join(parts) + "]").encode()


def _inflated(filler: bytes) -> Callable[[bytes, Chance], bytes]:
    """Gzip of a text that ends with n MB of one character in a string."""

    def make(content: bytes, chance: Chance) -> bytes:
        text = json.dumps({**json.loads(content), "a": "b"}).encode()[:-2]
        member = gzip.compress(filler * ((1 << 20) // len(filler)), mtime=0)
        return gzip.compress(text, mtime=0) + member * chance.number + gzip.compress(b'"}', mtime=0)

    return make


def _long_line(content: bytes, chance: Chance) -> bytes:
    """Dict lines, one of them with n markers."""
    line = content.splitlines()[0]
    more = b"'layer': [" + b"'a', " * chance.number
    return content + line.replace(b"'layer': [", more) + b"\n"


# kind: (seed, size, function)
SHAPES: dict[str, tuple[str, int, Callable[[bytes, Chance], bytes]]] = {
    "nested": ("nsys-2024", 1_000_000, _nested),
    "threads": ("nsys-2024", 1_000_000, _threads),
    "processes": ("nsys-2024", 100_000, _processes),
    "crossing": ("nsys-2024", 20_000, _crossing),
    "names": ("nsys-2024", 300_000, _names),
    "event-threads": ("kineto", 100_000, _events),
    "blanks": ("kineto", 1000, _inflated(b" ")),
    "quotes": ("kineto", 600, _inflated(b"[")),
    "long-line": ("dict", 1_000_000, _long_line),
}
KINDS = {kind: make for kind, (_, _, make) in SHAPES.items()}
