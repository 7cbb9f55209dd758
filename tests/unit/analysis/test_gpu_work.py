"""The work of each GPU: its kind, times and gaps, from small traces."""

from pathlib import Path

import numpy as np

import fastprof
from fastprof.analysis.gpu_work import COMMUNICATION, COMPUTE, COPY, work_of_device
from support.kineto_files import KinetoFile

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"


def two_gpus(path: Path) -> fastprof.Profile:
    trace = KinetoFile()
    trace.kernel(100, 200, 1).kernel(150, 260, 2, NCCL, stream=8).copy(300, 310, 3, "Memset", 4)
    trace.copy(400, 450, 4, "Memcpy HtoD", 8).kernel(120, 130, 5, device=1)
    return fastprof.open(trace.write(path), copies=True)


def test_work_has_the_kind_of_its_class(tmp_path: Path) -> None:
    result = work_of_device(two_gpus(tmp_path / "two.json"))
    assert list(result) == [0, 1]
    assert result[0].rows.tolist() == [0, 2, 3, 4]
    assert result[0].kind.tolist() == [COMPUTE, COMMUNICATION, COPY, COPY]
    assert result[0].start.tolist() == [100, 150, 300, 400]
    assert result[0].end.tolist() == [200, 260, 310, 450]
    assert [span.tolist() for span in result.parts.spans] == [[100, 120], [450, 130]]
    assert (result[1].rows.tolist(), result[1].end.tolist()) == ([1], [130])


def test_gaps_name_the_kernels_around_them(tmp_path: Path) -> None:
    gaps = work_of_device(two_gpus(tmp_path / "two.json")).parts.gaps()
    assert [gap.tolist() for gap in gaps] == [[260, 310], [300, 400], [2, 3], [3, 4]]


def test_windows_may_overlap_and_have_any_order(tmp_path: Path) -> None:
    work = work_of_device(two_gpus(tmp_path / "two.json")).parts
    ns_by_kinds = work.ns_by_kinds(np.array([0, 0]), (np.array([280, 0]), np.array([420, 280])))
    assert ns_by_kinds.tolist() == [[110, 0, 0, 0, 30, 0, 0, 0], [120, 50, 60, 50, 0, 0, 0, 0]]


def test_rows_select_work(tmp_path: Path) -> None:
    profile = two_gpus(tmp_path / "two.json")
    result = work_of_device(profile, profile.column("stream").values == 8)
    assert {device: work.rows.tolist() for device, work in result.items()} == {0: [2]}


def test_work_without_a_gpu_number_is_that_of_gpu_minus_1(tmp_path: Path) -> None:
    trace = KinetoFile().annotation(0, 60, "mine").launch(10, 12, 1).launch(20, 22, 2)
    trace.kernel(30, 40, 1).kernel(45, 50, 2)
    for event in trace.events:
        event["args"].pop("device", None)
    profile = fastprof.open(trace.write(tmp_path / "none.json"))
    assert {device: len(work) for device, work in work_of_device(profile).items()} == {-1: 2}
    assert profile.ranges_table()["idle_ns"].tolist() == [5]


def test_a_file_without_times_has_no_time_line(tmp_path: Path) -> None:
    path = tmp_path / "lines.dict"
    path.write_text("{'kShortName': 'sgemm', 'kDuration': 5, 'device': 0}\n")
    assert work_of_device(fastprof.open(path)) == {}
