"""Peaks of GPUs: the row of a name, values from the file, unknown values."""

import pytest

from fastprof.model.device_table import FMA, HALVED, ROWS
from fastprof.model.devices import FIGURES, find, resolve
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
    ],
)
def test_a_name_has_the_row_with_the_longest_words(name: str, words: str) -> None:
    row = find(name)
    assert row is not None
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
    found = resolve("NVIDIA GeForce RTX 3080", GpuFigures(memory=12_884_901_888))
    assert found.bandwidth is None
    assert found.flops["fp32"] == 29.8e12
    assert "bandwidth unknown: the GPU table has no" in found.why


def test_the_bandwidth_of_the_file_comes_first_and_flops_of_the_table() -> None:
    told = GpuFigures(sms=60, clock=2_745_000_000, bandwidth=504_048_000_000, capability="8.9")
    found = resolve("NVIDIA GeForce RTX 4070 Ti", told)
    assert found.bandwidth == 504_048_000_000
    assert found.flops["half"] == 80.2e12
    assert found.sources["bandwidth"] == "the file"
    assert "white paper" in found.sources["flops"]
    assert found.why == ""


def test_a_gpu_without_a_row_is_derived() -> None:
    told = GpuFigures(sms=80, clock=1_455_000_000, bandwidth=652 * GB, capability="7.0")
    found = resolve("NVIDIA TITAN V", told)
    assert found.flops["fp32"] == 2 * 64 * 80 * 1.455e9
    assert found.flops["half"] == 2 * 512 * 80 * 1.455e9
    assert "tf32" not in found.flops
    assert found.peak("fp32", tensor_cores=True) is None
    assert found.why == ""


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
    found = resolve(name, told)
    assert found.why.startswith(why)
    assert found.flops == {}


def test_peaks_by_compute_type() -> None:
    found = resolve("NVIDIA H100 80GB HBM3")
    assert found.peak("bf16", tensor_cores=True) == 989.4e12
    assert found.peak("fp32", tensor_cores=True) == 494.7e12
    assert found.peak("fp32", tensor_cores=False) == 66.9e12
    assert found.peak("fp16", tensor_cores=False) == 66.9e12
    assert found.peak("fp64", tensor_cores=True) == 66.9e12
    assert resolve("Tesla T4").peak("fp8", tensor_cores=True) is None


# Quoted rates that differ from the rule: A10G and L40 accumulate in fp32 at half rate, as
# GeForce cards do; the L40's fp8 rate differs, too.
HALF_RATE = {"a10g": ("tf32", "half"), "l40": ("tf32", "half", "fp8")}


@pytest.mark.parametrize("row", [row for row in ROWS if row.capability in FMA and row.clock],
                         ids=lambda row: row.words)  # fmt: skip
def test_what_follows_from_multiprocessors_and_clock_is_what_is_quoted(row) -> None:
    is_geforce = row.words.startswith(("rtx 2", "rtx 3", "rtx 4", "rtx 507", "rtx 508", "rtx 509"))
    halved = HALVED.get(row.capability, ()) if is_geforce else HALF_RATE.get(row.words, ())
    for figure, rate in zip(FIGURES, FMA[row.capability], strict=True):
        if figure in TENSOR_FIGURES:
            derived = 2e-6 * rate * row.sms * row.clock / (2 if figure in halved else 1)
            assert getattr(row, figure) == pytest.approx(derived, rel=0.035), figure


def test_no_two_rows_have_the_same_words() -> None:
    words = [frozenset(row.words.split()) for row in ROWS]
    assert len(set(words)) == len(words)
    assert all(row.bandwidth > 0 and row.fp32 > 0 and row.source for row in ROWS)
