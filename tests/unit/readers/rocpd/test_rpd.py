"""Files of rocmProfileData: from rows to rows; and against plain SQL."""

import sqlite3

import pytest

import fastprof
from fastprof.cli import main
from fastprof.errors import BadInputError
from fastprof.profile.recount import recount
from support.rpd_files import PID, TID, RpdFile

every_version = pytest.mark.parametrize("version", [1, 2, 3])


def one(trace: RpdFile, at: int = 10, call: int = 7, **others) -> RpdFile:
    """The file with a call at a time and its kernel."""
    return trace.call(at, at + 5, call).kernel(1000 + at, 1012 + at, call, **others)


@every_version
def test_a_file_is_recognised_by_its_tables(opened, version):
    about = opened(one(RpdFile(version))).about
    assert (about.format, about.tool, about.schema_version) == (
        *("rpd", "rocmProfileData"),
        str(version),
    )


@every_version
def test_a_kernel_has_what_its_rows_say(rows, version):
    keys = ("kernel", "sil", "device", "grid", "block", "shared_memory", "launch", "tid", "pid")
    trace = one(RpdFile(version), name="void at::native::relu<4>(int)", grid=(3, 2, 1), gpu=5)
    assert rows(trace, *keys) == [
        ("relu", 12, 5, (3, 2, 1), (256, 1, 1), 64, "hipLaunchKernel", TID, PID)
    ]


def test_sizes_of_grids_are_work_items_if_all_are_multiples_of_their_groups(rows):
    trace = one(RpdFile(), grid=(512, 2, 1))
    assert rows(trace, "grid") == [(2, 2, 1)]
    trace.call(50, 55, 8).kernel(2000, 2010, 8, grid=(100, 1, 1))
    assert rows(trace, "grid") == [(512, 2, 1), (100, 1, 1)]


@every_version
def test_streams_are_those_of_calls_or_else_queues(rows, version):
    trace = one(RpdFile(version), queue=4, stream="0x0").call(50, 55, 8)
    trace.kernel(2000, 2010, 8, queue=6, stream="0x7f1234560000")
    assert rows(trace, "stream") == ([4, 6] if version == 1 else [0, 1])


@every_version
def test_ranges_of_roctx_are_around_the_launch(opened, version):
    trace = one(RpdFile(version)).marker(0, 100, 1, "step").marker(5, 50, 2, "aten::mm, seq = 12")
    trace.marker(0, 100, 3, "of another thread", tid=TID + 1).marker(8, 8, 4, "a mark")
    profile = opened(trace)
    kernels = profile.kernels
    assert [kernels[key].tolist() for key in ("ranges", "op", "seq")] == [[("step",)], ["mm"], [12]]
    names = profile.ranges.name.array().tolist()
    assert names == ["step", "of another thread", "aten::mm"]


def test_work_of_other_domains_are_ranges_and_of_the_tracer_is_left_out(opened):
    trace = one(RpdFile(3)).call(0, 100, 1, "forward", domain="miopen")
    profile = opened(trace.call(0, 100, 2, "writeRows", domain="rpd_tracer"))
    assert profile.kernels["ranges"].tolist() == [("forward",)]
    assert profile.ranges.domain.array().tolist() == ["miopen"]
    assert profile.api.name.array().tolist() == ["hipLaunchKernel"]


@pytest.mark.parametrize("version", [1, 2])
def test_without_domains_names_tell_calls_from_the_tracers_own_work(opened, version):
    trace = one(RpdFile(version)).call(0, 100, 1, "OpTable::writeRows")
    profile = opened(trace.call(2, 3, 2, "__hipPushCallConfiguration"))
    names = sorted(profile.api.name.array().tolist())
    assert (names, len(profile.ranges)) == (["__hipPushCallConfiguration", "hipLaunchKernel"], 0)


@every_version
@pytest.mark.parametrize(
    ("kind", "name", "direction"),
    [
        ("CopyHostToDevice", "Memcpy HtoD (Host -> Device)", "HtoD"),
        ("MEMORY_COPY_DEVICE_TO_HOST", "Memcpy DtoH (Device -> Host)", "DtoH"),
        ("CopyDeviceToDevice2D", "Memcpy DtoD (Device -> Device)", "DtoD"),
    ],
)
def test_copies_have_direction_and_bytes(rows, version, kind, name, direction):
    trace = RpdFile(version).call(0, 5, 3, "hipMemcpyAsync").copy(10, 30, 3, 4096, kind)
    keys = ("kind", "name", "copied", "copy_direction", "launch")
    expected = [("memcpy", name, 4096, direction, "hipMemcpyAsync")]
    assert rows(trace, *keys, copies=True) == expected
    assert rows(trace, *keys) == []


@pytest.mark.parametrize("version", [2, 3])
def test_copies_of_one_call_share_its_size_which_is_of_none(rows, version):
    trace = RpdFile(version).call(0, 5, 3, "hipMemcpy").copy(10, 30, 3, 4096).copy(30, 50, 3)
    assert rows(trace, "copied", copies=True) == [None, None]


def test_fills_are_memsets_and_barriers_are_nothing(rows):
    trace = RpdFile().call(0, 5, 3, "hipMemsetAsync").copy(10, 30, 3, kind="FillBuffer")
    trace.copy(40, 50, 3, kind="MarkerBarrier")
    assert rows(trace, "kind", "sil", copies=True) == [("memset", 20)]


def test_work_of_one_graph_launch_is_launched_by_it(rows):
    trace = RpdFile().call(0, 5, 3, "hipGraphLaunch")
    trace.tables["rocpd_kernelapi"].clear()
    for i in range(3):
        trace._op(10 * i + 10, 10 * i + 15, 3, "KernelExecution", f"k{i}", 0, 1)
    assert rows(trace, "name", "launch", "grid") == [
        (f"k{i}", "hipGraphLaunch", None) for i in range(3)
    ]


def test_processes_of_one_file_have_their_own_work(rows):
    trace = one(RpdFile(), 10, 7).call(20, 25, 2**32 + 7, pid=PID + 1, tid=5)
    trace.kernel(2000, 2010, 2**32 + 7).marker(0, 100, 1, "a").marker(0, 99, 2, "b", pid=PID + 1)
    assert rows(trace, "pid", "ranges") == [(PID, ("a",)), (PID + 1, ())]


def test_lost_names_are_told(opened):
    trace = one(RpdFile())
    trace.tables["rocpd_op"][0] |= {"description_id": 7, "opType_id": 7}
    profile = opened(trace)
    assert profile.kernels["name"].tolist() == [None]
    (warning,) = profile.warnings
    assert "1 names of GPU work are not in rocpd_string" in warning


def test_other_tables_of_the_name_are_refused(tmp_path):
    path = tmp_path / "other.rpd"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY)")
    connection.close()
    with pytest.raises(BadInputError, match=r"nor a rocpd database .*found rocpd_op"):
        fastprof.open(path)


@every_version
def test_rows_agree_with_plain_sql(tmp_path, opened, version):
    trace = RpdFile(version)
    for i in range(40):
        trace.call(100 * i, 100 * i + 9, i + 1, ("hipLaunchKernel", "hipMemcpyAsync")[i % 5 == 4])
        if i % 5 == 4:
            trace.copy(100 * i + 50, 100 * i + 60 + i, i + 1, 64 * i)
        elif i % 7:
            trace.kernel(100 * i + 50 - i, 100 * i + 90 + i, i + 1, f"k{i % 3}", gpu=i % 2)
    path = trace.write(tmp_path / "trace.rpd")
    connection = sqlite3.connect(path)
    truth = connection.execute(
        "SELECT op.start, op.end - op.start, gpuId, d.string, n.string, api.id, api.start, pid, "
        "tid FROM rocpd_op op JOIN rocpd_api_ops ON op_id = op.id JOIN rocpd_api api "
        "ON api.id = api_id JOIN rocpd_string d ON d.id = description_id "
        "JOIN rocpd_string n ON n.id = apiName_id ORDER BY op.start"
    ).fetchall()
    connection.close()
    keys = ("start", "sil", "device", "name", "launch", "correlation", "launch_start", "pid", "tid")
    result = [
        tuple("" if key == "name" and row["kind"] == "memcpy" else row[key] for key in keys)
        for row in opened(trace).rows()
    ]
    assert result == truth
    totals = recount(path, True)
    assert sum(totals.rows.values()) == len(truth)
    assert sum(totals.time.values()) == sum(row[1] for row in truth)


def test_reports_of_a_file_say_what_is_missing(tmp_path, capsys):
    path = str(one(RpdFile(), name="mine(float*)").write(tmp_path / "trace.rpd"))
    assert main([path]) == 0
    assert "rocmProfileData file, HIP C++" in " ".join(capsys.readouterr().out.split())
    main(["memory", path])
    assert "rocmProfileData records no allocations" in capsys.readouterr().out
    assert main(["prof", "--check", path]) == 0
