"""What fastprof asks about GPUs within a program: nothing that initialises CUDA."""

import ctypes

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")

from fastprof._system import nvidia
from fastprof.annotate import gpus, recorders

ERROR = 3  # CUDA_ERROR_NOT_INITIALIZED


class Driver:
    """A stand-in for CUDA's driver library.

    Parameters
    ----------
    are_active : of each GPU, whether it has a primary context; None before `cuInit`
    """

    def __init__(self, *are_active):
        self._are_active = are_active

    def cuDeviceGetCount(self, number):
        if None in self._are_active:
            return ERROR
        number._obj.value = len(self._are_active)
        return 0

    def cuDeviceGet(self, device, place):
        device._obj.value = place
        return 0

    def cuDevicePrimaryCtxGetState(self, device, flags, is_active):
        assert isinstance(flags._obj, ctypes.c_uint)
        is_active._obj.value = self._are_active[device.value]
        return 0


@pytest.mark.parametrize(
    "driver, expected",
    [
        (None, False),
        (Driver(None), False),
        (Driver(), False),
        (Driver(False, False), False),
        (Driver(False, True), True),
    ],
)
def test_a_context_of_any_library_tells_that_gpus_are_used(monkeypatch, driver, expected):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(gpus, "_loaded_driver", lambda: driver)
    kinds = torch.profiler.ProfilerActivity
    assert gpus.are_used() == expected
    assert recorders.activities_in_use() == [kinds.CPU, kinds.CUDA][: 1 + expected]


def test_gpus_that_torch_has_initialised_are_used(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert gpus.are_used()


def test_a_fork_of_a_process_that_uses_cuda_records_the_cpu(monkeypatch):
    kinds = torch.profiler.ProfilerActivity
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert recorders.activities() == [kinds.CPU, kinds.CUDA]
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
    assert recorders.activities() == [kinds.CPU]


def test_a_stretch_by_time_includes_the_first_use_of_a_gpu(monkeypatch):
    kinds = torch.profiler.ProfilerActivity
    monkeypatch.setattr(gpus, "are_used", lambda: False)
    monkeypatch.setattr(gpus, "may_be_used", lambda: True)
    recorder = recorders.InUseRecorder(None)
    assert recorder._activities() == [kinds.CPU]
    recorder.is_start = True
    assert recorder._activities() == [kinds.CPU, kinds.CUDA]
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
    assert recorder._activities() == [kinds.CPU]


def test_a_library_that_is_not_loaded_is_not_loaded_now(monkeypatch):
    monkeypatch.setattr(gpus, "_DRIVER", "libnone.so.1")
    assert gpus._loaded_driver() is None
    monkeypatch.setattr(gpus, "_DRIVER", "libc.so.6")
    assert gpus._loaded_driver().getpid() > 0


@pytest.mark.parametrize(
    "cuda, hip, has_gpu, expected",
    [
        ("13.0", None, True, True),
        ("13.0", None, False, False),
        (None, None, True, False),
        (None, "6.2", False, True),
    ],
)
def test_the_system_tells_whether_there_may_be_gpus(
    monkeypatch, tmp_path, cuda, hip, has_gpu, expected
):
    monkeypatch.setattr(nvidia, "_DEVICES", (str(tmp_path),) if has_gpu else ())
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.version, "hip", hip)
    assert gpus.may_be_used() == expected
