"""The benchmark's floor reads every row that `fastprof.open` reads."""

import os

import apsw
import pytest
from bench.floor import export, library
from bench.generate import generate

from fastprof.readers.nsys import schema
from fastprof.readers.sqlite.database import ALL_ROWS, Database, connect
from fastprof.readers.sqlite.pages import Pages

NUMBERS = [(i * 7**i) % 2**63 * (-1) ** i for i in range(3000)]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.sqlite"
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA page_size = 512; CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)")
    with connection:  # one transaction
        rows = [(n, "x" * 9) for n in NUMBERS]
        connection.executemany("INSERT INTO t (a, b) VALUES (?, ?)", rows)
    connection.close()
    return path


@pytest.fixture
def walk(path):
    with Database(path) as database, library.Table(path, export._root_of(database, "t")) as table:
        pages = Pages(path, str(path))
        layout = pages.layout("t", database.rows)
        yield lambda column, first, last: table.walk(layout.places_of([column]), first, last)
        pages.close()


def test_walking_decodes_the_integers_of_all_rows(walk):
    assert walk("a", *ALL_ROWS) == (3000, sum(NUMBERS) % 2**64)
    assert walk("a", 10, 19) == (10, sum(NUMBERS[9:19]) % 2**64)


def test_walking_hashes_texts(walk):
    once, twice = (walk("b", 1, n)[1] for n in (1, 2))
    assert once != 0
    assert twice == 2 * once % 2**64


def test_a_select_is_stepped_to_its_end(path):
    connection = connect(path, str(path))
    assert library.select(connection, "SELECT a FROM t WHERE id > 10") == 2990
    with pytest.raises(library.FloorError, match="SELECT nothing FROM t"):
        library.select(connection, "SELECT nothing FROM t")
    connection.close()


def test_a_page_that_is_no_table_is_an_error(path):
    with pytest.raises(library.FloorError, match="no readable table at page 9999"):
        library.Table(path, 9999)


def test_a_truncated_file_is_an_error(path, walk):
    os.truncate(path, 512 * 20)
    with pytest.raises(library.FloorError, match="damaged"):
        walk("a", *ALL_ROWS)


def test_both_floors_count_the_rows_of_an_export(tmp_path):
    generate(tmp_path / "run.sqlite", 500)
    large = [schema.KERNELS, schema.LAUNCHES, "NVTX_EVENTS", schema.STRINGS]
    with Database(tmp_path / "run.sqlite") as database:
        rows = sum(database.rows(f"SELECT count(*) FROM {table}")[0][0] for table in large)
    assert export.walk(tmp_path / "run.sqlite") == rows
    assert export.step(tmp_path / "run.sqlite") == rows


def test_the_library_is_compiled_only_when_a_source_is_newer(tmp_path):
    made = library.build(tmp_path)
    before = made.stat().st_mtime_ns
    assert library.build(tmp_path).stat().st_mtime_ns == before
    os.utime(made, (0, 0))
    assert library.build(tmp_path).stat().st_mtime_ns > before
    assert os.listdir(tmp_path) == [made.name]


def test_without_a_compiler_the_error_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(library.FloorError, match="no-such-compiler"):
        library.build(tmp_path)
