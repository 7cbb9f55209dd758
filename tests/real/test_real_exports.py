"""Profiles of real exports of 2021 to 2026 agree with SQL on the files."""

import hashlib
import io
import os
from collections import Counter

import numpy as np
import pytest

import fastprof
from fastprof.writers import COLUMNS, write_report
from real import open_traces
from support import dict_lines
from support.real_data import open_read_only, real, traces

EXPORTS = traces("nsys/*.sqlite", "pyprof/*.sqlite")
ALL_KEYS = tuple(column.key for column in COLUMNS)
EMITTED = "nsys/emit_nvtx_2gpu_nsys2026.sqlite"
GPU_WORK = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE")

every_export = pytest.mark.parametrize("path", EXPORTS)


def select(path, what, tables):
    """The rows of a SELECT from each of the tables that exist in the export."""
    connection = open_read_only(real(path))
    try:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        present = {name for (name,) in connection.execute(query)}
        rows = []
        for table in tables:
            if table in present:
                rows += connection.execute(f"SELECT {what} FROM {table}").fetchall()
        return rows
    finally:
        connection.close()


def csv_of(profile, keys=ALL_KEYS):
    file = io.BytesIO()
    write_report({key: profile.column(key) for key in keys}, keys, "csv", file)
    return file.getvalue().decode("utf-8", "surrogateescape").splitlines()


@every_export
def test_rows_are_the_kernels_and_graphs_in_order_of_start(path):
    expected = sorted(select(path, "start, end, deviceId, streamId", GPU_WORK))
    profile = open_traces.profile(path)
    columns = [profile.kernels[name] for name in ("start", "end", "device", "stream")]
    assert np.all(np.diff(columns[0]) >= 0)
    assert sorted(zip(*(column.tolist() for column in columns), strict=True)) == expected
    total = sum(end - start for start, end, *_ in expected)
    assert int(profile.kernels["sil"].sum()) == total == profile.coverage.total
    assert profile.warnings == []


@every_export
def test_kernels_have_the_launches_of_their_process_and_correlation_id(path):
    calls = select(
        path,
        "globalTid / 0x1000000, correlationId, start, globalTid % 0x1000000",
        ["CUPTI_ACTIVITY_KIND_RUNTIME"],
    )
    launches = {(process, corr): call for process, corr, *call in calls}
    kernels = select(path, "start, end, globalPid / 0x1000000, correlationId", GPU_WORK)
    expected = sorted(
        (start, end, *launches.get((process, corr), (None, None)))
        for start, end, process, corr in kernels
    )
    profile = open_traces.profile(path)
    columns = [profile.column(name) for name in ("start", "end", "launch_start", "tid")]
    result = [tuple(column.at(row) for column in columns) for row in range(len(profile))]
    assert sorted(result, key=str) == sorted(expected, key=str)


@every_export
def test_names_of_kernels_are_those_of_the_export(path):
    names = dict(select(path, "id, value", ["StringIds"]))
    expected = {names[name] for (name,) in select(path, "DISTINCT demangledName", GPU_WORK[:1])}
    result = set(open_traces.profile(path).kernels["name"])
    assert expected <= result
    assert all("graph" in name for name in result - expected)


@every_export
def test_the_file_and_its_folder_are_left_as_they_are(path):
    file = real(path)

    def state():
        return hashlib.sha256(file.read_bytes()).hexdigest(), sorted(os.listdir(file.parent))

    before = state()
    csv_of(fastprof.open(file))
    assert state() == before


@every_export
def test_without_backward_calls_dict_lines_give_the_report_of_the_trace(path):
    """Except for the remedies of tc_reason and the numbers of calls: dict lines contain neither the
    GPU nor the instance of a call."""
    profile = open_traces.profile(path)
    assert not any(row["dir"] == "bprop" and row["op"] for row in profile.rows())
    again = dict_lines.reopened(profile)
    keys = [column.key for column in COLUMNS if column.key not in ("tc_reason", "call")]
    for result, expected in zip(csv_of(again, keys), csv_of(profile, keys), strict=True):
        assert result == expected


def test_all_kernels_are_inside_of_a_hand_written_range_on_their_own_or_the_waiting_thread():
    kernels = open_traces.profile("nsys/ranges_rtx3070_nsys2025.sqlite").kernels
    assert len(kernels["path"]) == 17032 == int((kernels["path"] >= 0).sum())
    assert all(kernels["ranges"])
    # 6135 were launched by pt_autograd_0, outside of all ranges of its own.
    engine = kernels["tid"] == 55120
    assert (int(engine.sum()), int(kernels["sil"][engine].sum())) == (6135, 663412758)
    assert {ranges[-1] for ranges in kernels["ranges"][engine]} == {"Backward"}


def test_hand_written_ranges_give_no_op_and_the_engines_thread_a_direction():
    kernels = open_traces.profile("nsys/ranges_rtx3070_nsys2025.sqlite").kernels
    assert set(kernels["op"]) == {None}
    assert Counter(kernels["dir"].tolist()) == {None: 10897, "bprop": 6135}


def test_a_graph_that_was_captured_as_a_whole_says_that_it_is_one():
    path = "nsys/cudagraph_a100_nsys2024.sqlite"
    (_, (n_graphs,)) = select(path, "count(*)", GPU_WORK)
    graphs = [row for row in open_traces.profile(path).rows() if "graph" in row["name"]]
    assert len(graphs) == n_graphs == 10
    assert all(row["grid"] is None and row["launch"] for row in graphs)


@pytest.fixture(scope="module")
def emitted():
    return list(open_traces.profile(EMITTED).rows())


def test_kernels_inside_of_torchs_ranges_have_op_names(emitted):
    inside = [row for row in emitted if row["path"] is not None]
    assert len(inside) == 3986
    assert [row for row in inside if not row["op"]] == []
    assert {row["dir"] for row in inside} == {"fprop"}
    assert {row["op"] for row in inside} >= {"linear", "layer_norm", "FlashAttnFunc"}
    for row in inside:
        assert "op_id" not in row["op"]
        assert "seq =" not in row["op"]


def test_each_process_has_a_gpu_of_its_own(emitted):
    assert {(row["pid"], row["device"]) for row in emitted} == {(144, 0), (145, 1)}


def test_correlation_ids_of_two_processes_are_not_mixed_up(emitted):
    of_process = [
        {row["correlation"] for row in emitted if row["pid"] == pid} for pid in (144, 145)
    ]
    assert len(of_process[0] & of_process[1]) > 50
    for row in emitted:
        if row["launch_start"] is not None:
            assert row["launch_start"] <= row["start"]


def test_24_kernels_of_two_processes_have_no_launch(emitted):
    lost = [row for row in emitted if row["launch_start"] is None]
    assert len(lost) == 24
    assert {row["dir"] for row in lost} == {None}


NVPROF = ["nvprof/nccl_4gpu.nvvp", "pyprof/lm_v100_nvprof.sql"]
CUPTI = "CUPTI_ACTIVITY_KIND_"


@pytest.mark.parametrize("path", NVPROF)
@pytest.mark.parametrize("copies", [False, True])
def test_nvprof_files_have_a_row_for_all_gpu_work(path, copies):
    profile = open_traces.profile(path, copies)
    tables = [CUPTI + "CONCURRENT_KERNEL", CUPTI + "KERNEL"]
    tables += [CUPTI + "MEMCPY", CUPTI + "MEMSET"] if copies else []
    truth = sorted(select(path, "start, end - start, correlationId, streamId", tables))
    keys = ("start", "sil", "correlation", "stream")
    assert sorted(zip(*(profile.kernels[key].tolist() for key in keys), strict=True)) == truth
    assert profile.coverage.total == sum(duration for _, duration, *_ in truth)


@pytest.mark.parametrize("path", [*NVPROF, *EXPORTS])
def test_copies_have_their_bytes(path):
    profile = open_traces.profile(path, copies=True)
    truth = select(path, "bytes", [CUPTI + "MEMCPY", CUPTI + "MEMSET"])
    copies = np.isin(profile.kernels["kind"], ["memcpy", "memset"])
    assert sorted(profile.kernels["copied"][copies].tolist()) == sorted(n for (n,) in truth)


def test_every_launch_of_the_nccl_run_is_found():
    launches = open_traces.profile(NVPROF[0]).kernels["launch"]
    assert len(launches) == 24 and all(name is not None for name in launches)
