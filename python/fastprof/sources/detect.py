"""A path to the Trace in it: what kind of file it is, by its content and never by its name."""

from __future__ import annotations

import os
from pathlib import Path

from fastprof.errors import BadInputError
from fastprof.sources import nsys
from fastprof.sources.database import EXPORT_AGAIN, Database, Progress
from fastprof.trace import Trace

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


def read_trace(path: str | os.PathLike[str], progress: Progress | None = None) -> Trace:
    """Read the trace in a file.

    Raises
    ------
    BadInputError
        When the file is missing, damaged, or not a trace that fastprof knows.
    """
    head = head_of(path)
    if not head.startswith(SQLITE_MAGIC):
        raise BadInputError(f"{os.fsdecode(path)}: {_found(head)}")
    with Database(path, progress) as database:
        nsys.expect_export(database)
        return nsys.read(database)


def _found(head: bytes) -> str:
    expected = "expected an Nsight Systems SQLite export"
    if not any(head[:100]):
        return f"{expected}, found zeros where the header should be: damaged; {EXPORT_AGAIN}"
    if head.startswith((b"QDSTRM", b"MPI", b"qdrep")) or b"NSYS" in head[:64]:
        return f"{expected}, found a report; export it: nsys export --type sqlite REPORT.nsys-rep"
    if head.lstrip()[:1] in (b"{", b"[") or head.startswith(b"\x1f\x8b"):
        return (
            f"{expected}, found text or a compressed file; traces of torch.profiler cannot be "
            "read yet"
        )
    return f"{expected}, found something else (first bytes {head[:16]!r}); {EXPORT_AGAIN}"
