"""Metadata of files: versions, GPUs, ranks, names, steps, memory."""

import numpy as np
import pytest

import fastprof
from fastprof.model.metadata import Distributed, GpuFigures
from support.exports import Export, global_tid
from support.kineto_files import PID, TID, KinetoFile
from support.nvprof_files import NvprofFile
from support.sqlite_files import query

END_OF_TIME = np.iinfo(np.int64).max


@pytest.fixture
def about(tmp_path):
    """The metadata of an export, NVProf file or trace built by a test."""

    def read(file, **options):
        return fastprof.open(file.write(tmp_path / "net", **options)).about

    return read


def one_kernel(**device):
    return Export().launch(10, 20, corr=1, tid=1).kernel(30, 40, corr=1, **device)


# Nsight Systems.


@pytest.mark.parametrize(
    ("schema", "versions"),
    [
        ("2021", (None, None)),
        ("2022", ("2022.4.2.1", "3.0.0")),
        ("2026", ("2026.2.1.210", "3.25.0")),
    ],
)
def test_exports_say_their_versions_since_2022(about, schema, versions):
    result = about(one_kernel(), schema=schema)
    assert (result.format, result.tool) == ("nsys", "NVIDIA Nsight Systems")
    assert (result.tool_version, result.schema_version) == versions


def test_settings_of_the_capture_are_kept_and_the_environment_is_not(about):
    export = one_kernel()
    for name, value in [
        ("CAPTURE_EVENT_TYPE", "Cuda"),
        ("CAPTURE_EVENT_TYPE", "NvtxEvents"),
        ("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph"),
        ("PROCESS_0:ENVIRONMENT_VARIABLE", 'CUDA_SECRET="x"'),
    ]:
        export.row("META_DATA_CAPTURE", name=name, value=value)
    assert about(export).settings == {
        "CAPTURE_EVENT_TYPE": ["Cuda", "NvtxEvents"],
        "CUDA_GRAPH_TRACE_OPTIONS:MODE": "Graph",
    }


@pytest.mark.parametrize("schema", ["2020", "2021", "2025"])
def test_gpus_of_one_name_are_known_whatever_their_order(about, schema):
    export = one_kernel().gpu("A100", device=1, cuDevice=0).gpu("A100", device=0, cuDevice=1)
    assert about(export, schema=schema).gpus == {0: "A100", 1: "A100"}


def test_of_gpus_of_several_names_none_is_guessed(about):
    export = one_kernel().gpu("T400", device=0).gpu("A100", device=1)
    assert about(export).gpus == {}


RTX = {"smCount": 72, "clockRate": 1_770_000_000, "memoryBandwidth": 672_096_000_000,
       "totalMemory": 25_396_838_400}  # fmt: skip


def test_what_an_export_says_of_a_gpu_besides_its_name(about):
    export = one_kernel().gpu("RTX 6000", compute=(7, 5), **RTX)
    figures = GpuFigures(72, 1_770_000_000, 672_096_000_000, "7.5", 25_396_838_400)
    assert about(export, schema="2025").gpu_figures == {0: figures}


def test_exports_of_2020_say_nothing_of_a_gpu_but_its_name(about):
    result = about(one_kernel().gpu("RTX 6000", **RTX), schema="2020")
    assert (result.gpus, result.gpu_figures) == ({0: "RTX 6000"}, {})


def test_what_differs_among_gpus_of_one_name_is_not_told(about):
    export = one_kernel().gpu("T4", device=0, smCount=40).gpu("T4", device=1, smCount=39)
    result = about(export, schema="2025")
    assert (result.gpus, result.gpu_figures) == ({0: "T4", 1: "T4"}, {})


@pytest.mark.parametrize("value", ["x", 0, -1, 1.5, None])
def test_a_figure_that_is_none_is_not_told(about, value):
    export = one_kernel().gpu("T4", smCount=value, memoryBandwidth=value, totalMemory=16)
    (figures,) = about(export, schema="2025").gpu_figures.values()
    assert figures == GpuFigures(capability="8.0", memory=16)


@pytest.mark.parametrize("number", ["x", 1.5, b"y"])
def test_a_gpu_or_a_thread_whose_number_is_none_is_left_out(about, number):
    export = one_kernel().gpu("A100").gpu("A100", device=number)
    export.row("TARGET_INFO_CUDA_DEVICE", gpuId=0, cudaId=number, pid=100)
    export.row("ThreadNames", nameId=export.string("worker"), globalTid=f"{100 << 24 | 1} x")
    told = about(export, schema="2025")
    assert (told.gpus, told.threads) == ({0: "A100"}, {})


def test_the_export_may_say_which_gpu_a_process_sees_as_which(about):
    export = one_kernel().gpu("T400", device=0).gpu("A100", device=1)
    export.row("TARGET_INFO_CUDA_DEVICE", gpuId=1, cudaId=0, pid=100)
    assert about(export, schema="2025").gpus == {0: "A100"}


def test_a_device_that_is_another_gpu_in_another_process_has_no_name(about):
    export = one_kernel().gpu("T400", device=0).gpu("A100", device=1)
    export.row("TARGET_INFO_CUDA_DEVICE", gpuId=1, cudaId=0, pid=100)
    export.row("TARGET_INFO_CUDA_DEVICE", gpuId=0, cudaId=0, pid=101)
    export.row("TARGET_INFO_CUDA_DEVICE", gpuId=0, cudaId=1, pid=100)
    assert about(export, schema="2025").gpus == {1: "T400"}


def test_processes_and_threads_with_launches_or_ranges_have_names(about):
    export = one_kernel().push_pop(0, 5, "mine", tid=2)
    export.row("PROCESSES", globalPid=global_tid(100, 0), pid=100, name="python")
    export.row("PROCESSES", globalPid=global_tid(7, 0), pid=7, name="sshd")
    for tid, name in [(1, "main"), (2, "autograd"), (3, "idle")]:
        export.row("ThreadNames", nameId=export.string(name), globalTid=global_tid(100, tid))
    result = about(export)
    assert result.processes == {100: "python"}
    assert result.threads == {(100, 1): "main", (100, 2): "autograd"}


def test_text_that_is_not_utf_8_does_not_keep_an_export_from_being_read(about):
    export = one_kernel().gpu("GPU")
    export.row("META_DATA_CAPTURE", name="CUDA_X", value=b"\xe9\xff")
    export.row("PROCESSES", globalPid=global_tid(100, 0), pid=100, name=b"pyth\xf6n")
    result = about(export)
    assert result.settings == {"CUDA_X": "\ufffd\ufffd"}
    assert result.processes == {100: "pyth\ufffdn"}


def test_tables_with_other_columns_are_passed_over(about):
    export = one_kernel().gpu("GPU").row("PROCESSES", pid=100, name="python")
    lacking = {"TARGET_INFO_GPU": ["name"], "PROCESSES": ["pid"]}
    result = about(export, without_columns=lacking)
    assert (result.gpus, result.processes) == ({}, {})


@pytest.mark.parametrize("table", ["META_DATA_CAPTURE", "TARGET_INFO_GPU", "PROCESSES"])
def test_where_such_a_table_is_damaged_kernels_are_read_with_a_warning(tmp_path, table):
    export = one_kernel().gpu("GPU").row("PROCESSES", pid=100, name="python")
    path = export.write(tmp_path / "net", page_size=512)
    ((page,),) = query(path, "SELECT rootpage FROM sqlite_master WHERE name = ?", table)
    content = bytearray(path.read_bytes())
    content[512 * (page - 1) : 512 * page] = b"\xff" * 512
    path.write_bytes(content)
    profile = fastprof.open(path)
    assert [row["sil"] for row in profile.rows()] == [10]
    (warning,) = profile.warnings
    assert "metadata cannot be read" in warning


# NVProf.


def test_nvprof_files_say_version_gpus_and_names(tmp_path):
    file = NvprofFile().launch(10, 20, corr=7, tid=1).kernel(30, 42, corr=7)
    file.add_table("Version", ["version"]).row("Version", version=12)
    file.add_table("CUPTI_ACTIVITY_KIND_DEVICE", ["id", "name"])
    for device in (1, 0):
        file.row("CUPTI_ACTIVITY_KIND_DEVICE", id=device, name=file.string("Tesla V100"))
    file.add_table("CUPTI_ACTIVITY_KIND_NAME", ["objectKind", "objectId", "name"])
    process = (100).to_bytes(4, "little")
    for kind, place, name in [
        (1, process + b"\0\0\0\0garb", "python train.py"),
        (2, process + (1).to_bytes(8, "little"), "loader"),
        (3, bytes(12), "a device"),
    ]:
        named = {"objectKind": kind, "objectId": place, "name": file.string(name)}
        file.row("CUPTI_ACTIVITY_KIND_NAME", **named)
    about = fastprof.open(file.write(tmp_path / "net.sql")).about
    assert (about.format, about.tool, about.schema_version) == ("nvprof", "NVProf", "12")
    assert about.gpus == {0: "Tesla V100", 1: "Tesla V100"}
    assert about.processes == {100: "python train.py"}
    assert about.threads == {(100, 1): "loader"}


def test_nvprof_files_may_say_nothing_of_themselves(about):
    result = about(NvprofFile().kernel(30, 42, corr=7))
    assert (result.format, result.schema_version, result.gpus) == ("nvprof", None, {})


def test_nvprof_files_say_kilobytes_and_kilohertz(about):
    file = NvprofFile().kernel(30, 42, corr=7)
    said = {"numMultiprocessors": 80, "coreClockRate": 1_530_000,
            "globalMemoryBandwidth": 898_048_000, "computeCapabilityMajor": 7,
            "computeCapabilityMinor": 0, "globalMemorySize": 16_914_055_168}  # fmt: skip
    file.add_table("CUPTI_ACTIVITY_KIND_DEVICE", ["id", "name", *said])
    file.row("CUPTI_ACTIVITY_KIND_DEVICE", id=0, name=file.string("Tesla V100"), **said)
    figures = GpuFigures(80, 1_530_000_000, 898_048_000_000, "7.0", 16_914_055_168)
    assert about(file).gpu_figures == {0: figures}


# torch.profiler.


def test_a_trace_says_neither_clock_nor_bandwidth(about):
    a100 = {"id": 0, "name": "A100", "numSms": 108, "computeMajor": 8, "computeMinor": 0}
    amd = {"id": 1, "name": "AMD Instinct MI300X", "numSms": 304, "computeMajor": 9}
    trace = KinetoFile(deviceProperties=[a100, amd | {"totalGlobalMem": 206_141_652_992}])
    assert about(trace.kernel(30_000, 40_000, corr=1)).gpu_figures == {
        0: GpuFigures(sms=108, capability="8.0"),
        1: GpuFigures(sms=304, memory=206_141_652_992),
    }


def test_what_is_said_of_all_gpus_alike_holds_for_those_that_worked(about):
    properties = [{"id": device, "name": "MI300X", "numSms": 304} for device in (0, 1)]
    result = about(KinetoFile(deviceProperties=properties).kernel(3_000, 4_000, 1, device=9))
    assert result.gpus == dict.fromkeys((0, 1, 9), "MI300X")
    assert result.gpu_figures[9] == GpuFigures(sms=304)
    properties[1]["name"] = "MI325X"
    result = about(KinetoFile(deviceProperties=properties).kernel(3_000, 4_000, 1, device=9))
    assert 9 not in result.gpus
    assert result.gpu_figures == dict.fromkeys((0, 1, 9), GpuFigures(sms=304))


def test_the_root_of_a_trace_says_versions_gpus_and_rank(about):
    trace = KinetoFile(
        schemaVersion=1,
        deviceProperties=[{"id": 0, "name": "A100"}, {"id": 1, "name": "H100"}, {"id": "x"}, 7],
        distributedInfo={"backend": "nccl", "rank": 3, "world_size": 8, "nccl_version": "2.17"},
        cuda_runtime_version=12010,
        record_shapes=1,
        nothing=None,
    )
    result = about(trace.kernel(30_000, 40_000, corr=1))
    assert (result.format, result.tool, result.schema_version) == ("kineto", "torch.profiler", "1")
    assert result.gpus == {0: "A100", 1: "H100"}
    assert result.distributed == Distributed("nccl", 3, 8)
    assert result.versions == {"cuda_runtime_version": "12010", "nccl_version": "2.17"}
    assert result.settings == {"record_shapes": 1}


@pytest.mark.parametrize("value", [None, 7, [], {"id": 1}, [[]], {"rank": "x"}])
def test_a_root_of_another_shape_tells_nothing(about, value):
    result = about(
        KinetoFile(deviceProperties=value, distributedInfo=value).kernel(3_000, 4_000, corr=1)
    )
    assert result.gpus == {}
    assert result.distributed in (None, Distributed(None, None, None))


def test_names_of_gpus_and_streams_are_none_of_processes_and_threads(about):
    trace = KinetoFile().op(0, 10_000, "aten::mm").launch(1_000, 3_000, corr=1)
    trace.kernel(30_000, 40_000, corr=1)
    trace.named("process_name", "python").named("process_name", "a GPU", pid=0)
    trace.named("thread_name", f"thread {TID} (python)", tid=TID)
    trace.named("thread_name", f"thread {TID} (pt_main_thread)", tid=TID)
    trace.named("thread_name", "stream 7", pid=0, tid=7)
    result = about(trace)
    assert result.processes == {PID: "python"}
    assert result.threads == {(PID, TID): "pt_main_thread"}


def test_memory_events_are_kept_as_they_are(about):
    told = {"Addr": 4096, "Device Type": 1, "Device Id": 0, "Total Allocated": 5}
    trace = KinetoFile().kernel(30_000, 40_000, corr=1)
    result = about(
        trace.memory(2_000, 512, **told, **{"Total Reserved": 9}).memory(3_000, -512)
    ).memory
    rows = [column.tolist() for column in vars(result).values()]
    none = np.iinfo(np.int64).min
    assert rows == [
        *([2000, 3000], [4096, -1], [512, -512], [1, -1], [0, -1], [5, -1], [9, -1]),
        *([100, 100], [1, 1], [-1, -1]),
    ]
    assert len(result) == 2 and none not in result.time


# Steps.


def rows(steps):
    columns = (steps.number, steps.start, steps.end, steps.pid)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_steps_of_nvtx_ranges_have_numbers_and_times_in_order_of_start(about):
    export = one_kernel()
    export.push_pop(200, None, "ProfilerStep#4, op_id = 9", tid=1)
    export.push_pop(5, 50, "ProfilerStep#3", tid=1).push_pop(60, 70, "ProfilerStep#3", 8, pid=101)
    export.push_pop(0, 300, "ProfilerStep#", tid=2).push_pop(0, 300, "my ProfilerStep#1", tid=2)
    steps = about(export).steps
    assert rows(steps) == [(3, 5, 50, 100), (3, 60, 70, 101), (4, 200, END_OF_TIME, 100)]
    assert len(steps) == 3


@pytest.mark.parametrize("category", ["user_annotation", "cpu_op", "Operator"])
def test_steps_of_a_trace_of_any_year_are_found(about, category):
    trace = KinetoFile().op(10_000, 15_000, "ProfilerStep#12", cat=category)
    trace.kernel(30_000, 40_000, corr=1)
    assert rows(about(trace).steps) == [(12, 10_000, 15_000, PID)]


def test_steps_of_nvprof_are_ranges_too(about):
    file = NvprofFile().push_pop(0, 100, "ProfilerStep#1", tid=1).kernel(30, 42, corr=7)
    assert rows(about(file).steps) == [(1, 0, 100, 100)]


def test_dict_lines_say_nothing_of_their_trace(tmp_path):
    path = tmp_path / "net.dict"
    path.write_text("{'kShortName': 'sgemm', 'kDuration': 7}\n")
    about = fastprof.open(path).about
    assert (about.format, about.tool, len(about.steps), len(about.memory)) == ("dict", None, 0, 0)
