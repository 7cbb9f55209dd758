"""`whatif --on`: the time of kernels on another GPU, and the step that follows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fastprof
from fastprof.errors import ReportError
from fastprof.model.device_table import ROWS
from support import commands
from support.kineto_files import KinetoFile
from unit.analysis.replay.simulated_run import Op, Program, changed, mean_ns, run

US = 1000
H100, V100, A100 = "NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-16GB", "NVIDIA A100-SXM4-80GB"
B200, MI300X = "NVIDIA B200", "AMD Instinct MI300X"
MANY, FEW = [4096, 1, 1], [16, 1, 1]
BF16 = "c10::BFloat16"


class Work(NamedTuple):
    """A kernel under an operator."""

    op: str
    dims: Any
    kernel: str
    ns: int
    types: Any = ("float", "float")
    grid: Any = tuple(MANY)
    bytes: int | None = None


# 137 GFLOP, 101 MB: 139 us at the peak of an H100.
PRODUCT = Work(
    "aten::mm", [[4096, 4096], [4096, 4096]], "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize",
    185 * US, (BF16, BF16),
)  # fmt: skip
# 805 MB: 240 us at the bandwidth of an H100.
ADD = Work("aten::add", [[8192, 8192], [8192, 8192]], "vectorized_elementwise_kernel", 270 * US)
SLOW_ADD = ADD._replace(kernel="unrolled_elementwise_kernel", ns=1600 * US)
TINY = Work("aten::add", [[256], [256]], "elementwise_kernel", 2 * US, grid=FEW)
UNKNOWN = Work("mine::op", [[256]], "my_kernel", 100 * US)
FP8 = Work(
    "aten::_scaled_mm", [[4096, 4096], [4096, 4096], [], []], "sm90_xmma_gemm_e4m3bf16_e4m3f32_f32",
    100 * US, ("c10::Float8_e4m3fn", "c10::Float8_e4m3fn", "float", "float"),
)  # fmt: skip
UPLOAD = Work(
    "aten::copy_", [[1 << 24]], "Memcpy HtoD (Pinned -> Device)", 5000 * US, bytes=1 << 26
)
REDUCE = Work(
    "c10d::allreduce_", [[[1 << 24]]], "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 900 * US
)
CONVOLUTION = Work(
    "aten::cudnn_convolution", [[32, 256, 56, 56], [256, 256, 3, 3]],
    "volta_scudnn_128x64_relu_interior_nn_v1", 10_000 * US,
)  # fmt: skip


def opened(tmp_path: Path, gpu: str, *works: Work) -> fastprof.Profile:
    """A run of some kernels, each launched by its operator, on a GPU."""
    file = KinetoFile(deviceProperties=[{"id": 0, "name": gpu}])
    at = 0
    for number, work in enumerate(works, 1):
        file.op(at, at + 10 * US, work.op, dims=work.dims, types=[*work.types])
        file.launch(at + US, at + 5 * US, number)
        begin, end = at + 12 * US, at + 12 * US + work.ns
        if work.bytes:
            file.copy(begin, end, number, work.kernel, work.bytes)
        else:
            file.kernel(begin, end, number, work.kernel, grid=[*work.grid])
        at = end + 10 * US
    return fastprof.open(file.write(tmp_path / "run.json"), copies=True)


def times(tmp_path: Path, gpu: str, on: str, *works: Work) -> list[dict[str, Any]]:
    """The rows of the kernels, in their order."""
    table = opened(tmp_path, gpu, *works).whatif(on=on, by=["kernel"])
    rows = {row["kernel"]: row for row in table.rows()}
    assert len(rows) == len(works)
    return sorted(rows.values(), key=lambda row: [w.ns for w in works].index(row["gpu_ns"]))


def span(row: dict[str, Any]) -> tuple[float, float]:
    """The factors of the recorded time."""
    return row["low_ns"] / row["gpu_ns"], row["high_ns"] / row["gpu_ns"]


def row_of(words: str) -> Any:
    return next(row for row in ROWS if row.words == words)


def test_on_its_own_gpu_nothing_changes(tmp_path):
    rows = times(tmp_path, H100, "H100", PRODUCT, ADD, TINY, UNKNOWN)
    assert [span(row) for row in rows] == [(1.0, 1.0)] * 4
    assert {row["verdict"] for row in rows} == {"alike"}
    table = opened(tmp_path, H100, ADD).whatif(on="H100")
    assert "the trace is of H100: no time changes" in table.notes


@pytest.mark.parametrize("on", ["H200", "B200", "A100 80GB", "v100 sxm"])
def test_a_kernel_at_the_bandwidth_changes_by_it(on, tmp_path):
    (row,) = times(tmp_path, H100, on, ADD)
    low, high = span(row)
    ratio = row_of("h100").bandwidth / row_of(on.lower().replace("a100", "a100 sxm")).bandwidth
    assert low < ratio < high < 2 * low
    assert row["rule"] == "bandwidth"
    assert row["verdict"] == ("faster" if ratio < 1 else "slower")


@pytest.mark.parametrize("on", ["B200", "A100"])
def test_a_product_changes_by_the_peak_of_its_type(on, tmp_path):
    (row,) = times(tmp_path, H100, on, PRODUCT)
    low, high = span(row)
    assert low < row_of("h100").half / row_of(on.lower()).half < high < 2 * low
    assert row["rule"] == "compute"


def test_what_no_roof_explains_changes_by_any_ratio(tmp_path):
    (row,) = times(tmp_path, H100, "B200", SLOW_ADD)
    low, high = span(row)
    issue = 132 * 1830 / (148 * 1850)
    assert low < 3352 / 8000
    assert issue < high <= 1.1
    assert (row["rule"], row["verdict"]) == ("mixed", "cannot tell")


def test_few_blocks_gain_nothing_from_more_multiprocessors(tmp_path):
    """Their upper end is the clock's; with many blocks it is lower."""
    (few,) = times(tmp_path, V100, "H200", SLOW_ADD._replace(grid=FEW))
    (many,) = times(tmp_path, V100, "H200", SLOW_ADD)
    assert span(many)[1] < 1530 / 1830 < span(few)[1]


def test_kernels_without_work_stay(tmp_path):
    (row,) = times(tmp_path, H100, "B200", TINY)
    assert span(row) == pytest.approx((1 / 1.4, 1.4), rel=1e-3)
    assert (row["rule"], row["verdict"]) == ("fixed", "either")


def test_kernels_without_work_of_another_vendor_take_what_those_there_do(tmp_path):
    (row,) = times(tmp_path, H100, "MI300X", TINY)
    assert (row["low_ns"], row["high_ns"]) == pytest.approx((3000 / 1.1, 6500 * 1.1), abs=1)


def test_kernels_of_unknown_cost_keep_all_ratios(tmp_path):
    (row,) = times(tmp_path, V100, "H100", UNKNOWN)
    low, high = span(row)
    assert low < 900 / 3352
    assert high >= 1.0
    assert (row["rule"], row["verdict"]) == ("no cost", "cannot tell")


@pytest.mark.parametrize("work", [PRODUCT, ADD, SLOW_ADD, UNKNOWN])
def test_no_less_of_anything_is_not_slower(work, tmp_path):
    """And the other way not faster; clocks vary by a tenth."""
    (faster,) = times(tmp_path, H100, "B200", work)
    (slower,) = times(tmp_path, B200, "H100", work)
    assert span(faster)[1] <= 1.1 + 1e-3
    assert faster["verdict"] in ("faster", "not slower", "cannot tell")
    assert span(slower)[0] >= 1 / 1.1 - 1e-3


def test_a_smaller_memory_is_noted(tmp_path):
    profile = opened(tmp_path, H100, ADD)
    note = "16 GB of memory instead of 80 GB: whether the program fits is not known"
    assert note in profile.whatif(on="T4").notes
    assert not [note for note in profile.whatif(on="H200").notes if "fits" in note]


def test_another_vendor_is_wider(tmp_path):
    for work in (PRODUCT, ADD, SLOW_ADD):
        (near,) = times(tmp_path, H100, "H200", work)
        (other,) = times(tmp_path, H100, "MI300X", work)
        assert other["width"] > near["width"]
    table = opened(tmp_path, H100, ADD).whatif(on="MI300X")
    assert "libraries of AMD and NVIDIA differ: intervals between them are wider" in table.notes


def test_a_type_that_the_gpu_lacks(tmp_path):
    """fp8 runs as bf16, whose peak on an A100 is a sixth, and its numbers are twice as large."""
    (row,) = times(tmp_path, H100, "A100", FP8)
    low, high = span(row)
    assert low < row_of("h100").fp8 / row_of("a100").half < high
    table = opened(tmp_path, H100, FP8).whatif(on="A100")
    assert table.facts["on"]["missing"] == [["fp8", "bf16"]]
    assert any(note.startswith("A100 does not run products of fp8") for note in table.notes)


def test_fp4_of_a_gpu_whose_peak_is_not_in_the_table(tmp_path):
    """It is one to two times that of fp8."""
    types = ("c10::Float4_e2m1fn_x2", "c10::Float4_e2m1fn_x2", "float", "float")
    work = FP8._replace(kernel="bmm_E2m1_MxE2m1MxE2m1_Fp32_t128x8x512", types=types)
    profile = opened(tmp_path, "AMD Instinct MI355X", work)
    assert [row["compute_type"] for row in profile.roofline().rows()] == ["fp4"]
    assert profile.whatif(on="B200").facts["on"]["missing"] == []
    assert profile.whatif(on="H100").facts["on"]["missing"] == [["fp4", "fp8"]]


def test_volta_has_no_bf16(tmp_path):
    result = opened(tmp_path, H100, PRODUCT).whatif(on="v100 sxm").facts["on"]
    assert result["missing"] == [["bf16", "fp32"]]
    assert result["low_ns"] > 10 * result["gpu_ns"]


def test_convolutions_may_run_as_tf32_on_a_gpu_that_has_it(tmp_path):
    table = opened(tmp_path, V100, CONVOLUTION).whatif(on="A100")
    assert table.facts["on"]["may_use_tf32"]
    low, _ = span(table.facts["on"])
    assert low < row_of("v100 sxm").fp32 / row_of("a100").fp32 / 2
    product = PRODUCT._replace(kernel="volta_sgemm_128x64_nn", types=("float", "float"))
    same = opened(tmp_path, V100, product).whatif(on="A100")
    assert not same.facts["on"]["may_use_tf32"]


def test_copies_and_communication_change_by_their_link_at_most(tmp_path):
    upload, reduce = times(tmp_path, V100, "H100", UPLOAD, REDUCE)[::-1]
    assert (reduce["rule"], upload["rule"]) == ("link", "link")
    result = {round(span(row)[0], 3) for row in (upload, reduce)}
    assert result == {round(16 / 64 / 1.5, 3), round(300 / 900 / 1.5, 3)}
    assert all(span(row)[1] == pytest.approx(1.5, rel=1e-3) for row in (upload, reduce))


@pytest.mark.parametrize("gpu", [V100, H100, B200, MI300X])
def test_every_gpu_of_the_table_has_an_interval(gpu, tmp_path):
    profile = opened(tmp_path, gpu, PRODUCT, ADD, SLOW_ADD, UNKNOWN, FP8, TINY)
    for row in ROWS:
        for result in profile.whatif(on=row.words, by=["kernel"]).rows():
            assert 0 < result["low_ns"] <= result["high_ns"] < 1e12


@pytest.mark.parametrize("on, near", [("B20", "b200"), ("h1000", "h100")])
def test_an_unknown_gpu_is_an_error_with_the_nearest(on, near, tmp_path):
    with pytest.raises(ReportError, match=f"unknown GPU.*did you mean.*{near}"):
        opened(tmp_path, H100, ADD).whatif(on=on)


def test_an_unknown_recorded_gpu_is_an_error_unless_named(tmp_path):
    profile = opened(tmp_path, "Some GPU", ADD)
    with pytest.raises(ReportError, match=r"on: .*--gpu names the GPU of the trace"):
        profile.whatif(on="B200")
    expected = opened(tmp_path, H100, ADD).whatif(on="B200").facts["on"]
    assert profile.whatif(on="B200", gpu="H100").facts["on"]["low_ns"] == expected["low_ns"]


GPU_BOUND: Program = [[Op("launch", 2 * US, 50 * US), Op("launch", 2 * US, 90 * US)] * 6] * 4
HOST_BOUND: Program = [[Op("launch", 90 * US, 8 * US)] * 12] * 4


def simulated(program: Program, tmp_path: Path, name: str = "run") -> fastprof.Profile:
    return fastprof.open(run(program).write(tmp_path / f"{name}.sqlite"), copies=True)


@pytest.mark.parametrize("program", [GPU_BOUND, HOST_BOUND], ids=["GPU", "host"])
def test_the_step_is_that_of_the_run_with_these_times(program, tmp_path):
    table = simulated(program, tmp_path).whatif(on="B200", gpu="H100")
    result = table.facts["on"]
    for end, factor in enumerate(span(result)):
        faster = changed(program, lambda op, by=factor: replace(op, ns=round(op.ns * by)))
        expected = mean_ns(run(faster), table.facts["steps"])
        assert result["step_ns"][end] == pytest.approx(expected, rel=2e-3)


def test_the_host_decides_what_it_decided(tmp_path):
    gpu, host = (
        simulated(program, tmp_path, name).whatif(on="B200", gpu="H100").facts["on"]
        for name, program in (("gpu", GPU_BOUND), ("host", HOST_BOUND))
    )
    assert max(gpu["host_share"]) < 0.3
    assert min(host["host_share"]) > 0.7
    assert host["step_ns"][1] == pytest.approx(host["step_ns"][0], rel=0.02)


def test_with_other_changes_all_together_have_both_ends(tmp_path):
    table = simulated(GPU_BOUND, tmp_path).whatif(on="B200", gpu="H100", scale="name=gemm:0.5")
    names = [row["name"] for row in table.rows()]
    assert names == [
        "recorded", "on B200: at least", "on B200: at most", "scale name=gemm:0.5",
        "all together: at least", "all together: at most",
    ]  # fmt: skip
    walls = [row["wall_ns"] for row in table.rows()]
    assert walls[4] < walls[1] < walls[2]
    assert walls[4] < walls[5] < walls[2]


def test_the_command(tmp_path):
    opened(tmp_path, H100, ADD, SLOW_ADD)

    def printed(*words: str) -> str:
        done = commands.run("whatif", str(tmp_path / "run.json"), "--on", "B200", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    text = printed()
    assert "on B200: at least" in text
    assert "the interval is wider than a factor of two, the trace cannot tell" in text
    head = printed("--by", "op", "--csv").splitlines()[0].replace('"', "")
    assert head == "op,gpu_ns,low_ns,high_ns,width,rule,verdict"
    assert json.loads(printed("--json"))["on"]["gpu"] == "B200"
