"""The process of GPU work whose launch is not recorded."""

from typing import Any

import numpy as np
import pytest

from support.exports import Export
from support.kineto_files import KinetoFile
from support.nvprof_files import NvprofFile

STEPS = ((0, 1000), (1000, 2000))


def rank(trace: KinetoFile, pid: int, device: int, corr: int, **place: Any) -> None:
    """A process with two kernels on a GPU; the launch of the second is not recorded."""
    for number, (start, end) in enumerate(STEPS):
        trace.op(start, end, f"ProfilerStep#{number}", 1, pid=pid, cat="user_annotation")
        trace.launch(start + 10, start + 20, corr + 2 * number, 1, pid=pid)
        trace.kernel(start + 100, start + 200, corr + 2 * number, device=device, **place)
        trace.kernel(start + 300, start + 400, corr + 2 * number + 1, device=device, **place)


def test_python_threads_without_a_pid_are_no_process(opened):
    """torch writes pid and tid 0 for threads that it only knows from their Python calls."""
    trace = KinetoFile().event(
        "X", "python_function", "threading.py(359): wait", 0, pid=0, tid=0, dur=2,
        args={"Python id": 5},
    )  # fmt: skip
    rank(trace, 100, 0, 1)
    profile = opened(trace)
    assert profile.kernels["pid"].tolist() == [100] * 4
    assert profile.contents.processes == [100]
    steps = profile.steps()
    assert steps["pid"].tolist() == [100, 100]
    assert steps["busy_ns"].tolist() == [100, 200]  # the last one runs after all steps
    assert not any("same GPU numbers" in note for note in steps.notes)
    assert set(profile.ranges.pid.tolist()) == {100}


def test_a_process_with_the_pid_0_that_launches_is_one(opened):
    trace = KinetoFile()
    rank(trace, 0, 0, 1)
    rank(trace, 100, 1, 11)
    assert set(opened(trace).kernels["pid"].tolist()) == {0, 100}


def test_in_a_merged_file_work_belongs_to_the_process_of_its_gpu(opened):
    trace = KinetoFile()
    rank(trace, 100, 0, 1)
    rank(trace, 200, 1, 11)
    kernels = opened(trace).kernels
    assert kernels["pid"].tolist() == np.where(kernels["device"] == 0, 100, 200).tolist()


def test_of_processes_on_one_gpu_number_the_stream_decides(opened):
    trace = KinetoFile()
    rank(trace, 100, 0, 1, stream=7)
    rank(trace, 200, 0, 11, stream=8)
    kernels = opened(trace).kernels
    assert kernels["pid"].tolist() == np.where(kernels["stream"] == 7, 100, 200).tolist()


def test_an_unknown_process_is_not_a_gpu_of_its_own(opened):
    trace = KinetoFile()
    rank(trace, 100, 0, 1)
    rank(trace, 200, 0, 11)
    trace.launch(500, 510, 31, 1, pid=100).kernel(600, 640, 31)
    profile = opened(trace)
    assert [profile.kernels["pid"].tolist().count(pid) for pid in (100, 200, None)] == [3, 2, 4]
    steps = profile.steps()
    assert steps["pid"].tolist() == [100, 200, 100, 200]
    assert steps["busy_ns"].tolist() == [240, 100, 100, 100]  # of 100, with the unknown; of 200
    assert any("same GPU numbers" in note for note in steps.notes)


def test_the_process_of_an_export_of_nsight_systems_needs_no_launch(opened):
    export = Export()
    for pid in (100, 200):
        export.push_pop(0, 1000, "step", 1, pid=pid).launch(10, 20, 1, 1, pid=pid)
        export.kernel(30, 40, 1, pid=pid).kernel(50, 60, 2, pid=pid)
    assert opened(export).kernels["pid"].tolist() == [100, 200, 100, 200]


@pytest.mark.parametrize(("others", "wanted"), [((), [100] * 4), ((1,), [100, 100, 200, 200])])
def test_the_process_of_a_file_of_nvprof_is_that_of_the_gpu(opened, others, wanted):
    file = NvprofFile()
    for device in (0, *others):
        at, pid, corr = 1000 * device, 100 + 100 * device, 10 * device + 1
        file.launch(at + 10, at + 20, corr, 1, pid=pid)
        file.kernel(at + 30, at + 40, corr, device=device)
        file.kernel(at + 50, at + 60, corr + 1, device=device)
    result = opened(file).kernels["pid"].tolist()
    assert result == wanted[: len(result)]
