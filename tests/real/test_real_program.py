"""Which kinds of programs the real traces are of, and remedies that fit."""

import re

import pytest

from fastprof.analysis.advice.registry import all_rules
from fastprof.profile import program as kinds
from real import open_traces
from support.program_texts import TORCH_WORDS, all_texts

CPP = [
    "nsys/no_nvtx_rtx3090_nsys2025.sqlite",
    "nsys/no_nvtx_rtx6000_nsys2021.sqlite",
    "nvprof/nccl_4gpu.nvvp",
]
# As the INDEX and the names in the files say.
PROGRAMS = {
    **dict.fromkeys(CPP, (kinds.CUDA, "CUDA C++")),
    "kineto/dlrm_rank0.json.gz": (kinds.TRAINING, "PyTorch training"),
    "kineto/resnet50_2021_01_loader0.json.gz": (kinds.TRAINING, "PyTorch training"),
    "kineto/resnet18_mi300_full.json.gz": (kinds.TRAINING, "PyTorch training"),
    "kineto/train_v100_2022.json.gz": (kinds.TRAINING, "PyTorch training"),
    "kineto/owlv2_h100.json.gz": (kinds.INFERENCE, "PyTorch inference"),
    "kineto/qwen_h100_unlaunched.json.gz": (kinds.INFERENCE, "PyTorch inference"),
    "kineto/triton_compile.json.gz": (kinds.INFERENCE, "PyTorch inference"),
    "kineto/transformer_a100_2024.json.gz": (kinds.TORCH, "PyTorch"),
    "kineto/moe_b200_eager.json.gz": (kinds.SERVING, "vLLM"),
    "kineto/sglang_graph_capture.json.gz": (kinds.SERVING, "SGLang"),
    "kineto/sglang_graph_decode.json.gz": (kinds.SERVING, "SGLang"),
    "kineto/sd35_compile_mi300.json.gz": (kinds.SERVING, "xDiT"),
    "nsys/ranges_rtx3070_nsys2025.sqlite": (kinds.TRAINING, "PyTorch training"),
    "nsys/ranges_lm_a100_nsys2024.sqlite": (kinds.INFERENCE, "PyTorch inference"),
    "nsys/cudagraph_a100_nsys2024.sqlite": (kinds.TORCH, "PyTorch"),
    "nsys/no_cuda_tables_nsys2025.sqlite": (kinds.UNKNOWN, ""),
    "pyprof/lm_v100_nvprof.sql": (kinds.TRAINING, "PyTorch training"),
}
COMPILED = {
    "kineto/train_v100_2022.json.gz": True,
    "kineto/train_v100_2022_control.json.gz": False,
    "kineto/triton_compile.json.gz": True,
    "kineto/sd35_compile_mi300.json.gz": True,
    "kineto/owlv2_h100.json.gz": False,
}


@pytest.mark.parametrize("path", PROGRAMS)
def test_kinds(path: str) -> None:
    result = open_traces.profile(path).contents.program
    assert (result.kind, result.name) == PROGRAMS[path]
    assert bool(result.evidence) == (result.kind != kinds.UNKNOWN)


@pytest.mark.parametrize("path", COMPILED)
def test_what_came_out_of_torch_compile(path: str) -> None:
    profile = open_traces.profile(path, copies=True)
    assert profile.contents.program.is_compiled == COMPILED[path]
    if COMPILED[path]:
        assert "torch.compile" not in open_traces.report(path, "advise").text(None)


@pytest.mark.parametrize("path", CPP)
def test_no_text_of_a_cuda_program_is_for_torch(path: str) -> None:
    profile = open_traces.profile(path, copies=True)
    text = all_texts(profile)
    assert not TORCH_WORDS.findall(text)
    assert "CUDA C++" in text


@pytest.mark.parametrize(
    ("path", "wanted", "not_wanted"),
    [
        ("kineto/dtensor_tp2_rank0.json.gz", "tensor parallelism", "DistributedData|FSDP"),
        ("kineto/dlrm_rank1.json.gz", "start the exchange earlier", "DistributedData|FSDP"),
        ("kineto/graph_replay_2024.json.gz", "bucket_cap_mb", "FSDP|tensor parallelism"),
    ],
)
def test_communication_has_the_remedy_of_its_kind(path: str, wanted: str, not_wanted: str) -> None:
    text = remedy(path, "exposed-comm")
    assert wanted in text
    assert not re.search(not_wanted, text)


def remedy(path: str, rule: str) -> str:
    rows = open_traces.report(path, "advise").rows()
    (row,) = [row for row in rows if row["id"] == rule]
    return str(row["remedy"])


def test_waits_for_single_values() -> None:
    """3827 calls of cudaMemcpyFromSymbol, a loop that reads a flag."""
    text = remedy(CPP[0], "sync")
    assert "single values" in text
    assert "cudaStreamBeginCapture" in remedy(CPP[0], "launch-bound")


def test_uploads_under_fsdp_are_parameters() -> None:
    """25.5 GB a GPU from pinned memory under FSDP::pre_forward."""
    text = remedy("nsys/fsdp_upload_2gpu_h100.sqlite", "parameter-upload")
    assert "parameters" in text
    assert "keep the parameters on the GPU" in text
    assert not re.search("next batch|pin_memory", text)


def test_engines_have_their_own_options() -> None:
    assert "enforce_eager=False" in remedy("kineto/moe_b200_eager.json.gz", "launch-bound")


@pytest.mark.parametrize("path", ["kineto/owlv2_h100.json.gz", "kineto/owlv2_mi300.json.gz"])
def test_copies_from_bf16_to_bf16_are_no_casts(path: str) -> None:
    """The only copies in products make a tensor contiguous: kernels without conversion."""
    facts = open_traces.rule_facts(path)
    assert not list(all_rules()["autocast-casts"].function(facts))
