"""`copies`: rate and peak, blocked host time, exposed time, and the memory of copies."""

import numpy as np
import pytest

import fastprof
from fastprof.analysis.copies.report import bus_of
from fastprof.analysis.host.waits import blocked_ns
from fastprof.errors import ReportError
from fastprof.model.devices import Device
from support.commands import run
from support.exports import Export
from support.kineto_files import KinetoFile
from support.nvprof_files import NvprofFile

US = 1000
PAGEABLE, PINNED, DEVICE, MANAGED, UNKNOWN = 0, 1, 2, 4, 7  # as nsys numbers memory


def rows(table, *names):
    return [tuple(row[name] for name in names) for row in table.rows()]


def copied(export, corr, call, work, kind=1, memory=(PAGEABLE, DEVICE), n_bytes=1000, **others):
    """A copy with its call; `call` and `work` are start and end in us."""
    name = others.pop("name", "cudaMemcpyAsync_v3020")
    export.launch(call[0] * US, call[1] * US, corr=corr, tid=1, name=name)
    return export.copy(
        work[0] * US, work[1] * US, corr, kind, n_bytes, srcKind=memory[0], dstKind=memory[1],
        **others,
    )  # fmt: skip


def test_copies_have_rate_peak_and_exposed_time(opened):
    export = Export().gpu(name="NVIDIA A100-SXM4-80GB")
    copied(export, 1, (0, 5), (10, 20), memory=(PINNED, DEVICE), n_bytes=157_538)
    copied(export, 2, (6, 8), (30, 50), kind=8, memory=(DEVICE, DEVICE), n_bytes=2_000_000)
    export.launch(8 * US, 9 * US, corr=3, tid=1).kernel(15 * US, 40 * US, corr=3)
    table = opened(export).copies()
    names = (
        "direction", "memory", "size_class", "copies", "bytes", "time_ns", "bytes_per_s",
        "peak_share", "blocking", "blocked_ns", "exposed_ns",
    )  # fmt: skip
    memory = 2039e9
    assert rows(table, *names) == [
        ("DtoD", "device", "1-16 MB", 1, 2_000_000, 20 * US, 1e11,
         pytest.approx(2e11 / memory), 0, 0, 10 * US),
        ("HtoD", "pinned", "64 kB-1 MB", 1, 157_538, 10 * US, pytest.approx(157_538e5),
         pytest.approx(0.5, rel=1e-4), 0, 0, 5 * US),
    ]  # fmt: skip
    assert table.total["exposed_ns"] == 15 * US
    assert table.notes == (
        "peak of the bus: PCIe 4.0 x16, 31.51 GB/s in each direction, the most that the GPU "
        "supports; the machine may have less: --bus GB/s",
    )
    assert table.facts["buses"]["0"]["name"] == "PCIe 4.0 x16"


def test_more_bytes_than_the_gpu_can_move_have_no_rate(opened):
    export = Export().gpu(name="NVIDIA A100-SXM4-80GB")
    for i, n_bytes in enumerate((90_000_000, 900_000)):  # in 1 us: 90 and 0.9 TB/s
        at = 100 * i
        copied(export, 3 * i + 1, (at, at + 5), (at + 10, at + 11), 8, (DEVICE, DEVICE), n_bytes)
        copied(export, 3 * i + 2, (at, at + 5), (at + 20, at + 21), 1, (PINNED, DEVICE), n_bytes)
    table = opened(export).copies()
    result = {(row["direction"], row["size_class"]): row for row in table.rows()}
    for (direction, size), row in result.items():
        is_small = (direction, size) == ("DtoD", "64 kB-1 MB")
        assert (row["bytes_per_s"] is not None) == is_small, (direction, size)
        assert (row["peak_share"] is not None) == is_small, (direction, size)
        assert row["flag"] == ("" if is_small else "size too high"), (direction, size)
    assert result["DtoD", "64 kB-1 MB"]["peak_share"] == pytest.approx(0.883, abs=1e-3)
    # In the L2 cache: above the peak, but possible.
    export = Export().gpu(name="NVIDIA A100-SXM4-80GB")
    copied(export, 1, (0, 5), (10, 11), 8, (DEVICE, DEVICE), 2_000_000)
    (row,) = opened(export).copies().rows()
    assert (row["flag"], row["bytes_per_s"]) == ("above peak", 2e12)


def test_the_user_knows_the_bus(opened, tmp_path):
    export = copied(Export(), 1, (0, 5), (10, 20), n_bytes=100_000)
    profile = opened(export)
    table = profile.copies()
    assert rows(table, "peak_share") == [(None,)]
    assert table.notes == ("peak of the bus unknown for this GPU: give it with --bus GB/s",)
    table = profile.copies(bus=20)
    assert rows(table, "peak_share") == [(0.5,)]
    assert table.notes == ()
    assert run("copies", tmp_path / "net.sqlite", "--bus", "-1").returncode == 2


@pytest.mark.parametrize(
    ("name", "capability", "bus"),
    [
        ("Tesla V100-SXM2-16GB", "7.0", "PCIe 3.0 x16"),
        ("NVIDIA L4", "8.9", "PCIe 4.0 x16"),
        ("NVIDIA B200", "10.0", "PCIe 5.0 x16"),
        ("AMD Instinct MI210", "gfx90a", "PCIe 4.0 x16"),
        ("AMD Instinct MI300X", "gfx942", "PCIe 5.0 x16"),
        ("AMD Instinct MI300A", "gfx942", None),
        ("NVIDIA GH200 480GB", "9.0", None),
        ("NVIDIA Future", "99.0", None),
        (None, None, None),
    ],
)
def test_the_bus_follows_from_the_gpu(name, capability, bus):
    result = bus_of(Device(name, capability=capability))
    assert (result and result.name) == bus


def test_the_host_waits_for_some_copies(opened):
    export = Export()
    copied(export, 1, (0, 50), (20, 45))  # returns after the GPU began to copy
    copied(export, 2, (60, 65), (70, 80))  # asynchronous
    copied(export, 3, (100, 140), (110, 130), name="cudaMemcpy_v3020")
    copied(export, 4, (200, 205), (210, 220), kind=2, memory=(DEVICE, PAGEABLE))
    export.launch(206 * US, 260 * US, corr=40, tid=1, name="cudaStreamSynchronize_v3020")
    copied(export, 5, (300, 305), (310, 320), kind=2, memory=(DEVICE, PINNED))
    export.launch(340 * US, 350 * US, corr=50, tid=1, name="cudaStreamSynchronize_v3020")
    export.launch(400 * US, 450 * US, corr=6, tid=1, name="cudaMemset_v3020")
    export.memset(410 * US, 420 * US, 6, 100, memKind=DEVICE)
    profile = opened(export)
    blocked = blocked_ns(profile, np.arange(len(profile)))
    assert (blocked / US).tolist() == [50, 0, 40, 60, 0, 0]
    assert profile.copies().total["blocking"] == 3


def test_sizes_and_places_of_copies(opened):
    export = Export().push_pop(0, 10 * US, "layer:small", tid=1)
    export.push_pop(20 * US, 40 * US, "layer:large", tid=1)
    copied(export, 1, (1, 2), (3, 4), n_bytes=10)
    copied(export, 2, (21, 22), (23, 33), n_bytes=10)
    copied(export, 3, (60, 61), (62, 63), n_bytes=10)
    copied(export, 4, (70, 71), (72, 73), n_bytes=5000)
    table = opened(export).copies(by="size")
    assert rows(table, "size", "copies", "longest_at", "longest_layer", "max_ns") == [
        (10, 3, "large", "large", 10 * US),
        (5000, 1, None, None, US),
    ]


def test_size_classes_have_no_gaps(opened):
    export = Export()
    sizes = (0, 3999, 4000, 63_999, 64_000, 10**6 - 1, 10**6, 16 * 10**6, 256 * 10**6)
    for corr, size in enumerate(sizes, 1):
        copied(export, corr, (corr, corr + 1), (100 + corr, 101 + corr), n_bytes=size)
    table = opened(export).copies(by="size_class")
    assert dict(rows(table, "size_class", "copies")) == {
        "< 4 kB": 2,
        "4-64 kB": 2,
        "64 kB-1 MB": 2,
        "1-16 MB": 1,
        "16-256 MB": 1,
        ">= 256 MB": 1,
    }
    unknown = KinetoFile().copy(10, 20, 1, "Memset (Device)", None)
    table = opened(unknown).copies()
    assert rows(table, "size_class", "bytes", "bytes_per_s") == [(None, None, None)]


def test_memory_of_copies_in_each_format(opened):
    export = Export()
    for corr, memory in enumerate(((PAGEABLE, DEVICE), (MANAGED, PINNED), (2**31 - 1, UNKNOWN)), 1):
        copied(export, corr, (corr, corr + 1), (10 * corr, 10 * corr + 5), memory=memory)
    export.memset(100 * US, 110 * US, 50, 100, memKind=DEVICE).kernel(200 * US, 210 * US, 51)
    nsys = opened(export)
    known = ["pageable -> device", "managed -> pinned", None, "device", None]
    assert nsys.column("copy_memory").array().tolist() == known
    table = nsys.copies(by="memory", where=["direction=HtoD"])
    assert set(table["memory"]) == {"pageable", "managed -> pinned", None}
    file = KinetoFile()
    for corr, name in enumerate(
        (
            *("Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Host)", "Memset (Device)"),
            *("Memset (Unknown)", "Memcpy DtoD", "sgemm (Device)"),
        ),
        1,
    ):
        file.copy(10 * corr, 10 * corr + 5, corr, name, 100)
    torch = opened(file)
    assert torch.column("copy_memory").array().tolist() == [
        *("pinned -> device", "device -> host", "device", None, None, None)
    ]
    nvprof = opened(NvprofFile().copy(10, 20, 1, 1, 100))
    assert nvprof.column("copy_memory").array().tolist() == [None]


def test_steps_and_pageable_memory_come_first(opened):
    export = Export().gpu(name="Tesla V100-SXM2-16GB")
    for step in range(3):
        at = 1000 * step
        export.push_pop(at * US, (at + 900) * US, f"step {step}", tid=1)
        copied(export, 3 * step + 1, (at, at + 90), (at + 10, at + 80), n_bytes=1_000_000)
        copied(export, 3 * step + 2, (at + 100, at + 101), (at + 110, at + 120),
               memory=(PINNED, DEVICE), n_bytes=1_000_000)  # fmt: skip
        export.launch((at + 130) * US, (at + 131) * US, corr=3 * step + 3, tid=1)
        export.kernel((at + 140) * US, (at + 890) * US, corr=3 * step + 3)
    table = opened(export).copies()
    assert table.lead[1:] == (
        "means exclude step 0: the GPU work before it is not recorded",
        "6 copies and memsets of 6 MB take 240 us, 80 us per step (8.0% of the step)",
        "exposed 240 us, during which the GPU only copies; the host waits 270 us in 3 of them",
        "HtoD: 3 of 6 copies from pageable memory, 50.0% of the bytes; pinned memory and "
        "non_blocking=True let them overlap with kernels",
        "",
    )
    assert rows(table, "memory", "step_ns") == [("pageable", 70 * US), ("pinned", 10 * US)]


def test_nothing_to_copy(tmp_path):
    export = copied(Export(), 1, (0, 5), (10, 20)).kernel(30 * US, 40 * US, corr=2)
    path = export.write(tmp_path / "net.sqlite")
    table = fastprof.open(path, copies=False).copies()
    assert table.n_rows == 0
    assert table.notes == (
        "no memory copies or memsets; in Python, open the trace with copies=True",
    )
    table = fastprof.open(path, copies=True).copies(where=["direction=DtoH"])
    assert (table.n_rows, table.notes) == (0, ("--where selects no copy or memset",))
    with pytest.raises(ReportError, match=r"unknown key 'sizes'; did you mean size or size_class"):
        fastprof.open(path, copies=True).copies(by="sizes")


def test_copies_without_a_launch_are_reported(opened):
    export = copied(Export(), 1, (0, 50), (10, 20))
    export.copy(100 * US, 110 * US, 99, 1, 1000)
    table = opened(export).copies()
    assert table.total["blocked_ns"] == 50 * US
    assert table.notes[-1] == "launch not recorded for 1 copies and memsets: blocked excludes them"


@pytest.mark.parametrize("seed", range(5))
def test_exposed_time_is_copying_without_kernels(opened, seed):
    random = np.random.default_rng(seed)
    export, busy = Export(), {(device, kind): set() for device in (0, 1) for kind in "ck"}
    for corr in range(1, 40):
        start, device = int(random.integers(0, 400)), int(random.integers(0, 2))
        end = start + int(random.integers(0, 40))
        if corr % 2:
            export.copy(start, end, corr, 1, 100, device=device, stream=corr)
        else:
            export.kernel(start, end, corr, device=device, stream=corr)
        busy[device, "c" if corr % 2 else "k"] |= set(range(start, end))
    table = opened(export).copies(by="device")
    assert dict(rows(table, "device", "exposed_ns")) == {
        device: len(busy[device, "c"] - busy[device, "k"]) for device in (0, 1)
    }
