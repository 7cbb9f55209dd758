"""A path to the Trace in it: what kind of file it is, by its content.

Only a report that says nothing of itself is known by its name."""

from __future__ import annotations

import os
from pathlib import Path

from fastprof._system import memory
from fastprof.errors import BadInputError
from fastprof.model.trace import Trace
from fastprof.readers import memory_estimate
from fastprof.readers.kineto import reader as kineto
from fastprof.readers.kineto.event_columns import GZIP_MAGIC
from fastprof.readers.nsys import reader as nsys
from fastprof.readers.nsys import report as nsys_report
from fastprof.readers.nsys import schema as nsys_schema
from fastprof.readers.nvprof import reader as nvprof
from fastprof.readers.nvprof import schema as nvprof_schema
from fastprof.readers.sqlite.database import EXPORT_AGAIN, Database, Progress

SQLITE_MAGIC = b"SQLite format 3\0"
HEAD = 4096


def head_of(path: str | os.PathLike[str]) -> bytes:
    """The first bytes of a file.

    Raises
    ------
    BadInputError
        When there is no file to read, or nothing in it.
    """
    name = os.fsdecode(path)
    if Path(path).is_dir():
        raise BadInputError(f"{name}: is a directory; give the exported file in it")
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
    except FileNotFoundError as error:
        raise BadInputError(f"{name}: no such file; check the path") from error
    except OSError as error:
        raise BadInputError(f"{name}: cannot be read: {error.strerror}") from error
    if not head:
        raise BadInputError(f"{name}: is empty; {EXPORT_AGAIN}")
    return head


def read_trace(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    copies: bool = False,
    captures: bool = False,
) -> Trace:
    """Read the trace in a file; a report is exported by nsys first.

    copies : whether memory copies and memsets get rows as kernels do
    captures : whether the trace is said to be the capture of graphs, whose calls are wanted then

    Raises
    ------
    BadInputError
        When the file is missing, damaged, or not a trace that fastprof knows.
    """
    head = head_of(path)
    if nsys_report.is_report(head, os.fsdecode(path)):
        exported, said = nsys_report.export(path, head, progress)
        trace = _read_known(exported, head_of(exported), progress, copies, captures)
        trace.name = os.fsdecode(path)
        trace.warnings[:0] = said
        return trace
    return _read_known(path, head, progress, copies, captures)


def _read_known(
    path: str | os.PathLike[str],
    head: bytes,
    progress: Progress | None,
    copies: bool,
    captures: bool,
) -> Trace:
    if head.lstrip()[:1] in (b"{", b"[") or head.startswith(GZIP_MAGIC):
        memory.expect(os.fsdecode(path), memory_estimate.of_json(path, head.startswith(GZIP_MAGIC)))
        return kineto.read(path, copies, progress, captures)
    if not head.startswith(SQLITE_MAGIC):
        raise BadInputError(f"{os.fsdecode(path)}: {_found(head)}")
    with Database(path, progress) as database:
        for source in (nsys, nvprof):
            if source.recognises(database.tables):
                memory.expect(database.name, memory_estimate.of_database(database, copies))
                trace: Trace
                if captures and source is nsys:
                    trace = nsys.read(database, copies, captures)
                else:
                    trace = source.read(database, copies)
                trace.about.read_by = database.read_by
                return trace
        database.refuse_posing(nsys_schema.STRINGS, nvprof_schema.STRINGS)
        has = ", ".join(sorted(database.tables)[:6]) or "no tables at all"
        raise BadInputError(
            f"{database.name}: neither an Nsight Systems export (no table StringIds) nor an NVProf "
            f"file (no table StringTable); it has {has}. "
            "Record with: nsys profile -t cuda,nvtx, then nsys export --type sqlite"
        )


def _found(head: bytes) -> str:
    expected = "expected an Nsight Systems SQLite export"
    if not any(head[:100]):
        return f"{expected}, found zeros where the header should be: damaged; {EXPORT_AGAIN}"
    return f"{expected}, found something else (first bytes {head[:16]!r}); {EXPORT_AGAIN}"
