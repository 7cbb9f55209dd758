"""`fastprof stats`: the tables of nsys."""

import csv
import io
import json

import numpy as np
import pytest

import fastprof
from fastprof.analysis.stats.columns import TABLES
from fastprof.analysis.stats.statistics import Statistics
from fastprof.cli import main
from fastprof.errors import ReportError
from support.exports import Export
from support.kineto_files import KinetoFile
from support.nvprof_files import NvprofFile


def export():
    """Two kernels and a copy in nested ranges, and a range that another thread ended."""
    made = Export().push_pop(0, 100, "step", tid=1).push_pop(10, 60, "inner", tid=1, domain=3)
    made.mark(0, "lib", tid=1, event="NvtxDomainCreate", domain=3)
    made.push_pop(65, 70, "aten::mm, seq = 4, op_id = 9, sizes = [[2, 3], [3, 4]]", tid=1)
    made.push_pop(75, None, "open", tid=1).start_end(5, 25, "async", tid=1, end_tid=2)
    made.start_end(200, 210, "async", tid=3).mark(7, "mark", tid=1)
    made.launch(20, 30, corr=1, tid=1).launch(40, 42, corr=2, tid=1)
    made.launch(80, 90, corr=3, tid=1, name="cudaMemcpyAsync_v3020")
    made.launch(91, 95, corr=9, tid=1, name="cudaGraphInstantiate_v10000")
    made.kernel(50, 70, corr=1, name="gemm").kernel(41, 45, corr=2, name="gemm")
    made.copy(100, 130, corr=3, kind=1, n_bytes=2_000_000)
    return made.memset(140, 141, corr=99, n_bytes=500)


@pytest.fixture
def profile(tmp_path):
    return fastprof.open(export().write(tmp_path / "net.sqlite"), copies=True)


def rows(profile, name):
    table = profile.report("stats", names=[name])
    assert tuple(table.columns) == TABLES[name].columns
    return [tuple(row.values()) for row in table.rows()]


def test_ranges(profile):
    assert rows(profile, "nvtx_sum") == [
        (54.1, 100, 1, 100.0, 100.0, 100, 100, 0.0, "PushPop", ":step"),
        (27.0, 50, 1, 50.0, 50.0, 50, 50, 0.0, "PushPop", "lib:inner"),
        (16.2, 30, 2, 15.0, 15.0, 10, 20, 7.1, "StartEnd", ":async"),
        (2.7, 5, 1, 5.0, 5.0, 5, 5, 0.0, "PushPop",
         ":aten::mm, seq = 4, op_id = 9, sizes = [[2, 3], [3, 4]]"),
    ]  # fmt: skip


def test_gpu_work(profile):
    assert rows(profile, "cuda_gpu_kern_sum") == [(100.0, 24, 2, 12.0, 12.0, 4, 20, 11.3, "gemm")]
    assert rows(profile, "cuda_gpu_mem_time_sum") == [
        (96.8, 30, 1, 30.0, 30.0, 30, 30, 0.0, "[CUDA memcpy Host-to-Device]"),
        (3.2, 1, 1, 1.0, 1.0, 1, 1, 0.0, "[CUDA memset]"),
    ]
    assert rows(profile, "cuda_gpu_mem_size_sum") == [
        (2.0, 1, 2.0, 2.0, 2.0, 2.0, 0.0, "[CUDA memcpy Host-to-Device]"),
        (0.001, 1, 0.001, 0.001, 0.001, 0.001, 0.0, "[CUDA memset]"),
    ]  # 0.0005 MB is rounded


def test_api_calls_are_printed_with_versions_of_five_digits_only(profile):
    assert rows(profile, "cuda_api_sum") == [
        (46.2, 12, 2, 6.0, 6.0, 2, 10, 5.7, "cudaLaunchKernel"),
        (38.5, 10, 1, 10.0, 10.0, 10, 10, 0.0, "cudaMemcpyAsync"),
        (15.4, 4, 1, 4.0, 4.0, 4, 4, 0.0, "cudaGraphInstantiate_v10000"),
    ]


def test_queue_times_are_those_of_kernels_that_waited(profile):
    assert rows(profile, "cuda_kern_exec_sum") == [
        (100, 1, 0, 2, 1, 27.5, 27.5, 5, 50, 31.8, 6.0, 6.0, 2, 10, 5.7,
         20.0, 20.0, 20, 20, 0.0, 12.0, 12.0, 4, 20, 11.3, "cudaLaunchKernel", "gemm"),
    ]  # fmt: skip


def test_numbers_are_rounded_as_nsys_rounds_them():
    ids = np.zeros(4, np.int32)
    mean = Statistics(ids, np.array([1239, 1239, 1239, 1240]), 1).spread()[0]  # 1239.25
    assert mean.values.tolist() == [1239.3]
    assert Statistics(ids[:1], np.array([62_500]), 1).sum_in_mb().values.tolist() == [0.062]
    assert Statistics(ids[:1], np.array([500]), 1).sum_in_mb().values.tolist() == [0.001]


def test_a_kernel_in_nested_ranges_of_one_name_is_one_instance(tmp_path):
    made = Export().push_pop(0, 100, "step", tid=1).push_pop(10, 60, "step", tid=1)
    made.launch(20, 30, corr=1, tid=1).kernel(50, 70, corr=1, name="gemm")
    made.push_pop(110, 150, "a", tid=1).launch(120, 130, corr=2, tid=1)
    made.kernel(130, 150, corr=2, name="gemm")  # starts when the call returns: waits for 0 ns
    profile = fastprof.open(made.write(tmp_path / "net.sqlite"))
    assert [row[:7] for row in rows(profile, "nvtx_kern_sum")] == [
        (":a", "PushPop", 100, 1, 1, 1, 20),
        (":step", "PushPop", 100, 1, 2, 1, 40),
    ]
    assert rows(profile, "cuda_kern_exec_sum")[0][3:5] == (2, 2)


def test_kernels_are_in_order_of_the_mean_time_from_launch_to_end(tmp_path):
    made = Export()
    for i in range(5):
        made.launch(100 * i, 100 * i + 5, corr=i, tid=1).kernel(100 * i, 100 * i + 20, corr=i)
    made.launch(900, 905, corr=9, tid=1).kernel(910, 950, corr=9, name="slow")
    profile = fastprof.open(made.write(tmp_path / "net.sqlite"))
    assert rows(profile, "cuda_kern_exec_sum")[0][-1] == "slow"


def test_a_few_rows_of_a_large_table_have_the_statistics_of_all_rows():
    random, n_groups = np.random.default_rng(0), 70_000
    ids = random.integers(-1, n_groups, 200_000).astype(np.int32)
    values = random.integers(0, 1000, len(ids))
    columns, rows = Statistics(ids, values, n_groups).times(), np.array([69_999, 5, 5_000, 0])
    for column in columns:
        assert len(column.take(rows)) == 4 < len(column) == n_groups
        assert np.array_equal(column.take(rows).values, column.values[rows], equal_nan=True)
    medians = [np.round(np.median(values[ids == group]), 1) for group in rows]
    assert columns[4].take(rows).values.tolist() == medians


def test_ranges_projected_on_the_gpu(profile):
    assert rows(profile, "nvtx_gpu_proj_sum") == [
        (":step", "PushPop", 89, 100, 1, 89.0, 89.0, 89, 89, 0.0, 3, 3.0, 0.0, 2.0),
        (":open", "PushPop", 30, 0, 1, 30.0, 30.0, 30, 30, 0.0, 1, 1.0, 1.0, 0.0),
        ("lib:inner", "PushPop", 29, 50, 1, 29.0, 29.0, 29, 29, 0.0, 2, 2.0, 1.0, 0.0),
    ]
    assert rows(profile, "nvtx_gpu_proj_trace") == [
        (":step", 41, 89, 0, 100, "PushPop", 100, 1, 3, 0, 2, 0, None, ":0"),
        ("lib:inner", 41, 29, 10, 50, "PushPop", 100, 1, 2, 1, 0, 1, 0, ":0:1"),
        (":open", 100, 30, 75, None, "PushPop", 100, 1, 1, 1, 0, 3, 0, ":0:3"),
    ]
    assert sorted(rows(profile, "nvtx_kern_sum")) == [
        (":step", "PushPop", 100, 1, 1, 2, 24, 12.0, 12.0, 4, 20, 11.3, "gemm"),
        ("lib:inner", "PushPop", 100, 1, 1, 2, 24, 12.0, 12.0, 4, 20, 11.3, "gemm"),
    ]


def test_a_range_that_ended_contains_no_later_launch(tmp_path):
    made = Export().start_end(0, 50, "first", tid=1).start_end(20, 100, "second", tid=1)
    made.launch(60, 62, corr=1, tid=1).kernel(70, 80, corr=1)
    profile = fastprof.open(made.write(tmp_path / "net.sqlite"))
    assert [row[:5] for row in rows(profile, "nvtx_kern_sum")] == [
        (":second", "StartEnd", 100, 1, 1)
    ]


def test_the_default_tables_have_data(profile, tmp_path, capsysbinary):
    tables = profile.report("stats")
    assert list(tables) == [name for name, each in TABLES.items() if each.is_default]
    assert len(tables) == 5
    made = Export().launch(0, 5, corr=1, tid=1).kernel(1, 2, corr=1)
    path = str(made.write(tmp_path / "small.sqlite"))
    assert main(["stats", path, "--csv"]) == 0
    first, second = capsysbinary.readouterr().out.decode().split("\n\n")
    assert next(csv.reader(io.StringIO(first))) == list(TABLES["cuda_api_sum"].columns)
    assert next(csv.reader(io.StringIO(second))) == list(TABLES["cuda_gpu_kern_sum"].columns)
    assert main(["stats", path, "--json"]) == 0
    result = json.loads(capsysbinary.readouterr().out)
    assert result["schema"] == 1 and result["file"] == path
    assert result["tables"]["cuda_gpu_kern_sum"]["rows"][0]["Total Time (ns)"] == 1
    assert main(["stats", path]) == 0
    assert b"CUDA API Summary (cuda_api_sum)\n" in capsysbinary.readouterr().out
    assert main(["stats", path, "--markdown", "--limit", "1"]) == 0


def test_torch_and_nvprof_files(tmp_path):
    trace = KinetoFile().op(0, 50, "aten::mm", dims=[[2, 3], [3, 4]], types=["float"] * 2, seq=4)
    trace.op(60, 70, "aten::mm", dims=[[5, 3], [3, 4]], types=["float"] * 2, seq=5)
    trace.launch(10, 20, corr=7).kernel(30, 40, corr=7)
    profile = fastprof.open(trace.write(tmp_path / "net.json"))
    assert [row[-1] for row in rows(profile, "nvtx_sum")] == [":aten::mm"]
    assert [row[:3] for row in rows(profile, "nvtx_gpu_proj_sum")] == [(":aten::mm", "PushPop", 10)]
    file = NvprofFile().push_pop(0, 100, "mine", tid=1).launch(10, 20, corr=7, tid=1)
    profile = fastprof.open(file.kernel(40, 50, corr=7).write(tmp_path / "net.sql"))
    assert [row[-1] for row in rows(profile, "cuda_api_sum")] == ["cudaLaunchKernel"]
    assert [row[0] for row in rows(profile, "nvtx_kern_sum")] == [":mine"]


def test_dict_lines_have_kernels_only(tmp_path):
    path, lines = export().write(tmp_path / "net.sqlite"), tmp_path / "net.dict"
    assert main(["parse", str(path), "-o", str(lines)]) == 0
    profile = fastprof.open(lines)
    assert list(profile.report("stats")) == ["cuda_gpu_kern_sum"]
    assert rows(profile, "cuda_gpu_kern_sum")[0][1:3] == (24, 2)
    assert rows(profile, "cuda_gpu_mem_time_sum") == rows(profile, "cuda_gpu_mem_size_sum") == []


def test_wrong_names_and_options_are_refused(profile, tmp_path, usage_error):
    with pytest.raises(ReportError, match="unknown table 'nvtx'; did you mean nvtx_sum"):
        profile.report("stats", names=["nvtx"])
    path = str(export().write(tmp_path / "other.sqlite"))
    for options, message in (
        (["--sort", "Name"], "expected one table for --sort Name, found 5; name one of: nvtx_sum"),
        (["-c", "Name"], "expected one table for --columns Name, found 5"),
    ):
        assert message in usage_error("stats", path, *options)


def test_columns_with_units_have_the_decimals_of_nsys():
    decimals = {
        heading.key: heading.decimals for kind in TABLES.values() for heading in kind.headings
    }
    assert decimals["Time (%)"] == decimals["Avg (ns)"] == decimals["QStdDev (ns)"] == 1
    assert decimals["Total (MB)"] == decimals["Max (MB)"] == 3
    assert decimals["Total Time (ns)"] == decimals["Instances"] == decimals["KMin (ns)"] == 0


def test_texts_that_are_made_on_request_are_those_of_every_output(profile):
    table = profile.report("stats", names=["nvtx_sum"])
    ranges = list(table["Range"])
    assert len(ranges) == table.n_rows == 4
    assert list(table.sort("Range")["Range"]) == sorted(ranges)
    pytest.importorskip("pandas")
    assert table.to_pandas()["Range"].tolist() == ranges
    pytest.importorskip("pyarrow")
    assert table.to_arrow().column("Range").to_pylist() == ranges
    stacks = profile.report("stats", names=["nvtx_gpu_proj_trace"])["RangeStack"]
    assert list(stacks) == [":0", ":0:1", ":0:3"]
