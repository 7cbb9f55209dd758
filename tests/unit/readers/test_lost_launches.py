"""Launches without a kernel, in every format."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fastprof
from support.exports import Export
from support.kineto_files import KinetoFile
from support.nvprof_files import NvprofFile
from support.rocpd_files import Rocpd
from support.rocprof_files import RocprofFile
from support.rpd_files import RpdFile

US = 1000
CALLS = {"launch": 0, "begin": 1, "end": 2, "copy": 3}
CUDA = ("cudaLaunchKernel_v7000", "cudaStreamBeginCapture_v10000", "cudaStreamEndCapture_v10000",
        "cudaMemcpyAsync_v3020")  # fmt: skip
HIP = ("hipLaunchKernel", "hipStreamBeginCapture", "hipStreamEndCapture", "hipMemcpyAsync")


class Writer:
    """A trace of some format: calls and kernels by number."""

    def __init__(self, file: Any, name: str, call: Callable[..., Any], kernel: Callable[..., Any]):
        self.file, self.name = file, name
        self._call, self._kernel = call, kernel
        self._number = 0

    def call(self, at: int, kind: str = "launch", kernel: bool = False) -> "Writer":
        self._number += 1
        self._call(at * US, (at + 1) * US, self._number, CALLS[kind])
        if kernel:
            self._kernel((at + 2) * US, (at + 5) * US, self._number)
        return self

    def open(self, folder: Path) -> fastprof.Profile:
        path = folder / self.name
        self.file.write(path)
        return fastprof.open(path)


def nsys() -> Writer:
    file = Export()
    return Writer(
        file, "a.sqlite", lambda a, b, n, k: file.launch(a, b, n, 1, CUDA[k]),
        lambda a, b, n: file.kernel(a, b, n),
    )  # fmt: skip


def kineto() -> Writer:
    file = KinetoFile()
    return Writer(
        file, "a.json", lambda a, b, n, k: file.launch(a, b, n, name=CUDA[k].partition("_")[0]),
        lambda a, b, n: file.kernel(a, b, n, "gemm"),
    )  # fmt: skip


def nvprof() -> Writer:
    file, cbids = NvprofFile(), (211, 315, 319, 41)
    return Writer(
        file, "a.sql", lambda a, b, n, k: file.launch(a, b, n, 1, cbid=cbids[k]),
        lambda a, b, n: file.kernel(a, b, n, name="gemm"),
    )  # fmt: skip


def of_hip(file: Rocpd | RpdFile, name: str) -> Writer:
    return Writer(
        file, name, lambda a, b, n, k: file.call(a, b, n, HIP[k]),
        lambda a, b, n: file.kernel(a, b, n),
    )  # fmt: skip


def rocpd() -> Writer:
    return of_hip(Rocpd(), "a.db")


def rpd() -> Writer:
    return of_hip(RpdFile(), "a.rpd")


def rocprof() -> Writer:
    file = RocprofFile()
    return Writer(
        file, "a.json", lambda a, b, n, k: file.hip(a, b, n, HIP[k]),
        lambda a, b, n: file.kernel(a, b, n),
    )  # fmt: skip


ALL = [nsys, kineto, nvprof, rocpd, rpd, rocprof]
FORMATS = pytest.mark.parametrize("make", ALL, ids=[make.__name__ for make in ALL])


@FORMATS
def test_a_launch_without_its_kernel_is_lost(make, tmp_path):
    trace = make().call(0, kernel=True).call(10).call(20, "copy").call(30, kernel=True).call(40)
    profile = trace.open(tmp_path)
    assert profile.contents.lost_launches == 2
    assert profile.contents.launches == 2
    assert profile.find_steps("none").lost.tolist() == [2]
    assert "the file lacks the GPU work of 2 of 4 launches" in profile.overview().facts["answer"]


@FORMATS
def test_launches_that_a_graph_captures_are_not_lost(make, tmp_path):
    trace = make().call(0, kernel=True).call(10, "begin").call(20).call(30, "end").call(40)
    assert trace.open(tmp_path).contents.lost_launches == 1


@pytest.mark.parametrize("make", ALL[2:], ids=[make.__name__ for make in ALL[2:]])
def test_a_file_without_kernels_has_recorded_none(make, tmp_path):
    assert make().call(0).call(10).open(tmp_path).contents.lost_launches == 0


def test_calls_that_failed_launched_nothing(tmp_path):
    export = Export().launch(0, 1, 1, 1).kernel(2, 3, 1).launch(10, 11, 2, 1)
    export.launch(20, 21, 3, 1, returnValue=700)
    assert fastprof.open(export.write(tmp_path / "a.sqlite")).contents.lost_launches == 1
    file = NvprofFile().launch(0, 1, 1, 1).kernel(2, 3, 1, name="gemm").launch(10, 11, 2, 1)
    file.launch(20, 21, 3, 1, result=700)
    assert fastprof.open(file.write(tmp_path / "a.sql")).contents.lost_launches == 1


def test_a_call_of_the_driver_inside_of_one_of_the_runtime_is_not_lost(tmp_path):
    file = NvprofFile().launch(0, 9, 1, 1).launch(1, 8, 2, 1, cbid=307, driver=True)
    file.kernel(12, 13, 1, name="gemm")
    assert fastprof.open(file.write(tmp_path / "a.sql")).contents.lost_launches == 0
    file = NvprofFile().launch(1, 8, 2, 1, cbid=307, driver=True).kernel(12, 13, 2, name="gemm")
    file.launch(21, 28, 3, 1, cbid=307, driver=True)
    assert fastprof.open(file.write(tmp_path / "b.sql")).contents.lost_launches == 1
