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
    return _by_json(file.path, copies, file.format is FileFormat.GZIP_JSON)


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
    return totals


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


def _by_json(path: str | os.PathLike[str], copies: bool, compressed: bool) -> Totals | None:
    totals = Totals()
    try:
        content = Path(path).read_bytes()
        text = gzip.decompress(content) if compressed else content
        trace = json.loads(
            text, strict=False, parse_float=Decimal, object_pairs_hook=_with_all_events
        )
    except (ValueError, EOFError, OSError, RecursionError):
        return None
    for event in trace["traceEvents"] if isinstance(trace, dict) else trace:
        kind = _CATEGORIES.get(str(event.get("cat")).lower())
        if event.get("ph") == "X" and kind and (copies or kind not in _COPIES):
            totals.add(kind, 1, max(0, _nanoseconds(event.get("dur"))))
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
