"""Read-only SQLite connections that execute nothing from the file.

Views, triggers, virtual tables and expressions in the schema of an untrusted file can run code, and
huge sizes can make SQLite work without end: https://www.sqlite.org/security.html.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import apsw

from fastprof.errors import BadInputError

_CONFIGURATION = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_DQS_DML: 0,  # "name" is a column or an error, never a string
}
# Our statements stay far below these limits. CREATE TABLE statements of the file count too: the
# maximum of 2000 columns takes about 100 KB.
_LIMITS = {
    apsw.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 100,
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: 10,
    apsw.SQLITE_LIMIT_VDBE_OP: 100_000,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
    apsw.SQLITE_LIMIT_VARIABLE_NUMBER: 10,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_MIN_LENGTH = 1_000_000

# Suffixes of files with rows that are not, or not permanently, in the database file.
_LOGS = ("-wal", "-journal")


def connect(path: str | os.PathLike[str], name: str) -> apsw.Connection:
    """Open a file. Only one thread at a time may use the connection.

    Raises
    ------
    BadInputError
        The file cannot be opened.
    """
    # With immutable, SQLite neither locks the file nor creates other files.
    uri = f"file:{quote(os.fsencode(os.path.abspath(path)))}?mode=ro&immutable=1"
    try:
        # Without SQLite's mutex, a scan takes half the time.
        connection = apsw.Connection(
            uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOMUTEX
        )
    except apsw.Error as error:
        raise BadInputError(f"{name}: cannot be opened: {error}") from error
    for option, value in _CONFIGURATION.items():
        connection.config(option, value)
    for kind, most in _LIMITS.items():
        connection.limit(kind, most)
    # No value is longer than the file, unless an expression computes it.
    length = max(_MIN_LENGTH, min(os.stat(path).st_size, 2**31 - 1))
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, length)
    connection.drop_modules(None)  # virtual tables
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def reject_logs(name: str) -> None:
    """Reject a database with a non-empty log file, which holds rows that the database lacks.

    The log is next to the file itself, not next to links to it. SQLite can only read both together
    if it may write or lock.

    Raises
    ------
    BadInputError
        There is a log.
    """
    for path in dict.fromkeys([os.path.abspath(name), os.path.realpath(name)]):
        for suffix in _LOGS:
            log = Path(path + suffix)
            if log.exists() and log.stat().st_size:
                raise BadInputError(
                    f"{name}: {log.name} exists: another program is writing the file or was "
                    "stopped while writing it; let it finish, or export again"
                )
