"""An SQLite database of a capture: kernels, reports, facts.

Kernels that agree in all texts, devices, streams, grids, ... share a row of `kernel_cells`; the
view `kernels` joins it to the numbers of each kernel. Long texts are thus stored once.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

import apsw
import numpy as np

from fastprof._version import __version__
from fastprof.analysis.grouping import group
from fastprof.analysis.reports import all_reports, report_of
from fastprof.analysis.stats.columns import TABLES
from fastprof.errors import FastprofError
from fastprof.model.column_table import COLUMN_OF_KEY
from fastprof.model.columns import Column, Ints, Lists, RepeatedInts, Values
from fastprof.model.table import Table
from fastprof.profile.data import ProfileData, inside_part
from fastprof.writers.columns import cell_text

_ROWS: Final = 4096
_SETTINGS: Final = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA page_size=8192"
_OWN: Final = ("overview", "stats")  # overview is several tables in one; stats has names of its own


def write(profile: ProfileData, file: BinaryIO) -> None:
    """Write the database.

    Tables: `kernels` (a view: a row for each kernel, with the columns of docs/columns.md; grid and
    block become grid_x, ...), a table for each report and for each table of `stats` with its
    default options, `capture` (name and value of each fact), and `missing` (reports that the
    capture does not suffice for, with the reason). Numbers are in ns, bytes and FLOP; unknown
    values are NULL.

    Parameters
    ----------
    profile : the profile
    file : binary file

    Raises
    ------
    OSError
        The file cannot be written.
    """
    with _path_of(file) as path:
        try:
            database = apsw.Connection(path)
            try:
                database.execute(_SETTINGS)
                with database:
                    _write_kernels(database, profile)
                    _write_reports(database, profile)
            finally:
                database.close()
        except (apsw.FullError, apsw.IOError, apsw.CantOpenError) as error:
            raise OSError(str(error)) from error


@contextmanager
def _path_of(file: BinaryIO) -> Iterator[str]:
    """The path of a new file, or of a temporary one that is copied to a pipe or device."""
    name = getattr(file, "name", None)
    try:
        is_new = isinstance(name, str) and os.path.samestat(os.stat(name), os.stat(file.fileno()))
        is_new = is_new and os.path.isfile(str(name)) and not os.path.getsize(str(name))
    except OSError:
        is_new = False
    if is_new:
        yield str(name)
        return
    with tempfile.NamedTemporaryFile(prefix="fastprof-", suffix=".sqlite") as made:
        yield made.name
        shutil.copyfileobj(made, file, 1 << 20)


def _write_kernels(database: apsw.Connection, profile: ProfileData) -> None:
    columns = {key: profile.column(key) for key in profile.names if key in COLUMN_OF_KEY}
    inside = inside_part(profile)
    n_rows = len(profile) if inside is None else int(np.count_nonzero(inside))
    if inside is not None:
        wanted = np.flatnonzero(inside)
        columns = {key: column.take(wanted) for key, column in columns.items()}
    shared = {key: _values(column) for key, column in columns.items()}
    groups = group([values for values in shared.values() if values is not None], n_rows)
    of_cells = {
        key: column for key, column in columns.items() if isinstance(column, Values | RepeatedInts)
    }
    of_rows = {key: column for key, column in columns.items() if key not in of_cells}
    cells = [(key, _names(key, cell), cell) for key, cell in of_cells.items()]
    rows = [(key, _names(key, row), row) for key, row in of_rows.items()]
    _fill(
        database,
        "kernel_cells",
        ["cell", *(name for _, names, _ in cells for name in names)],
        ["INTEGER PRIMARY KEY", *(_type(each) for _, names, each in cells for _ in names)],
        _rows(range(groups.n), [(key, cell.take(groups.first)) for key, cell in of_cells.items()]),
    )
    _fill(
        database,
        "kernel_rows",
        ["cell", *(name for _, names, _ in rows for name in names)],
        ["INTEGER", *(_type(each) for _, names, each in rows for _ in names)],
        _rows(groups.ids.tolist(), list(of_rows.items())),
    )
    names = [name for key, column in columns.items() for name in _names(key, column)]
    database.execute(
        f"CREATE VIEW kernels AS SELECT {', '.join(map(_quoted, names))} "
        "FROM kernel_rows JOIN kernel_cells USING (cell)"
    )


def _values(column: Column) -> Values | None:
    """The column as few distinct values; None if each kernel has its own."""
    if isinstance(column, RepeatedInts):
        return Values(column.ids, [None] * len(column.distinct))
    return column if isinstance(column, Values) else None


def _names(key: str, column: Column) -> list[str]:
    if isinstance(column, Ints) and column.values.ndim == 2:
        return [f"{key}_{axis}" for axis in "xyz"]
    return [key]


def _type(column: Column) -> str:
    return "INTEGER" if isinstance(column, Ints) else "TEXT"


def _rows(
    numbers: Sequence[int], columns: Sequence[tuple[str, Column]]
) -> Iterator[tuple[Any, ...]]:
    """The rows of a table: a number, then the values of columns; None where unknown."""
    begin = 0
    for chunk in zip(*(column.chunks(_ROWS) for _, column in columns), strict=True):
        end = min(begin + _ROWS, len(numbers))
        parts = (
            members
            for (key, column), values in zip(columns, chunk, strict=True)
            for members in _stored(key, column, values)
        )
        yield from zip(numbers[begin:end], *parts, strict=True)
        begin = end


def _stored(key: str, column: Column, values: list[Any]) -> Iterator[list[Any]]:
    """The values of a column as the database stores them, in one or three columns."""
    if isinstance(column, Ints) and column.values.ndim == 2:
        for axis in range(3):
            yield [None if value is None else value[axis] for value in values]
    elif isinstance(column, Ints):
        yield values
    elif isinstance(column, Lists):
        yield [json.dumps(value) if value else None for value in values]
    else:
        text = cell_text(COLUMN_OF_KEY[key])
        yield [None if value is None else _clean(text(value)) for value in values]


def _write_reports(database: apsw.Connection, profile: ProfileData) -> None:
    missing = []
    wanted: list[tuple[str, str, dict[str, Any]]] = [
        (name, name, {}) for name in all_reports() if name not in _OWN
    ]
    wanted += [(name, "stats", {"names": [name]}) for name in TABLES]
    facts: dict[str, Any] = {}
    for name, report, options in wanted:
        try:
            table = report_of(profile, report, **options)
        except FastprofError as error:
            missing.append((name, str(error)))
            continue
        _fill_table(database, name, table)
        facts = facts or dict(table.facts)
    facts = {"fastprof": __version__, "warnings": profile.warnings, **facts}
    common = ("fastprof", "file", "gpu", "steps", "coverage", "warnings")
    _fill(
        database,
        "capture",
        ["name", "value"],
        ["TEXT PRIMARY KEY", "TEXT"],
        [(key, _fact(facts[key])) for key in common if key in facts],
    )
    _fill(database, "missing", ["report", "reason"], ["TEXT", "TEXT"], missing)


def _fill_table(database: apsw.Connection, name: str, table: Table) -> None:
    types = [_table_type(column) for column in table.columns.values()]
    rows = (row for chunk in table.chunks() for row in zip(*chunk, strict=True))
    _fill(database, name, list(table.columns), types, (tuple(map(_cell, row)) for row in rows))


def _table_type(column: Any) -> str:
    if isinstance(column, Ints):
        return "INTEGER"
    return "TEXT" if isinstance(column, Values) else "REAL"


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return _clean(value)
    if value is None or isinstance(value, int | float):
        return value
    return _clean(json.dumps(value, default=str))


def _fact(value: Any) -> str:
    return _clean(value if isinstance(value, str) else json.dumps(value, default=str))


def _clean(text: str) -> str:
    """Valid UTF-8: lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode()


def _fill(
    database: apsw.Connection,
    name: str,
    columns: Sequence[str],
    types: Sequence[str],
    rows: Iterable[tuple[Any, ...]],
) -> None:
    """Create a table and insert rows."""
    heads = ", ".join(
        f"{_quoted(column)} {kind}" for column, kind in zip(columns, types, strict=True)
    )
    database.execute(f"CREATE TABLE {_quoted(name)} ({heads})")
    places = ", ".join("?" * len(columns))
    database.executemany(f"INSERT INTO {_quoted(name)} VALUES ({places})", rows)


def _quoted(name: str) -> str:
    return '"' + _clean(name).replace('"', '""') + '"'
