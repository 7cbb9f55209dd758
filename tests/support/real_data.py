"""Locates the real traces, which are not in the repository."""

import os
import re
import sqlite3
from pathlib import Path

import pytest

# The directories of formats that fastprof reads.
_READ = {"kineto", "nsys", "nvprof", "pyprof", "rocpd"}


def data_dir() -> Path | None:
    """`$FASTPROF_DATA`, else `../shared/data` beside the repository; None without traces there."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    directory = Path(os.environ.get("FASTPROF_DATA") or beside)
    return directory if any((directory / name).is_dir() for name in _READ) else None


def real(path: str) -> Path:
    """The real trace at `path` below the data directory; skips the test when it is not there."""
    directory = data_dir()
    if directory is None:
        pytest.skip("no real traces: set FASTPROF_DATA to their directory")
    file = directory / path
    if not file.is_file():
        pytest.skip(f"no {path} among the real traces")
    return file


def traces(*patterns: str) -> list[str]:
    """The real traces below the data directory that a pattern fits, to parametrize a test with.

    Where there are none, one name that no file has: the test is then skipped with the reason.
    """
    directory = data_dir()
    files = (
        [] if directory is None else [f for pattern in patterns for f in directory.glob(pattern)]
    )
    names = sorted(
        file.relative_to(directory).as_posix()
        for file in files
        if directory and file.is_file() and file.relative_to(directory).parts[0] in _READ
    )
    return names or [f"{patterns[0]} (none)"]


def trace_of(nodeid: str) -> str:
    """The real trace among the parameters of a test, by its id; "" without one."""
    match = re.search(r"\[.*?((?:kineto|nsys|nvprof|pyprof|rocpd)/\w[\w.]*)", nodeid)
    return match[1] if match else ""


def open_read_only(path: Path) -> sqlite3.Connection:
    """A connection that neither locks the file nor writes anything beside it."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
