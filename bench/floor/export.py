"""The rows that `fastprof.open` reads of an Nsight Systems export or a rocpd database, dropped."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

from bench.floor import library
from fastprof._core import _pools
from fastprof.readers.nsys import schema
from fastprof.readers.nsys.ranges import table_of
from fastprof.readers.rocpd import schema as rocpd
from fastprof.readers.sqlite.database import ALL_ROWS, Database, Field, connect, select_of
from fastprof.readers.sqlite.pages import CellPlace, Pages

CORES, PIECES = 2, 16  # pieces of each table, which the cores take in turn


def step(path: Path) -> int:
    """Step the SELECTs of `fastprof.open` through SQLite, on one core; return the row count."""
    with Database(path) as database, closing(connect(path, str(path))) as connection:
        return sum(
            library.select(connection, select_of(table, fields, ALL_ROWS))
            for table, fields in (_large_tables(database) | _small_tables(database)).items()
        )


def walk(path: Path) -> int:
    """Read the large tables from the pages of the file, on two cores; return the row count.

    Integers are decoded, texts hashed.
    """
    with Database(path) as database, ExitStack() as stack:
        pages = stack.enter_context(closing(Pages(path, str(path))))
        pieces = []
        for name, fields in _large_tables(database).items():
            places = pages.layout(name, database.rows).places_of([field.name for field in fields])
            table = stack.enter_context(library.Table(path, _root_of(database, name)))
            pieces += [(table, places, *ids) for ids in database.pieces(name, PIECES)]
        pool = stack.enter_context(ThreadPoolExecutor(CORES))
        return sum(rows for rows, _ in pool.map(_walk_piece, pieces))


def _walk_piece(piece: tuple[library.Table, list[CellPlace], int, int]) -> tuple[int, int]:
    table, places, first, last = piece
    return table.walk(places, first, last)


def _large_tables(database: Database) -> dict[str, list[Field]]:
    if rocpd.recognises(database.tables):
        return _of_rocpd(database)
    pools = schema.NsysPools()
    fields = {
        schema.KERNELS: schema.kernel_fields(pools),
        schema.LAUNCHES: schema.launch_fields(pools),
        table_of(database): schema.range_fields(pools),
        schema.STRINGS: schema.string_fields(pools.strings, pools.labels),
    }
    return _present(database, fields)


def _of_rocpd(database: Database) -> dict[str, list[Field]]:
    texts = _pools.Names()
    fields = {
        rocpd.DISPATCHES: rocpd.dispatch_fields(),
        rocpd.REGIONS: rocpd.region_fields(),
        rocpd.EVENTS: rocpd.event_fields(_pools.Keys(), texts),
        rocpd.STRINGS: rocpd.string_fields(_pools.Keys(), texts),
    }
    runs = rocpd.runs_of(database.tables)
    tables = {run.table(base): each for run in runs for base, each in fields.items()}
    return _present(database, tables)


def _small_tables(database: Database) -> dict[str, list[Field]]:
    pools = schema.NsysPools()
    fields = {
        schema.GRAPHS: schema.graph_fields(pools),
        schema.GRAPH_NODES: schema.graph_node_fields(pools),
    }
    return _present(database, fields)


def _present(database: Database, fields: dict[str, list[Field]]) -> dict[str, list[Field]]:
    """The tables that the export has, with the columns that it has."""
    return {
        table: database.chosen(table, each)
        for table, each in fields.items()
        if table in database.tables
    }


def _root_of(database: Database, table: str) -> int:
    sql = f"SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = '{table}'"
    return int(database.rows(sql)[0][0])
