"""An independent count of the GPU work in a file, by SQL, json or a pattern, for `--check`.

It does not use the parsers of the readers, and so reveals their mistakes.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from fastprof.profile.checks import Totals
from fastprof.readers import dict_lines
from fastprof.readers.detect import FileFormat, detect_trace
from fastprof.readers.sqlite.database import Database
from fastprof.readers.sqlite.pages import escaped

_ACTIVITY = "CUPTI_ACTIVITY_KIND_"

_TABLES = {
    "KERNEL": "kernel",
    "CONCURRENT_KERNEL": "kernel",
    "GRAPH_TRACE": "graph",
    "MEMCPY": "memcpy",
    "MEMSET": "memset",
}

_NVPROF_TABLES = {"MEMCPY2": "memcpy"}  # has another meaning in exports of nsys

# The names of rocpd's tables continue with the id of the run.
_ROCPD = {"rocpd_kernel_dispatch": "kernel", "rocpd_memory_copy": "memcpy"}

_CATEGORIES = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
}

_COPIES = ("memcpy", "memset")

_RECORDS = {"kernel_dispatch": "kernel", "memory_copy": "memcpy"}  # of rocprofv3

# Of rocmProfileData: parts of the names of types of GPU work, "" for the rest.
_TYPES: dict[str, str | None] = {
    "barrier": None,
    "marker": None,
    "copy": "memcpy",
    "fill": "memset",
    "": "kernel",
}
_OF_RPD = "rocpd_op"
_ROWS_OF_TYPE = """
SELECT CAST(lower(string) AS BLOB), op."start" "start", op."end" "end"
FROM rocpd_op op LEFT JOIN rocpd_string ON rocpd_string.id = opType_id
"""

# High and low halves are summed separately: the sum may exceed 64 bits.
_SUMS = """
SELECT count(*), sum(ns >> 32), sum(ns & 4294967295) FROM (
  SELECT CASE WHEN typeof(late - early) = 'integer' AND late > early THEN late - early ELSE 0 END ns
  FROM (SELECT coalesce(CAST("start" AS INTEGER), -1) early,
               coalesce(CAST("end" AS INTEGER), -1) late FROM "{table}" NOT INDEXED))
"""

_DURATION = re.compile(rb"[\"']kDuration[\"']\s*:\s*([0-9]+)")


def recount(path: str | os.PathLike[str], copies: bool) -> Totals | None:
    """Count the GPU work in a file; None if the file is damaged and has no definite count.

    copies : include memory copies and memsets

    Raises
    ------
    BadInputError
        The file cannot be read.
    """
    file, _ = detect_trace(path).exported()
    if file.format is FileFormat.SQLITE:
        return _by_sql(file.path, copies)
    if file.format is FileFormat.DICT_LINES:
        return _by_pattern(file.path)
    count = _by_records if file.format is FileFormat.ROCPROF_JSON else _by_events
    trace = _parsed(file.path, file.is_compressed)
    return None if trace is None else count(trace, copies)


def _by_sql(path: str | os.PathLike[str], copies: bool) -> Totals:
    totals = Totals()
    with Database(path) as database:
        tables = _TABLES | (_NVPROF_TABLES if "StringTable" in database.tables else {})
        for table, kind in tables.items():
            if _ACTIVITY + table in database.tables and (copies or kind not in _COPIES):
                ((n, high, low),) = database.rows(_SUMS.format(table=_ACTIVITY + table))
                totals.add(kind, n, ((high or 0) << 32) + (low or 0))
        for table in database.tables:
            work = next((kind for base, kind in _ROCPD.items() if table.startswith(base)), None)
            if work and (copies or work not in _COPIES):
                ((n, high, low),) = database.rows(_SUMS.format(table=escaped(table)))
                totals.add(work, n, ((high or 0) << 32) + (low or 0))
        if _OF_RPD in database.tables:
            _add_typed(database, totals, copies)
    return totals


def _add_typed(database: Database, totals: Totals, copies: bool) -> None:
    """Add the work of a file of rocmProfileData, whose kind is the name of its type."""
    for name, start, end in database.rows(_ROWS_OF_TYPE):
        of_type = next(kind for part, kind in _TYPES.items() if part.encode() in (name or b""))
        if of_type and (copies or of_type not in _COPIES):
            is_known = isinstance(start, int) and isinstance(end, int)
            totals.add(of_type, 1, max(0, end - start) if is_known else 0)


def _by_pattern(path: str | os.PathLike[str]) -> Totals:
    totals = Totals()
    rows = time = 0
    with open(path, "rb") as lines:
        for line in lines:
            rows += bool(line.removeprefix(dict_lines.BYTE_ORDER_MARK).strip())
            duration = _DURATION.search(line)
            time += int(duration[1]) if duration else 0
    totals.add("kernel", rows, time)
    return totals


def _parsed(path: str | os.PathLike[str], compressed: bool) -> Any:
    """The contents of a JSON file, None if it is damaged."""
    try:
        content = Path(path).read_bytes()
        text = gzip.decompress(content) if compressed else content
        return json.loads(
            text, strict=False, parse_float=Decimal, object_pairs_hook=_with_all_events
        )
    except (ValueError, EOFError, OSError, RecursionError):
        return None


def _by_events(trace: Any, copies: bool) -> Totals:
    """Of torch.profiler."""
    totals = Totals()
    for event in trace["traceEvents"] if isinstance(trace, dict) else trace:
        kind = _CATEGORIES.get(str(event.get("cat")).lower())
        if event.get("ph") == "X" and kind and (copies or kind not in _COPIES):
            totals.add(kind, 1, max(0, _nanoseconds(event.get("dur"))))
    return totals


def _by_records(trace: Any, copies: bool) -> Totals | None:
    """Of rocprofv3."""
    totals = Totals()
    processes = trace["rocprofiler-sdk-tool"]
    try:
        for process in processes if isinstance(processes, list) else [processes]:
            for table, kind in _RECORDS.items():
                records = process["buffer_records"].get(table, [])
                if kind == "kernel" and not records:
                    counted = process.get("callback_records", {}).get("counter_collection", [])
                    records = [record["dispatch_data"] for record in counted]
                for record in records if copies or kind not in _COPIES else []:
                    time = int(record["end_timestamp"]) - int(record["start_timestamp"])
                    totals.add(kind, 1, max(0, time))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return totals


def _with_all_events(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; several lists of events are one, as for the reader."""
    result = dict(members)
    if len(result) < len(members):
        lists = [each for name, each in members if name == "traceEvents" and isinstance(each, list)]
        if len(lists) > 1:
            result["traceEvents"] = [event for members in lists for event in members]
    return result


def _nanoseconds(microseconds: Any) -> int:
    try:
        number = Decimal(microseconds) * 1000
        return int(number.to_integral_value(ROUND_HALF_UP))
    except (TypeError, ValueError, InvalidOperation, OverflowError):
        return 0
