"""What kernel names tell."""

import ast
import os
from pathlib import Path

import pytest

from fastprof.ops import KernelInfo, classify
from fastprof.ops.kernels import KINDS


@pytest.mark.parametrize(
    ("name", "layout", "tensor_core"),
    [
        ("volta_sgemm_64x32_sliced1x4_tn", "tn", False),
        ("volta_sgemm_32x128_tt", "tt", False),
        ("maxwell_sgemm_128x64_nn", "nn", False),
        ("volta_h884gemm_128x64_ldg8_nt", "nt", True),
        ("volta_fp16_s884gemm_fp16_64x64_ldg8_f2f_nn", "nn", True),
        ("turing_fp16_s1688gemm_fp16_128x64_sliced1x2_ldg8_f2f_tn", "tn", True),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_tn", "tn", True),
        ("ampere_fp16_sgemm_fp16_32x128_tn", "tn", False),
        ("ampere_dgemm_128x64_nn", "nn", False),
        (
            "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_"
            "tensor16x8x16_kernel",
            "tn",
            True,
        ),
        (
            "void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(T1::Params)",
            "nn",
            False,
        ),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nt_align4>"
            "(cutlass_80_tensorop_s1688gemm_128x128_16x5_nt_align4::Params)",
            "nt",
            True,
        ),
        (
            "void cutlass::Kernel2<"
            "cutlass_80_wmma_tensorop_f16_s161616gemm_f16_32x32_64x1_nn_align8>"
            "(cutlass_80_wmma_tensorop_f16_s161616gemm_f16_32x32_64x1_nn_align8::Params)",
            "nn",
            True,
        ),
        ("cutlass_80_tensorop_s1688gemm_128x128_16x5_tn_align4", "tn", True),
        ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "tn", True),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", "nt", True),
        ("void gemmSN_TN_kernel<float, 128, 16, 2, 4, 8, 9, false>(int)", "tn", False),
        ("void gemv2T_kernel_val<int, int, float, float, float, float>(float)", None, False),
        ("std::enable_if<!T7, void>::type internal::gemvx::kernel<int, float2>(T1)", None, False),
        ("void splitKreduce_kernel<32, 16, int, float>(cublasSplitKParams<float>)", None, False),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN", "tn", True),
        ("Cijk_Ailk_Bjlk_SB_MT64x64x8_SE", "nt", None),
    ],
)
def test_gemm_names_tell_layout_and_tensor_cores(name, layout, tensor_core):
    assert classify(name) == KernelInfo("gemm", layout, tensor_core)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (
            "void at::native::elementwise_kernel<128, 4, at::native::add_copy_reduce>(int)",
            "elementwise",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::sum_copy_functor<float>"
            ", at::detail::Array<char*, 3>>(int, at::native::reduce_copy_functor<float>)",
            "elementwise",
        ),
        (
            "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::"
            "native::(anonymous namespace)::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{la",
            "copy",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<(int)8, at::native::bfloat16_"
            "copy_kernel_cuda(at::TensorIteratorBase &)::[lambda(float) (instance 1)]>(int)",
            "copy",
        ),
        ("elementwise_kernel", "elementwise"),
        ("void at::native::index_elementwise_kernel<128, 4, int>(int)", "index"),
        ("void indexSelectLargeIndex<float, unsigned int, 2, 2, -2, true>(float)", "index"),
        ("embedding_backward_feature_kernel", "index"),
        ("fused_dropout_kernel", "random"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(float)", "reduction"),
        ("kernelReduceAllPass1", "reduction"),
        ("softmax_warp_forward", "softmax"),
        ("void (anonymous namespace)::softmax_warp_backward<float, float>(float*)", "softmax"),
        ("cunn_SoftMaxForward", "softmax"),
        ("LayerNormForwardCUDAKernel", "normalisation"),
        ("RowwiseMomentsCUDAKernel", "normalisation"),
        ("ComputeGradientFusedParamsCUDAKernel", "normalisation"),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512>(float)", "normalisation"),
        ("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64>>(int)", "attention"),
        ("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<int>(int)", "attention"),
        ("fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)", "attention"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", "attention"),
        ("volta_scudnn_128x64_relu_medium_nn_v1", "convolution"),
        ("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_nhwc_tensor16x8x8_alignc4", "convolution"),
        (
            "void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_64x64_32x5"
            "_nhwc_align4>(T1::Params)",
            "convolution",
        ),
        ("void cudnn::ops::nchwToNhwcKernel<float, float>(float)", "copy"),
        ("void at::native::<unnamed>::CatArrayBatchedCopy<float, 4>(T1 *)", "copy"),
        (
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<int>(int)",
            "optimizer",
        ),
        (
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "communication",
        ),
        ("void fbgemm_gpu::permute_2D_data_kernel<int>(int)", "other"),
        ("void cub::DeviceRadixSortHistogramKernel<int>(int*)", "sort"),
        ("triton_poi_fused_add_mul_softmax_0", "elementwise"),
        ("triton_red_fused_native_layer_norm_1", "reduction"),
        ("Memcpy DtoD (Device -> Device)", "memcpy"),
        ("Memset (Device)", "memset"),
        ("[CUDA memcpy HtoD]", "memcpy"),
        ("process_cycle(float *, int)", "other"),
        ("", "other"),
        ("<", "other"),
        (">(", "other"),
    ],
)
def test_names_tell_the_kind_of_work(name, kind):
    assert classify(name).kind == kind
    assert classify(name).layout is None


def test_tensor_cores_of_a_convolution():
    assert classify("volta_scudnn_128x64_relu_medium_nn_v1").tensor_core is False
    assert classify("volta_fp16_s884cudnn_fp16_256x64_ldg8_relu_f2f_exp").tensor_core is True
    assert classify("elementwise_kernel").tensor_core is None


def _real_kernels():
    root = os.environ.get("FASTPROF_DATA")
    data = Path(root) if root else Path(__file__).parents[3] / "shared" / "data"
    path = data / "pyprof" / "lm_v100_nvprof.author.dict"
    if not path.exists():
        pytest.skip(f"no {path.name} in the real data")
    lines = map(ast.literal_eval, path.read_text().splitlines())
    return {(line["kShortName"], line["kLongName"]) for line in lines}


def test_every_kernel_of_a_real_capture_is_known_by_its_short_and_long_name():
    for short, long in _real_kernels():
        kind = classify(long).kind
        assert kind in KINDS
        assert classify(short).kind == kind or "copy" in long
        assert (kind == "other") == ("ClassNLLCriterion" in short), short
        assert (kind == "gemm") == short.startswith("volta_sgemm")
        if kind == "gemm":
            assert classify(long).layout == short[-2:]
