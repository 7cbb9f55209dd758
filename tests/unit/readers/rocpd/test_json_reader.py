"""The JSON of rocprofv3: from records to rows."""

import json

import pytest

import fastprof
from fastprof.cli import main
from fastprof.errors import BadInputError
from fastprof.model.metadata import PINNED
from fastprof.profile.recount import recount
from fastprof.readers.detect import FileFormat, detect
from support.rocprof_files import CPU, GPU, PID, TID, RocprofFile


@pytest.fixture(params=["1_results.json", "1_results.json.gz", "renamed"])
def profiled(request, tmp_path):
    """Opens a file under each of the names, with copies."""

    def open_file(trace: RocprofFile) -> fastprof.Profile:
        return fastprof.open(trace.write(tmp_path / request.param))

    return open_file


def one(trace: RocprofFile, at: int = 10, corr: int = 7, **others) -> RocprofFile:
    """The file with a call at a time and its kernel."""
    return trace.hip(at, at + 5, corr).kernel(1000 + at, 1012 + at, corr, **others)


def test_a_file_is_recognised_by_its_content(profiled):
    profile = profiled(one(RocprofFile()))
    assert (profile.about.format, profile.about.tool, len(profile)) == ("rocprof", "rocprofv3", 1)


def test_json_of_torch_is_no_json_of_rocprofv3(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": [], "rocprofiler-sdk-tool": []}')
    assert detect(path).format is FileFormat.JSON


def test_a_kernel_has_what_its_record_says(rows):
    keys = ("kernel", "sil", "device", "stream", "grid", "block", "registers", "shared_memory")
    trace = one(RocprofFile(), name="void at::native::relu<4>(int)")
    assert rows(trace, *keys) == [("relu", 12, 0, 3, (2, 2, 1), (256, 4, 1), 32, 64)]
    assert rows(trace, "tid", "pid", "launch", "kind", "start") == [
        (TID, PID, "hipLaunchKernel", "kernel", 1010)
    ]


def test_grids_are_in_work_groups_the_last_of_which_may_be_partial(rows):
    trace = one(RocprofFile(), grid=(513, 1, 1), block=(256, 1, 1))
    assert rows(trace, "grid") == [(3, 1, 1)]


def test_without_streams_the_queue_is_the_stream(rows):
    assert rows(one(RocprofFile(), stream=None, queue=9), "stream") == [9]


def test_names_without_a_demangled_form_stay_as_they_are(rows):
    trace = one(RocprofFile())
    del trace.symbols[0]["formatted_kernel_name"]
    assert rows(trace, "name") == ["_Z4gemm.kd"]


def test_a_kernel_without_a_symbol_has_no_name(rows):
    trace = one(RocprofFile())
    trace.symbols.clear()
    assert rows(trace, "name", "registers", "sil") == [(None, None, 12)]


def test_ranges_are_those_of_roctx_around_the_launch(profiled):
    trace = one(RocprofFile()).marker(0, 100, 1, "step").marker(5, 50, 2, "aten::mm, seq = 12")
    trace.marker(0, 100, 3, "of another thread", tid=TID + 1)
    trace.marker(8, 8, 4, "a mark", "roctxMarkA")
    trace.marker(1, 90, 5, None, "roctxProfilerPause", "MARKER_CONTROL_API")
    profile = profiled(trace)
    kernels = profile.kernels
    assert [kernels[key].tolist() for key in ("ranges", "op", "seq")] == [[("step",)], ["mm"], [12]]
    assert profile.ranges.name.array().tolist() == ["step", "of another thread", "aten::mm"]


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("roctxRangePop", "MARKER_CORE_API"),
        ("roctxRangeStartA", "MARKER_CORE_API"),
        ("roctxThreadRangeA", "MARKER_CORE_RANGE_API"),
        ("roctxProcessRangeA", "MARKER_CORE_RANGE_API"),
    ],
)
def test_ranges_of_all_versions_are_read(profiled, operation, kind):
    profile = profiled(one(RocprofFile()).marker(0, 100, 1, "step", operation, kind))
    assert profile.kernels["ranges"].tolist() == [("step",)]
    is_started = operation in ("roctxRangeStartA", "roctxProcessRangeA")
    assert profile.ranges.is_push_pop.tolist() == [not is_started]


def test_calls_of_rccl_are_ranges_and_launch_what_no_hip_call_does(profiled):
    trace = RocprofFile().rccl(0, 50, 1).hip(10, 20, 2).kernel(100, 200, 2, "ncclDevKernel")
    profile = profiled(trace.rccl(60, 80, 3).kernel(300, 400, 3, "ncclDevKernel"))
    assert profile.kernels["ranges"].tolist() == [("ncclAllReduce",)] * 2
    assert profile.kernels["launch"].tolist() == ["hipLaunchKernel", "ncclAllReduce"]
    assert profile.ranges.domain.array().tolist() == ["RCCL", "RCCL"]
    assert profile.api.name.array().tolist() == ["hipLaunchKernel", "ncclAllReduce"]


def test_a_call_of_hip_takes_a_correlation_id_before_one_of_hsa(profiled):
    profile = profiled(RocprofFile().hsa(11, 13, 7).hip(10, 15, 7).kernel(100, 110, 7))
    assert profile.kernels["launch"].tolist() == ["hipLaunchKernel"]
    assert sorted(profile.api.name.array().tolist()) == ["hipLaunchKernel", "hsa_init"]


@pytest.mark.parametrize(
    ("direction", "ends", "name", "place"),
    [
        ("HOST_TO_DEVICE", (CPU, GPU + 1), "Memcpy HtoD (Host -> Device)", 1),
        ("DEVICE_TO_HOST", (GPU + 1, CPU), "Memcpy DtoH (Device -> Host)", 1),
        ("DEVICE_TO_DEVICE", (GPU, GPU), "Memcpy DtoD (Device -> Device)", 0),
        ("DEVICE_TO_DEVICE", (GPU, GPU + 1), "Memcpy PtoP (Device -> Device)", 1),
        ("HOST_TO_HOST", (CPU, CPU), "Memcpy HtoH (Host -> Host)", -1),
        ("NONE", (CPU, GPU), "Memcpy", 0),
    ],
)
def test_copies_have_direction_bytes_and_gpu(rows, direction, ends, name, place):
    trace = RocprofFile(gpus=2).hip(0, 5, 3, "hipMemcpyAsync")
    trace.copy(10, 30, 3, 4096, *ends, direction)
    device = place if place >= 0 else None
    keys = ("kind", "name", "copied", "device", "sil", "launch")
    assert rows(trace, *keys, copies=True) == [("memcpy", name, 4096, device, 20, "hipMemcpyAsync")]
    assert rows(trace, *keys, copies=False) == []


def test_a_free_has_size_and_gpu_of_the_allocation_at_its_address(profiled):
    trace = RocprofFile(gpus=2).memory(10, 4096, 100, agent=GPU + 1).memory(30, 4096, 0, "FREE", 0)
    trace.memory(20, 8192, 50, "VMEM_ALLOCATE").memory(40, 4096, 0, "FREE", 0)
    trace.memory(50, 4096, 70).memory(60, 999, 0, "VMEM_FREE", 0).memory(70, 64, 8, agent=CPU)
    events = profiled(trace).memory_events
    assert events.time.tolist() == [10, 20, 30, 50, 70]
    assert events.bytes.tolist() == [100, 50, -100, 70, 8]
    assert events.device.tolist() == [1, 0, 1, 0, -1]
    assert events.device_type.tolist() == [1, 1, 1, 1, PINNED]
    assert set(events.pid.tolist()) == {PID}


def test_a_call_of_hip_around_one_of_hsa_is_the_launch(profiled):
    trace = RocprofFile().hip(0, 50, 1).hsa(10, 40, 2).hsa(20, 30, 3).kernel(100, 110, 3)
    trace.records["hsa_api"][0]["correlation_id"]["ancestor"] = 1
    trace.records["hsa_api"][1]["correlation_id"]["ancestor"] = 2
    kernels = profiled(trace).kernels
    assert (kernels["launch"].tolist(), kernels["launch_start"].tolist()) == (
        ["hipLaunchKernel"],
        [0],
    )


def test_processes_reuse_correlation_ids(profiled):
    other = one(RocprofFile(PID + 1), 20, 7, name="b").marker(0, 100, 1, "other's")
    trace = one(RocprofFile(), 10, 7, name="a").marker(0, 100, 1, "own").with_process(other)
    kernels = profiled(trace).kernels
    assert kernels["name"].tolist() == ["a", "b"]
    assert kernels["pid"].tolist() == [PID, PID + 1]
    assert kernels["ranges"].tolist() == [("own",), ("other's",)]


def test_gpus_are_named_by_product_with_their_figures(profiled):
    about = profiled(one(RocprofFile(gpus=2))).about
    assert about.gpus == {0: "AMD Instinct MI300X", 1: "AMD Instinct MI300X"}
    figures = about.gpu_figures[1]
    assert (figures.sms, figures.clock, figures.capability) == (304, 2_100_000_000, "gfx942")
    assert figures.memory == 206141652992
    assert profiled(one(RocprofFile(product_name=""))).about.gpus == {0: "gfx942"}


def test_gpus_without_a_logical_number_are_numbered_by_node(profiled):
    trace = one(RocprofFile(gpus=2), agent=GPU + 1)
    for agent in trace.agents:
        del agent["logical_node_type_id"]
    assert profiled(trace).kernels["device"].tolist() == [1]


def test_times_that_are_impossible_are_not_known(rows):
    trace = RocprofFile().kernel(50, 40, 7)
    assert rows(trace, "sil") == [None]


def test_a_cut_file_has_the_records_before_the_cut(tmp_path):
    trace = RocprofFile()
    for i in range(50):
        trace.kernel(i * 10, i * 10 + 5, i)
    text = trace.text()
    path = tmp_path / "cut.json"
    path.write_text(text[: text.index('"internal": 30')])
    profile = fastprof.open(path)
    assert len(profile) == 30
    assert profile.warnings[0].startswith(f"{path}: the JSON is cut off after byte ")
    path.write_text(text.replace('"internal": 30', '"internal" 30'))
    assert len(fastprof.open(path)) == 30
    assert "malformed JSON after byte " in fastprof.open(path).warnings[0]
    path.write_text(f"{text} x")
    assert fastprof.open(path).warnings == [f"{path}: 1 bytes after the JSON were not read"]


def test_a_file_that_is_damaged_before_its_records_is_refused(tmp_path):
    path = tmp_path / "cut.json"
    path.write_text(one(RocprofFile()).text()[:300])
    with pytest.raises(BadInputError, match=r"cut off after byte .* record again with rocprofv3"):
        fastprof.open(path)


def test_unusual_values_of_facts_are_unknown(profiled):
    trace = one(RocprofFile())
    content = trace.content()
    content |= {"metadata": [], "agents": [{"id": 4}, 7, {"id": {"handle": GPU}, "type": 2}]}
    content["strings"] = {"buffer_records": {"kind": 1}, "marker_api": None}
    trace.text = lambda: json.dumps({"rocprofiler-sdk-tool": [content]})
    profile = profiled(trace)
    assert (profile.about.gpus, profile.kernels["device"].tolist()) == ({}, [0])
    assert profile.kernels["launch"].tolist() == ["kind 1, operation 0"]


def test_one_process_without_a_list_is_read(profiled):
    trace = one(RocprofFile())
    content = trace.content()
    trace.text = lambda: json.dumps({"rocprofiler-sdk-tool": content})
    assert profiled(trace).kernels["pid"].tolist() == [PID]


def test_check_counts_the_records_by_itself(tmp_path, capsys):
    trace = one(RocprofFile()).copy(50, 60, 9, 10)
    path = trace.write(tmp_path / "1_results.json.gz")
    assert main(["prof", "--check", str(path)]) == 0
    assert "checked: 1 kernel rows, 0.000 ms agree with the file" in capsys.readouterr().err
    totals = recount(path, copies=True)
    assert (totals.rows, totals.time) == ({"kernel": 1, "memcpy": 1}, {"kernel": 12, "memcpy": 10})


def test_what_is_missing_is_said_with_the_command_that_records_it(tmp_path, capsys):
    path = RocprofFile().kernel(0, 10, 1).kernel(20, 30, 2).write(tmp_path / "1_results.json")
    for command, text in {
        "idle": "no API calls in the file; record with rocprofv3 --runtime-trace",
        "launches": "the launch of none: record with rocprofv3 --runtime-trace",
        "memory": "record with rocprofv3 --memory-allocation-trace",
        "steps": "no API calls in the file; record them with rocprofv3 --runtime-trace",
    }.items():
        main([command, str(path)])
        assert text in " ".join(capsys.readouterr().out.split()), command


def test_idle_time_of_unknown_cause_comes_before_a_smaller_saving(tmp_path, capsys):
    trace = RocprofFile().kernel(0, 1000, 1, "ncclDevKernel_AllReduce")
    path = trace.kernel(9000, 10_000, 2).write(tmp_path / "1_results.json")
    main(["overview", str(path)])
    assert " ".join(capsys.readouterr().out.split()).startswith(
        "The GPU is idle 8.0 of 10.0 us; why is unknown: no API calls in the file: record with "
        "rocprofv3 --runtime-trace. Of the rest, exposed-comm saves most: at most 1.0 us. "
    )


def test_waits_of_copies_without_calls_of_the_host_are_unexplained(tmp_path, capsys):
    trace = RocprofFile().kernel(0, 1000, 1).copy(100_000, 101_000, 2, 64)
    path = trace.write(tmp_path / "1_results.json")
    main(["whatif", str(path)])
    assert "critical path: unexplained 97%" in capsys.readouterr().out
    main(["whatif", str(trace.hip(0, 500, 1).hip(600, 700, 2).write(path))])
    assert "critical path: unexplained" not in capsys.readouterr().out


def test_kernels_with_counters_are_read_where_there_are_no_others(rows, tmp_path):
    keys = ("name", "start", "sil", "stream", "grid", "launch", "tid", "shared_memory")
    expected = rows(one(RocprofFile()), *keys)
    assert rows(one(RocprofFile()).count(), *keys) == expected
    both = one(RocprofFile()).count()
    both.records["kernel_dispatch"] = one(RocprofFile()).records["kernel_dispatch"]
    assert rows(both, *keys) == expected
    path = one(RocprofFile()).count().write(tmp_path / "1_results.json")
    assert recount(path, copies=False).rows == {"kernel": 1}
