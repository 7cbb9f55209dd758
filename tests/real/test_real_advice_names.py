"""What the names of kernels tell about real traces: findings, and rows of the overview."""

from collections.abc import Mapping

import pytest

from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import all_rules
from fastprof.model.table import Table
from real.open_traces import report, rule_facts

FSDP = "nsys/fsdp_upload_2gpu_h100.sqlite"
QWEN = "kineto/qwen_h100_unlaunched.json.gz"
OWL = "kineto/owlv2_h100.json.gz"
FP32_LM = "nsys/ranges_lm_a100_nsys2024.sqlite"
GRAPHS = "kineto/graph_replay_2024.json.gz"
DECODE = "kineto/sglang_graph_decode.json.gz"
MS = 1e6
NEW = ("unaligned-kernel", "unfused-pointwise", "gradient-fills", "unfused-optimizer",
       "parameter-upload", "graph-gaps")  # fmt: skip
FIRED = {
    FSDP: {"parameter-upload"},
    QWEN: {"unfused-pointwise"},
    OWL: {"unaligned-kernel"},
    GRAPHS: {"graph-gaps", "unaligned-kernel"},
}


def findings(path: str, rule: str) -> list[Finding]:
    return list(all_rules()[rule].function(rule_facts(path)))


def listed(path: str) -> set[str]:
    return {row["id"] for row in report(path, "advise").rows()}


def tables(path: str) -> Mapping[str, Table]:
    return report(path, "overview")


@pytest.mark.parametrize("path", FIRED)
def test_rules_fire(path: str) -> None:
    step = rule_facts(path).step_ns
    fired = {
        name
        for name in NEW
        for finding in findings(path, name)
        if finding.gpu_ns > all_rules()[name].least * step or name == "graph-gaps"
    }
    assert fired == FIRED[path]


def test_uploads_of_fsdp() -> None:
    # By SQL: 223 copies from pinned memory, 25475252224 bytes and 920.87 ms a GPU; kernels of
    # 22.4 ms; GPU busy 99.3 % of 969.4 ms.
    (result,) = findings(FSDP, "parameter-upload")
    assert result.gpu_ns == pytest.approx(920.8 * MS, rel=1e-3)
    assert "25.48 GB a GPU in the capture at 27.7 GB/s from pinned memory" in result.evidence
    assert "saves at most the 28.92 ms" in result.evidence
    assert result.where == "FSDP::pre_forward"
    assert "CPUOffload" in result.remedy and "next batch" not in result.remedy
    assert "parameter-upload" in listed(FSDP)
    assert "exposed-copy" not in listed(FSDP)


def test_pointwise_work_of_a_model_of_hugging_face() -> None:
    # By JSON: kernels of at::native but index and sums take 28.7 of 45.65 ms.
    (result,) = findings(QWEN, "unfused-pointwise")
    assert result.what.startswith("RMSNorm, rotary embedding, SiLU run as 1187 pointwise kernels")
    assert "Liger" in result.remedy
    assert result.gpu_ns == pytest.approx(14.36 * MS, rel=0.01)
    assert "unfused-pointwise" in listed(QWEN)


def test_recommenders_have_no_rotary_embedding() -> None:
    (result,) = findings("kineto/train_v100_2022_control.json.gz", "unfused-pointwise")
    assert "rotary" not in result.what and "SiLU" not in result.what
    assert "Liger" not in result.remedy


def test_products_of_an_odd_length() -> None:
    (result,) = findings(OWL, "unaligned-kernel")
    assert "cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1" in result.evidence
    assert "built for compute capability 7.5 of a GPU of 9.0" in result.evidence
    assert "5185 to 5192" in result.remedy


def test_products_of_a_capture_with_own_ranges_only() -> None:
    # sgemm of a repetition in benchmark_loop; half of the ratio of the peaks of TF32 and fp32 is 4.
    (result,) = findings(FP32_LM, "no-tensor-cores")
    assert result.gpu_ns == pytest.approx(766.1e6 * 3 / 4, rel=2e-3)


def test_gaps_within_graphs() -> None:
    (result,) = findings(GRAPHS, "graph-gaps")
    assert "123.2 ms idle per step" in result.evidence
    assert "graph-gaps" in listed(GRAPHS)


def test_kernels_of_a_graph_stand_for_its_operators() -> None:
    ops = tables(DECODE)["ops"]
    assert ops["work"].tolist()[:2] == ["Cijk MT256x32x64 (gemm)", ops["work"].tolist()[1]]
    assert ops["work"].tolist()[1].startswith("paged_attention_ll4mi")
    assert ops["gpu_ns"].tolist()[0] < 0.3 * ops.total["gpu_ns"]


def test_lines_of_the_model_below_the_line_that_calls_it() -> None:
    lines = tables(QWEN)["lines"]
    names = [name for name in lines["line"].tolist() if name != "(no line)"]
    assert names[0] == "transformers/models/qwen2/modeling_qwen2.py:56 forward"
    assert len(names) > 5
    heading = next(heading for heading in lines.headings if heading.key == "line")
    assert heading.header == "below …e_model.py:28"
