"""A path to a connection of SQLite that only reads, and runs nothing that a file brings along.

https://www.sqlite.org/security.html says what a file can bring: views, triggers, virtual tables,
expressions in its schema, and sizes that make SQLite work without end.
"""

from __future__ import annotations

import os
from urllib.parse import quote

import apsw

from fastprof.errors import BadInputError

_CONFIGURATION = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_DQS_DML: 0,  # "name" is a column, or an error, and never a text
}
# What we run stays far below these. Statements that made the tables of a file count, too: 2000
# columns, the most that there can be, take about 100 KB.
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
_SMALLEST_LENGTH = 1_000_000


def connect(path: str | os.PathLike[str], name: str) -> apsw.Connection:
    """A connection to a file, for use on one thread at a time.

    Raises
    ------
    BadInputError
        The file cannot be opened.
    """
    # immutable keeps SQLite from locking the file and from making others beside it.
    uri = f"file:{quote(os.fsencode(os.path.abspath(path)))}?mode=ro&immutable=1"
    try:
        # One thread at a time uses a connection: without its mutex a scan takes half the time.
        connection = apsw.Connection(
            uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOMUTEX
        )
    except apsw.Error as error:
        raise BadInputError(f"{name}: cannot be opened: {error}") from error
    for option, value in _CONFIGURATION.items():
        connection.config(option, value)
    for kind, most in _LIMITS.items():
        connection.limit(kind, most)
    # No value of the file is longer than the file; one that an expression made could be.
    length = max(_SMALLEST_LENGTH, min(os.stat(path).st_size, 2**31 - 1))
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, length)
    connection.drop_modules(None)  # of virtual tables, which a file can name in its schema
    connection.execute("PRAGMA cell_size_check = ON")
    return connection
