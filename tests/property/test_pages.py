"""Tables read from pages equal those read through SQLite, cell by cell."""

import contextlib
import os
import signal
import struct
from dataclasses import replace

import apsw
import numpy as np
import pytest

import fastprof
from fastprof._core import _column, _pools
from fastprof.errors import BadInputError, SettingError
from fastprof.readers.sqlite.database import ALL_ROWS, Database, Field, TableRows
from support import sqlite_files
from support.hypothesis_profiles import IS_FULL, some
from support.real_data import data_dir

KINDS = (_column.I64, _column.KEY, _column.TEXT, _column.LENGTH, _column.RANGE)
SECONDS = 20  # of processor time for any one file, however damaged


def too_long(*_):
    raise TimeoutError


@contextlib.contextmanager
def bounded():
    before = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def fields_of(columns, kind):
    """Fields for all columns of a table, and their pool."""
    if kind in (_column.I64, _column.I32, _column.LENGTH):
        return [Field(name, kind, -7) for name in columns], None
    pool = _pools.Keys() if kind == _column.KEY else _pools.Names()
    shift = 3 if kind == _column.KEY else 0
    return [Field(name, kind, pool=pool, shift=shift) for name in columns], pool


def fits(database, table, name, kind):
    """Whether a column is declared with a type that this kind can read."""
    rows = database.rows(f'PRAGMA table_info("{table.replace(chr(34), chr(34) * 2)}")')
    number = any(row[1] == name and "INT" in row[2] for row in rows)
    return number == (kind < _column.TEXT)


def cells(columns, pool):
    """Plain values; ids become (id, value)."""
    result = {name: column.tolist() for name, column in columns.items()}
    if pool is not None:
        result["pool"] = pool.values().tolist() if hasattr(pool, "values") else pool.texts()
    return result


def scan_together(database, table, fields):
    """As `scan`, with the values of all columns stored once per distinct row."""
    rows = TableRows(database, table, [replace(field, together=True) for field in fields])
    rows.read(database, ALL_ROWS)
    (row,), values = rows.columns().values(), rows.together()
    assert all(column.flags.writeable for column in values.values())
    together = np.stack(list(values.values()), axis=1)
    assert len(np.unique(together, axis=0)) == len(together) == len(np.unique(row))
    return {field.name: values[field.name][row] for field in fields}


def read(path, way, monkeypatch, each_alone=True, n_kinds=4):
    """The contents of each table of a file, and the number of reads from pages.

    n_kinds : of each table, the next of them for the next table
    """
    monkeypatch.setenv("FASTPROF_SCAN", way)
    actual, by_pages = {}, 0
    with bounded(), contextlib.ExitStack() as stack:
        try:
            database = stack.enter_context(Database(path))
        except BadInputError as error:
            return str(error), 0
        for number, (table, columns) in enumerate(database.tables.items()):
            names = list(columns)[:32]
            for kind in (KINDS * 2)[number % len(KINDS) :][:n_kinds]:
                alike = [name for name in names if fits(database, table, name, kind)]
                alone = [[name] for name in names[:4]] if each_alone else []
                for group in filter(None, [names, alike, *alone]):
                    fields, pool = fields_of(group, kind)
                    database.read_by.clear()
                    try:
                        result = cells(database.scan(table, fields), pool)
                        if kind < _column.TEXT and (group is alike or len(group) == 1):
                            again, pool = fields_of(group, kind)
                            assert cells(scan_together(database, table, again), pool) == result
                    except BadInputError as error:
                        result = str(error)
                    by_pages += database.read_by == {table: ""}
                    actual[table, tuple(group), kind] = result
    return actual, by_pages


def check(path, monkeypatch, **others):
    """Check that both ways give the same; return the number of reads from pages."""
    expected, none = read(path, "sqlite", monkeypatch, **others)
    result, by_pages = read(path, "", monkeypatch, **others)
    assert none == 0
    assert result == expected
    return by_pages


def files(tmp_path, seeds, **others):
    for seed in seeds:
        path = tmp_path / f"{seed}.sqlite"
        yield sqlite_files.make(path, seed, **others)
        path.unlink()


N_FILES, N_DAMAGED = (250, 900) if IS_FULL else (50, 200)
N_OF_A_SIZE, N_UNUSUAL = (6, 12) if IS_FULL else (3, 4)


def test_any_file_gives_what_sqlite_gives(tmp_path, monkeypatch):
    by_pages = [check(path, monkeypatch) for path in files(tmp_path, range(N_FILES))]
    assert sum(number > 0 for number in by_pages) > N_FILES * 0.8


@pytest.mark.parametrize("page_size", sqlite_files.PAGE_SIZES)
def test_any_page_size_gives_what_sqlite_gives(page_size, tmp_path, monkeypatch):
    made = files(tmp_path, range(5000, 5000 + N_OF_A_SIZE), page_size=page_size)
    assert sum(check(path, monkeypatch) for path in made) > 3 * N_OF_A_SIZE


@pytest.mark.parametrize("unusual", sqlite_files.UNUSUAL_FILES + sqlite_files.UNUSUAL_TABLES)
def test_an_unusual_file_is_left_to_sqlite(unusual, tmp_path, monkeypatch):
    for path in files(tmp_path, range(6000, 6000 + N_UNUSUAL), unusual=unusual):
        assert check(path, monkeypatch) == 0


def test_a_damaged_file_gives_what_sqlite_gives(tmp_path, monkeypatch):
    check_damaged(tmp_path, monkeypatch, range(N_DAMAGED))


@pytest.mark.slow
def test_many_more_files_give_what_sqlite_gives(tmp_path, monkeypatch):
    for path in files(tmp_path, range(10_000, 13_000)):
        check(path, monkeypatch)
    check_damaged(tmp_path, monkeypatch, range(100_000, 120_000))


def check_damaged(tmp_path, monkeypatch, seeds):
    by_pages, content, path = 0, b"", tmp_path / "damaged.sqlite"
    for seed in seeds:
        if seed % 20 == 0:
            (whole,) = [file.read_bytes() for file in files(tmp_path, [seed // 20])]
        content = sqlite_files.damaged(whole, seed)
        path.write_bytes(content)
        by_pages += check(path, monkeypatch, each_alone=False) > 0
    assert by_pages > len(seeds) // 4
    assert content


def real_files():
    directory = data_dir()
    result = [] if directory is None else sorted(directory.rglob("*.sqlite"))
    return result + ([] if directory is None else sorted(directory.glob("[!r]*/*.[sn][qv][lv]*")))


@pytest.mark.parametrize("path", some(sorted(set(real_files())), 3), ids=lambda path: path.name)
def test_real_exports_give_what_sqlite_gives(path, monkeypatch):
    """All kinds of columns of each table in the full profile, two of them in the fast one."""
    n_kinds = len(KINDS) if IS_FULL else 2
    assert check(path, monkeypatch, each_alone=False, n_kinds=n_kinds) > 0


def test_row_ids_bound_what_is_read(tmp_path, monkeypatch):
    for path in files(tmp_path, range(7000, 7030)):
        for low, high in ((-(2**63), 0), (-3, 60), (5, 5), (1, 2**63 - 1), (60, -3)):
            results = []
            for way in ("sqlite", ""):
                monkeypatch.setenv("FASTPROF_SCAN", way)
                with Database(path) as database:
                    for table, columns in database.tables.items():
                        fields, _ = fields_of(list(columns)[:1], _column.I64)
                        results.append((way, table, database.scan(table, fields, (low, high))))
            half = len(results) // 2
            for (_, table, one), (_, same, other) in zip(
                results[:half], results[half:], strict=True
            ):
                assert table == same
                assert one.keys() == other.keys()
                assert all(np.array_equal(one[name], other[name]) for name in one)


def test_what_is_forced_and_cannot_be_says_why(tmp_path, monkeypatch):
    (path,) = [sqlite_files.make(tmp_path / "x.sqlite", 1, "utf-16")]
    monkeypatch.setenv("FASTPROF_SCAN", "pages")
    with Database(path) as database:
        table, columns = next(iter(database.tables.items()))
        fields, _ = fields_of(list(columns), _column.I64)
        with pytest.raises(
            SettingError, match="FASTPROF_SCAN=pages, but the text encoding is not UTF-8"
        ):
            database.scan(table, fields)


def test_a_way_that_there_is_not_is_refused(tmp_path, monkeypatch):
    path = sqlite_files.make(tmp_path / "x.sqlite", 1)
    monkeypatch.setenv("FASTPROF_SCAN", "mmap")
    with pytest.raises(SettingError, match="pages or sqlite"):
        Database(path)


@pytest.mark.parametrize("path", some(sorted(set(real_files())), 3), ids=lambda path: path.name)
def test_real_exports_give_one_report_both_ways(path, monkeypatch):
    tables = []
    for way in ("sqlite", ""):
        monkeypatch.setenv("FASTPROF_SCAN", way)
        tables.append(fastprof.open(path).to_arrow())
    assert tables[0].equals(tables[1])


@pytest.mark.parametrize("way", ["sqlite", "pages"])
@pytest.mark.parametrize("change", ["longer", "shorter", "newer", "counted"])
def test_a_file_that_changes_while_it_is_read_is_refused(change, way, tmp_path, monkeypatch):
    path = sqlite_files.make(tmp_path / "x.sqlite", 4, page_size=512)
    monkeypatch.setenv("FASTPROF_SCAN", way)
    with Database(path) as database:
        table, columns = next(iter(database.tables.items()))
        times = path.stat()
        with path.open("r+b") as file:
            if change == "longer":
                file.seek(0, 2)
                file.write(bytes(512))
            elif change == "shorter":
                file.truncate(times.st_size - 512)
            elif change == "counted":
                file.seek(27)
                file.write(b"\xff")
        later = 10**9 if change == "newer" else 0
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + later))
        fields, _ = fields_of(list(columns)[:1], _column.I64)
        with pytest.raises(BadInputError, match="was changed while it was read"):
            database.scan(table, fields)


def test_pieces_are_all_rows_once(tmp_path, monkeypatch):
    for path in files(tmp_path, range(8000, 8020)):
        for way in ("sqlite", ""):
            monkeypatch.setenv("FASTPROF_SCAN", way)
            with Database(path) as database:
                for table, columns in database.tables.items():
                    fields, _ = fields_of(list(columns)[:1], _column.I64)
                    pieces = database.pieces(table, 4)
                    assert 1 <= len(pieces) <= 4
                    parts = [database.scan(table, fields, piece) for piece in pieces]
                    whole = database.scan(table, fields)
                    for name, column in whole.items():
                        assert np.array_equal(np.concatenate([p[name] for p in parts]), column)


def test_a_table_whose_interior_pages_are_damaged_is_one_piece(tmp_path, monkeypatch):
    path = tmp_path / "x.sqlite"
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA page_size = 512; CREATE TABLE t (a)")
    connection.execute(
        "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 9999)"
        " INSERT INTO t SELECT i FROM n"
    )
    ((root,),) = connection.execute("SELECT rootpage FROM sqlite_schema")
    connection.close()
    monkeypatch.setenv("FASTPROF_SCAN", "sqlite")
    with Database(path) as database:
        assert len(database.pieces("t", 4)) == 4
    content = bytearray(path.read_bytes())
    first, second = struct.unpack_from(">2H", content, (root - 1) * 512 + 12)  # its cells
    struct.pack_into(">2H", content, (root - 1) * 512 + 12, second, first)
    path.write_bytes(content)
    with Database(path) as database:
        assert database.pieces("t", 4) == [ALL_ROWS]
