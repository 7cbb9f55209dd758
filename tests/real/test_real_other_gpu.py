"""Programs that ran on two GPUs: what `whatif --on` says of one, beside the times of the other."""

from pathlib import Path

import pytest

import fastprof
from fastprof.cli import main
from real.gpu_pairs import Comparison, compared, line, of_batches, operators, per_image
from real.open_traces import profile
from support.real_data import real

ROOT = Path(__file__).resolve().parents[2]
H200 = ROOT / "bench/gpu/h200/traces/cv.json.gz"
H100, MI300 = "kineto/owlv2_h100.json.gz", "kineto/owlv2_mi300.json.gz"
V100 = "kineto/resnet50_2021_stack_memory.json.gz"
COMPILED, EAGER = "kineto/train_v100_2022.json.gz", "kineto/train_v100_2022_control.json.gz"
DOCUMENT = (ROOT / "docs/replay.md").read_text()


def opened(path: str) -> fastprof.Profile:
    real(path)
    return profile(path, copies=True)


def owlv2(first: str, second: str, on: str) -> Comparison:
    return compared([*operators(opened(first), opened(second), on)])


def resnet50(is_forth: bool) -> Comparison:
    """A V100 with 32 images, and an H200 with 64, another PyTorch and another loader."""
    both = opened(V100), fastprof.open(H200, copies=True)
    first, second = both if is_forth else both[::-1]
    on, batches = ("H200", 0.5) if is_forth else ("V100 DGXS", 2.0)
    return compared(of_batches([*operators(first, second, on, per_image, batches)]))


@pytest.mark.parametrize(
    "first, second, on",
    [(H100, MI300, "MI300X"), (MI300, H100, "H100")],
    ids=["H100 to MI300X", "MI300X to H100"],
)
def test_one_program_on_two_gpus(first, second, on):
    result = owlv2(first, second, on)
    assert result.n > 80
    assert result.inside >= 0.8
    assert result.rows_inside >= 0.8
    assert result.low <= result.ratio <= result.high
    assert result.width < 5
    name = {H100: "owlv2, H100", MI300: "owlv2, MI300X"}
    assert line((name[first], name[second]), result) in DOCUMENT


@pytest.mark.parametrize("is_forth", [True, False], ids=["V100 to H200", "H200 to V100"])
def test_two_recordings_of_resnet50(is_forth):
    result = resnet50(is_forth)
    assert result.n > 70
    assert result.inside >= 0.8
    names = ("ResNet-50, V100", "ResNet-50, H200")
    assert line(names if is_forth else names[::-1], result) in DOCUMENT


@pytest.mark.parametrize(
    "first, second, on",
    [(EAGER, COMPILED, "V100 SXM"), (COMPILED, EAGER, "A100")],
    ids=["A100 to V100", "V100 to A100"],
)
def test_equal_operators_of_two_programs(first, second, on):
    """One is eager, the other compiled: kernels differ, so more of them are outside."""
    result = owlv2(first, second, on)
    assert result.n > 150
    assert result.inside >= 0.7
    name = {EAGER: "recommender, A100", COMPILED: "recommender, V100"}
    assert line((name[first], name[second]), result) in DOCUMENT


@pytest.mark.parametrize("first, second, on", [(H100, MI300, "MI300X"), (MI300, H100, "H100")])
def test_the_gpu_time_of_a_step_is_in_the_interval(first, second, on):
    """Steps themselves differ by their hosts, which load data at other rates."""
    result = opened(first).whatif(on=on).facts["on"]
    measured = opened(second).whatif(on=on).facts["on"]
    assert measured["low_ns"] == measured["gpu_ns"] == measured["high_ns"]
    assert result["low_ns"] <= measured["gpu_ns"] <= result["high_ns"]


def test_the_document_shows_a_real_answer(monkeypatch, tmp_path, capsys):
    (tmp_path / "owl.json.gz").symlink_to(real(H100))
    monkeypatch.chdir(tmp_path)
    words = "whatif owl.json.gz --on H200 --by op,shape --limit 5 -w 98"
    assert main(words.split()) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert "\n".join([f"$ fastprof {words}", *lines]) in DOCUMENT
