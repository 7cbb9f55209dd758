"""The pages of a table, or the reason why SQLite must read it.

SQLite provides the root page and the columns of a table. The pages are then read without SQLite
(csrc/scan/fp_walk.h), unless the table has an unsupported feature.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from fastprof._core import _pages
from fastprof._core._pages import UnusualError
from fastprof._system.classes import dataclass
from fastprof._system.file_state import ChangeGuard
from fastprof._system.regex import regex
from fastprof.errors import BadInputError

Select = Callable[[str], list[tuple[Any, ...]]]
CellPlace = tuple[int, int, int]  # argument of _pages.Table.scan

_INTEGER = regex(r"[+-]?[0-9]{1,18}")


@dataclass(frozen=True)
class TableLayout:
    """The leaf pages of a table, and the position of each column (lower case) in its rows."""

    table: _pages.Table
    places: dict[str, CellPlace]
    unusual: dict[str, str]  # columns that SQLite must read, and the reason

    def places_of(self, names: Sequence[str]) -> list[CellPlace]:
        """The positions of columns.

        Raises
        ------
        UnusualError
        """
        for name in names:
            if name.lower() in self.unusual:
                raise UnusualError(f"column {name} {self.unusual[name.lower()]}")
        return [self.places[name.lower()] for name in names]


class Pages:
    """The pages of a file, opened once; `guard` detects later changes."""

    def __init__(self, path: str | os.PathLike[str], name: str) -> None:
        self.name = name
        self._layouts: dict[str, TableLayout | str] = {}
        self._file: _pages.File | None = None
        self._why = ""
        try:
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            raise BadInputError(f"{name}: cannot be opened: {error.strerror}") from error
        try:
            # The header contains a counter that every writer increments.
            self.guard = ChangeGuard(self._descriptor, name, _pages.HEADER)
            self._file = _pages.File(self._descriptor)
        except UnusualError as error:
            self._why = str(error)

    def close(self) -> None:
        os.close(self._descriptor)

    def layout(self, table: str, select: Select) -> TableLayout:
        """The layout of a table; `select` runs a statement and returns all rows.

        Raises
        ------
        UnusualError
        """
        if self._file is None:
            raise UnusualError(self._why)
        result = self._layouts.get(table)
        if result is None:
            try:
                result = _layout(self._file, table, select)
            except UnusualError as error:
                result = str(error)
            except BadInputError:  # the scan reports the error
                result = "SQLite cannot read its schema"
            self._layouts[table] = result
        if isinstance(result, str):
            raise UnusualError(result)
        return result


def _layout(file: _pages.File, table: str, select: Select) -> TableLayout:
    # PRAGMA statements: a file can define its own table named pragma_table_list.
    quoted = f'"{escaped(table)}"'
    listed = select(f"PRAGMA main.table_list({quoted})")
    if [(type_, without_row_ids) for _, _, type_, _, without_row_ids, _ in listed] != [
        ("table", 0)
    ]:
        raise UnusualError("it is a table without row ids, or not an ordinary table")
    name = "'" + table.replace("'", "''") + "'"
    roots = select(f"SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = {name}")
    if len(roots) != 1 or not isinstance(roots[0][0], int) or not 1 < roots[0][0] < 1 << 32:
        raise UnusualError("its root page is unknown")
    all_columns = select(f"PRAGMA main.table_xinfo({quoted})")
    columns = [
        (cid, name, type_, default, pk) for cid, name, type_, _, default, pk, _ in all_columns
    ]
    if any(hidden for *_, hidden in all_columns):
        raise UnusualError("it has generated columns")
    origins = [origin for _, _, _, origin, _ in select(f"PRAGMA main.index_list({quoted})")]
    row_id = _row_id_column(columns, "pk" in origins)
    places, unusual = {}, {}
    for cid, name, type_, default, _ in columns:
        key = name.lower()
        if cid == row_id:
            places[key] = (_pages.OF_ROW_ID, _pages.ADDED_NULL, 0)
        elif cid >= _pages.MOST_PLACES:
            unusual[key] = f"is beyond the first {_pages.MOST_PLACES}"
        elif _is_real(type_):
            unusual[key] = "has REAL affinity"
        else:
            places[key] = (cid, *_added(default))
    return TableLayout(_pages.Table(file, roots[0][0]), places, unusual)


def _row_id_column(columns: Sequence[tuple[Any, ...]], has_key_index: bool) -> int | None:
    """The column that is an alias of the row id and therefore not stored in rows.

    This is an INTEGER PRIMARY KEY (https://www.sqlite.org/lang_createtable.html#rowid), unless it
    was declared DESC; then it has an index.
    """
    keys = [(cid, type_) for cid, _, type_, _, pk in columns if pk]
    if len(keys) != 1 or keys[0][1].upper() != "INTEGER" or has_key_index:
        return None
    return int(keys[0][0])


def _is_real(type_: str) -> bool:
    """Whether SQLite converts integers of a column to reals.

    https://www.sqlite.org/datatype3.html#determination_of_column_affinity
    """
    name = type_.upper()
    others = ("INT", "CHAR", "CLOB", "TEXT", "BLOB")
    return not any(part in name for part in others) and any(
        part in name for part in ("REAL", "FLOA", "DOUB")
    )


def _added(default: str | None) -> tuple[int, int]:
    """The value in rows that were written before the column was added."""
    if default is None or default.upper() == "NULL":
        return _pages.ADDED_NULL, 0
    if _INTEGER.fullmatch(default):
        return _pages.ADDED_NUMBER, int(default)
    return _pages.ADDED_OTHER, 0


def escaped(name: str) -> str:
    """A name escaped for double quotes."""
    return name.replace('"', '""')
