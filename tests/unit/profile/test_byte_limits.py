"""Bytes that exceed the memory bandwidth for the duration of a call are flagged."""

import numpy as np
import pytest

import fastprof
from fastprof.profile.lookups import MOST, too_fast
from support.kineto_files import KinetoFile

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "numSms": 108, "totalGlobalMem": 42297786368}


def flagged(bytes_, duration, group, bandwidth=100e9):
    columns = (np.array(column, np.int64) for column in (bytes_, duration))
    of_one_memory = np.zeros(len(group), np.int32), np.array([bandwidth])
    group = np.array(group, np.int32)
    return too_fast(*columns, group, group.max() + 1, *of_one_memory).tolist()


def test_a_kernel_is_flagged_beyond_one_and_a_half_times_the_bandwidth():
    most = int(MOST * 100)  # bytes per ns
    assert flagged([most * 10, most * 10 + 1], [10, 10], [0, 1]) == [False, True]


def test_a_call_is_judged_as_a_whole():
    assert flagged([1000, 0, 1000, 0], [1, 99, 1, 1], [0, 0, 1, 1]) == [False, False, True, True]


def test_kernels_of_no_call_are_judged_one_by_one():
    assert flagged([1000, 10], [1, 1], [-1, -1]) == [True, False]


def test_what_is_not_known_is_not_flagged():
    assert flagged([-1, 10**9, 10**9], [1, 0, -1], [0, 1, 2]) == [False] * 3
    assert flagged([10**9], [1], [0], float("nan")) == [False]


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ([A100], [1, 0, 0]),  # text for all GPUs
        ([A100, {"id": 1, "name": "NVIDIA H100 80GB HBM3"}], [1, 0, 0]),
        ([A100, {"id": 2, "name": "NVIDIA H100 80GB HBM3"}], [1, 0, 1]),
        ([{"id": 0, "name": "GPU of tomorrow"}], [1, 1, 1]),
        ([], [1, 1, 1]),
    ],
)
def test_exact_is_0_where_the_gpu_cannot_have_moved_so_much(gpus, expected, tmp_path):
    trace = KinetoFile(deviceProperties=gpus)
    # 12 MiB: 8 us at 1555 GB/s
    for number, (duration, device) in enumerate([(8000, 0), (4000, 0), (2000, 1)]):
        at = number * 100_000
        trace.op(at, at + 90, "aten::add", dims=[[1 << 20], [1 << 20]], types=["float", "float"])
        trace.launch(at + 10, at + 20, number)
        start = at + 1000
        trace.kernel(start, start + duration, number, "vectorized_elementwise", device=device)
    profile = fastprof.open(trace.write(tmp_path / "one.json"))
    assert profile.kernels["exact"].tolist() == expected
    assert profile.kernels["bytes"].tolist() == [12 << 20] * 3


def test_gpus_that_nobody_has_do_no_harm(tmp_path):
    odd = [{"id": -5, "name": "T4"}, {"id": 1 << 40, "name": "T4"}, A100 | {"totalGlobalMem": "x"}]
    trace = KinetoFile(deviceProperties=odd)
    trace.op(0, 90, "aten::add", dims=[[4], [4]], types=["float", "float"])
    trace.launch(10, 20, 1).kernel(100, 2000, 1, "vectorized_elementwise", device=-1)
    profile = fastprof.open(trace.write(tmp_path / "one.json"))
    assert profile.kernels["exact"].tolist() == [1]
