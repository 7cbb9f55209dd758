"""A reimplementation of PyProf's method: SQL for every kernel, each text parsed every time.

Ranges and API calls go to temporary tables with an index. For each kernel, in order of start, one
query finds its API call, one statement deletes the ranges of that thread that ended before, and one
query finds the ranges around the call; each text is evaluated as a literal or split, and the line
is printed. Only the numbers seen are kept between kernels. Input that PyProf fails on (registered
texts, suffixes of PyTorch 2) is handled.
"""

from __future__ import annotations

import ast
import re
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any, TextIO

TABLES = """
    CREATE TEMPORARY TABLE call AS
        SELECT correlationId AS id, globalTid / 16777216 AS process, globalTid AS thread, start, end
        FROM CUPTI_ACTIVITY_KIND_RUNTIME;
    CREATE INDEX temp.call_index ON call (id, process);
    CREATE TEMPORARY TABLE marker AS
        SELECT globalTid AS thread, start, coalesce(end, 9223372036854775807) AS end,
               coalesce(text, value) AS name
        FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId WHERE eventType IN (59, 60);
    CREATE INDEX temp.marker_start ON marker (thread, start);
    CREATE INDEX temp.marker_end ON marker (thread, end);
"""
KERNELS = """
    SELECT kernel.start, end, deviceId, streamId, correlationId, globalPid / 16777216, value,
           gridX, gridY, gridZ, blockX, blockY, blockZ
    FROM CUPTI_ACTIVITY_KIND_KERNEL AS kernel LEFT JOIN StringIds ON id = demangledName
    ORDER BY kernel.start
"""
CALL = "SELECT thread, start, end FROM call WHERE id = ? AND process = ?"
FORGET = "DELETE FROM marker WHERE thread = ? AND end < ?"
AROUND = "SELECT name FROM marker WHERE thread = ? AND start <= ? AND end >= ? ORDER BY start"
SEQ = re.compile(r", seq = (\d+)")


def naive(export: Path, output: Path) -> int:
    """Write a dict line for each kernel; return their number."""
    connection = sqlite3.connect(f"{export.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.executescript(TABLES)
    seen: defaultdict[tuple[Any, ...], int] = defaultdict(int)
    count = 0
    with output.open("w", encoding="utf-8") as file:
        for row in connection.execute(KERNELS).fetchall():
            write_kernel(connection, row, seen, file)
            count += 1
    connection.close()
    return count


def write_kernel(
    connection: sqlite3.Connection,
    row: tuple[Any, ...],
    seen: defaultdict[tuple[Any, ...], int],
    file: TextIO,
) -> None:
    start, end, device, stream, correlation, process, name, *sizes = row
    call = connection.execute(CALL, (correlation, process)).fetchone()
    names: list[str] = []
    thread = None
    if call is not None:
        thread, call_start, call_end = call
        connection.execute(FORGET, (thread, call_start))
        around = connection.execute(AROUND, (thread, call_start, call_end))
        names = [name for (name,) in around.fetchall() if name]
    result = sort_out(names)
    seq = sorted(result["seq"])
    key = (tuple(seq[:1]), tuple(result["op"]))
    sub = seen[key]
    seen[key] += 1
    line = {
        "kShortName": re.split(r"[<(]", name.replace("void ", "").replace("at::", ""))[0],
        "kDuration": end - start,
        "layer": result["layer"],
        "trace": result["trace"],
        "reprMarkers": result["module"],
        "marker": result["marker"],
        "seqMarker": result["torch"],
        "seqId": seq[:1],
        "subSeqId": sub,
        "altSeqId": seq[1:],
        "dir": "bprop" if any("Backward" in name for name in names) else "fprop",
        "mod": result["mod"],
        "op": result["op"],
        "tid": thread and thread % 0x1000000,
        "device": device,
        "stream": stream,
        "grid": tuple(sizes[:3]),
        "block": tuple(sizes[3:]),
        "kLongName": name,
    }
    print(line, file=file)


def sort_out(names: list[str]) -> dict[str, list[Any]]:
    """The contents of the ranges around a call, by kind of range."""
    result: dict[str, list[Any]] = {
        key: [] for key in ("layer", "trace", "module", "marker", "torch", "seq", "mod", "op")
    }
    for name in names:
        if name.startswith("layer:"):
            result["layer"].append(name.removeprefix("layer:"))
        elif name.startswith("{"):
            fields = ast.literal_eval(name)
            if "traceMarker" in fields:
                result["trace"] = fields["traceMarker"]
            elif "strRepr" in fields:
                result["module"].append(name)
            else:
                result["marker"].append(name)
                result["mod"].append(fields["mod"])
                result["op"].append(fields["op"])
        else:
            match = SEQ.search(name)
            if match:
                result["torch"].append(name)
                result["seq"].append(int(match[1]))
    if not result["op"]:
        result["op"] = [name.split(",")[0].removeprefix("aten::") for name in result["torch"]]
        result["mod"] = ["na" for _ in result["op"]]
    return result
