"""The rules of `advise` on kernels on real traces: which fire, which do not, and the savings."""

from collections.abc import Iterable, Mapping

import numpy as np
import pytest

from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import all_rules
from real import open_traces
from real.open_traces import rule_facts
from support.real_data import traces

R50 = "kineto/resnet50_2021_stack_memory.json.gz"
OWL = "kineto/owlv2_h100.json.gz"
R18 = "kineto/resnet18_mi300_full.json.gz"
TRANSFORMER = "kineto/transformer_a100_2024.json.gz"
FP32_LM = "nsys/ranges_lm_a100_nsys2024.sqlite"
RULES = [
    "no-tensor-cores",
    "bad-shape",
    "unfused-attention",
    "layout",
    "autocast-casts",
    "copies-in-model",
    "optimizer-loop",
    "elementwise-chain",
    "small-grid",
    "dead-gradient",
    "embedding-gradient",
    "far-from-roof",
]
# The rules that find at least their smallest saving, and how many findings; nothing elsewhere.
FIRED = {
    "kineto/dlrm_rank0.json.gz": {"optimizer-loop": 1},
    "kineto/dlrm_rank2.json.gz": {"optimizer-loop": 1},
    "kineto/dtensor_tp2_rank0.json.gz": {"no-tensor-cores": 1},
    "kineto/nccl_params.json.gz": {"layout": 1},
    OWL: {"bad-shape": 2, "unfused-attention": 1},
    "kineto/owlv2_mi300.json.gz": {"unfused-attention": 1, "far-from-roof": 1},
    "kineto/qwen_h100_unlaunched.json.gz": {"copies-in-model": 2, "far-from-roof": 1},
    R18: {"far-from-roof": 1},
    R50: {"no-tensor-cores": 1},
    "kineto/resnet50_2021_01_loader0.json.gz": {"optimizer-loop": 1},
    "kineto/resnet50_2021_02_loader4.json.gz": {"optimizer-loop": 1},
    "kineto/resnet50_2021_4workers.json.gz": {"no-tensor-cores": 1, "optimizer-loop": 1},
    "kineto/resnet_checkpoint_mi300.json.gz": {"layout": 1, "far-from-roof": 2},
    "kineto/resnet_intermittent_loader.json.gz": {"no-tensor-cores": 1},
    "kineto/resnet_v100_2024_fwdbwd.json.gz": {"no-tensor-cores": 1},
    "kineto/sd35_compile_mi300.json.gz": {"far-from-roof": 2},
    "kineto/train_v100_2022.json.gz": {"no-tensor-cores": 1},
    "kineto/train_v100_2022_control.json.gz": {"far-from-roof": 1},
    "kineto/triton_compile.json.gz": {"far-from-roof": 2},
    "nsys/emit_nvtx_2gpu_after_nsys2026.sqlite": {"copies-in-model": 2},
    "nsys/emit_nvtx_2gpu_nsys2026.sqlite": {"copies-in-model": 2},
    FP32_LM: {"no-tensor-cores": 1},
    "nsys/ranges_rtx3070_nsys2025.sqlite": {"no-tensor-cores": 1},
    "pyprof/lm_v100_nvprof.sql": {"no-tensor-cores": 1},
}


@open_traces.kept
def findings(path: str) -> Mapping[str, list[Finding]]:
    result = {}
    for name in RULES:
        try:
            result[name] = list(all_rules()[name].function(rule_facts(path)))
        except CannotJudge:
            result[name] = []
    return result


def largest(path: str, rule: str) -> Finding:
    return max(findings(path)[rule], key=saving)


def saving(finding: Finding) -> float:
    return finding.gpu_ns + sum(finding.idle_ns.values())


@pytest.mark.parametrize(
    "path",
    traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*", "pyprof/*.dict"),
)
def test_which_rules_fire(path: str) -> None:
    step = rule_facts(path).step_ns
    fired = {
        name: len(listed)
        for name, some in findings(path).items()
        if (listed := [each for each in some if saving(each) > all_rules()[name].least * step])
    }
    assert fired == FIRED.get(path, {})


@pytest.mark.parametrize(
    "path",
    traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*", "pyprof/*.dict"),
)
def test_a_saving_is_at_most_the_time_of_its_kernels(path: str) -> None:
    facts = rule_facts(path)
    time = np.maximum(facts.profile.kernels["sil"].filled(0), 0)
    for name, some in findings(path).items():
        for each in some:
            rows = each.kernels[facts.is_counted[each.kernels]]
            assert 0 < each.gpu_ns <= time[rows].sum() / facts.n_steps * (1 + 1e-9), name


def test_groups_of_calls_have_all_the_time() -> None:
    facts = rule_facts(R50)
    time = np.maximum(facts.profile.kernels["sil"].filled(0), 0)
    calls = facts.calls
    assert calls.ns == pytest.approx(time[facts.is_counted].sum() / facts.n_steps)
    parts = [part for group in calls.groups for part in group.parts]
    assert len({part.id for part in parts}) == len(parts)
    assert set(np.unique(calls.part_of_kernel[facts.is_counted])) == {part.id for part in parts}


def ms_per_step(path: str, words: Iterable[str], steps: int, shortest: float = 0) -> float:
    """GPU time of the kernels with a word in their name, by plain Python.

    shortest : us, of a kernel
    """
    times = [
        float(event["dur"])
        for event in open_traces.events(path)
        if event.get("cat") == "kernel" and any(word in event["name"] for word in words)
    ]
    total = sum(time for time in times if time >= shortest)
    return total / 1000 / steps


def test_owl_attention() -> None:
    """The long kernels of softmax and CUTLASS; the text encoder has short ones."""
    finding = largest(OWL, "unfused-attention")
    expected = ms_per_step(OWL, ["cunn_SoftMaxForward", "cutlass::Kernel2"], 5, 500)
    assert saving(finding) / 1e6 == pytest.approx(95.0, abs=0.1)
    assert saving(finding) / 1e6 == pytest.approx(expected - 3.34, rel=0.005)
    assert finding.where.startswith("24 x softmax [16,5185,5185]bf16, ")


def test_owl_quick_gelu() -> None:
    """Too small for the report: 1.9 of 240 ms."""
    finding = largest(OWL, "elementwise-chain")
    assert saving(finding) / 1e6 == pytest.approx(1.9, abs=0.05)
    assert "mul, sigmoid, mul" in finding.what
    assert "QuickGELUActivation" in finding.where


def test_r50_products() -> None:
    """The TensorBoard plugin: 68 % of the kernel time is of operators that can use tensor cores."""
    finding = largest(R50, "no-tensor-cores")
    assert "operators that can use tensor cores 67.6%" in finding.evidence
    assert saving(finding) / 1e6 == pytest.approx(57.6, abs=0.1)
    assert "float16" in finding.remedy  # of a V100, which has no TF32


def test_r50_optimizer() -> None:
    """483 kernels for 1.3 ms; 0.5 % of a step, below the threshold."""
    finding = largest(R50, "optimizer-loop")
    assert finding.what == "The optimizer launches 483 short kernels, some for each parameter."
    assert "GPU time 1.314 ms" in finding.evidence


def test_fp32_language_model() -> None:
    finding = largest(FP32_LM, "no-tensor-cores")
    assert "of all kernels 91.3%; kernel ampere_sgemm" in finding.evidence
    assert 'set_float32_matmul_precision("high")' in finding.remedy


def test_r18_layout() -> None:
    expected = ms_per_step(R18, ["batched_transpose"], 5)
    assert saving(largest(R18, "layout")) / 1e6 == pytest.approx(expected, rel=0.01)
    assert expected == pytest.approx(11.7, abs=0.1)


def test_transformer_casts_and_attention() -> None:
    """The capture has no steps and is idle for 97 %, so neither reaches its smallest share.

    Of 4.49 ms of casts, 2.31 are of the products of attention, which one kernel replaces.
    """
    assert saving(largest(TRANSFORMER, "autocast-casts")) / 1e6 == pytest.approx(2.18, abs=0.01)
    attention = largest(TRANSFORMER, "unfused-attention")
    assert saving(attention) / 1e6 == pytest.approx(7.9, abs=0.1)
    assert "need_weights=False" in attention.remedy


def test_products_of_a_served_model_below_60_percent_of_the_roof() -> None:
    # 53 % of the practical roof, 45 % of the time: too much to pass over.
    result = findings("kineto/sd35_compile_mi300.json.gz")["far-from-roof"]
    products = max(result, key=saving)
    assert "operator mm reaches 53%" in products.what
    assert products.gpu_ns == pytest.approx(150.9e6, rel=0.01)
