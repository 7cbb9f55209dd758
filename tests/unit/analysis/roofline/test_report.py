"""`roofline`: ideal and lost time, bound, flags, utilisation, the chart."""

import json
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import fastprof
from fastprof.analysis.stacks.tree import stacks
from fastprof.cli import main
from fastprof.errors import ReportError
from fastprof.model.devices import CLOCKS, Device, resolve, with_figures
from support.kineto_files import KinetoFile
from unit.analysis.kineto_runs import A100, Capture

HALF, TF32, FP32, BANDWIDTH = 312e12, 156e12, 19.5e12, 1555e9
N = 4096
MATRICES = {"dims": [[N, N], [N, N]], "types": ["c10::Half"] * 2}
VECTORS = {"dims": [[1 << 24]] * 2, "types": ["float"] * 2}
HGEMM = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"


def only(table):
    (row,) = table.rows()
    return row


def mm(length=500_000, name=HGEMM):
    return Capture().run("aten::mm", (name, length), **MATRICES)


def test_a_product_is_compared_with_the_peak_of_its_type(opened):
    row = only(opened(mm()).roofline())
    ideal = 2 * N**3 / HALF * 1e9
    assert (row["op"], row["calls"], row["kernels"], row["gpu_ns"]) == ("mm", 1, 1, 500_000)
    assert row["ideal_ns"] == pytest.approx(ideal)
    assert row["lost_ns"] == pytest.approx(500_000 - ideal)
    assert row["peak_share"] == pytest.approx(ideal / 500_000)
    assert (row["bound"], row["compute_type"], row["flag"]) == ("compute", "fp16", "")
    assert row["peak_flop_per_s"] == row["attainable_flop_per_s"] == pytest.approx(HALF)
    assert row["flop_per_s"] == pytest.approx(2 * N**3 / 500e-6)
    assert row["intensity"] == pytest.approx(2 * N**3 / (3 * 2 * N * N))


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("ampere_sgemm_128x64_nn", FP32),
        ("cutlass_80_tensorop_s1688gemm_128x64_16x6_nt_align4", TF32),
        ("triton_mm", HALF),  # inconclusive on tensor cores
    ],
)
def test_the_name_of_a_product_determines_the_unit_and_its_peak(name, peak, opened):
    row = only(opened(mm(10_000_000, name)).roofline())
    assert row["ideal_ns"] == pytest.approx(2 * N**3 / peak * 1e9)


def test_an_elementwise_operator_is_compared_with_the_bandwidth(opened):
    capture = Capture().run("aten::add", ("elementwise_kernel", 200_000), **VECTORS)
    row = only(opened(capture).roofline())
    assert row["ideal_ns"] == pytest.approx(3 * 4 * (1 << 24) / BANDWIDTH * 1e9)
    assert (row["bound"], row["bytes"], row["flops"]) == ("bandwidth", 12 << 24, 1 << 24)
    assert row["attainable_flop_per_s"] == pytest.approx(BANDWIDTH / 12)


def test_work_that_does_not_fill_the_gpu_is_bound_by_latency(opened):
    small = {"dims": [[64]] * 2, "types": ["float"] * 2}
    capture = Capture().run("aten::add", ("elementwise_kernel", 3000), grid=(1, 1, 1), **small)
    assert only(opened(capture).roofline())["bound"] == "latency"
    # Few blocks, but a long kernel.
    capture = Capture().run("aten::add", ("elementwise_kernel", 200_000), grid=(4, 1, 1), **VECTORS)
    assert only(opened(capture).roofline())["bound"] == "bandwidth"


def test_the_time_of_helpers_counts_and_their_bytes_do_not(opened):
    half = {"dims": [[N, N], [N, N]], "types": ["c10::Half"] * 2}
    capture = mm().run("aten::mm", (HGEMM, 500_000), ("splitKreduce_kernel", 100_000), **half)
    row = only(opened(capture).roofline())
    assert (row["calls"], row["kernels"], row["helper_ns"]) == (2, 3, 100_000)
    assert row["ideal_ns"] == pytest.approx(2 * 2 * N**3 / HALF * 1e9)
    assert row["lost_ns"] == pytest.approx(1_100_000 - row["ideal_ns"])
    assert row["bytes"] == 2 * 3 * 2 * N * N


def test_what_has_no_ideal_time_stays_with_a_flag(opened):
    capture = mm().run("ext::mine", ("my_kernel", 1000), dims=[[4]], types=["float"])
    capture.run(None, ("other_kernel", 2000)).run("aten::mm", ("sgemm", 3000))
    capture.run(None, ("ncclKernel_AllReduce_RING_LL_Sum_float", 4000))
    capture.run(None, ("Memcpy HtoD (Pinned -> Device)", 5000))
    capture.run("aten::add", ("elementwise_kernel", 100), **VECTORS)
    table = opened(capture).roofline(by=["op", "kernel"])
    flags = {row["kernel"]: (row["flag"], row["lost_ns"] is None) for row in table.rows()}
    assert flags == {
        HGEMM: ("", False),
        "my_kernel": ("no cost", True),
        "other_kernel": ("no cost", True),
        "sgemm": ("no cost", True),
        "ncclKernel_AllReduce_RING_LL_Sum_float": ("no roof", True),
        "Memcpy_HtoD": ("no roof", True),
        "elementwise_kernel": ("cost too high", True),
    }
    assert table.total["gpu_ns"] == 515_100
    assert "no cost: 6 us, 1.2% of the GPU time" in table.notes


def test_a_group_with_some_work_of_unknown_cost_says_so(opened):
    capture = mm().run("ext::mine", ("my_kernel", 1000), dims=[[4]], types=["float"])
    row = only(opened(capture).roofline(by="dir"))
    assert row["flag"] == "partial cost"
    assert row["lost_ns"] == pytest.approx(500_000 - row["ideal_ns"])


def test_a_memset_is_not_the_work_of_an_operator_of_unknown_cost(opened):
    capture = Capture().run(
        "aten::conv2d", ("Memset (Device)", 1000), ("nchwToNhwcKernel", 9000), ("sgemm", 9000)
    )
    row = only(opened(capture).roofline())
    assert row["flag"] == "partial cost"
    assert (row["ideal_ns"], row["lost_ns"], row["peak_share"]) == (None, None, None)


def vectors(n):
    return {"dims": [[n], [n]], "types": ["float"] * 2}


def test_bytes_from_the_cache_are_above_the_roof_and_lose_nothing(opened):
    # 12 MB, of which the L2 cache of an A100 holds 40: 7.7 us from memory.
    capture = Capture().run("aten::add", ("elementwise_kernel", 2500), **vectors(1 << 20))
    row = only(opened(capture).roofline())
    assert row["peak_share"] == pytest.approx((12 << 20) / BANDWIDTH / 2500e-9)
    assert (row["flag"], row["lost_ns"], row["covered_share"]) == ("above roof", 0, 1)
    assert "\nabove roof: fprop add\n" in opened(capture).report("overview").text()


@pytest.mark.parametrize(
    ("n", "length"),
    [(1 << 20, 900), (1 << 24, 50_000)],
    ids=["faster than the cache", "larger than the cache"],
)
def test_more_bytes_than_the_gpu_can_move_have_no_roof_and_no_rate(n, length, opened):
    profile = opened(Capture().run("aten::add", ("elementwise_kernel", length), **vectors(n)))
    row, of_summary = only(profile.roofline()), only(profile.summary())
    of_layer, (of_overview,) = only(profile.layers()), profile.report("overview")["ops"].rows()
    for each in (row, of_summary, of_layer, of_overview):
        for name in ("peak_share", "lost_ns", "ideal_ns", "flop_per_s", "bytes_per_s"):
            assert each.get(name) is None, name
        assert (each["flag"], each["covered_share"]) == ("cost too high", 0)
    assert (row["bytes"], of_summary["bytes"]) == (12 * n, 12 * n)
    assert np.isnan(stacks(profile).inclusive("lost_ns")[0])


def test_gathers_may_read_the_same_bytes_many_times(opened):
    shapes = {"dims": [[100, 1024], [1 << 15]], "types": ["float", "long int"]}
    capture = Capture().run("aten::embedding", ("indexSelectLargeIndex", 60_000), **shapes)
    row = only(opened(capture).roofline())
    assert row["peak_share"] > 1.5 and row["flag"] == "above roof"


@pytest.mark.parametrize(("times", "flag"), [(3, "above roof"), (6, "cost too high")])
def test_convolutions_need_down_to_a_quarter_of_the_flops(times, flag, opened):
    shapes = {"dims": [[32, 256, 56, 56], [256, 256, 3, 3], [], [], [], [], []]}
    shapes |= {"types": ["float"] * 2 + [""] * 5}
    inputs = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"]
    flops = 2 * 32 * 256 * 56 * 56 * 256 * 9
    name, length = "ampere_sgemm_64x64_nn", int(flops / FP32 / times * 1e9)
    capture = Capture().run("aten::conv2d", (name, length), values=inputs, **shapes)
    assert only(opened(capture).roofline())["flag"] == flag
    # A product has no such algorithm.
    length = int(2 * N**3 / FP32 / times * 1e9)
    assert only(opened(mm(length, name)).roofline())["flag"] == "cost too high"


def test_kernels_shorter_than_the_clock_have_no_roof(opened):
    capture = Capture()
    for length in (0, 0, 0, 1000):
        capture.run("aten::add", ("elementwise_kernel", length), **vectors(1 << 12))
    row = only(opened(capture).roofline())
    assert (row["flag"], row["peak_share"], row["flop_per_s"]) == ("too short", None, None)
    # A clock of nanoseconds resolves them.
    capture = Capture()
    for length in (1, 400, 400, 1000):
        capture.run("aten::add", ("elementwise_kernel", length), **vectors(1 << 12))
    assert only(opened(capture).roofline())["flag"] == ""


def test_work_faster_than_its_roof_does_not_make_up_for_lost_time(opened):
    capture = Capture().run("aten::add", ("elementwise_kernel", 2500), **vectors(1 << 20))
    profile = opened(capture.run("aten::mul", ("elementwise_kernel", 20_000), **vectors(1 << 20)))
    lost = 20_000 - (12 << 20) / BANDWIDTH * 1e9
    for by in ("op", "kernel", "dir"):
        assert profile.roofline(by=by).total["lost_ns"] == pytest.approx(lost)
    assert profile.layers().total["lost_ns"] == pytest.approx(lost)


def test_operations_alone_are_no_roof_of_what_moves_bytes(opened):
    # The sizes of a list of tensors are not recorded: its bytes are unknown, its FLOPs 0.
    capture = Capture().run(
        "aten::cat",
        ("CatArrayBatchedCopy", 9000),
        dims=[[[512, 32], [512, 32]], []],
        types=["TensorList", "Scalar"],
    )
    row = only(opened(capture).roofline())
    assert (row["flag"], row["peak_share"], row["lost_ns"]) == ("partial cost", None, None)
    assert row["bytes_per_s"] is None


@pytest.mark.parametrize(("length", "is_known"), [(50_000, True), (90_000, False)])
def test_a_row_has_a_roof_if_that_of_its_time_is_known(length, is_known, opened):
    capture = mm().run("ext::mine", ("my_kernel", length), dims=[[4]], types=["float"])
    profile = opened(capture)
    table = profile.roofline(by="dir")
    for row in (only(table), only(profile.summary("dir")), only(profile.layers())):
        assert row["covered_share"] == pytest.approx(500_000 / (500_000 + length))
        assert (row["peak_share"] is not None) == is_known
        assert row["ideal_ns"] > 0
    assert (table.total["peak_share"] is not None) == is_known
    assert any(note.startswith("roof ") for note in table.notes) != is_known


def test_an_unknown_gpu_has_no_peaks_until_the_user_gives_them(opened):
    capture = Capture(A100 | {"name": "NVIDIA Z1"}).run("aten::mm", (HGEMM, 500_000), **MATRICES)
    profile = opened(capture)
    table = profile.roofline()
    assert only(table)["flag"] == "no peak"
    assert table.lead[0].startswith(
        "FLOP/s and bandwidth unknown: the GPU table has no 'NVIDIA Z1'"
    )
    assert table.lead[1] == "--gpu NAME, or --peak and --bandwidth, give the peaks"
    for options in ({"gpu": "A100"}, {"peak": "fp16=312,bw=1555"}, {"peak": {"bf16": 312}}):
        row = only(profile.roofline(**options))
        assert row["ideal_ns"] == pytest.approx(2 * N**3 / HALF * 1e9)


def test_the_practical_roof_is_lower(opened):
    profile = opened(mm().run("aten::add", ("elementwise_kernel", 200_000), **VECTORS))
    ideal = {row["op"]: row["ideal_ns"] for row in profile.roofline().rows()}
    table = profile.roofline(roof="practical")
    practical = {row["op"]: row["ideal_ns"] for row in table.rows()}
    assert practical["mm"] == pytest.approx(ideal["mm"] / 0.8)
    assert practical["add"] == pytest.approx(ideal["add"] / 0.9)
    assert table.lead[-1] == "practical roof: 80% of the tensor-core peak, 90% of the bandwidth"


def test_much_time_without_cost_comes_with_advice(opened):
    assert not any("record_shapes" in note for note in opened(mm()).roofline().notes)
    notes = opened(Capture().run("aten::mm", (HGEMM, 500_000))).roofline().notes
    assert notes == (
        "no cost: 500 us, 100.0% of the GPU time",
        "known of the GPU time: shapes 0.0%, cost 0.0%",
        "no shapes: profile(record_shapes=True)",
        CLOCKS,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"roof": "flat"}, "roof: expected peak or practical, found 'flat'"),
        ({"gpu": "A1000"}, "unknown GPU 'a1000'"),
        ({"by": "opp"}, "unknown key 'opp'; did you mean op"),
        ({"bandwidth": 0}, "bandwidth: expected a positive number, found 0"),
        ({"plot": "x.gif"}, "expected a file ending in .png or .svg, found 'x.gif'"),
    ],
)
def test_wrong_options_are_errors_in_one_line(options, message, opened):
    with pytest.raises(ReportError) as caught:
        opened(mm()).roofline(**options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "options", [["--gpu", "A1000"], ["--peak", "fp23=1"], ["--bandwidth", "x"], ["--plot", "x.gif"]]
)
def test_the_command_checks_its_options_first(options, usage_error):
    assert "no such file" not in usage_error("roofline", *options, "no such file")


# -- against plain Python -------------------------------------------------------------------------


def ideal_of(rows: list[dict[str, Any]], device: Device) -> float:
    """The ideal time of the kernels of one call group, ns."""
    by_unit: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["helper"] != 1:
            is_product = row["class"] in ("gemm", "convolution", "attention")
            by_unit[row["compute_type"], row["tc"], is_product].append(row)
    total = 0.0
    for (name, tc, is_product), own in by_unit.items():
        name = name or (None if is_product else "fp32")
        peak = device.peak(name, tc == "1") if name else None
        flops = [row["flops"] for row in own if row["flops"] is not None]
        moved = [row["bytes"] for row in own if row["bytes"] is not None]
        terms = [sum(flops) / peak] if flops and peak else []
        terms += [sum(moved) / device.bandwidth] if moved and device.bandwidth else []
        total += max(terms, default=0.0) * 1e9
    return total


def test_ideal_times_are_those_of_plain_python(profile):
    # Its random times are possible on a GPU that is fast enough.
    fast = with_figures(resolve("A100"), None, dict.fromkeys(("fp32", "fp16", "tf32"), 1e6), 1e9)
    figures = {"peak": dict.fromkeys(("fp32", "fp16", "tf32"), 1e6), "bandwidth": 1e9}
    table = profile.roofline(by=["dir", "op", "shape"], gpu="A100", **figures)
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in profile.rows():
        if row["class"] != "communication" and row["copy_direction"] not in ("HtoD", "DtoH"):
            params = None if row["params"] == "na=na," else row["params"]
            groups[row["dir"], row["op"], params].append(row)
    expected = {key: ideal_of(rows, fast) for key, rows in groups.items()}
    result = {(r["dir"], r["op"], r["shape"]): r["ideal_ns"] or 0.0 for r in table.rows()}
    assert sum(expected.values()) > 0
    covered = {(r["dir"], r["op"], r["shape"]): r["covered_share"] for r in table.rows()}
    for key, ideal in expected.items():
        if key[1] is not None and covered[key]:
            assert result[key] == pytest.approx(ideal), key
    assert sum(covered[key] == 1 for key in expected) > 20


@pytest.mark.parametrize("by", ["op", "layer", "kernel", "phase", "stream", "compute_type"])
def test_any_grouping_adds_up_to_the_same_totals(by, profile):
    table, other = profile.roofline(gpu="A100"), profile.roofline(by=by, gpu="A100")
    for name in ("kernels", "gpu_ns", "flops", "bytes"):
        assert table.total[name] == other.total[name], name
    for name in ("ideal_ns", "lost_ns", "peak_share"):
        assert table.total[name] == pytest.approx(other.total[name]), name


def test_the_summary_has_the_same_ideal_times(opened):
    profile = opened(mm())
    summary, row = only(profile.summary()), only(profile.roofline())
    for name in ("ideal_ns", "lost_ns", "peak_share"):
        assert summary[name] == pytest.approx(row[name])


# -- utilisation ----------------------------------------------------------------------------------


def training(n_steps=2):
    """Steps of 4 ms of one product; its forward pass is recomputed in the last one."""
    capture = Capture()
    for step in range(n_steps):
        start = capture.at = 4_000_000 * step
        capture.annotation(start, start + 4_000_000, f"ProfilerStep#{step}")
        capture.run("aten::mm", (HGEMM, 500_000), **MATRICES)
    capture.op(capture.at, capture.at + 9000, "CheckpointFunctionBackward", seq=7)
    capture.at += 10
    capture.run("aten::mm", (HGEMM, 500_000), **MATRICES)
    return capture


def test_mfu_is_the_model_s_flops_by_what_the_gpu_could_run(opened):
    table = opened(training()).roofline()
    result, flops = table.facts["utilisation"], 2 * N**3
    assert result["compute_type"] == "fp16"
    assert result["peak_flop_per_s"] == HALF
    # The first step does not count. The second ends 200 ms after it: two products of one each.
    assert (result["model_flops"], result["step_ns"]) == (flops, 200_000_000)
    assert result["hardware_flops"] == 2 * flops
    assert result["mfu"] == pytest.approx(flops / (0.2 * HALF))
    assert result["hfu"] == pytest.approx(2 * flops / (0.2 * HALF))
    assert result["mfu_busy"] == pytest.approx(2 * flops / (3 * 500e-6 * HALF))
    assert [step["number"] for step in result["steps"]] == [0, 1]
    assert result["steps"][1]["hfu"] == pytest.approx(2 * result["steps"][1]["mfu"])
    assert table.notes[0].startswith("MFU 0.2% of fp16 peak, 58.7% of the time with kernels; HFU")


def test_without_model_flops_there_is_no_mfu(opened):
    capture = Capture().run("aten::add", ("elementwise_kernel", 200_000), **VECTORS)
    table = opened(capture).roofline()
    assert table.facts["utilisation"] is None
    assert not table.notes[0].startswith("MFU")


def test_mfu_is_a_lower_bound_if_products_have_no_cost(opened):
    result = opened(mm().run("aten::mm", ("sgemm", 500_000))).roofline()
    assert result.facts["utilisation"]["unknown_share"] == 0.5
    assert result.notes[0].startswith("MFU >= ")
    assert result.notes[0].endswith("50.0% of the time of products has no cost)")


# -- outputs --------------------------------------------------------------------------------------


def test_json_has_raw_units_and_the_peaks(tmp_path, capsys):
    path = mm().write(tmp_path / "x.json")
    assert main(["roofline", "--json", str(path)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["gpu"] == "NVIDIA A100-SXM4-40GB"
    assert result["peaks"]["0"]["flop_per_s"]["half"] == HALF
    (row,) = result["rows"]
    assert (row["gpu_ns"], row["flops"], row["step_ns"]) == (500_000, 2 * N**3, None)
    assert result["total"]["ideal_ns"] == pytest.approx(row["ideal_ns"])


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_chart_is_written(suffix, magic, opened, tmp_path):
    pytest.importorskip("matplotlib")
    capture = mm().run("aten::add", ("elementwise_kernel", 200_000), **VECTORS)
    path = tmp_path / f"roof.{suffix}"
    opened(capture).roofline(plot=str(path))
    data = path.read_bytes()
    assert data.startswith(magic)
    if suffix == "svg":
        text = data.decode()
        for part in ("fprop mm", "fp16 312 TFLOP/s", "1555 GB/s", "bandwidth: 0.2 ms"):
            assert part in text
        opened(capture).roofline(plot=str(path))
        assert path.read_bytes() == data


@pytest.mark.parametrize("gpu", ["NVIDIA A100-SXM4-40GB", "NVIDIA Z1"])
def test_a_chart_without_points_is_written(gpu, tmp_path):
    pytest.importorskip("matplotlib")
    capture = Capture(A100 | {"name": gpu}).run(None, ("mine", 10))
    profile = fastprof.open(capture.write(tmp_path / "x.json"))
    profile.roofline(plot=str(tmp_path / "roof.svg"))
    assert (tmp_path / "roof.svg").stat().st_size > 0


def test_an_empty_capture_has_an_empty_table(opened):
    table = opened(KinetoFile().op(0, 1, "aten::mm")).roofline()
    assert table.n_rows == 0
    assert "gpu_ns" in table
    assert np.size(table["ideal_ns"]) == 0
