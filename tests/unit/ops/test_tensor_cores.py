"""Why tensor cores were not used, by types, sizes, kernels' names and GPUs."""

import pytest

from fastprof.ops import tensor_cores
from fastprof.ops.tensor_cores import (
    UNKNOWN_TYPE,
    Fp32,
    for_gpus,
    fp32_unit,
    reason_of_name,
    reason_of_types,
    why_not,
)
from support.expressions import alternatives
from unit.ops.ops_calls import aten, fp16, fp32

MATMUL, CUDNN = "torch.set_float32_matmul_precision('high')", "torch.backends.cudnn.allow_tf32"

# GPU names in real captures, and their hardware (compute capabilities by NVIDIA's list).
GPUS = {
    "NVIDIA A100-SXM4-80GB": Fp32.TF32,
    "NVIDIA A100-PG509-200": Fp32.TF32,
    "PG509-210": Fp32.TF32,
    "A100-SXM4-40GB": Fp32.TF32,
    "NVIDIA A10G": Fp32.TF32,
    "NVIDIA A40": Fp32.TF32,
    "NVIDIA A800-SXM4-80GB": Fp32.TF32,
    "NVIDIA RTX A6000": Fp32.TF32,
    "NVIDIA H100 80GB HBM3": Fp32.TF32,
    "NVIDIA H200": Fp32.TF32,
    "NVIDIA H20": Fp32.TF32,
    "NVIDIA GH200 480GB": Fp32.TF32,
    "NVIDIA B200": Fp32.TF32,
    "NVIDIA GB200": Fp32.TF32,
    "NVIDIA L4": Fp32.TF32,
    "NVIDIA L40S": Fp32.TF32,
    "NVIDIA GeForce RTX 3070 Ti": Fp32.TF32,
    "NVIDIA GeForce RTX 4090": Fp32.TF32,
    "NVIDIA GeForce RTX 5090": Fp32.TF32,
    "NVIDIA RTX 6000 Ada Generation": Fp32.TF32,
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": Fp32.TF32,
    "Tesla V100-SXM2-32GB": Fp32.HALF,
    "Tesla V100-DGXS-32GB": Fp32.HALF,
    "Tesla V100S-PCIE-32GB": Fp32.HALF,
    "NVIDIA TITAN V": Fp32.HALF,
    "NVIDIA TITAN RTX": Fp32.HALF,
    "Tesla T4": Fp32.HALF,
    "Quadro RTX 6000": Fp32.HALF,
    "NVIDIA GeForce RTX 2080 Ti": Fp32.HALF,
    "Tesla P100-PCIE-16GB": Fp32.NOTHING,
    "Quadro GP100": Fp32.NOTHING,
    "Tesla K20Xm": Fp32.NOTHING,
    "Tesla K80": Fp32.NOTHING,
    "GeForce GTX 1080 Ti": Fp32.NOTHING,
    "NVIDIA TITAN X (Pascal)": Fp32.NOTHING,
    "AMD Instinct MI300X": Fp32.AMD_TF32,
    "AMD Instinct MI325X": Fp32.AMD_TF32,
    "AMD Instinct MI210": Fp32.AMD_HALF,
    "AMD Instinct MI250X / MI250": Fp32.AMD_HALF,
    "AMD Instinct MI355X": Fp32.AMD_HALF,
    "AMD Instinct MI60": Fp32.NOTHING,
    "Some GPU of tomorrow": None,
    "": None,
}


@pytest.mark.parametrize(("name", "unit"), GPUS.items())
def test_names_tell_what_a_gpu_has(name, unit):
    assert fp32_unit(name) is unit


@pytest.mark.parametrize(
    ("gpus", "product", "convolution"),
    [
        ([], f"(since Ampere: {MATMUL})", f"(since Ampere: {CUDNN} = True)"),
        (["NVIDIA A100-SXM4-80GB"], f"TF32 ({MATMUL})", f"TF32 ({CUDNN} = True)"),
        (["Tesla V100-SXM2-32GB"] * 8, "Tesla V100-SXM2-32GB has no TF32: fp16", "has no TF32"),
        (["Tesla T4", "Tesla V100-SXM2-32GB"], "this GPU has no TF32", "this GPU has no TF32"),
        (["Tesla T4", "NVIDIA A40"], f"(since Ampere: {MATMUL})", f"(since Ampere: {CUDNN}"),
        (["AMD Instinct MI250X"], "fp16 or bf16 under AMP", "fp16 or bf16 under AMP"),
        (["AMD Instinct MI300X"], "HIPBLASLT_ALLOW_TF32=1", "fp16 or bf16 under AMP"),
        (["Tesla P100-PCIE-16GB"], "Tesla P100-PCIE-16GB has no tensor cores", "no tensor cores"),
    ],
)
def test_the_remedy_names_the_switch_that_works(gpus, product, convolution):
    sizes = {"M": 64, "N": 64, "K": 64}
    assert product in for_gpus(why_not("float32", sizes), gpus)
    assert convolution in for_gpus(why_not("float32", sizes, cudnn=True), gpus)


def test_other_reasons_are_the_same_on_every_gpu_with_tensor_cores():
    reason = why_not("float16", {"M": 33})
    assert reason == "M=33 is not a multiple of 8 (fp16)"
    assert for_gpus(reason, ["Tesla V100-SXM2-32GB"]) == reason


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("volta_sgemm_128x64_tn", MATMUL),
        ("void gemmSN_TN_kernel<float, 128>", MATMUL),
        ("implicit_convolve_sgemm", MATMUL),
        ("cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1", CUDNN),
        ("ampere_fp16_sgemm_fp16_32x128_tn", UNKNOWN_TYPE),
        ("_5x_cudnn_ampere_fp16_scudnn_fp16_128x32_relu_small", UNKNOWN_TYPE),
        ("cudnn::detail::dgrad_engine", UNKNOWN_TYPE),
        ("", UNKNOWN_TYPE),
    ],
)
def test_the_name_of_a_kernel_tells_fp32(name, found):
    assert found in reason_of_name(name)


def test_without_a_cost_the_types_of_the_operands_tell():
    assert CUDNN in reason_of_types(aten("conv2d", fp32(1, 2, 3, 3), fp32(4, 2, 1, 1), None))
    assert MATMUL in reason_of_types(aten("mm", fp32(2, 3), fp32(4, 5)))
    assert "library chose" in reason_of_types(aten("mm", fp16(2, 3), fp16(4, 5)))
    assert reason_of_types(aten("mm", fp16(2, 3), fp32(4, 5))) == UNKNOWN_TYPE
    assert reason_of_types(aten("mm")) == UNKNOWN_TYPE


def test_each_form_of_a_type_contains_a_word_that_is_looked_for_first():
    for _, words, pattern in (*tensor_cores._OF_PRODUCT, *tensor_cores._OF_ARGUMENTS):
        for form in alternatives(pattern.pattern):
            assert any(word in form for word in words), (words, form)
