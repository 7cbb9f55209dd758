"""Exports of nsys as directories of Parquet or Arrow files."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import BadInputError, cli
from support.exports import Export

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
US = 1000


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FASTPROF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def export(tmp_path: Path) -> Path:
    export = Export()
    for i in range(200):
        at = i * 20 * US
        export.push_pop(at, at + 9 * US, f"aten::mm, seq = {i}, sizes = [[8, 64], [64, 64]]", 1)
        export.launch(at + US, at + 2 * US, i + 1, 1)
        export.kernel(at + 3 * US, at + 15 * US, i + 1, name=f"gemm_{i % 3}")
    export.copy(9000 * US, 9100 * US, 900, 1, 4096)
    return export.write(tmp_path / "net.sqlite")


def tables_of(path: Path) -> dict[str, Any]:
    """The tables of an SQLite export as tables of Arrow, with strings as dictionaries."""
    with sqlite3.connect(path) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
        tables = {}
        for name in names:
            cursor = database.execute(f'SELECT * FROM "{name}"')
            rows, columns = cursor.fetchall(), [column[0] for column in cursor.description]
            values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
            tables[name] = arrow.table([*map(_column, columns, values)], names=columns)
    return tables


def _column(name: str, values: tuple[Any, ...]) -> Any:
    """Ids of threads are unsigned, as nsys writes them; strings are dictionaries."""
    array = arrow.array(values)
    if name.startswith("global"):
        return array.cast(arrow.int64()).view(arrow.uint64())
    return array.dictionary_encode() if arrow.types.is_string(array.type) else array


def write_parquet(table: Any, path: Path) -> None:
    parquet.write_table(table, path.with_suffix(".parquet"), row_group_size=64)


def write_arrow(table: Any, path: Path) -> None:
    with arrow.ipc.new_file(path.with_suffix(".arrow"), table.schema) as file:
        file.write_table(table.unify_dictionaries(), max_chunksize=64)


def write_stream(table: Any, path: Path) -> None:
    with arrow.ipc.new_stream(path.with_suffix(".arrow"), table.schema) as file:
        file.write_table(table, max_chunksize=64)


Writer = Callable[[Any, Path], None]
WRITERS = pytest.mark.parametrize("write", [write_parquet, write_arrow, write_stream])


def directory_of(path: Path, write: Writer) -> Path:
    directory = path.with_name("net_pqtdir")
    directory.mkdir()
    for name, table in tables_of(path).items():
        write(table, directory / name)
    return directory


@WRITERS
def test_a_directory_reads_as_the_sqlite_export_does(export, write):
    expected = fastprof.open(export, copies=True)
    profile = fastprof.open(directory_of(export, write), copies=True)
    assert profile.to_pandas().equals(expected.to_pandas())
    assert len(profile.ranges) == len(expected.ranges) == 200
    assert profile.name.endswith("net_pqtdir")


def test_commands_take_a_directory(export, capsys, tmp_path):
    directory = str(directory_of(export, write_parquet))
    assert cli.main([directory]) == 0
    first = capsys.readouterr()
    assert "Nsight Systems export" in " ".join(first.out.split())
    assert "its tables are kept as an SQLite file" in first.err
    assert cli.main(["report", directory, "-o", str(tmp_path / "page.html")]) == 0
    assert cli.main(["export", directory, "--to", "perfetto", "-o", str(tmp_path / "out")]) == 0
    assert cli.main(["diff", directory, str(export)]) == 0


def test_the_sqlite_file_is_made_once_and_again_after_a_change(export, cache):
    directory = directory_of(export, write_parquet)
    fastprof.open(directory)
    (kept,) = cache.glob("*.sqlite")
    before = kept.stat().st_mtime_ns
    fastprof.open(directory)
    assert kept.stat().st_mtime_ns == before
    table = parquet.read_table(directory / "CUPTI_ACTIVITY_KIND_KERNEL.parquet")
    write_parquet(table.slice(0, 10), directory / "CUPTI_ACTIVITY_KIND_KERNEL")
    assert len(fastprof.open(directory, copies=False)) == 10
    assert len(list(cache.glob("*.sqlite"))) == 1


@pytest.mark.parametrize("content", [b"", b"PAR1 is no file of Parquet", b"\0" * 1000])
def test_a_damaged_file_is_named(export, content):
    directory = directory_of(export, write_parquet)
    (directory / "NVTX_EVENTS.parquet").write_bytes(content)
    with pytest.raises(BadInputError, match=r"NVTX_EVENTS.parquet cannot be read: .*export it"):
        fastprof.open(directory)


def test_ids_beyond_signed_integers_are_those_of_sqlite(export):
    with sqlite3.connect(export) as database:
        for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
            name = "globalPid" if table.endswith("KERNEL") else "globalTid"
            database.execute(f"UPDATE {table} SET {name} = {name} | (254 << 56)")
    expected = fastprof.open(export).to_pandas()
    assert fastprof.open(directory_of(export, write_parquet)).to_pandas().equals(expected)


def test_other_files_and_directories_are_left_alone(export, tmp_path):
    directory = directory_of(export, write_parquet)
    (directory / "notes.txt").write_text("mine")
    (directory / "a-b.parquet").write_text("mine")
    assert len(fastprof.open(directory, copies=False)) == 200
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInputError, match="is a directory"):
        fastprof.open(tmp_path / "empty")
