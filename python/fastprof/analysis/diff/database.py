"""The file of stored captures: an SQLite database, its schema, and what is wrong with others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw

from fastprof.errors import FastprofError

FILE: Final = "history.sqlite"  # in a directory
_SUFFIXES: Final = (".sqlite", ".sqlite3", ".db")  # of files that do not exist yet
_APPLICATION: Final = 0x46505246  # "FPRF", at offset 68 of the file
_MAGIC: Final = b"SQLite format 3\0"
_WAIT_MS: Final = 60_000  # for other writers
_LONGEST: Final = 300 << 20  # bytes of a value

# The statements that lead from each version of the schema to the next; the last one is today's.
_MIGRATIONS: Final = (
    """
    CREATE TABLE captures (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        saved_ns INTEGER NOT NULL,  -- Unix time
        names TEXT NOT NULL,        -- JSON: the files
        version TEXT NOT NULL,      -- of fastprof
        source TEXT,                -- --steps
        conditions TEXT NOT NULL,   -- JSON: --where
        trim TEXT,                  -- --trim
        steps INTEGER,              -- their number; NULL if the capture has none
        step_ns REAL, busy_ns REAL, idle_ns REAL, mfu REAL, peak_bytes REAL,
        side BLOB NOT NULL          -- see packing.py
    );
    CREATE TABLE tags (
        capture INTEGER NOT NULL REFERENCES captures (id), key TEXT NOT NULL, value TEXT NOT NULL,
        PRIMARY KEY (capture, key)
    ) WITHOUT ROWID;
    CREATE TABLE parts (            -- the operators and layers that take the most time
        capture INTEGER NOT NULL REFERENCES captures (id),
        kind TEXT NOT NULL,         -- op, layer
        name TEXT NOT NULL,
        ns REAL NOT NULL,           -- of a step and GPU
        PRIMARY KEY (capture, kind, name)
    ) WITHOUT ROWID;
    CREATE TABLE predictions (      -- what plans predicted and what was measured
        before TEXT NOT NULL, after TEXT NOT NULL,  -- JSON: the files
        ids TEXT NOT NULL,          -- JSON: of findings
        predicted_ns INTEGER NOT NULL, measured_ns INTEGER NOT NULL,
        UNIQUE (before, after)
    );
    """,
)
VERSION: Final = len(_MIGRATIONS)

_CONFIGURATION: Final = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_DQS_DML: 0,
}


class BaselineError(FastprofError):
    """The store of captures cannot be written or used; the message gives the reason."""


def file_of(store: str | os.PathLike[str]) -> Path:
    """The file of a store, which need not exist: itself, or the one in a directory."""
    path = Path(store)
    if path.is_dir() or (not path.exists() and path.suffix not in _SUFFIXES):
        return path / FILE
    return path


def is_ours(file: str | os.PathLike[str]) -> bool:
    """Whether a file is a store, by its first bytes."""
    head = _head(file)
    return head.startswith(_MAGIC) and head[68:72] == _APPLICATION.to_bytes(4, "big")


def is_filled(path: Path) -> bool:
    """Whether a store is there: a process that was stopped may have left an empty file."""
    return path.is_file() and _size(path) > 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _head(file: str | os.PathLike[str]) -> bytes:
    """The first bytes of a file, b"" if it cannot be read."""
    try:
        with open(file, "rb") as opened:
            return opened.read(72)
    except OSError:
        return b""


@contextmanager
def database(
    path: Path, write: bool = False, fill: Callable[[apsw.Connection], None] | None = None
) -> Iterator[apsw.Connection]:
    """Open a store; what the block does is one transaction.

    Parameters
    ----------
    path : the file
    write : whether the block writes; other writers wait for it
    fill : creates a file that does not exist, and is called once in it

    Raises
    ------
    BaselineError
        The file is damaged, of another program or a newer fastprof, locked, or cannot be written.
    """
    if is_filled(path) and not _head(path).startswith(_MAGIC):  # SQLite takes a short file for none
        raise BaselineError(f"{path}: is damaged or not a store of captures")
    try:
        if fill is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        connection = _connected(path, fill is not None)
        try:
            _prepare(connection, path, fill)
            with _transaction(connection, write):
                yield connection
        finally:
            connection.close()
    except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError, UnicodeDecodeError) as error:
        raise BaselineError(f"{path}: is damaged or not a store of captures") from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise BaselineError(f"{path}: another process is writing it; run again later") from error
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.IOError, apsw.FullError) as error:
        raise BaselineError(f"{path}: cannot be written: {error}") from error
    except OSError as error:
        raise BaselineError(f"{path}: cannot be written: {error.strerror or error}") from error


def memory() -> apsw.Connection:
    """An empty store in memory."""
    connection = apsw.Connection(":memory:")
    _create(connection, 0)
    return connection


def _connected(path: Path, create: bool) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READWRITE
    if create:
        flags |= apsw.SQLITE_OPEN_CREATE
    elif not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        flags = apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(os.path.abspath(path), flags=flags)
    for option, value in _CONFIGURATION.items():
        connection.config(option, value)
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, _LONGEST)
    connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
    connection.set_busy_timeout(_WAIT_MS)
    return connection


@contextmanager
def _transaction(connection: apsw.Connection, write: bool) -> Iterator[None]:
    """A transaction, undone after an exception.

    A writer is one from the beginning: of two that read first, one could not go on to write.
    """
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _prepare(
    connection: apsw.Connection, path: Path, fill: Callable[[apsw.Connection], None] | None
) -> None:
    """Check what the file is; create its tables, or bring them to this version."""
    with _transaction(connection, write=False):
        application, version, tables = _state(connection)
    if application == _APPLICATION and version == VERSION:
        return
    if fill is None or tables:
        _refuse(path, application, version)
    with _transaction(connection, write=True):
        application, version, tables = _state(connection)  # another process may have created it
        is_new = not tables and not application and not version
        if is_new and fill is not None:
            _create(connection, 0)
            fill(connection)
            return
        _refuse(path, application, version)
        _create(connection, version)


def _refuse(path: Path, application: int, version: int) -> None:
    """Raise BaselineError for files of other programs and newer versions."""
    if application != _APPLICATION:
        raise BaselineError(f"{path}: is damaged or not a store of captures")
    if version > VERSION:
        raise BaselineError(
            f"{path}: was written by a newer fastprof: its schema is {version}, this one knows "
            f"{VERSION}; install the newer fastprof"
        )


def _state(connection: apsw.Connection) -> tuple[int, int, int]:
    """The application's number, the version of the schema, and how many tables there are."""
    return (
        connection.pragma("application_id"),
        connection.pragma("user_version"),
        connection.execute("SELECT count(*) FROM sqlite_schema").get,
    )


def _create(connection: apsw.Connection, version: int) -> None:
    """Bring the tables from a version of the schema to today's."""
    for statements in _MIGRATIONS[version:]:
        connection.execute(statements)
    connection.pragma("application_id", _APPLICATION)
    connection.pragma("user_version", VERSION)
