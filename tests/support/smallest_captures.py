"""The smallest captures there are, in all formats: nothing, one kernel of no length, no names.

Each maker writes a file into a folder; `CAPTURES` has them by name.
"""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.exports import Export
from support.kineto_files import TID, KinetoFile
from support.memory_snapshots import Snapshot
from support.nvprof_files import NvprofFile
from support.sqlite_files import execute

Maker = Callable[[Path], Path]


def _launched(file: Any, start: int, end: int, corr: int = 1, **others: Any) -> Any:
    return file.launch(0, 2, corr, TID).kernel(start, end, corr, **others)


def _lanes(file: Any) -> Any:
    """Two GPUs: one works, the other's only kernel has no length."""
    _launched(file, 10, 15, 1, name="k", device=0)
    return _launched(file, 11, 11, 2, name="k", device=1)


# What all formats can say: launches and kernels.
_COMMON: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda file: file,
    "a kernel": lambda file: _launched(file, 10, 20),
    "a kernel of no length": lambda file: _launched(file, 10, 10),
    "a kernel at 0 of no length": lambda file: file.kernel(0, 0, 1),
    "a kernel without launch": lambda file: file.kernel(10, 20, 1),
    "a kernel without name": lambda file: _launched(file, 10, 20, name=""),
    "two kernels at once of no length": lambda file: file.kernel(5, 5, 1).kernel(5, 5, 2),
    "a GPU without length": _lanes,
    "only calls": lambda file: file.launch(0, 2, 1, TID).launch(5, 5, 2, TID),
    "a call of no length at 0": lambda file: file.launch(0, 0, 1, TID),
}
# And what ranges, copies and annotations are called in each.
_TABLES: dict[str, Callable[[Any], Any]] = {
    "only copies": lambda file: file.launch(0, 2, 1, TID).copy(5, 9, 1, 1, 100),
    "a copy of no bytes and length": lambda file: file.copy(5, 5, 1, 1, 0),
    "only ranges": lambda file: file.push_pop(0, 100, "step", TID).push_pop(5, 90, "a", TID),
    "a range of no length": lambda file: file.push_pop(5, 5, "a", TID),
    "a range without name": lambda file: _launched(file.push_pop(0, 30, "", TID), 10, 20),
    "an open range": lambda file: _launched(file.push_pop(0, None, "a", TID), 10, 20),
    "a step after the work": lambda file: _launched(file, 10, 20).push_pop(50, 60, "step", TID),
}
_NSYS: dict[str, Callable[[Export], Export]] = {
    "only memsets": lambda file: file.memset(5, 9, 1, 100),
    "only a graph": lambda file: file.graph_trace(5, 9, 1),
    "only marks": lambda file: file.mark(5, "here", TID),
    "a mark without name": lambda file: file.mark(5, None, TID),
    "only a GPU": lambda file: file.gpu(),
    "a GPU without work": lambda file: _launched(file.gpu().gpu(device=1), 10, 20),
    "only graph nodes": lambda file: file.graph_node_event(0, 5, TID, 3),
}
_KINETO: dict[str, Callable[[KinetoFile], KinetoFile]] = {
    "only copies": lambda file: file.copy(5, 9, 1, "Memcpy HtoD (Pageable -> Device)", 100),
    "only memsets": lambda file: file.copy(5, 5, 1, "Memset (Device)", 0),
    "only operators": lambda file: file.op(0, 9, "aten::mm", dims=[[2, 3], [3, 4]], types=["f"]),
    "an operator without name": lambda file: _launched(file.op(0, 9, ""), 10, 20),
    "an operator of no length": lambda file: file.op(0, 0, "aten::mm"),
    "only annotations": lambda file: file.annotation(0, 9, "a").annotation(20, 29, "a"),
    "only empty steps": lambda file: _steps(file, 4, 40),
    "steps of no length": lambda file: _steps(file, 3, 0),
    "only functions": lambda file: file.python(0, 9, "train.py(3): main"),
    "only memory": lambda file: file.memory(0, 512).memory(5, -512),
    "only names": lambda file: file.named("process_name", "python").named("thread_name", ""),
    "only an arrow": lambda file: file.arrow(1, (0, TID), (5, TID)),
    "a collective": lambda file: _launched(file, 10, 10, name="ncclDevKernel_AllReduce"),
    "no arguments": lambda file: file.event("X", "kernel", "k", 5, pid=0, tid=7, dur=1),
    "no threads": lambda file: file.event("X", "kernel", "k", 5, dur=1, args={}),
    "no device": lambda file: file.event(
        "X", "kernel", "k", 5, pid=0, tid=7, dur=1, args={"device": None, "correlation": None}
    ),
    "nulls": lambda file: _nulls(file),
}
_NONE = (None, *("", 0, [], {}))


def _steps(file: KinetoFile, n: int, length: int) -> KinetoFile:
    for i in range(n):
        file.annotation(50 * i, 50 * i + length, f"ProfilerStep#{i}")
    return file


def _nulls(file: KinetoFile) -> KinetoFile:
    """Each optional argument of each event is null."""
    _launched(file.op(0, 9, "aten::mm", dims=[[2, 3]], types=["float"]), 10, 20)
    for event in file.events:
        kept = ("correlation",)
        event["args"] = {key: v if key in kept else None for key, v in event["args"].items()}
    return file


def _nsys(build: Callable[[Export], Export], **options: Any) -> Maker:
    return lambda folder: build(Export()).write(folder / "small.sqlite", **options)


def _nvprof(build: Callable[[NvprofFile], NvprofFile], **options: Any) -> Maker:
    return lambda folder: build(NvprofFile()).write(folder / "small.sql", **options)


def _kineto(build: Callable[[KinetoFile], KinetoFile]) -> Maker:
    def make(folder: Path) -> Path:
        file = KinetoFile()
        build(file)
        return file.write(folder / "small.json")

    return make


def _list(build: Callable[[KinetoFile], KinetoFile]) -> Maker:
    """The events alone, without the object around them."""

    def make(folder: Path) -> Path:
        file = KinetoFile()
        build(file)
        path = folder / "list.json"
        path.write_text(json.dumps(file.events))
        return path

    return make


def _changed(make: Maker, *statements: str) -> Maker:
    """A database after some SQL."""

    def changed(folder: Path) -> Path:
        path = make(folder)
        return execute(path, *statements)

    return changed


def _full(file: Export) -> Export:
    """A row in each table."""
    file.gpu().push_pop(0, 40, "step", TID).push_pop(1, 30, "layer:a", TID)
    file.launch(2, 5, 1, TID).kernel(10, 20, 1, name="k")
    file.launch(21, 22, 2, TID).copy(25, 26, 2, 1, 100).memset(27, 28, 3, 100)
    return file


def _full_nvprof(file: NvprofFile) -> NvprofFile:
    file.push_pop(0, 40, "step", TID).push_pop(1, 30, "layer:a", TID)
    file.launch(2, 5, 1, TID).kernel(10, 20, 1, name="k")
    return file.launch(21, 22, 2, TID).copy(25, 26, 2, 1, 100).set(27, 28, 3, 100)


def _changes(make: Maker, folder: Path) -> dict[str, Maker]:
    """A database without each of its tables, with each of them empty, each optional value NULL."""
    connection = sqlite3.connect(make(folder))
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
    tables = [name for name in tables if not name.startswith("sqlite_")]
    changes = {}
    for table in tables:
        changes[f"no {table}"] = _changed(make, f"DROP TABLE {table}")
        changes[f"empty {table}"] = _changed(make, f"DELETE FROM {table}")
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        empty = [name for _, name, _, needed, _, key in columns if not needed and not key]
        if empty:
            values = ", ".join(f"{name} = NULL" for name in empty)
            changes[f"NULL in {table}"] = _changed(make, f"UPDATE {table} SET {values}")
    connection.close()
    return changes


def _text(name: str, content: bytes) -> Maker:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content)
        return path

    return make


def captures(folder: Path) -> dict[str, Maker]:
    """The maker of each capture by its name; `folder` is for their models."""
    made: dict[str, Maker] = {}
    for name, build in {**_COMMON, **_TABLES, **_NSYS}.items():
        made[f"nsys: {name}"] = _nsys(build)
    for name, build in {**_COMMON, **_TABLES}.items():
        made[f"nvprof: {name}"] = _nvprof(build)
    for name, build in {**_COMMON, **_KINETO}.items():
        made[f"kineto: {name}"] = _kineto(build)
        made[f"list: {name}"] = _list(build)
    for kind, maker in (("nsys", _nsys(_full)), ("nvprof", _nvprof(_full_nvprof))):
        (folder / kind).mkdir()
        made |= {f"{kind}: {k}": v for k, v in _changes(maker, folder / kind).items()}
    line = {"kShortName": "k", "kDuration": 0}
    made["dict: nothing"] = _text("small.dict", b"")
    made["dict: a kernel of no length"] = _text("small.dict", f"{line!r}\n".encode())
    for i, value in enumerate(_NONE):
        made[f"dict: {value!r}"] = _text(f"{i}.dict", f"{ ({**line, 'op': value})!r}\n".encode())
    made["snapshot: nothing"] = lambda path: Snapshot().write(path / "small.pickle")
    made["json: {}"] = _text("small.json", b"{}")
    made["json: []"] = _text("small.json", b"[]")
    made["json: no events"] = _text("small.json", b'{"traceEvents": null}')
    return made
