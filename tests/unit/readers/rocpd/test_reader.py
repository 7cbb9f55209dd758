"""Rows of rocpd databases of all versions to those of a recording."""

import sqlite3
from pathlib import Path

import pytest
from bench import rocpd_schema

import fastprof
from fastprof.errors import BadInputError
from fastprof.readers.rocpd import reader
from fastprof.readers.sqlite.database import Database
from oracle import rocpd
from support.rocpd_files import CPU, GPU_0, GPU_1, HSA, RCCL, Rocpd

VERSIONS = pytest.mark.parametrize("version", rocpd_schema.VERSIONS)


def step(version: str = "3.0.0", **others) -> Rocpd:
    """A range around two launches, and a copy."""
    run = Rocpd(version, **others)
    run.range(0, 900, "aten::mm, seq = 7, op_id = 3, sizes = [[4, 8], [8, 2]]", stack=50)
    run.call(100, 200, 1).call(300, 400, 2, "hipMemcpyAsync").call(500, 600, 3)
    run.kernel(250, 350, 1).copy(420, 480, 2).kernel(700, 950, 3, "add", agent=GPU_1, stream=2)
    return run


def columns(path: Path, *names: str) -> list[tuple]:
    profile = fastprof.open(path)
    return list(zip(*(values(profile, name) for name in names), strict=True))


def values(profile: fastprof.Profile, name: str) -> list:
    column = profile.column(name)
    return [column.at(i) for i in range(len(profile))]


@VERSIONS
def test_a_step(version, tmp_path):
    path = step(version).write(tmp_path / "run.db")
    names = ("start", "name", "device", "stream", "correlation", "launch", "op", "tid", "pid")
    assert columns(path, *names) == [
        (250, "gemm", 0, 1, 1, "hipLaunchKernel", "mm", 101, 100),
        (420, "[HIP memcpy HtoD]", 0, 1, 2, "hipMemcpyAsync", "mm", 101, 100),
        (700, "add", 1, 2, 3, "hipLaunchKernel", "mm", 101, 100),
    ]


@VERSIONS
def test_sizes_and_registers(version, tmp_path):
    path = step(version).write(tmp_path / "run.db")
    names = ("grid", "block", "registers", "shared_memory")
    assert columns(path, *names)[0] == ((2, 2, 1), (128, 1, 1), 32, 512)


@VERSIONS
def test_seq_and_shapes_are_those_of_the_message(version, tmp_path):
    profile = fastprof.open(step(version).write(tmp_path / "run.db"))
    assert [values(profile, name)[0] for name in ("seq", "params")] == [7, "M=2,N=4,K=8,na,"]


@pytest.mark.parametrize(
    "message", ['say "hi"', "back\\slash", "two\nlines", "é \u2028 \U0001f600", "", "{'a': 1}"]
)
def test_messages_are_decoded(message, tmp_path):
    path = step().range(1000, 2000, message).write(tmp_path / "run.db")
    with Database(path) as database:
        assert message in reader.read(database).labels
    assert message in {range_.name for range_ in rocpd.read(path).ranges}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"message": 5}', '{"a": {"message": "x"}}']
)
def test_without_a_message_a_range_has_the_name_of_its_region(text, tmp_path):
    run = Rocpd()
    run.range(0, 10, "y").rows["event"][-1]["extdata"] = text
    run.rows["region"][-1]["name_id"] = run.string("phase 1")
    with Database(run.kernel(1, 2, 1).write(tmp_path / "run.db")) as database:
        assert reader.read(database).labels == ["phase 1"]


def test_functions_of_roctx_are_calls(tmp_path):
    run = step().region(0, 5, "roctxProfilerPause", "MARKER_CONTROL_API", 9)
    run.region(6, 8, "roctxRangePop", "MARKER_CORE_API", 10)
    profile = fastprof.open(run.write(tmp_path / "run.db"))
    names = profile.api.name
    assert {"roctxProfilerPause", "roctxRangePop"} <= set(names.values)
    assert len(profile.ranges) == 1


@VERSIONS
@pytest.mark.parametrize("category", ["KERNEL_DISPATCH", "rocm_kernel_dispatch", "host", None])
def test_dispatches_that_regions_repeat_count_once(version, category, tmp_path):
    run = step(version)
    run.region(250, 350, "gemm", category, 1)
    run.region(700, 950, "add", category, 3, event_id=run.rows["kernel_dispatch"][-1]["event_id"])
    profile = fastprof.open(run.write(tmp_path / "run.db"))
    assert len(profile) == 3
    assert len(profile.ranges) == 1
    assert [profile.api.name.at(i) for i in range(3)].count("gemm") == 0


def test_host_functions_are_ranges(tmp_path):
    run = step().region(50, 950, "train(int)", "host", 0)
    assert len(fastprof.open(run.write(tmp_path / "run.db")).ranges) == 2


def test_samples_of_call_stacks_are_neither_calls_nor_ranges(tmp_path):
    run = step().region(50, 950, "main", "timer_sampling", 0).region(1, 2, "x", "KFD_QUEUE", 0)
    profile = fastprof.open(run.write(tmp_path / "run.db"))
    assert (len(profile.ranges), len(profile.api)) == (1, 3)


def test_calls_without_kernels(tmp_path):
    run = Rocpd().call(100, 200, 1).call(300, 400, 2, "hipMalloc")
    profile = fastprof.open(run.write(tmp_path / "run.db"))
    assert (len(profile), len(profile.api)) == (0, 2)
    assert "0 kernels" not in str(profile.report("overview"))


def test_kernels_without_calls(tmp_path):
    run = Rocpd().kernel(250, 350, 1).kernel(400, 500, None).kernel(600, 700, 0)
    path = run.write(tmp_path / "run.db")
    assert columns(path, "launch", "correlation", "pid") == [
        (None, 1, 100), (None, None, 100), (None, None, 100),
    ]  # fmt: skip


def test_a_call_of_hip_launches_what_its_call_of_hsa_submits(tmp_path):
    run = Rocpd().call(100, 200, 1)
    run.region(120, 180, "hsa_signal_store_screlease", HSA, 2, parent=1)
    run.region(130, 140, "hsa_signal_store_relaxed", HSA, 3, parent=2)
    run.kernel(250, 350, 3)
    path = run.write(tmp_path / "run.db")
    assert columns(path, "launch", "correlation", "launch_start") == [("hipLaunchKernel", 1, 100)]


def test_parents_in_a_circle(tmp_path):
    run = Rocpd()
    for stack, parent in ((2, 3), (3, 2)):
        run.region(stack, 180, "hsa_queue", HSA, stack, parent=parent)
    assert columns(run.kernel(250, 350, 2).write(tmp_path / "run.db"), "launch") == [("hsa_queue",)]


def test_rccl_without_calls_of_hip_launches(tmp_path):
    run = Rocpd().region(100, 200, "ncclAllReduce", RCCL, 1).kernel(250, 350, 1)
    profile = fastprof.open(run.write(tmp_path / "run.db"))
    assert [values(profile, name) for name in ("launch", "launch_start")] == [
        ["ncclAllReduce"], [100],
    ]  # fmt: skip
    assert len(profile.ranges) == 1


@pytest.mark.parametrize("datatype", ["ncclFloat16", "6"])
def test_sizes_of_collectives(datatype, tmp_path):
    arguments = {"count": "1024", "datatype": datatype, "comm": "0x7f00", "stream": "0x1"}
    run = Rocpd().region(100, 400, "ncclAllReduce", RCCL, 1, arguments=arguments)
    run.call(200, 300, 2).kernel(500, 900, 2, "ncclDevKernel_Generic_1(ncclDevKernelArgs)")
    profile = fastprof.open(run.write(tmp_path / "run.db"))
    names = ("collective", "message_bytes", "process_group")
    assert [values(profile, name)[0] for name in names] == ["all_reduce", 2048, "0x7f00"]


COPIES = {
    # name, source, target: kind, device
    ("MEMORY_COPY_HOST_TO_DEVICE", CPU, GPU_1): ("HtoD", 1),
    ("MEMORY_COPY_DEVICE_TO_HOST", GPU_1, CPU): ("DtoH", 1),
    ("MEMORY_COPY_DEVICE_TO_DEVICE", GPU_1, GPU_1): ("DtoD", 1),
    ("MEMORY_COPY_DEVICE_TO_DEVICE", GPU_0, GPU_1): ("PtoP", 0),
    ("MEMORY_COPY_HOST_TO_HOST", CPU, CPU): ("HtoH", None),
    ("copy", CPU, GPU_1): ("HtoD", 1),  # the name tells nothing
    ("MEMORY_COPY_HOST_TO_DEVICE", GPU_1, GPU_1): ("HtoD", 1),  # as rocprof-sys writes both
    ("MEMORY_COPY_DEVICE_TO_HOST", CPU, CPU): ("DtoH", 0),  # that of the kernels on its stream
    ("copy", None, None): (None, 0),
}


@VERSIONS
@pytest.mark.parametrize("told", COPIES)
def test_directions_of_copies(told, version, tmp_path):
    name, source, target = told
    stream = 1 if COPIES[told][1] == 0 else 7
    run = step(version).copy(1000, 1100, 9, name=name, source=source, target=target, stream=stream)
    profile = fastprof.open(run.write(tmp_path / "run.db"))
    kind, device = COPIES[told]
    name = f"[HIP memcpy {kind}]" if kind else "[HIP memcpy]"
    assert [values(profile, each)[-1] for each in ("name", "device")] == [name, device]


def test_several_runs_in_one_file(tmp_path):
    """Two containers: both processes have the same number, and calls have the same ids."""
    others = step("3.0.2", suffix="_b")
    others.rows["info_node"][0]["machine_id"] = "another machine"
    for row in (*others.rows["kernel_dispatch"], *others.rows["memory_copy"],
                *others.rows["region"]):  # fmt: skip
        row["start"], row["end"] = row["start"] + 5, row["end"] + 5
    path = step().write(tmp_path / "run.db", others)
    names = ("start", "name", "device", "launch_start", "tid")
    got = columns(path, *names)
    assert got == [
        (250, "gemm", 0, 100, 101), (255, "gemm", 2, 105, 101),
        (420, "[HIP memcpy HtoD]", 0, 300, 101), (425, "[HIP memcpy HtoD]", 2, 305, 101),
        (700, "add", 1, 500, 101), (705, "add", 3, 505, 101),
    ]  # fmt: skip
    profile = fastprof.open(path)
    assert len(profile.api) == 6
    assert len(set(values(profile, "correlation"))) == 6


def test_two_processes_of_a_machine_share_its_gpus(tmp_path):
    path = step().write(tmp_path / "run.db", step(suffix="_b", pid=200))
    assert columns(path, "device", "pid")[:2] == [(0, 100), (0, 200)]
    profile = fastprof.open(path)
    assert values(profile, "launch_end") == [200, 200, 400, 400, 600, 600]


@pytest.mark.parametrize(
    ("queues", "streams", "expected"),
    [((1, 2), (0, 0), [1, 2]), ((1, 1), (0, 0), [0, 0]), ((1, 1), (3, 4), [3, 4]),
     ((5, 6), (0, 1), [0, 1]), ((1, 2), (1 << 40, 1 << 41), [0, 1])],
)  # fmt: skip
def test_queues_stand_for_unknown_streams(queues, streams, expected, tmp_path):
    run = Rocpd()
    for i, (queue, stream) in enumerate(zip(queues, streams, strict=True)):
        run.kernel(100 * i, 100 * i + 50, i + 1, queue=queue, stream=stream)
    assert columns(run.write(tmp_path / "run.db"), "stream") == [(each,) for each in expected]


@pytest.mark.parametrize("suffix", ["", "_1", "_a_b_c", "_operation_1", "_x y", "_x%y", "_region"])
def test_suffixes_of_tables(suffix, tmp_path):
    path = step(suffix=suffix).write(tmp_path / "run.db")
    assert [launch for (launch,) in columns(path, "launch")] == [
        "hipLaunchKernel", "hipMemcpyAsync", "hipLaunchKernel",
    ]  # fmt: skip
    assert str(fastprof.open(path).check())


def test_graphs(tmp_path):
    run = Rocpd("3.0.2").call(100, 200, 1, "hipGraphLaunch")
    run.kernel(250, 350, 1, graph_exec_id=4, graph_node_id=7).kernel(400, 500, 1, "add")
    with Database(run.write(tmp_path / "run.db")) as database:
        configs = reader.read(database).kernels.configs
    assert (configs.graph_id.tolist(), configs.graph_node.tolist()) == ([4, -1], [7, -1])


@pytest.mark.parametrize("kind", ["CPU", "NIC", None])
def test_indices_of_gpus(kind, tmp_path):
    """Without a usable index, GPUs are numbered by their place; other agents are none."""
    run = step()
    for row in run.rows["info_agent"]:
        row["type_index"] = None
        row["type"] = row["type"] if row["type"] == "GPU" else kind
    assert columns(run.write(tmp_path / "run.db"), "device") == [(0,), (0,), (1,)]


INFO = ("info_agent", "info_process", "info_thread", "info_kernel_symbol", "info_node", "arg",
        "pmc_event", "sample", "metadata", "track", "info_queue", "info_stream")  # fmt: skip
LARGE = ("event", "region", "kernel_dispatch", "memory_copy", "memory_allocate", "string")


@pytest.mark.parametrize("table", [*INFO, *LARGE])
def test_without_a_table(table, tmp_path):
    path = step().write(tmp_path / "run.db", without=(table,))
    profile = fastprof.open(path)
    expected = {"kernel_dispatch": 1, "memory_copy": 2}.get(table, 3)
    assert len(profile) == expected
    for name in ("overview", "summary", "idle", "copies", "launches", "ranges", "memory", "stats"):
        str(profile.report(name))


@VERSIONS
def test_nulls(version, tmp_path):
    """Each column that may be NULL is NULL."""
    run = step(version)
    for table in ("kernel_dispatch", "memory_copy", "region"):
        for row in run.rows[table]:
            for name in ("event_id", "tid", "src_agent_id", "dst_agent_id", "group_segment_size"):
                if name in row and not (name == "tid" and table == "region"):
                    row[name] = None
    profile = fastprof.open(run.write(tmp_path / "run.db"))
    assert values(profile, "launch") == [None] * 3
    assert values(profile, "sil") == [100, 60, 250]


def test_calls_and_ranges_without_a_thread_are_left_out(tmp_path):
    run = step("4.1.0").call(1000, 1100, 9).kernel(1200, 1300, 9)
    run.rows["region"][-1]["track_id"] = 99
    profile = fastprof.open(run.write(tmp_path / "run.db"))
    assert (len(profile.api), values(profile, "launch")[-1]) == (3, None)
    str(profile.report("whatif"))


def test_impossible_times(tmp_path):
    run = step().kernel(2000, 1500, 8).range(700, 600, "ends before it starts").call(900, 10, 8)
    profile = fastprof.open(run.write(tmp_path / "run.db"))
    assert values(profile, "launch_start")[-1] == 900
    assert len(profile.ranges) == 2


def test_unknown_kernels(tmp_path):
    run = step().kernel(1000, 1100, 8, kernel_id=99)
    profile = fastprof.open(run.write(tmp_path / "run.db"))
    assert values(profile, "name")[-1] is None
    assert "1 kernels are not in rocpd_info_kernel_symbol (ids 99)" in profile.warnings[0]


def test_mangled_names(tmp_path):
    run = Rocpd()
    run.symbol("x", display_name=None, kernel_name="_Z11transpose_aPiS_ii")
    path = run.kernel(0, 10, 1, "x").write(tmp_path / "run.db")
    assert columns(path, "name") == [("transpose_a(int*, int*, int, int)",)]


def test_events_that_are_not_numbered_in_order(tmp_path):
    run = step()
    place = {row["id"]: 1000 - 7 * row["id"] for row in run.rows["event"]}
    for rows in run.rows.values():
        for row in rows:
            if "event_id" in row:
                row["event_id"] = place[row["event_id"]]
    for row in run.rows["event"]:
        row["id"] = place[row["id"]]
    path = run.write(tmp_path / "run.db")
    assert [launch for (launch,) in columns(path, "launch")] == [
        "hipLaunchKernel", "hipMemcpyAsync", "hipLaunchKernel",
    ]  # fmt: skip


def test_ids_of_calls_beyond_32_bits(tmp_path):
    far = 1 << 33
    run = step()
    run.call(1000, 1100, far).call(1200, 1300, far + 1, "hipExtModuleLaunchKernel")
    path = (
        run.kernel(1400, 1500, far + 1, "far")
        .kernel(1500, 1600, 1, "near")
        .write(tmp_path / "run.db")
    )
    assert columns(path, "name", "correlation", "launch")[-2:] == [
        ("far", far + 1, "hipExtModuleLaunchKernel"), ("near", 1, "hipLaunchKernel"),
    ]  # fmt: skip


def test_more_categories_than_fit_in_8_bits(tmp_path):
    run = step()
    for number in range(200):
        run.region(2000 + number, 2001 + number, "f", f"OTHER_{number}", 0)
    run.range(3000, 3100, "last").call(3010, 3020, 9).kernel(3030, 3050, 9, "last")
    path = run.write(tmp_path / "run.db")
    assert columns(path, "name", "launch")[-1] == ("last", "hipLaunchKernel")
    with Database(path) as database:
        recording = reader.read(database)
    names = [recording.labels[label] for label in recording.ranges.label.tolist()]
    assert names[-1] == "last"
    assert names.count("f") == 200


def test_allocations(tmp_path):
    run = step()
    run.allocation(10, 0x1000, 4096).allocation(20, 0x2000, 512, agent=CPU)
    run.allocation(25, 0x3000, 100, level="SCRATCH")
    run.allocation(30, 0x1000, 0, "FREE", agent=None).allocation(40, 0, 0, "FREE", agent=None)
    memory = fastprof.open(run.write(tmp_path / "run.db")).memory_events
    assert memory.bytes.tolist() == [4096, 512, -4096]
    assert memory.device.tolist() == [0, -1, 0]
    assert memory.time.tolist() == [10, 20, 30]


@VERSIONS
def test_allocations_of_all_versions(version, tmp_path):
    run = step(version).allocation(10, 0x1000, 4096, stack=2)
    profile = fastprof.open(run.write(tmp_path / "run.db"))
    memory = profile.memory_events
    assert (memory.bytes.tolist(), memory.device.tolist()) == ([4096], [0])
    assert (memory.pid.tolist(), memory.tid.tolist()) == ([100], [101])
    assert "4.096" in str(profile.report("memory"))


def test_compressed_contents_are_refused(tmp_path):
    path = step().add("metadata", tag="compression", value="lz4-frame-v1").write(tmp_path / "x.db")
    with pytest.raises(BadInputError, match="compressed with lz4-frame-v1, which is not supported"):
        fastprof.open(path)


def test_another_format_with_similar_names_is_not_rocpd(tmp_path):
    """rocmProfileData has tables rocpd_string and rocpd_metadata too."""
    path = tmp_path / "trace.rpd"
    connection = sqlite3.connect(path)
    for name in ("rocpd_string", "rocpd_metadata", "rocpd_monitor"):
        connection.execute(f"CREATE TABLE {name} (id integer)")
    with pytest.raises(BadInputError, match="nor a rocpd database"):
        fastprof.open(path)
    for name in ("rocpd_op", "rocpd_api"):
        connection.execute(f"CREATE TABLE {name} (id integer)")
    connection.close()
    with pytest.raises(BadInputError, match="table rocpd_op has no column start"):
        fastprof.open(path)


def test_views_are_not_read(tmp_path):
    """Broken views and views that pose as tables change nothing."""
    run = step()
    path = run.write(tmp_path / "run.db")
    expected = columns(path, "start", "launch")
    connection = sqlite3.connect(path)
    for name in ("rocpd_region", "kernels", "rocpd_event"):
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM lost")
    connection.commit()
    connection.close()
    assert columns(path, "start", "launch") == expected


def test_a_file_with_a_log_is_refused(tmp_path):
    path = step().write(tmp_path / "run.db")
    (tmp_path / "run.db-wal").write_bytes(b"x")
    with pytest.raises(BadInputError, match=r"run\.db-wal exists"):
        fastprof.open(path)


@VERSIONS
def test_the_oracle_agrees(version, tmp_path):
    path = step(version).write(tmp_path / "run.db")
    got = columns(path, "start", "device", "stream", "pid", "correlation")
    contents = rocpd.read(path)
    work = sorted([*contents.kernels, *contents.copies], key=lambda each: each.start)
    assert got == [(each.start, each.device, each.stream, each.pid, each.stack) for each in work]
    assert [each.launch[0] for each in work] == [100, 300, 500]
