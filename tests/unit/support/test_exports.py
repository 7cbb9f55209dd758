"""The builders of test files: schemas, rows, and an NVProf file as an export."""

import ast
import shutil
import sqlite3

import pytest

from support import nsys_schemas, nvprof_as_nsys
from support.exports import PID, VM, Export, global_tid
from support.real_data import open_read_only, real

KERNEL_COLUMNS = {"2020": 25, "2021": 26, "2022": 27, "2024": 28, "2025": 38, "2026": 40}

REAL_EXPORTS = {
    "nsys/no_nvtx_rtx6000_nsys2021.sqlite": "2021",
    "nsys/nvtx_only_startend_nsys2022.sqlite": "2022",
    "nsys/cudagraph_a100_nsys2024.sqlite": "2024",
    "pyprof/vsr_a100_nsys2024.sqlite": "2024",
    "nsys/no_nvtx_rtx3090_nsys2025.sqlite": "2025",
    "nsys/emit_nvtx_2gpu_nsys2026.sqlite": "2026",
}


def one_of_each() -> Export:
    export = Export().gpu()
    export.push_pop(0, 100, "layer:one", tid=1)
    export.push_pop(5, 90, "registered", tid=1, domain=1, registered=True)
    export.start_end(7, 8, "across", tid=1, end_tid=2)
    export.mark(9, "here", tid=1)
    export.launch(10, 20, corr=7, tid=1)
    export.kernel(30, 40, corr=7, name="sgemm", device=1, grid=(2, 3, 4))
    return export


def columns_of(connection: sqlite3.Connection, table: str) -> list[tuple]:
    """Name, type, not null and primary key of each column."""
    return [
        (row[1], *row[2:4], row[5]) for row in connection.execute(f"PRAGMA table_info({table})")
    ]


def tables_of(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


@pytest.mark.parametrize("schema", nsys_schemas.SCHEMAS)
def test_written_file_has_the_columns_of_its_schema(schema, tmp_path):
    connection = sqlite3.connect(one_of_each().write(tmp_path / "x.sqlite", schema=schema))
    for table in tables_of(connection):
        expected = [column.name for column in nsys_schemas.tables(schema)[table]]
        assert [name for name, *_ in columns_of(connection, table)] == expected
    kernel = columns_of(connection, "CUPTI_ACTIVITY_KIND_KERNEL")
    assert len(kernel) == KERNEL_COLUMNS[schema]
    assert ("EXPORT_META_DATA" in tables_of(connection)) == (schema == "2022")
    assert ("META_DATA_EXPORT" in tables_of(connection)) == (schema >= "2024")


@pytest.mark.parametrize(("path", "schema"), REAL_EXPORTS.items())
def test_schema_is_that_of_a_real_export(path, schema):
    connection = open_read_only(real(path))
    memory = sqlite3.connect(":memory:")
    compared = 0
    for table, columns in nsys_schemas.tables(schema).items():
        memory.execute(nsys_schemas.create_table(schema, table, columns))
        if table in tables_of(connection):
            assert columns_of(memory, table) == columns_of(connection, table)
            compared += 1
    assert compared >= 4


@pytest.mark.parametrize("schema", nsys_schemas.SCHEMAS)
def test_rows_hold_what_was_given(schema, tmp_path):
    connection = sqlite3.connect(one_of_each().write(tmp_path / "x.sqlite", schema=schema))
    kernel = connection.execute(
        "SELECT start, end, deviceId, correlationId, globalPid, gridX, gridY, gridZ, value"
        " FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = shortName"
    ).fetchall()
    assert kernel == [(30, 40, 1, 7, VM + PID * 2**24, 2, 3, 4, "sgemm")]
    launch = connection.execute("SELECT start, globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME")
    assert launch.fetchall() == [(10, VM + PID * 2**24 + 1)]
    ranges = connection.execute(
        "SELECT start, end, eventType, text, value, domainId, endGlobalTid"
        " FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId"
    ).fetchall()
    assert ranges == [
        (0, 100, 59, "layer:one", None, 0, None),
        (5, 90, 59, None, "registered", 1, None),
        (7, 8, 60, "across", None, 0, global_tid(PID, 2)),
        (9, None, 34, "here", None, 0, None),
    ]


def test_graphs_are_written_since_they_are_exported(tmp_path):
    export = Export().graph_trace(1, 2, corr=3).graph_node_event(4, 5, tid=1, node=6, original=7)
    connection = sqlite3.connect(export.write(tmp_path / "x.sqlite", schema="2022"))
    assert connection.execute(
        "SELECT correlationId, graphId FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
    ).fetchall() == [(3, 1)]
    assert connection.execute(
        "SELECT graphNodeId, originalGraphNodeId FROM CUDA_GRAPH_NODE_EVENTS"
    ).fetchall() == [(6, 7)]
    with pytest.raises(ValueError, match="2021 has no table CUDA_GRAPH_NODE_EVENTS"):
        export.write(tmp_path / "y.sqlite", schema="2021")


def test_misspelt_column_is_refused():
    with pytest.raises(ValueError, match="never had a column stremId"):
        Export().kernel(0, 1, corr=1, stremId=7)


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    conversion = nvprof_as_nsys.convert(real("pyprof/lm_v100_nvprof.sql"))
    path = conversion.export.write(tmp_path_factory.mktemp("converted") / "lm.sqlite")
    return conversion, sqlite3.connect(path)


def test_converted_nvprof_file_has_its_160_kernels_in_the_authors_order(converted):
    conversion, connection = converted
    rows = connection.execute(
        "SELECT value, k.end - k.start, streamId, gridX, gridY, gridZ, blockX, blockY, blockZ,"
        " r.globalTid & 0xFFFFFF"
        " FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds ON id = shortName"
        " JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) ORDER BY k.start"
    ).fetchall()
    golden = real("pyprof/lm_v100_nvprof.author.dict").read_text().splitlines()
    authors = [ast.literal_eval(line) for line in golden]
    assert len(rows) == len(authors) == 160
    for row, author in zip(rows, authors, strict=True):
        assert row[1:3] == (author["kDuration"], author["stream"])
        assert (row[3:6], row[6:9]) == (author["grid"], author["block"])
        assert conversion.threads[row[9]] == author["tid"]
        if shutil.which("c++filt"):
            assert row[0] == author["kShortName"]


def test_converted_nvprof_file_has_its_ranges(converted):
    _, connection = converted
    counts = connection.execute(
        "SELECT count(*), sum(end IS NULL), sum(end < start), sum(text IS NULL) FROM NVTX_EVENTS"
    )
    assert counts.fetchone() == (683, 0, 0, 0)


def test_short_name_is_pyprofs():
    demangled = "void at::native::(anonymous namespace)::softmax_warp_forward<float, 6>(float*)"
    assert nvprof_as_nsys.short_name(demangled) == "softmax_warp_forward"
