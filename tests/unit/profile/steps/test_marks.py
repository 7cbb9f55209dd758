"""Steps by the marks of torch, Lightning and CUDA: data loading, optimizers, batches, graphs."""

from pathlib import Path

import numpy as np
import pytest

import fastprof
from fastprof import StepsError
from fastprof.profile.steps import marked
from fastprof.profile.steps.kernel_steps import StepsOfKernels
from support.expressions import alternatives
from support.kineto_files import KinetoFile

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
LIGHTNING = "[pl][profile]"


def work(trace: KinetoFile, *starts: int, **launch: str | int) -> None:
    """A kernel of 100 ns for each launch, each of another name."""
    for start in starts:
        corr = len(trace.events) + 1
        trace.launch(start, start + 10, corr, **launch)  # type: ignore[arg-type]
        trace.kernel(start + 20, start + 120, corr, f"kernel_{corr}")


def find(trace: KinetoFile, path: Path, source: str | None = None) -> StepsOfKernels:
    return fastprof.open(trace.write(path / "steps.json"), copies=True).find_steps(source)


def test_a_fetch_of_the_data_loader_begins_a_step(tmp_path: Path) -> None:
    trace = KinetoFile()
    for start in (1000, 2000, 3000, 4000):
        trace.annotation(start, start + 100, LOADER)
    work(trace, 1200, 1300, 2200, 2300, 2400, 3200, 3500)  # none after the last fetch
    result = find(trace, tmp_path)
    assert result.source == "DataLoader"
    assert result.description == "3 steps, each from a fetch of the DataLoader"
    assert result.of_kernel.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert result.number.tolist() == [1, 2, 3]
    assert result.gpu_length.tolist() == [1420 - 1000, 2520 - 1420, 3620 - 2520]
    assert result.length.tolist() == result.gpu_length.tolist()
    assert result.end[-1] == 4000


def test_loaders_on_threads_that_launch_nothing_are_no_steps(tmp_path: Path) -> None:
    trace = KinetoFile()
    for start in (1000, 2000):
        trace.annotation(start, start + 100, LOADER, tid=5)
    work(trace, 1200, 1300, 2300)
    with pytest.raises(StepsError, match=r"no ranges enumerate\(DataLoader\)"):
        find(trace, tmp_path, "DataLoader")
    assert find(trace, tmp_path).source == "none"


def test_marks_that_launch_a_part_of_the_work_count_only_on_request(tmp_path: Path) -> None:
    trace = KinetoFile()
    work(trace, 100, 300)
    for start in (1000, 2000):
        trace.annotation(start, start + 100, LOADER)
        work(trace, start + 200)
    assert find(trace, tmp_path).source == "none"
    assert find(trace, tmp_path, "DataLoader").of_kernel.tolist() == [-1, -1, 0, 1]


def test_an_optimizer_ends_a_step(tmp_path: Path) -> None:
    trace = KinetoFile()
    work(trace, 100)  # the capture starts within the first step
    for start in (500, 1500, 2500):
        work(trace, start - 200, start + 50)
        trace.annotation(start, start + 100, "Optimizer.step#SGD.step")
    work(trace, 1000, 2000, 2300)
    result = find(trace, tmp_path, "Optimizer.step")
    assert result.description == "3 steps, each to the end of an Optimizer.step"
    assert result.of_kernel.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    assert result.end.tolist() == [600, 1600, 2600]
    assert result.gpu_length.tolist() == [-1, 1000, 1000]
    assert find(trace, tmp_path).source == "Optimizer.step"


def test_a_first_step_cut_by_the_start_of_the_capture_is_not_averaged(tmp_path: Path) -> None:
    trace = KinetoFile()
    for start in (500, 1500, 2500):
        trace.annotation(start, start + 100, "Optimizer.step#SGD.step")
    work(trace, 510, 1200, 1510, 2200, 2300, 2510)
    result = find(trace, tmp_path, "Optimizer.step")
    assert result.is_counted.tolist() == [False, True, True]
    assert result.notes == ("means exclude step 1: the capture starts within it",)


def test_the_optimizer_that_steps_least_ends_a_step(tmp_path: Path) -> None:
    """A critic steps twice for each step of the generator."""
    trace = KinetoFile()
    for start in (1000, 2000):
        trace.annotation(start, start + 50, "Optimizer.step#Adam.step")
        trace.annotation(start + 200, start + 250, "Optimizer.step#Adam.step")
        trace.annotation(start + 500, start + 550, "Optimizer.step#SGD.step")
        work(trace, start + 10, start + 210, start + 510)
    assert find(trace, tmp_path, "Optimizer.step").end.tolist() == [1550, 2550]


def test_each_process_has_marks_of_its_own(tmp_path: Path) -> None:
    trace = KinetoFile()
    for pid, offset in ((100, 0), (200, 300)):
        for start in (1000, 2000):
            at = start + offset
            trace.op(at, at + 50, LOADER, pid=pid, cat="user_annotation")
            work(trace, at + 100, at + 150, pid=pid)
    result = find(trace, tmp_path, "DataLoader")
    assert result.description == "4 steps in 2 processes, each from a fetch of the DataLoader"
    assert result.pid.tolist() == [100, 200, 100, 200]
    assert np.bincount(result.of_kernel).tolist() == [2, 2, 2, 2]


def graphs(*launches: tuple[int, str], other: int = 0) -> KinetoFile:
    """Launches of graphs of two kernels, and a kernel of its own after each."""
    trace = KinetoFile()
    for i, (start, name) in enumerate(launches):
        corr = 10 * i + 1
        trace.launch(start, start + 10, corr, name="cudaGraphLaunch")
        for j in range(2):
            begin = start + 100 + 150 * j
            trace.kernel(begin, begin + 100, corr, f"{name}{j}", **{"graph node id": j + 1})
        if other:
            trace.launch(start + 500, start + 510, corr + 1)
            trace.kernel(start + 520, start + 520 + other + i, corr + 1, f"eager{i}")
    return trace


def test_the_launch_of_a_graph_begins_a_step(tmp_path: Path) -> None:
    trace = graphs((1000, "decode"), (2000, "decode"), (3000, "decode"), other=50)
    result = find(trace, tmp_path)
    assert result.source == "graph"
    assert result.description == "3 steps, each from a launch of the same CUDA graph"
    assert result.start.tolist() == [1000, 2000, 3000]
    assert result.of_kernel.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_of_several_graphs_that_with_the_most_time_counts(tmp_path: Path) -> None:
    result = find(
        graphs((1000, "a"), (1500, "b"), (2000, "a"), (2500, "c"), (3000, "a")), tmp_path, "graph"
    )
    assert result.start.tolist() == [1000, 2000, 3000]


def test_graphs_with_little_of_the_time_are_steps_only_on_request(tmp_path: Path) -> None:
    trace = graphs((1000, "a"), (3000, "a"), other=900)
    assert find(trace, tmp_path).source == "none"
    assert len(find(trace, tmp_path, "graph")) == 2
    with pytest.raises(StepsError, match="no CUDA graph is launched twice"):
        find(graphs((1000, "a"), (3000, "b")), tmp_path, "graph")


def test_batches_of_lightning_are_steps_and_epochs_are_not(tmp_path: Path) -> None:
    trace, at = KinetoFile(), 0
    for _ in range(2):
        trace.annotation(at, at + 3000, f"{LIGHTNING}run_training_epoch")
        for batch in range(3):
            start = at + 1000 * batch
            trace.annotation(
                start, start + 50, f"{LIGHTNING}[_TrainingEpochLoop].train_dataloader_next"
            )
            trace.annotation(start + 60, start + 900, f"{LIGHTNING}run_training_batch")
            trace.annotation(
                start + 70, start + 500,
                f"{LIGHTNING}[Strategy]SingleDeviceStrategy.training_step",
            )  # fmt: skip
            work(trace, start + 100, start + 600)
        at += 3000
    result = find(trace, tmp_path)
    assert result.source == f"range {LIGHTNING}run_training_batch"
    assert result.number.tolist() == [1, 2, 3, 4, 5, 6]
    assert np.bincount(result.of_kernel).tolist() == [2] * 6
    assert find(trace, tmp_path, "DataLoader").start.tolist() == [1000 * i for i in range(6)]


def test_each_form_of_a_loader_has_the_end_that_is_looked_for_first() -> None:
    for form in alternatives(marked._LOADER.pattern):
        assert form.removesuffix(r"\Z").endswith(marked.LOADER_ENDS), form
