"""What host threads do, on small traces with known answers."""

from pathlib import Path

import numpy as np
import pytest

import fastprof
from fastprof.analysis.host import states, waits
from fastprof.analysis.host.states import State, host_states, launching_threads, loader_ranges
from fastprof.errors import ReportError
from support.exports import Export
from support.expressions import alternatives
from support.kineto_files import KinetoFile

US = 1000
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


LOADING, COMPILATION, CODE, CREATION, ALLOC, FREE, COPY, SYNC, _, _ = State


def covered(
    trace: KinetoFile | Export, path: Path, *windows: tuple[int, int]
) -> list[dict[State, int]]:
    """us of each state in windows of us, those that are not 0."""
    name = "x.json" if isinstance(trace, KinetoFile) else "x.sqlite"
    profile = fastprof.open(trace.write(path / name), copies=True)
    begin, end = (np.array(each, np.int64) * US for each in zip(*windows, strict=True))
    thread = np.full(len(windows), launching_threads(profile)[0])
    result = host_states(profile).covered(thread, begin, end)
    assert not (result % US).any()
    return [
        {state: ns // US for state, ns in zip(State, row, strict=True) if ns}
        for row in result.tolist()
    ]


def trace_of(*calls: tuple[int, int, str]) -> KinetoFile:
    """A kernel launched at 0 to 1 us, and API calls with their times in us."""
    trace = KinetoFile().launch(0, US, 1).kernel(500 * US, 900 * US, 1)
    for corr, (start, end, name) in enumerate(calls, 2):
        trace.launch(start * US, end * US, corr, name=name)
    return trace


def test_each_instant_counts_to_the_first_state_that_applies(tmp_path):
    trace = trace_of(
        (20, 30, "cudaMalloc"), (60, 80, "cudaDeviceSynchronize"), (70, 75, "cudaFree")
    )
    trace.annotation(10 * US, 25 * US, LOADER)
    windows = [(0, 100), (22, 28), (65, 72), (80, 90), (50, 40)]
    assert covered(trace, tmp_path, *windows) == [
        {LOADING: 15, ALLOC: 5, FREE: 5, SYNC: 15},
        {LOADING: 3, ALLOC: 3},
        {FREE: 2, SYNC: 5},
        {},
        {},
    ]


def test_ranges_within_each_other_count_once(tmp_path):
    trace = trace_of()
    for start, end in ((10, 50), (20, 30), (45, 60)):
        trace.annotation(start * US, end * US, LOADER)
    assert covered(trace, tmp_path, (0, 100), (25, 47)) == [{LOADING: 50}, {LOADING: 22}]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([(10, 20, "cudaMemcpy")], {COPY: 10}),
        ([(10, 20, "hipMemcpyWithStream")], {COPY: 10}),
        ([(10, 12, "cudaMemcpyAsync"), (13, 20, "cudaStreamSynchronize")], {COPY: 10}),
        # The wait is for more than the copy.
        ([(10, 12, "cudaMemcpyAsync"), (13, 20, "cudaDeviceSynchronize")], {SYNC: 7}),
        ([(10, 12, "cudaMemcpyAsync"), (40, 45, "cudaStreamSynchronize")], {SYNC: 5}),
        ([(10, 20, "cudaStreamWaitEvent"), (30, 40, "cudaEventQuery")], {}),
        ([(10, 20, "hipEventSynchronize")], {SYNC: 10}),
        ([(10, 20, "cuModuleLoadData")], {CODE: 10}),
    ],
)
def test_calls_by_state(tmp_path, calls, expected):
    assert covered(trace_of(*calls), tmp_path, (0, 100)) == [expected]


def test_a_copy_that_returns_after_it_has_begun_blocks(tmp_path):
    trace = trace_of((10, 40, "cudaMemcpyAsync"), (50, 90, "cudaMemcpyAsync"))
    trace.copy(30 * US, 35 * US, 2, "Memcpy HtoD (Pageable -> Device)", 64)
    trace.copy(120 * US, 130 * US, 3, "Memcpy HtoD (Pinned -> Device)", 64)
    assert covered(trace, tmp_path, (0, 100)) == [{COPY: 30}]


def busy(*calls: tuple[int, int, str], kernels: int = 4) -> KinetoFile:
    """Kernels of 100 us from 10 us on, launched at the start, and calls with their times in us."""
    trace = KinetoFile()
    for i in range(kernels):
        trace.launch(i, i + 1, 1000 + i)
        trace.kernel((10 + 100 * i) * US, (110 + 100 * i) * US, 1000 + i)
    for corr, (start, end, name) in enumerate(calls, 1):
        trace.launch(start * US, end * US, corr, name=name)
    return trace


@pytest.mark.parametrize("memory", ["Pinned", "Pageable", "Device"])
def test_a_copy_that_ends_behind_all_queued_work_waits(tmp_path, memory):
    trace = busy((20, 425, "cudaMemcpyAsync"))
    trace.copy(410 * US, 420 * US, 1, f"Memcpy HtoD ({memory} -> Device)", 64)
    assert covered(trace, tmp_path, (0, 500)) == [{COPY: 405}]


def test_a_slow_call_on_an_idle_gpu_does_not_wait(tmp_path):
    trace = busy((500, 900, "cudaMemsetAsync"), (950, 1400, "cudaMemcpyAsync"))
    trace.copy(890 * US, 895 * US, 1, "Memset (Device)", 64)
    trace.copy(1390 * US, 1395 * US, 2, "Memcpy DtoD (Device -> Device)", 64)
    assert covered(trace, tmp_path, (0, 1500)) == [{}]


def test_a_copy_that_is_only_queued_does_not_wait(tmp_path):
    trace = busy((20, 60, "cudaMemcpyAsync"))
    trace.copy(410 * US, 420 * US, 1, "Memcpy HtoD (Pinned -> Device)", 64)
    assert covered(trace, tmp_path, (0, 500)) == [{}]


def test_a_free_that_waits_for_the_gpu(tmp_path):
    assert covered(busy((20, 415, "cudaFree")), tmp_path, (0, 500)) == [{SYNC: 395}]
    # It goes on after its wait.
    assert covered(busy((20, 900, "cudaFree")), tmp_path, (0, 1000)) == [{SYNC: 390, FREE: 490}]
    # It ends while work runs: it does not wait.
    assert covered(busy((20, 250, "cudaFree")), tmp_path, (0, 500)) == [{FREE: 230}]


@pytest.mark.parametrize(("name", "state"), [("cudaMalloc", ALLOC), ("cudaHostRegister", ALLOC)])
def test_other_calls_that_wait_for_the_gpu(tmp_path, name, state):
    assert covered(busy((20, 415, name)), tmp_path, (0, 500)) == [{SYNC: 395}]
    assert covered(busy((420, 500, name)), tmp_path, (0, 500)) == [{state: 80}]


@pytest.mark.parametrize(("kernels", "waits"), [(1024, True), (100, False)])
def test_a_launch_into_a_full_queue(tmp_path, kernels, waits):
    trace = busy((20, 112, "cudaLaunchKernel"), kernels=kernels)
    trace.kernel(200_000 * US, 200_001 * US, 1)
    assert covered(trace, tmp_path, (0, 200)) == [{SYNC: 92} if waits else {}]


def test_a_copy_into_a_full_queue_waits_for_a_place(tmp_path):
    trace = busy((20, 112, "cudaMemcpyAsync"), kernels=1024)
    trace.copy(200_000 * US, 200_001 * US, 1, "Memcpy DtoD (Device -> Device)", 64)
    assert covered(trace, tmp_path, (0, 200)) == [{SYNC: 92}]


def test_a_launch_that_loads_code_does_not_wait(tmp_path):
    trace = busy((500, 900, "cudaLaunchKernel"))
    trace.kernel(890 * US, 899 * US, 1, "new")
    assert covered(trace, tmp_path, (0, 1000)) == [{CODE: 400}]


def test_each_thread_has_its_own_states(tmp_path):
    trace = trace_of()
    trace.launch(10 * US, 20 * US, 5, tid=2, name="cudaDeviceSynchronize")
    assert covered(trace, tmp_path, (0, 100)) == [{}]


def test_an_export_of_nsys(tmp_path):
    export = Export().launch(0, US, 1, tid=1).kernel(500 * US, 900 * US, 1)
    export.launch(10 * US, 20 * US, 2, tid=1, name="cudaMalloc_v3020")
    export.launch(30 * US, 35 * US, 3, tid=1, name="cudaDeviceSynchronize_v3020")
    assert covered(export, tmp_path, (0, 100)) == [{ALLOC: 10, SYNC: 5}]


@pytest.mark.parametrize(
    ("name", "loads"),
    [
        (LOADER, True),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", True),
        ("[pl][profile][_TrainingEpochLoop].train_dataloader_next", True),
        ("[_EvaluationLoop].val_next", True),
        ("## data_load ##", True),
        ("next batch", True),
        ("wait for tokens 3", False),
        ("DataLoader.__init__", False),
        ("forward", False),
    ],
)
def test_ranges_that_load_data(tmp_path, name, loads):
    trace = trace_of().annotation(10 * US, 20 * US, name)
    profile = fastprof.open(trace.write(tmp_path / "x.json"))
    assert len(loader_ranges(profile)) == loads
    assert len(loader_ranges(profile, r"tokens \d")) == (loads or "tokens" in name)


def test_an_invalid_expression_is_an_error(tmp_path):
    profile = fastprof.open(trace_of().write(tmp_path / "x.json"))
    with pytest.raises(ReportError, match=r"invalid regular expression '\('"):
        loader_ranges(profile, "(")


def test_each_form_of_a_name_has_what_is_looked_for_first() -> None:
    for form in alternatives(states._LOADS.pattern):
        assert form.endswith(states.LOADER_ENDS), form
    for form in alternatives(waits._COMPILATION.pattern):
        assert any(word in form for word in waits._COMPILING), form
