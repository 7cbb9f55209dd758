"""Code in a file is never run, and objects that imitate tables are never read."""

import sqlite3
from pathlib import Path

import apsw
import pytest

import fastprof
from fastprof.errors import BadInputError
from fastprof.readers.sqlite.database import Database, connect
from support.commands import one_line, run
from support.exports import Export
from support.sqlite_files import execute

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
RANGES = "NVTX_EVENTS"
EVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.fixture
def file(tmp_path):
    export = Export().push_pop(0, 100, "layer:a", tid=1).push_pop(5, 90, "aten::mm", tid=1)
    for i in range(3):
        export.launch(10 + i, 11 + i, corr=i, tid=1).kernel(20 + i, 25 + i, corr=i, name=f"k{i}")
    return export.write(tmp_path / "x.sqlite")


def change_schema(path: Path, *statements: str) -> None:
    """Edit the schema table directly; the schema version makes connections reload it."""
    (version,) = sqlite3.connect(path).execute("PRAGMA schema_version").fetchone()
    execute(
        path, "PRAGMA writable_schema = ON", *statements, f"PRAGMA schema_version = {version + 1}"
    )


def rows(path: Path) -> list[tuple[object, ...]]:
    kernels = fastprof.open(path).kernels
    return list(zip(*(kernels[key] for key in ("kernel", "sil", "layer")), strict=True))


EXPECTED = [(f"k{i}", 5, ("a",)) for i in range(3)]


def refusal(path: Path) -> str:
    """The error for a file, with either way of reading; the file must not change."""
    before = path.read_bytes()
    with pytest.raises(BadInputError) as refused:
        fastprof.open(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    return str(refused.value)


def moved_away(table: str) -> str:
    return f"ALTER TABLE {table} RENAME TO other"


@pytest.mark.parametrize("table", [KERNELS, CALLS, RANGES, "StringIds"])
@pytest.mark.parametrize("way", ["", "sqlite"])
def test_a_view_that_poses_as_a_table_is_refused(table, way, file, monkeypatch):
    monkeypatch.setenv("FASTPROF_SCAN", way)
    execute(file, moved_away(table), f"CREATE VIEW {table} AS SELECT * FROM other")
    message = refusal(file)
    assert f"{table} is a view and no table" in message
    assert "export it again" in message


def test_a_view_without_end_is_not_gone_through(file):
    execute(file, "DROP TABLE StringIds", f"CREATE VIEW StringIds AS {EVER}")
    assert "StringIds is a view" in refusal(file)


HARMLESS = {
    "views of other names": (
        f"CREATE VIEW slowest AS SELECT * FROM {KERNELS} ORDER BY end - start",
        f"CREATE VIEW ever AS {EVER}",
        "CREATE VIEW broken AS SELECT * FROM absent",
    ),
    "triggers": (
        f"CREATE TRIGGER t AFTER INSERT ON {KERNELS} BEGIN DELETE FROM StringIds; END",
        f"CREATE VIEW v AS SELECT * FROM {KERNELS}",
        "CREATE TRIGGER u INSTEAD OF INSERT ON v BEGIN SELECT load_extension('x'); END",
    ),
    "checks, defaults and indices with functions, which are never run": (
        "CREATE TABLE other (id INTEGER CHECK (length(hex(zeroblob(400000000))) > id),"
        " value TEXT DEFAULT (hex(randomblob(400000000))))",
        "PRAGMA ignore_check_constraints = ON",
        "INSERT INTO other SELECT id, value FROM StringIds",
        "DROP TABLE StringIds",
        "ALTER TABLE other RENAME TO StringIds",
        "CREATE INDEX i ON StringIds (abs(id)) WHERE length(value) > 0",
    ),
}


@pytest.mark.parametrize("what", HARMLESS)
def test_what_else_is_in_the_file_does_not_matter(what, file):
    execute(file, *HARMLESS[what])
    assert rows(file) == EXPECTED


@pytest.mark.parametrize("table", [KERNELS, "StringIds"])
@pytest.mark.parametrize(
    "module", ["fts5(id, value)", "rtree(id, start, end)", "dbstat", "lost(x)"]
)
def test_a_virtual_table_that_poses_as_a_table_is_refused(table, module, file):
    execute(file, moved_away(table))
    change_schema(
        file,
        f"INSERT INTO sqlite_master VALUES ('table', '{table}', '{table}', 0,"
        f" 'CREATE VIRTUAL TABLE {table} USING {module}')",
    )
    assert f"{table} is a virtual table and no table" in refusal(file)


def test_a_virtual_table_that_claims_pages_is_refused(file):
    execute(file, moved_away(KERNELS))
    change_schema(
        file,
        f"INSERT INTO sqlite_master SELECT 'table', '{KERNELS}', '{KERNELS}', 2,"
        f" 'CREATE VIRTUAL TABLE {KERNELS} USING fts5(start, end)'",
    )
    assert refusal(file)


def test_a_search_index_that_somebody_added_does_not_matter(file):
    connection = apsw.Connection(str(file))
    connection.execute("CREATE VIRTUAL TABLE found USING fts5(value)")
    connection.execute("INSERT INTO found SELECT value FROM StringIds")
    connection.close()
    assert rows(file) == EXPECTED


GENERATED = {
    "needed": ("end", "start + length(hex(zeroblob(400000000)))", "has no column end"),
    "optional": ("deviceId", "length(hex(zeroblob(400000000)))", ""),
}


@pytest.mark.parametrize("kind", GENERATED)
@pytest.mark.parametrize("way", ["", "sqlite"])
def test_a_generated_column_is_never_computed(kind, way, file, monkeypatch):
    monkeypatch.setenv("FASTPROF_SCAN", way)
    column, expression, refused = GENERATED[kind]
    execute(
        file,
        f"ALTER TABLE {KERNELS} DROP COLUMN {column}",
        f"ALTER TABLE {KERNELS} ADD COLUMN {column} INTEGER AS ({expression}) VIRTUAL",
    )
    if refused:
        assert refused in refusal(file)
    else:
        assert [sil for _, sil, _ in rows(file)] == [5, 5, 5]
        assert set(fastprof.open(file).kernels["device"].tolist()) == {None}


# Schemas that SQLite does not write.

SHADOWS = {
    "pragma_table_list": "schema, name, type, ncol, wr, strict",
    "pragma_table_info": 'cid, name, type, "notnull", dflt_value, pk',
    "pragma_table_xinfo": 'cid, name, type, "notnull", dflt_value, pk, hidden',
    "pragma_index_list": 'seq, name, "unique", origin, partial',
}


@pytest.mark.parametrize("shadow", SHADOWS)
def test_a_table_named_as_one_of_sqlites_own_is_not_asked_in_its_place(shadow, file):
    execute(
        file,
        f"CREATE TABLE hidden ({SHADOWS[shadow]})",
        f"INSERT INTO hidden VALUES ({', '.join(['-7'] * (SHADOWS[shadow].count(',') + 1))})",
    )
    change_schema(
        file,
        f"UPDATE sqlite_master SET name = '{shadow}', tbl_name = '{shadow}',"
        f" sql = replace(sql, 'hidden', '{shadow}') WHERE name = 'hidden'",
    )
    assert rows(file) == EXPECTED


@pytest.mark.parametrize("name", ["sqlite_schema", "sqlite_master"])
def test_a_second_table_of_tables_is_refused(name, file):
    execute(file, "CREATE TABLE hidden (type, name, tbl_name, rootpage, sql)")
    change_schema(
        file,
        f"UPDATE sqlite_master SET name = '{name}', tbl_name = '{name}',"
        f" sql = replace(sql, 'hidden', '{name}') WHERE name = 'hidden'",
    )
    assert f"{name} already exists" in refusal(file)


def test_two_tables_of_one_name_are_refused(file):
    change_schema(
        file,
        "INSERT INTO sqlite_master SELECT type, name, tbl_name,"
        f" (SELECT rootpage FROM sqlite_master WHERE name = '{CALLS}'), sql"
        f" FROM sqlite_master WHERE name = '{KERNELS}'",
    )
    assert "already exists" in refusal(file)


def test_tables_that_begin_on_the_same_page_are_refused(file):
    change_schema(
        file,
        "UPDATE sqlite_master SET rootpage ="
        f" (SELECT rootpage FROM sqlite_master WHERE name = '{KERNELS}') WHERE name = '{CALLS}'",
    )
    message = refusal(file)
    assert "begin on the same page" in message
    assert KERNELS in message
    assert CALLS in message


ROOTS = ("1", "0", "-1", "99999", "4294967298", "NULL", "'x'", "2.5")
STATEMENTS = (
    "'CREATE TABLE nonsense ('",
    "'CREATE TABLE'",
    "'CREATE TABLE ' || name || ' (start, end); DROP TABLE StringIds'",
    "'CREATE TABLE ' || name || ' AS SELECT 1'",
    "'DROP TABLE StringIds'",
    "'CREATE TABLE another (start, end)'",
    "'CREATE VIEW ' || name || ' AS SELECT 1'",
    "'CREATE TABLE ' || name || ' (a CHECK (' || replace(hex(zeroblob(300)), '0', '(') || '))'",
    "x'00FF'",
    "NULL",
    "12",
    "'CREATE TABLE \"a\nb\" (c)'",
)


@pytest.mark.parametrize(
    ("column", "value"),
    [*(("rootpage", root) for root in ROOTS), *(("sql", statement) for statement in STATEMENTS)],
)
def test_a_table_whose_first_page_or_statement_is_none_is_refused(column, value, file):
    change_schema(file, f"UPDATE sqlite_master SET {column} = {value} WHERE name = '{KERNELS}'")
    assert refusal(file)


@pytest.mark.parametrize("name", ["x''", "5", "1.5", "x'FF'", "NULL", "'a\"b;\n--'", "'[x]'", "''"])
def test_a_table_of_any_name_is_passed_over_or_refused_in_one_line(name, file):
    execute(file, "CREATE TABLE hidden (a)")
    change_schema(
        file,
        f"UPDATE sqlite_master SET name = {name}, tbl_name = {name},"
        f" sql = 'CREATE TABLE \"' || replace({name}, '\"', '\"\"') || '\" (a)'"
        " WHERE name = 'hidden'",
    )
    try:
        assert rows(file) == EXPECTED
    except BadInputError:
        assert refusal(file)


def test_names_with_quotes_are_names(file):
    execute(file, 'CREATE TABLE "a""b\'c]`" ("d""e" TEXT, "f\'g")')
    with Database(file) as database:
        assert list(database.tables["a\"b'c]`"]) == ['d"e', "f'g"]
    assert rows(file) == EXPECTED


# The connection.


def test_the_connection_writes_nothing_and_attaches_nothing(file, tmp_path):
    connection = connect(file, "x")
    for statement in (
        f"DELETE FROM {KERNELS}",
        "CREATE TABLE new (a)",
        "PRAGMA user_version = 7",
        f"ATTACH '{tmp_path / 'new'}' AS new",
        f"VACUUM INTO '{tmp_path / 'new'}'",
        "SELECT load_extension('x')",
        'SELECT "no such column" FROM StringIds',
    ):
        with pytest.raises(apsw.Error):
            list(connection.execute(statement))
    connection.execute("PRAGMA writable_schema = ON")
    with pytest.raises(apsw.Error):
        connection.execute("DELETE FROM sqlite_master")
    connection.close()
    assert [path.name for path in tmp_path.iterdir()] == ["x.sqlite"]


def test_no_value_is_longer_than_the_file_could_hold(file):
    connection = connect(file, "x")
    with pytest.raises(apsw.TooBigError):
        list(connection.execute("SELECT hex(zeroblob(600000))"))
    connection.close()


def test_extensions_stay_off_after_a_scan(file):
    with Database(file) as database, pytest.raises(BadInputError, match="not authorized"):
        database.rows("SELECT load_extension('x')")


def test_tables_with_as_many_columns_as_there_can_be_are_read(file):
    columns = ", ".join(f"a_long_name_of_a_column_{i} INTEGER NOT NULL" for i in range(2000))
    execute(file, f"CREATE TABLE wide ({columns})")
    assert rows(file) == EXPECTED


def test_what_poses_as_a_table_is_one_line_of_every_command(file):
    execute(file, moved_away(KERNELS), f'CREATE VIEW "{KERNELS}" AS {EVER}')
    for words in (["parse"], ["prof"], ["info"]):
        assert f"{KERNELS} is a view and no table" in one_line(run(*words, file))
