"""One small program in the format of each recorder gives the same rows."""

import json

import pytest

import fastprof
from support.exports import Export
from support.kineto_files import KinetoFile
from support.nvprof_files import NvprofFile

ENGINE = "autograd::engine::evaluate_function: "
# start, end, thread, name, sequence number, shapes
RANGES = [
    (0, 900, 1, "layer:net", None, None),
    (10, 300, 1, "layer:fc", None, None),
    (20, 290, 1, "aten::matmul", 4, [[8, 16], [16, 4]]),
    (30, 280, 1, "aten::mm", 4, [[8, 16], [16, 4]]),
    (400, 500, 1, "aten::relu", 5, [[8, 4]]),
    (600, 700, 1, "my own", None, None),
    (1000, 1100, 2, ENGINE + "ReluBackward0", 5, None),
    (1010, 1090, 2, "ReluBackward0", 5, [[8, 4]]),
    (1200, 1400, 2, ENGINE + "MmBackward0", 4, None),
    (1210, 1390, 2, "MmBackward0", 4, [[8, 4]]),
]
# launch, thread, correlation, kernel's start and end, name
KERNELS = [
    (40, 1, 11, 2000, 2040, "sgemm_nn"),
    (410, 1, 12, 2100, 2110, "elementwise_kernel"),
    (610, 1, 13, 2200, 2201, "mine"),
    (950, 1, 14, 2300, 2300, "outside"),
    (1020, 2, 15, 2400, 2410, "elementwise_kernel"),
    (1220, 2, 16, 2500, 2540, "sgemm_nt"),
    (1240, 2, 17, 2600, 2630, "sgemm_tn"),
    (None, None, 99, 2700, 2705, "without_launch"),
]
COPY = (1500, 1, 18, 2800, 2900, 4096)
KEYS = [
    "layer",
    "dir",
    "op",
    "params",
    "flops",
    "bytes",
    "seq",
    "altseq",
    "sub",
    "tid",
    "pid",
    "sil",
    "kernel",
    "grid",
    "block",
    "device",
    "stream",
    "launch",
    "correlation",
    "start",
    "tc",
    "ranges",
    "trace",
    "kind",
    "copied",
    "copy_direction",
]


def nvtx_name(name, seq, shapes):
    text = name if seq is None else f"{name}, seq = {seq}, op_id = {seq + 70}"
    return text if shapes is None else f"{text}, sizes = {json.dumps(shapes)}"


def as_nsys():
    export = Export()
    for start, end, tid, name, seq, shapes in RANGES:
        export.push_pop(start, end, nvtx_name(name, seq, shapes), tid=tid)
    for launch, tid, corr, start, end, name in KERNELS:
        if launch is not None:
            export.launch(launch, launch + 5, corr, tid, "cudaLaunchKernel")
        export.kernel(start, end, corr, name=name, device=1, stream=7, grid=(2, 3, 4))
    launch, tid, corr, start, end, n_bytes = COPY
    export.launch(launch, launch + 5, corr, tid, "cudaMemcpyAsync")
    return export.copy(start, end, corr, kind=1, n_bytes=n_bytes, device=1, stream=7)


def as_nvprof():
    file = NvprofFile()
    for start, end, tid, name, seq, shapes in RANGES:
        file.push_pop(start, end, nvtx_name(name, seq, shapes), tid=tid)
    for launch, tid, corr, start, end, name in KERNELS:
        if launch is not None:
            file.launch(launch, launch + 5, corr, tid)
        file.kernel(start, end, corr, name=name, device=1, grid=(2, 3, 4))
    launch, tid, corr, start, end, n_bytes = COPY
    file.launch(launch, launch + 5, corr, tid, cbid=41)
    return file.row("CUPTI_ACTIVITY_KIND_MEMCPY", start=start, end=end, correlationId=corr,
                    copyKind=1, bytes=n_bytes, deviceId=1, contextId=1, streamId=7)  # fmt: skip


def as_kineto():
    trace = KinetoFile()
    for start, end, tid, name, seq, shapes in RANGES:
        if seq is None:
            trace.annotation(start, end, name, tid)
        else:
            trace.op(start, end, name, tid, seq=seq, dims=shapes)
    for launch, tid, corr, start, end, name in KERNELS:
        if launch is not None:
            trace.launch(launch, launch + 5, corr, tid)
        trace.kernel(start, end, corr, name, device=1)
    launch, tid, corr, start, end, n_bytes = COPY
    trace.launch(launch, launch + 5, corr, tid, "cudaMemcpyAsync")
    return trace.copy(start, end, corr, "Memcpy HtoD (Pinned -> Device)", n_bytes)


FORMATS = {"nsys": as_nsys, "nvprof": as_nvprof, "kineto": as_kineto}


def rows(file, tmp_path, copies):
    profile = fastprof.open(file.write(tmp_path / "capture"), copies=copies)
    result = [{key: row[key] for key in KEYS} for row in profile.rows()]
    for row in result:
        if row["kind"] == "memcpy":  # the name differs between recorders
            row["kernel"] = row["grid"] = row["block"] = row["device"] = None
    return result


@pytest.mark.parametrize("other", ["nvprof", "kineto"])
@pytest.mark.parametrize("copies", [False, True])
def test_rows_are_those_of_the_export(tmp_path, other, copies):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    expected = rows(as_nsys(), tmp_path / "a", copies)
    assert len(expected) == len(KERNELS) + copies
    assert rows(FORMATS[other](), tmp_path / "b", copies) == expected


def test_the_rows_say_what_the_program_did(tmp_path):
    result = rows(as_nsys(), tmp_path, copies=True)
    said = [(row["layer"], row["dir"], row["op"], row["sil"]) for row in result]
    assert said == [
        (("net", "fc"), "fprop", "matmul", 40),
        (("net",), "fprop", "relu", 10),
        (("net",), "fprop", None, 1),
        ((), None, None, 0),
        (("net",), "bprop", "relu", 10),
        (("net", "fc"), "bprop", "matmul", 40),
        (("net", "fc"), "bprop", "matmul", 30),
        ((), None, None, 5),
        ((), None, None, 100),
    ]


def copies_within_a_call():
    """A copy of 100 bytes and a memset of 60 in `aten::copy_` of [8, 4] to [8, 4]."""
    text = nvtx_name("aten::copy_", 4, [[8, 4], [8, 4], []])
    export = Export().push_pop(0, 900, text, tid=1)
    nvprof = NvprofFile().push_pop(0, 900, text, tid=1)
    kineto = KinetoFile().op(
        *(0, 900, "aten::copy_", 1),
        dims=[[8, 4], [8, 4], []],
        types=["float", "float", "Scalar"],
    )
    for file in (export, nvprof, kineto):
        file.launch(10, 15, 11, 1)
        file.launch(20, 25, 12, 1)
    export.copy(1000, 1100, 11, kind=1, n_bytes=100).memset(1200, 1300, 12, n_bytes=60)
    nvprof.copy(1000, 1100, 11, 1, 100).set(1200, 1300, 12, 60)
    kineto.copy(1000, 1100, 11, "Memcpy HtoD (Pinned -> Device)", 100)
    kineto.copy(1200, 1300, 12, "Memset (Device)", 60)
    return {"nsys": export, "nvprof": nvprof, "kineto": kineto}


@pytest.mark.parametrize("name", FORMATS)
def test_a_copy_moves_what_the_file_says_of_it(tmp_path, name):
    path = copies_within_a_call()[name].write(tmp_path / "capture")
    rows = list(fastprof.open(path, copies=True).rows())
    result = [(row["kind"], row["op"], row["flops"], row["bytes"]) for row in rows]
    assert result == [("memcpy", "copy_", 0, 100), ("memset", "copy_", 0, 60)]


@pytest.mark.parametrize("pair", [("nsys", "nvprof"), ("nsys", "kineto"), ("nvprof", "kineto")])
def test_a_comparison_of_two_formats_finds_no_change(tmp_path, pair):
    """Copies are on the GPU that the recorder names, so they are left out."""
    files = []
    for name in pair:
        (tmp_path / name).mkdir()
        file = FORMATS[name]().write(tmp_path / name / "capture")
        files.append(fastprof.open(file, copies=False))
    difference = fastprof.diff(*files)
    assert difference.same_work
    assert difference.wall["before_ns"] == difference.wall["after_ns"]
    work = [row for row in difference.table().rows() if not row["part"].startswith("idle")]
    assert len(work) == 6
    assert {(row["delta_ns"], row["why"]) for row in work} == {(0, "same")}
