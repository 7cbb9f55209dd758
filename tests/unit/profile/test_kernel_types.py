"""The columns class, compute_type, helper, call, range and home_range on small captures."""

import pytest

import fastprof
from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops.tensor_cores import COMPUTE_TYPES, call_type, name_types
from support.exports import Export
from support.kineto_files import KinetoFile

ENGINE = "autograd::engine::evaluate_function: "


@pytest.fixture
def column(tmp_path):
    def read(trace, name, **options):
        suffix = "x.json" if isinstance(trace, KinetoFile) else "x.sqlite"
        return fastprof.open(trace.write(tmp_path / suffix), **options).kernels[name].tolist()

    return read


def kernels(trace, *names):
    """Launches of kernels, one each 10 ns from 1010 on."""
    for i, name in enumerate(names):
        trace.launch(1010 + 10 * i, 1015 + 10 * i, i, 1).kernel(5000 + i, 5001 + i, i, name=name)
    return trace


# -- compute types --------------------------------------------------------------------------------

NAMES = {
    "volta_h884gemm_256x128_ldg8_nn": "fp16",
    "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn": "fp16",
    "volta_hgemm_128x64_nt": "fp16",
    "volta_fp16_s884cudnn_fp16_256x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1": "fp16",
    "ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_nn": "fp16",
    "ampere_h16816gemm_128x64_ldg8_stages_64x3_nn": "fp16",
    "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn": "bf16",
    "ampere_sgemm_128x32_nn": "fp32",
    "volta_scudnn_128x64_relu_interior_nn_v1": "fp32",
    "volta_dgemm_64x64_nt": "fp64",
    "cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1": "fp64",
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_nt_align4>(T::Params)": "tf32",
    "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x16_stage4": "tf32",
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_ffma": "fp32",
    "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x64x32": "bf16",
    "sm90_xmma_gemm_e4m3e4m3_e4m3f32_f32_tn_n_tilesize128x128x64": "fp8",
    "sm80_xmma_gemm_i8i8_i8i32_f32_tn_n": "int8",
    "turing_int8_i8816gemm_int8_128x128_ldg16_tn": "int8",
    "nvjet_tst_128x256_64x4_2x1_v_bz_coopB_TNN": "bf16",
    "nvjet_sm100_hsh_128x256_64x4_2x1_v_bz_TNN": "fp16",
    "nvjet_qqtst_128x128_128x6_2x1_v_bz_TNT": "fp8",
    "Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT16x16x256_MI16x16x1_SN": "bf16",
    "Cijk_Ailk_Bljk_HHS_BH_MT64x64x64_MI16x16x16x1_SN": "fp16",
    # AMD multiplies fp32 in matrix cores as it is.
    "Cijk_Ailk_Bljk_SB_MT64x64x16_MI16x16x4x1_SN_1LDSB0": "fp32",
    "igemm_fwd_gtcx3_nhwc_fp32_bx0_ex1_bt128x128x32": "fp32",
    "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32": "bf16",
    "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float>": "bf16",
    "void gemvNSP_kernel<float, float, float, float, 1, 16, 4, 1024>(int)": "fp32",
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80": "bf16",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm80": "tf32",
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, cutlass::half_t>>": "fp16",
    # TensorRT-LLM: the output, then both operands; of two types, the wider is that of the product.
    "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_swiGlu_dynBatch_sm100f": "fp8",
    "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_dynBatch_sm100f": "fp8",
    "bmm_Bfloat16_E2m1E2m1_Fp32_t128x16x256_et128x16_dynBatch_sm100a": "fp4",
    "bmm_E4m3_Bfloat16Bfloat16_Fp32_t128x16x256_sm100f": "bf16",
    "bmm_Bfloat16_MxE2m1Bfloat16_Fp32_t128x16x256_sm100f": "bf16",
    "gemm_Bfloat16_E4m3E4m3_Fp32_t128x128x128_s4_TN_schedS_sm100f": "fp8",
    "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128": "fp8",
    "fmhaSm100aKernel_QkvBfloat16OE4m3H64PagedKvCausalP16VarSeqQ128Kv128": "bf16",
    "nvjet_sm100_ootst_128x128_256x7_4x1_2cta_v_bx_Avec16UE4M3_Bvec16UE4M3_TNT": "fp4",
    "nvjet_sm100_qqtst_128x128_128x6_2x1_v_bz_TNT": "fp8",
    "Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT160x128x64_MI16x16x1": "bf16",
}


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_product_determines_its_type(name):
    assert set(name_types(name)) == {NAMES[name]}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # 16 bits: fp16 or bf16.
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128",
         (None, "fp64", "tf32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")),
        ("void paged_attention_kernel<unsigned short, unsigned char, 128>(float*)",
         ("fp32", *COMPUTE_TYPES)),
        ("void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<c10::Half>>(int)",
         ("fp16", *COMPUTE_TYPES[:-1], None)),
        ("void elementwise_kernel<4, BinaryFunctor<double, double, double>>(int)",
         ("fp64", *COMPUTE_TYPES[:-1], None)),
        ("triton_poi_fused_add_0", (None, *COMPUTE_TYPES[:-1], None)),
        ("[CUDA memcpy DtoD]", (None,) * 9),
        ("Memset (Device)", (None,) * 9),
    ],
)  # fmt: skip
def test_the_type_of_the_operator_counts_if_the_name_has_none(name, expected):
    assert tuple(name_types(name)) == expected


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["c10::Half", "c10::Half"], "fp16"),
        (["long int", "float"], "fp32"),  # indices and a table
        (["double", "float"], "fp64"),
        (["signed char", "signed char"], "int8"),
        (["long int", "bool"], None),
        (["c10::complex<float>"], "fp32"),
        (["c10::Float8_e4m3fn", "c10::Float8_e4m3fn", "float"], "fp8"),  # scales
        ([None], None),
        ([], None),
    ],
)
def test_the_first_floating_tensor_determines_the_type_of_a_call(types, expected):
    args = tuple(Arg("", Tensor((2, 3), dtype)) for dtype in types)
    assert call_type(Call("aten", "op", args)) == expected
    assert call_type(Call("aten", "cat", (Arg("", tuple(arg.value for arg in args)),))) == expected


def test_a_scalar_tensor_counts_last():
    scalar, tensor = Arg("", Tensor((), "double")), Arg("", Tensor((4,), "float"))
    assert call_type(Call("aten", "mul", (scalar, tensor))) == "fp32"
    assert call_type(Call("aten", "mul", (scalar,))) == "fp64"


def autocast_linear():
    """A linear under autocast: a cast of its weight, then the product in fp16."""
    trace = KinetoFile()
    full = {"dims": [[4, 8], [16, 8]], "types": ["float", "float"]}
    half = {"dims": [[4, 8], [16, 8]], "types": ["c10::Half", "c10::Half"]}
    trace.op(1000, 1100, "aten::linear", **full)
    trace.op(1005, 1018, "aten::to", dims=[[16, 8]], types=["float"])
    trace.op(1006, 1017, "aten::copy_", dims=[[16, 8]] * 2, types=["c10::Half", "float"])
    trace.op(1019, 1090, "aten::linear", **half)
    return kernels(trace, "elementwise_kernel", "matmul_kernel", "splitKreduce_kernel")


def test_under_autocast_a_product_has_the_type_of_the_cast_tensors(column):
    assert column(autocast_linear(), "compute_type")[1] == "fp16"


def test_tensor_cores_multiply_fp32_as_tf32(column):
    names = ("sm80_gemm_tensorop_kernel", "simt_gemm_kernel")
    trace = KinetoFile().op(1000, 1100, "aten::mm", dims=[[4, 8], [8, 4]], types=["float"] * 2)
    assert column(kernels(trace, *names), "compute_type") == ["tf32", "fp32"]


# -- class, helper, call --------------------------------------------------------------------------


def test_the_class_of_other_work_is_its_kind(column):
    trace = kernels(KinetoFile(), "sgemm", "softmax_warp_forward", "mystery")
    trace.launch(1050, 1055, 10, name="cudaMemcpyAsync")
    trace.copy(6000, 6001, 10, "Memcpy HtoD (Pinned -> Device)", 8)
    expected = ["gemm", "softmax", "other"]
    assert column(trace, "class", copies=False) == expected
    assert column(trace, "class") == [*expected, "memcpy"]


def test_casts_and_split_sums_are_helpers_of_a_product(column):
    assert column(autocast_linear(), "helper") == [1, 0, 1]


def test_a_kernel_outside_all_calls_is_neither_helper_nor_part(column):
    assert column(kernels(KinetoFile(), "sgemm"), "helper") == [None]
    assert column(kernels(KinetoFile(), "sgemm"), "call") == [None]


def test_auxiliary_kernels_of_a_call_of_unknown_cost_are_helpers(column):
    trace = KinetoFile().op(1000, 1100, "aten::conv2d")
    assert column(kernels(trace, "nchwToNhwcKernel", "sgemm"), "helper") == [1, 0]


def forward_and_backward(times=1):
    """A linear with two kernels, and its backward pass with two products."""
    trace = KinetoFile()
    trace.op(1000, 1030, "aten::linear", seq=4, dims=[[4, 8], [16, 8]], types=["float"] * 2)
    for i in range(times):
        at = 1100 + 100 * i
        trace.op(at, at + 90, f"{ENGINE}AddmmBackward0", 2, seq=4)
        trace.op(at + 1, at + 89, "AddmmBackward0", 2, seq=4)
        for inset in (10, 50):
            dims = [[4, 16], [16, 8]]
            trace.op(at + inset, at + inset + 30, "aten::mm", 2, dims=dims, types=["float"] * 2)
    launches = [(1010, 1), (1020, 1)]
    launches += [(1115 + 100 * i + j, 2) for i in range(times) for j in (0, 40)]
    for i, (at, tid) in enumerate(launches):
        trace.launch(at, at + 2, i, tid).kernel(5000 + i, 5001 + i, i, name="sgemm")
    return trace


def test_the_forward_and_the_backward_pass_of_a_call_are_two_calls(column):
    assert column(forward_and_backward(), "call") == [0, 0, 1, 1]


def test_calls_without_a_formula_are_counted(column):
    trace = KinetoFile()
    for i, name in enumerate(("ext::f", "ext::f", "ext::g")):
        trace.op(1009 + 10 * i, 1018 + 10 * i, name, dims=[[4]], types=["float"])
    assert column(kernels(trace, "a", "b", "c"), "call") == [0, 1, 2]


# -- ranges ---------------------------------------------------------------------------------------


def test_the_range_of_backward_work_is_around_its_launch_and_the_home_range_around_its_call(column):
    trace = forward_and_backward().annotation(990, 1035, "forward").annotation(980, 1500, "step")
    trace.annotation(1050, 1500, "backward").annotation(1090, 1300, "engine", 2)
    # In order of start: step, forward, linear, backward, engine.
    assert column(trace, "range") == [1, 1, 4, 4]
    assert column(trace, "home_range") == [1, 1, 1, 1]


def test_without_ranges_of_the_user_there_is_no_row(column):
    for name in ("range", "home_range"):
        assert column(forward_and_backward(), name) == [None] * 4


def test_a_kernel_without_ranges_has_no_row(column):
    assert column(Export().kernel(0, 1, 1), "home_range") == [None]
