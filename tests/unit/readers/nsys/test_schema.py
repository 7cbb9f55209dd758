"""Exports of every year give the same rows; missing parts are na."""

import pytest

import fastprof
from fastprof.errors import BadInputError
from support import nsys_schemas
from support.exports import PID, Export, global_tid
from support.sqlite_files import execute, query

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
RANGES = "NVTX_EVENTS"


def step(event_types=nsys_schemas.EVENT_TYPES) -> Export:
    """A forward kernel, its backward kernel on another thread, and one outside all ranges."""
    export = Export(event_types).gpu()
    export.push_pop(0, 100, "layer:net", tid=1)
    export.push_pop(5, 95, "my range", tid=1, registered=True)
    export.push_pop(10, 50, "aten::addmm, seq = 3, op_id = 2", tid=1)
    export.launch(20, 25, corr=1, tid=1)
    export.kernel(30, 45, corr=1, name="fw", demangled="void at::fw<float>(int)", grid=(2, 3, 4))
    export.push_pop(120, 180, "autograd::engine::evaluate_function: AddmmBackward0, seq = 3", tid=2)
    export.push_pop(125, 170, "AddmmBackward0, seq = 3, op_id = 6", tid=2)
    export.launch(130, 135, corr=2, tid=2)
    export.kernel(140, 165, corr=2, name="bw", stream=8, device=1, block=(32, 2, 1))
    export.launch(200, 201, corr=3, tid=1, name="cuLaunchKernel", eventClass=1)
    export.kernel(210, 220, corr=3, name="alone")
    return export


KEYS = (
    "idx", "seq", "tid", "layer", "dir", "op", "kernel", "sil", "device", "stream", "grid", "block",
    "start", "end", "name", "pid", "correlation", "launch", "launch_start", "ranges",
)  # fmt: skip
STEP = [
    (1, 3, 1, ("net",), "fprop", "addmm", "fw", 15, 0, 7, (2, 3, 4), (128, 1, 1),
     30, 45, "void at::fw<float>(int)", PID, 1, "cudaLaunchKernel_v7000", 20, ("my range",)),
    (2, 3, 2, ("net",), "bprop", "addmm", "bw", 25, 1, 8, (1, 1, 1), (32, 2, 1),
     140, 165, "bw", PID, 2, "cudaLaunchKernel_v7000", 130, ("my range",)),
    (3, None, 1, (), None, None, "alone", 10, 0, 7, (1, 1, 1), (128, 1, 1),
     210, 220, "alone", PID, 3, "cuLaunchKernel", 200, ()),
]  # fmt: skip


def rows(path, *keys):
    """The rows of a file, one tuple per kernel."""
    profile = fastprof.open(path)
    assert profile.warnings == []
    wanted = keys or KEYS
    return [tuple(_plain(row[key], key) for key in wanted) for row in profile.rows()]


def _plain(value, key):
    # seq has at most one number, stored as a list or not
    if key == "seq" and isinstance(value, tuple):
        return value[0] if value else None
    return value


def column(path, key):
    return [value for (value,) in rows(path, key)]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "x.sqlite"


def optional(table, *needed):
    return sorted(nsys_schemas.column_names(table) - set(needed))


NEWER = ("NVTX_EVENTS_V2", "NVTX_EVENTS_V3")
ABOUT = ("ENUM_NSYS_EVENT_TYPE", "META_DATA_EXPORT", "META_DATA_CAPTURE", "TARGET_INFO_GPU")
OF_CALLS = optional(CALLS, "start", "end", "globalTid", "correlationId", "nameId")
OF_EVENTS = optional(RANGES, "start", "end", "eventType", "text", "globalTid")
# Schemas, newer names of the table of ranges, page sizes, tables about the capture, columns.
FORMS = [
    *({"schema": schema} for schema in nsys_schemas.SCHEMAS),
    *({"schema": each, "nvtx_table": name} for each in nsys_schemas.SCHEMAS for name in NEWER),
    *({"page_size": size} for size in (512, 1024, 4096, 32768, 65536)),
    *({"without_tables": [table]} for table in ABOUT),
    *({"without_columns": {CALLS: [name]}} for name in OF_CALLS),
    *({"without_columns": {RANGES: [name]}} for name in OF_EVENTS),
]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_of_an_export_gives_the_same_rows(form, file):
    assert rows(step().write(file, **form)) == STEP


@pytest.mark.parametrize("table", NEWER)
def test_an_empty_table_of_ranges_beside_a_newer_one_that_has_rows_is_passed_over(table, file):
    path = step().write(file, nvtx_table=table)
    execute(path, f"CREATE TABLE NVTX_EVENTS AS SELECT * FROM {table} LIMIT 0")
    assert rows(path) == STEP


def test_rows_in_any_order_give_the_same_profile(tmp_path):
    sorted_rows = list(fastprof.open(busy().write(tmp_path / "sorted.sqlite")).rows())
    assert len(sorted_rows) == 300
    for seed in range(3):
        path = busy().write(tmp_path / f"{seed}.sqlite", shuffle_seed=seed)
        assert list(fastprof.open(path).rows()) == sorted_rows


def busy() -> Export:
    """Three threads of two processes, each with nested ranges and a kernel."""
    export = Export()
    for i in range(100):
        for lane, (pid, tid) in enumerate([(100, 1), (100, 2), (200, 1)]):
            at = i * 1000 + lane * 7
            name = "MulBackward0" if tid == 2 else "aten::mul"
            export.push_pop(at, at + 900, f"layer:l{i % 5}", tid=tid, pid=pid)
            export.push_pop(at + 10, at + 700, f"{name}, seq = {i}, op_id = {i}", tid=tid, pid=pid)
            export.push_pop(at + 10, at + 600, "same start", tid=tid, pid=pid, registered=i % 2 > 0)
            corr = i + 1000 * tid
            export.launch(at + 20, at + 25, corr=corr, tid=tid, pid=pid)
            export.kernel(at + 30 + 300 * lane, at + 950, corr=corr, name=f"k{i % 7}", pid=pid)
    return export


def test_negative_times_are_times(file):
    export = Export().push_pop(-1000, -10, "layer:early", tid=1)
    export.launch(-900, -890, corr=1, tid=1).kernel(-500, -450, corr=1)
    assert rows(export.write(file), "start", "end", "sil", "launch_start", "layer") == [
        (-500, -450, 50, -900, ("early",))
    ]


# Tables that are missing.


def test_without_a_table_of_ranges_or_calls_kernels_keep_their_rows(tmp_path):
    path = step().write(tmp_path / "without ranges", without_tables=[RANGES])
    assert rows(path, "tid", "layer", "dir", "op", "ranges", "sil") == [
        (tid, (), None, None, (), length) for tid, length in ((1, 15), (2, 25), (1, 10))
    ]
    path = step().write(tmp_path / "without calls", without_tables=[CALLS])
    assert rows(path, "kernel", "sil", "tid", "layer", "dir", "launch") == [
        (name, length, None, (), None, None)
        for name, length in (("fw", 15), ("bw", 25), ("alone", 10))
    ]


def test_without_kernels_there_are_no_rows(tmp_path):
    assert rows(step().write(tmp_path / "none", without_tables=[KERNELS])) == []
    assert rows(Export().write(tmp_path / "empty", with_tables=[KERNELS, CALLS, RANGES])) == []
    assert rows(Export().write(tmp_path / "nothing")) == []


def test_without_string_ids_it_is_no_export(file):
    path = step().write(file, without_tables=["StringIds"])
    with pytest.raises(BadInputError, match=r"no table StringIds.*found .*CUPTI_ACTIVITY"):
        fastprof.open(path)


# Columns that are missing.


# Profile columns that depend on a missing column.
LOST = {
    "deviceId": {"device"},
    "streamId": {"stream"},
    "correlationId": {"correlation", "tid", "launch", "launch_start"},
    "globalPid": {"pid"},
    "gridX": {"grid"}, "gridY": {"grid"}, "gridZ": {"grid"},
    "blockX": {"block"}, "blockY": {"block"}, "blockZ": {"block"},
    "nameId": {"launch"},
}  # fmt: skip
OF_RANGES = {"seq", "layer", "dir", "op", "ranges"}


@pytest.mark.parametrize("name", optional(KERNELS, "start", "end", "demangledName"))
def test_every_other_column_of_kernels_is_optional(name, file):
    path = step().write(file, "2026", without_columns={KERNELS: [name]})
    lost = LOST.get(name, set()) | (OF_RANGES if name == "correlationId" else set())
    kept = [key for key in KEYS if key not in lost]
    assert rows(path, *kept) == [
        tuple(value for key, value in zip(KEYS, row, strict=True) if key in kept) for row in STEP
    ]


# Columns that a file lacks, by table: what its rows say.
LACKING = [
    *(({KERNELS: [name]}, [key], [(None,)] * 3) for name, key in (
        ("deviceId", "device"), ("streamId", "stream"), ("globalPid", "pid"), ("gridX", "grid"),
        ("blockY", "block"), ("correlationId", "launch"), ("registersPerThread", "registers"),
    )),
    # Missing parts are not taken for no shared memory at all.
    ({KERNELS: ["staticSharedMemory", "dynamicSharedMemory"]}, ["shared_memory"], [(None,)] * 3),
    ({KERNELS: ["demangledName"]}, ["kernel"], [("fw",), ("bw",), ("alone",)]),
    ({KERNELS: ["demangledName", "shortName"]}, ["sil", "dir"],
     [(15, "fprop"), (25, "bprop"), (10, None)]),
    ({CALLS: ["nameId"]}, ["tid", "launch"], [(1, None), (2, None), (1, None)]),
    ({RANGES: ["globalTid"]}, ["tid", "dir", "layer"],
     [(1, None, ()), (2, None, ()), (1, None, ())]),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "keys", "expected"), LACKING)
def test_what_a_missing_column_would_have_said_is_not_known(columns, keys, expected, file):
    assert rows(step().write(file, without_columns=columns), *keys) == expected


@pytest.mark.parametrize(
    ("table", "name"),
    [(KERNELS, "start"), (KERNELS, "end"), (CALLS, "start"), (CALLS, "globalTid"),
     (RANGES, "start"), (RANGES, "eventType")],
)  # fmt: skip
def test_a_needed_column_that_is_missing_is_named(table, name, file):
    path = step().write(file, without_columns={table: [name]})
    with pytest.raises(BadInputError, match=f"table {table} has no column {name}; it has "):
        fastprof.open(path)


def test_columns_are_found_by_name_in_any_order(file):
    path = step().write(file)
    for table in (KERNELS, CALLS, RANGES):
        names = [row[1] for row in query(path, f"PRAGMA table_info({table})")]
        columns = ", ".join(names[::-1])
        execute(
            path,
            f"CREATE TABLE other AS SELECT {columns} FROM {table}",
            f"DROP TABLE {table}",
            f"ALTER TABLE other RENAME TO {table}",
        )
    assert rows(path) == STEP


# Texts of ranges.


def test_registered_text_is_that_of_its_id(file):
    export = Export()
    torch = "aten::mm, seq = 7, op_id = 9, sizes = [[2, 3], [3, 4]]"
    for at, text in enumerate(["layer:a", "mine", "{'mod': 'M', 'strRepr': ''}", torch]):
        export.push_pop(at, 100 - at, text, tid=1, registered=True)
    export.launch(50, 51, corr=1, tid=1).kernel(60, 61, corr=1)
    path = export.write(file)
    assert rows(path, "layer", "ranges", "dir", "op", "seq") == [
        (("a",), ("mine",), "fprop", "mm", 7)
    ]


def test_text_wins_over_a_text_id(file):
    export = Export()
    export.push_pop(0, 100, "layer:text", tid=1, textId=export.string("layer:id"))
    export.launch(50, 51, corr=1, tid=1).kernel(60, 61, corr=1)
    assert column(export.write(file), "layer") == [("text",)]


def test_a_range_without_any_text_encloses_but_says_nothing(file):
    export = Export().push_pop(0, 100, "layer:a", tid=1)
    export.push_pop(10, 90, None, tid=1)
    export.push_pop(11, 89, None, tid=1, textId=12345)
    export.push_pop(12, 88, "", tid=1)
    export.launch(50, 51, corr=1, tid=1).kernel(60, 61, corr=1)
    assert rows(export.write(file), "layer", "dir") == [(("a",), "fprop")]


# Ends of ranges.


def test_a_range_that_was_never_closed_goes_on_to_the_end(file):
    export = Export().push_pop(0, None, "layer:open", tid=1)
    export.push_pop(10, 20, "layer:shut", tid=1)
    for at in (15, 10**18):
        export.launch(at, at + 1, corr=at, tid=1).kernel(at + 2, at + 3, corr=at)
    assert column(export.write(file), "layer") == [("open", "shut"), ("open",)]


def test_a_mark_encloses_nothing(file):
    export = Export().push_pop(0, 100, "layer:a", tid=1)
    export.mark(10, "layer:mark", tid=1)
    export.mark(20, "layer:imported", tid=1, event="NvtxtMark")
    export.launch(20, 20, corr=1, tid=1).kernel(30, 40, corr=1)
    assert column(export.write(file), "layer") == [("a",)]


def test_a_range_that_ends_before_it_starts_encloses_nothing(file):
    export = Export().push_pop(0, 100, "layer:a", tid=1)
    export.push_pop(40, 30, "layer:back", tid=1)
    export.launch(35, 45, corr=1, tid=1).kernel(50, 60, corr=1)
    assert column(export.write(file), "layer") == [("a",)]


def test_a_range_that_spans_exactly_its_call_encloses_it(file):
    export = Export().push_pop(10, 20, "layer:exact", tid=1)
    export.launch(10, 20, corr=1, tid=1).kernel(30, 40, corr=1)
    assert column(export.write(file), "layer") == [("exact",)]


# Types of events.


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("NvtxPushPopRange", ("r",)),
        ("NvtxtPushPopRange", ("r",)),
        ("NvtxStartEndRange", ("r",)),
        ("NvtxtStartEndRange", ("r",)),
        ("NvtxMark", ()),
        ("NvtxtMark", ()),
        ("NvtxCategory", ()),
        ("NvtxThread", ()),
        ("NvtxDomainCreate", ()),
        ("NvtxDomainDestroy", ()),
    ],
)
@pytest.mark.parametrize("schema", ["2021", "2024"])
def test_only_push_pop_and_start_end_events_are_ranges(event, expected, schema, file):
    export = Export().push_pop(0, 100, "layer:r", tid=1, event=event)
    export.launch(10, 11, corr=1, tid=1).kernel(20, 21, corr=1)
    assert column(export.write(file, schema), "layer") == [expected]


def test_the_export_itself_says_what_its_numbers_of_events_mean(file):
    other = {name: number + 1000 for name, number in nsys_schemas.EVENT_TYPES.items()}
    assert rows(step(other).write(file)) == STEP


def test_numbers_of_events_may_be_exchanged(file):
    other = dict(nsys_schemas.EVENT_TYPES)
    other["NvtxMark"], other["NvtxPushPopRange"] = 59, 34
    export = step(other)
    export.push_pop(15, 45, "layer:mark", tid=1, event="NvtxMark")
    assert rows(export.write(file)) == STEP


# Kernels and their calls.


def test_two_processes_may_use_the_same_correlation_ids_and_threads(file):
    export = Export()
    for pid, name in ((100, "a"), (200, "b")):
        export.push_pop(0, 100, f"layer:{name}", tid=5, pid=pid)
        export.push_pop(1, 99, "aten::mul, seq = 4", tid=5, pid=pid)
        export.launch(10, 11, corr=1, tid=5, pid=pid)
        export.kernel(20 + pid, 21 + pid, corr=1, pid=pid)
        export.push_pop(1000, 1100, "MulBackward0, seq = 4", tid=6, pid=pid)
        export.launch(1010, 1011, corr=2, tid=6, pid=pid)
        export.kernel(2000 + pid, 2001 + pid, corr=2, pid=pid)
    assert rows(export.write(file), "pid", "tid", "layer", "dir") == [
        (100, 5, ("a",), "fprop"),
        (200, 5, ("b",), "fprop"),
        (100, 6, ("a",), "bprop"),
        (200, 6, ("b",), "bprop"),
    ]


def test_processes_of_two_machines_are_two_processes(file):
    export = Export()
    far = (7 << 48) | global_tid(0, 0)
    for offset, name in ((0, "here"), (far, "there")):
        thread, process = global_tid(PID, 5) + offset, global_tid(PID, 0) + offset
        export.push_pop(0, 100, f"layer:{name}", tid=5, globalTid=thread)
        export.launch(10, 11, corr=1, tid=5, globalTid=thread)
        export.kernel(20 + (offset > 0), 30, corr=1, globalPid=process)
    assert rows(export.write(file), "pid", "tid", "layer") == [
        (PID, 5, ("here",)),
        (PID, 5, ("there",)),
    ]


def test_kernel_of_zero_length_keeps_its_row(file):
    export = Export().launch(0, 1, corr=1, tid=1).kernel(10, 10, corr=1)
    assert rows(export.write(file), "sil", "tid") == [(0, 1)]


def test_kernel_before_its_launch_keeps_its_row_and_its_launch(file):
    export = Export().push_pop(40, 60, "layer:a", tid=1).launch(50, 55, corr=1, tid=1)
    export.kernel(10, 20, corr=1)
    assert rows(export.write(file), "start", "launch_start", "layer") == [(10, 50, ("a",))]


def test_kernel_without_a_launch_keeps_its_row(file):
    export = Export().push_pop(0, 100, "layer:a", tid=1)
    export.launch(10, 11, corr=1, tid=1)
    export.kernel(20, 30, corr=1).kernel(40, 60, corr=2)
    path = export.write(file)
    assert rows(path, "sil", "tid", "layer", "dir") == [
        (10, 1, ("a",), "fprop"),
        (20, None, (), None),
    ]
    known = fastprof.open(path).coverage
    assert (known.total, known.known["launch"]) == (30, 10)


def test_a_missing_correlation_id_is_no_id(file):
    export = Export().push_pop(0, 100, "layer:a", tid=1)
    export.launch(10, 11, corr=None, tid=1).kernel(20, 30, corr=None)
    assert rows(export.write(file), "sil", "tid", "correlation", "layer") == [(10, None, None, ())]


def test_kernels_that_share_a_launch_all_get_it(file):
    export = Export().push_pop(0, 100, "layer:a", tid=1)
    export.launch(10, 11, corr=1, tid=1, name="cudaGraphLaunch_v10000")
    for at in range(20, 60, 10):
        export.kernel(at, at + 5, corr=1, graph_node=at)
    assert rows(export.write(file), "graph_node", "launch", "layer") == [
        (at, "cudaGraphLaunch_v10000", ("a",)) for at in range(20, 60, 10)
    ]


def test_rows_come_in_order_of_start(file):
    export = Export()
    for start in (50, 10, 30):
        export.kernel(start, start + 1, corr=start)
    path = export.write(file, shuffle_seed=1)
    assert rows(path, "idx", "start") == [(1, 10), (2, 30), (3, 50)]


def test_a_call_of_the_driver_inside_one_of_the_runtime_is_one_launch(file):
    export = Export().push_pop(0, 100, "layer:a", tid=1)
    export.launch(10, 30, corr=1, tid=1, name="cudaLaunchKernel_v7000")
    export.launch(15, 20, corr=1, tid=1, name="cuLaunchKernel", eventClass=1)
    export.kernel(40, 50, corr=1)
    path = export.write(file)
    assert rows(path, "tid", "layer") == [(1, ("a",))]
    assert len(fastprof.open(path)) == 1


# Graphs recorded as one unit.


@pytest.mark.parametrize("schema", [year for year in nsys_schemas.SCHEMAS if year >= "2022"])
def test_a_graph_that_was_captured_as_a_whole_is_a_row_that_says_so(schema, file):
    export = Export().push_pop(0, 100, "layer:a", tid=1)
    export.launch(10, 11, corr=1, tid=1, name="cudaGraphLaunch_v10000")
    export.graph_trace(20, 70, corr=1, graph=5, stream=9)
    export.launch(80, 81, corr=2, tid=1).kernel(90, 95, corr=2, name="k")
    path = export.write(file, schema)
    assert rows(path, "sil", "layer", "stream", "grid", "graph_id") == [
        (50, ("a",), 9, None, 5),
        (5, ("a",), 7, (1, 1, 1), None),
    ]
    graph, kernel = column(path, "kernel")
    assert ("graph" in graph, "5" in graph, kernel) == (True, True, "k")


def test_graphs_without_any_kernel_are_rows(file):
    export = Export().graph_trace(20, 70, corr=1)
    assert column(export.write(file), "sil") == [50]
