"""Peaks of GPUs: the row of a name, values from the file, unknown values."""

import csv
import io
import re

import pytest

from fastprof.cli import main
from fastprof.errors import ReportError
from fastprof.model.device_table import FMA, HALVED, ROWS
from fastprof.model.devices import FIGURES, find, peaks_text, resolve, with_figures
from fastprof.model.metadata import GpuFigures

GB = 10**9
TENSOR_FIGURES = ("tf32", "half", "fp8", "int8")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Tesla V100-SXM2-16GB", "v100 sxm"),
        ("Tesla V100-DGXS-32GB", "v100 dgxs"),
        ("Tesla V100-PCIE-16GB", "v100 pcie"),
        ("Tesla V100S-PCIE-32GB", "v100s pcie"),
        ("NVIDIA A100-SXM4-40GB", "a100"),
        ("NVIDIA A100-SXM4-80GB", "a100 sxm 80gb"),
        ("NVIDIA A100 80GB PCIe", "a100 pcie 80gb"),
        ("NVIDIA A100-PG509-200", "a100"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("H100-SXM", "h100"),
        ("NVIDIA H100 PCIe", "h100 pcie"),
        ("NVIDIA H100 NVL", "h100 nvl"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA GeForce RTX 3070 Ti", "rtx 3070 ti"),
        ("NVIDIA GeForce RTX 4070 Ti", "rtx 4070 ti"),
        ("Quadro RTX 6000", "rtx 6000"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx 6000 ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx pro 6000 blackwell"),
        ("NVIDIA RTX A6000", "rtx a6000"),
        ("AMD Instinct MI300X", "mi300x"),
        ("AMD Instinct MI250X / MI250", "mi250x"),
        ("AMD Instinct MI325X VF", "mi325x"),
        ("AMD Radeon RX 7900 XTX", "rx 7900 xtx"),
        ("AMD Radeon RX 7900 XT", "rx 7900 xt"),
        ("AMD Radeon RX 7600", "rx 7600"),
        ("AMD Radeon PRO W7900 Dual Slot", "pro w7900"),
        ("AMD Radeon RX 9070 XT", "rx 9070 xt"),
        ("AMD Radeon AI PRO R9700", "pro r9700"),
    ],
)
def test_a_name_has_the_row_with_the_longest_words(name: str, words: str) -> None:
    row = find(name)
    assert row.words == words


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 3080 Laptop GPU",
        "NVIDIA GeForce RTX 4080 SUPER",
        "NVIDIA GeForce RTX 4070 Ti SUPER",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA RTX A1000",
        "NVIDIA H200 Ti",
        "Tesla K20Xm",
        "AMD Radeon RX 9070 GRE",
        "AMD Radeon RX 7900M",
        "AMD Instinct MI308X",
        "gfx942",
        "",
    ],
)
def test_another_card_has_no_row(name: str) -> None:
    assert find(name) is None


def test_memory_tells_cards_of_one_name_apart() -> None:
    name = "NVIDIA A100-PG509-200"
    assert resolve(name, GpuFigures(memory=42_297_786_368)).bandwidth == 1555 * GB
    assert resolve(name, GpuFigures(memory=85_095_874_560)).bandwidth == 2039 * GB
    assert find("NVIDIA GH200", 150 * GB).words == "gh200 144g"


def test_a_bandwidth_of_another_memory_is_not_taken() -> None:
    result = resolve("NVIDIA GeForce RTX 3080", GpuFigures(memory=12_884_901_888))
    assert result.bandwidth is None
    assert result.flops["fp32"] == 29.8e12
    assert "bandwidth unknown: the GPU table has no" in result.why


def test_the_bandwidth_of_the_file_comes_first_and_flops_of_the_table() -> None:
    told = GpuFigures(sms=60, clock=2_745_000_000, bandwidth=504_048_000_000, capability="8.9")
    result = resolve("NVIDIA GeForce RTX 4070 Ti", told)
    assert result.bandwidth == 504_048_000_000
    assert result.flops["half"] == 80.2e12
    assert result.sources["bandwidth"] == "the file"
    assert "white paper" in result.sources["flops"]
    assert result.why == ""


def test_a_gpu_without_a_row_is_derived() -> None:
    told = GpuFigures(sms=80, clock=1_455_000_000, bandwidth=652 * GB, capability="7.0")
    result = resolve("NVIDIA TITAN V", told)
    assert result.flops["fp32"] == 2 * 64 * 80 * 1.455e9
    assert result.flops["half"] == 2 * 512 * 80 * 1.455e9
    assert "tf32" not in result.flops
    assert result.peak("fp32", tensor_cores=True) is None
    assert result.why == ""


def test_geforce_adds_up_in_fp32_at_half_the_rate() -> None:
    told = GpuFigures(sms=30, clock=2 * GB, bandwidth=GB, capability="8.9")
    geforce, other = (resolve(name, told) for name in ("NVIDIA GeForce RTX 4060 Ti", "NVIDIA X"))
    assert geforce.flops["half"] == other.flops["half"] / 2
    assert geforce.flops["int8"] == other.flops["int8"]


@pytest.mark.parametrize(
    ("name", "told", "why"),
    [
        (None, GpuFigures(), "FLOP/s and bandwidth unknown: the file does not name the GPU"),
        ("NVIDIA Z1", GpuFigures(bandwidth=GB), "FLOP/s unknown: the GPU table has no 'NVIDIA Z1'"),
        ("NVIDIA Z1", GpuFigures(capability="99.0", sms=1, clock=1), "FLOP/s and bandwidth"),
    ],
)
def test_what_is_not_known_says_why(name: str | None, told: GpuFigures, why: str) -> None:
    result = resolve(name, told)
    assert result.why.startswith(why)
    assert result.flops == {}


def test_peaks_by_compute_type() -> None:
    result = resolve("NVIDIA H100 80GB HBM3")
    assert result.peak("bf16", tensor_cores=True) == 989.4e12
    assert result.peak("fp32", tensor_cores=True) == 494.7e12
    assert result.peak("fp32", tensor_cores=False) == 66.9e12
    assert result.peak("fp16", tensor_cores=False) == 66.9e12
    assert result.peak("fp64", tensor_cores=True) == 66.9e12
    assert resolve("Tesla T4").peak("fp8", tensor_cores=True) is None


# Quoted rates that differ from the rule: A10G and L40 accumulate in fp32 at half rate, as
# GeForce cards do; the L40's fp8 rate differs, too.
HALF_RATE = {"a10g": ("tf32", "half"), "l40": ("tf32", "half", "fp8")}


@pytest.mark.parametrize("row", [row for row in ROWS if row.capability in FMA and row.clock],
                         ids=lambda row: row.words)  # fmt: skip
def test_what_follows_from_multiprocessors_and_clock_is_what_is_quoted(row) -> None:
    is_geforce = row.words.startswith(("rtx 2", "rtx 3", "rtx 4", "rtx 507", "rtx 508", "rtx 509"))
    halved = HALVED.get(row.capability, ()) if is_geforce else HALF_RATE.get(row.words, ())
    for figure, rate in zip(FIGURES, FMA[row.capability], strict=False):
        if figure in TENSOR_FIGURES:
            derived = 2e-6 * rate * row.sms * row.clock / (2 if figure in halved else 1)
            assert getattr(row, figure) == pytest.approx(derived, rel=0.035), figure


def test_no_two_rows_have_the_same_words() -> None:
    words = [frozenset(row.words.split()) for row in ROWS]
    assert len(set(words)) == len(words)
    assert all(row.bandwidth > 0 and row.fp32 > 0 and row.source for row in ROWS)


def test_fp32_runs_in_amd_s_matrix_cores_as_it_is() -> None:
    assert resolve("AMD Instinct MI300X").peak("fp32", tensor_cores=True) == 163.4e12
    assert resolve("AMD Instinct MI210").peak("fp32", tensor_cores=True) == 45.3e12
    assert resolve("AMD Instinct MI210").peak("fp32", tensor_cores=False) == 22.6e12


def test_an_architecture_names_a_gpu_by_compute_units_and_memory() -> None:
    told = {"capability": "gfx942", "clock": 2_100_000_000}
    of = {
        (304, 206 * GB): "AMD Instinct MI300X data sheet",
        (304, 274 * GB): "AMD Instinct MI325X data sheet",
        (228, 137 * GB): "AMD Instinct MI300A data sheet",
    }
    for (sms, memory), source in of.items():
        result = resolve("gfx942", GpuFigures(sms=sms, memory=memory, **told))
        assert (result.sources["flops"], result.sources["bandwidth"]) == (source, source)
    other = resolve("AMD Instinct MI308X", GpuFigures(sms=80, memory=206 * GB, **told))
    assert other.sources["flops"] == "the file's multiprocessors and clock"
    assert other.flops["half"] == 2 * 1024 * 80 * 2.1e9
    assert other.bandwidth is None and other.why.startswith("bandwidth unknown")
    assert resolve("gfx942").why.startswith("FLOP/s and bandwidth unknown")


def test_a_partition_of_amd_s_gpus_has_the_rates_of_its_compute_units() -> None:
    whole = resolve("AMD Instinct MI300X", GpuFigures(sms=304))
    part = resolve("AMD Instinct MI300X", GpuFigures(sms=38))
    assert part.flops["half"] == whole.flops["half"] / 8
    assert part.sources["flops"].endswith("data sheet, for 38 of 304 compute units")
    assert resolve("AMD Instinct MI250X / MI250", GpuFigures(sms=104)).flops["half"] == 191.5e12


def test_fp4_is_known_of_cdna_4() -> None:
    assert resolve("AMD Instinct MI355X").peak("fp4", tensor_cores=True) == 10.1e15
    assert resolve("AMD Instinct MI300X").peak("fp4", tensor_cores=True) is None


def test_sizes_are_those_of_the_file_or_else_of_the_table() -> None:
    result = resolve("NVIDIA H100 80GB HBM3", GpuFigures(sms=114, memory=79 * GB))
    assert (result.sms, result.clock, result.memory) == (114, 1830 * 10**6, 79 * GB)
    assert (result.sources["sms"], result.sources["clock"]) == (
        "the file",
        "NVIDIA H100 data sheet",
    )
    unknown = resolve("NVIDIA Z1")
    assert (unknown.sms, unknown.clock, unknown.memory, unknown.sources) == (None, None, None, {})


V100 = resolve("Tesla V100-SXM2-16GB", GpuFigures(sms=80))


@pytest.mark.parametrize(
    ("gpu", "tflops", "bandwidth"),
    [
        ("H100", 989.4, 3352),
        ("h100-sxm", 989.4, 3352),
        ("NVIDIA H100 PCIe", 756, 2039),
        ("A100", 312, 1555),
        ("A100 80GB", 312, 2039),
        ("A10G", 70, 600),
        ("rtx4090", 165.2, 1008),
        ("4090", 165.2, 1008),
        ("RTX 4070 Ti", 80.2, 504),
    ],
)
def test_a_gpu_of_the_user_replaces_that_of_the_file(gpu, tflops, bandwidth) -> None:
    result = with_figures(V100, gpu)
    assert result.flops["half"] == pytest.approx(tflops * 1e12)
    assert result.bandwidth == bandwidth * GB
    assert result.sources["flops"].startswith("--gpu: ")
    assert (result.name, result.sms, result.sources["sms"]) == (gpu, 80, "the file")


@pytest.mark.parametrize(
    ("gpu", "message"),
    [
        ("H10", "unknown GPU 'h10'; did you mean h100"),
        ("rtx 4091", "unknown GPU 'rtx 4091'; did you mean rtx 4090"),
        ("ti", "unknown GPU 'ti'"),
        ("", "unknown GPU ''"),
    ],
)
def test_an_unknown_gpu_is_named_with_the_nearest(gpu, message) -> None:
    with pytest.raises(ReportError) as caught:
        with_figures(V100, gpu)
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith("fastprof devices lists all")


def test_peaks_of_the_user_replace_single_figures() -> None:
    result = with_figures(V100, peak="bf16=312, fp32=19.5,bw=1555")
    assert (result.flops["half"], result.flops["fp32"], result.flops["fp64"]) == (
        312e12,
        19.5e12,
        7.8e12,
    )
    assert (result.bandwidth, result.sources["half"], result.sources["bandwidth"]) == (
        1555 * GB, "--peak", "--peak"
    )  # fmt: skip
    assert with_figures(V100, peak={"bf16": 312}, bandwidth=700).bandwidth == 700 * GB
    assert with_figures(V100, bandwidth=700).sources["bandwidth"] == "--bandwidth"
    assert with_figures(V100) == V100


def test_figures_of_the_user_complete_an_unknown_gpu() -> None:
    unknown = resolve("NVIDIA Z1")
    assert with_figures(unknown, bandwidth=700).why.startswith("FLOP/s unknown")
    assert with_figures(unknown, peak="fp32=1", bandwidth=700).why == ""


@pytest.mark.parametrize(
    ("peak", "message"),
    [
        ("fp23=1", "unknown figure of --peak 'fp23'; did you mean fp32"),
        ("fp32", "--peak fp32: expected a positive number, found ''"),
        ("fp32=many", "--peak fp32: expected a positive number, found 'many'"),
        ("fp32=0", "--peak fp32: expected a positive number, found '0'"),
        ("fp32=inf", "--peak fp32: expected a positive number, found 'inf'"),
        ({"bf16": -1}, "--peak bf16: expected a positive number, found -1"),
    ],
)
def test_a_peak_that_is_no_figure_or_no_number_is_an_error(peak, message) -> None:
    with pytest.raises(ReportError) as caught:
        with_figures(V100, peak=peak)
    assert str(caught.value).startswith(message)


def test_a_line_names_the_peaks_and_their_sources() -> None:
    assert peaks_text(V100) == (
        "Tesla V100-SXM2-16GB: fp32 15.7 TFLOP/s, fp16 and bf16 125 TFLOP/s, 900 GB/s "
        "(NVIDIA V100 data sheet)"
    )
    assert peaks_text(resolve(None)).startswith("FLOP/s and bandwidth unknown")
    assert "312 TFLOP/s (--peak)" in peaks_text(with_figures(V100, peak="bf16=312"))


def test_the_list_of_gpus_has_the_figures_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "--csv"]) == 0
    rows = {row["gpu"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert list(rows) == [row.words for row in ROWS]
    assert (rows["h100"]["half"], rows["h100"]["bandwidth"]) == ("989.4", "3352.0")
    assert (rows["v100 sxm"]["tf32"], rows["v100 sxm"]["memory"]) == ("na", "na")
    assert main(["devices"]) == 0
    assert re.search(r"^rtx 4090 +8.9 .* 165.2 ", capsys.readouterr().out, re.MULTILINE)
