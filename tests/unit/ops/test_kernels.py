"""Classification of kernels by name."""

import re
import time
from pathlib import Path

import pytest

from fastprof.ops import KernelInfo, classify
from fastprof.ops.kernels import GRADIENTS, KINDS, ROWS, TENSOR_CORES
from support.kernel_lists import read_list

NAMES = read_list(Path(__file__).with_name("kernel_names.tsv"))
ATEN = "void at::native::"
COPY = f"{ATEN}elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_what_the_reviewed_list_says(name):
    assert classify(name) == NAMES[name]


def test_the_reviewed_list_has_every_kind():
    assert {info.kind for info in NAMES.values()} == KINDS


def test_there_are_the_kinds_that_the_documentation_explains():
    explained = re.findall(r"^ *- ([\w-]+): ", KernelInfo.__doc__, re.MULTILINE)
    assert len(explained) == 17
    assert set(explained) == KINDS


def test_of_an_nsys_or_kineto_name_the_nameless_namespace_does_not_matter():
    names = {
        f"void {nameless}::softmax_warp_forward<float>(float*)"
        for nameless in ("<unnamed>", "(anonymous namespace)", "{anonymous}", "_GLOBAL__N__3f_ln")
    }
    assert {classify(name) for name in names} == {KernelInfo("softmax")}
    assert classify("void (anonymous namespace)::foo<layer_norm>(int)") == KernelInfo("other")


@pytest.mark.parametrize(
    "name",
    [
        f"{ATEN}reduce_kernel<512, 1, at::native::ReduceOp<at::native::softmax_copy>>(int)",
        "void reduce_kernel(at::native::softmax_copy, gemm_params)",
        "std::enable_if<!sort, void>::type ns::reduce_kernel<gemm>(T1)",
        "std::enable_if<is_same<gemm, sort>, void>::type ns::reduce_kernel<gemm>(T1)",
        "_ZN2at6native13reduce_kernelILi512ENS0_8ReduceOpIfNS0_7SoftmaxIfEEjfLi4EEEEEvT0_",
        "_ZL13reduce_kernelI7softmaxEvT_",
    ],
)
def test_words_in_return_type_template_arguments_and_parameters_do_not_count(name):
    assert classify(name) == KernelInfo("reduction")


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}>", "copy"),
        ("(anonymous namespace)::direct_copy_kernel_cuda(at::TensorIteratorBase&)", "copy"),
        ("bfloat16_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda(float)]", "copy"),
        ("float8_copy_kernel_cuda(at::TensorIteratorBase&)", "copy"),
        ("copy_device_to_device(at::TensorIterator&, bool)::{lambda()#1}", "copy"),
        ("add_copy_kernel<float>", "elementwise"),
        ("CUDAFunctor_add<at::native::direct_copy_kernel_cuda>", "elementwise"),
        ("masked_fill_kernel(at::TensorIterator&)", "elementwise"),
        ("FillFunctor<float>", "elementwise"),
    ],
)
def test_an_elementwise_kernel_is_a_copy_when_its_whole_function_is_one(function, kind):
    forms = [
        f"{COPY}{function}",
        f"{COPY.replace('_impl', '_impl_nocast')}{function}",
        f"{ATEN}elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl<"
        f"at::native::{function}",
        f"{ATEN}unrolled_elementwise_kernel<at::native::{function}, std::array<char*, 2ul>, "
        "at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >(int)",
        f"{ATEN}vectorized_elementwise_kernel<4, at::native::{function}, at::detail::Array<char*>>",
        f"{ATEN}elementwise_kernel_manual_unroll<128, 8, at::native::gpu_kernel_impl<at::native::"
        f"{function}",
    ]
    assert {classify(form).kind for form in forms} == {kind}
    assert {classify(form.replace(" ", "_")).kind for form in forms} == {kind}


@pytest.mark.parametrize(
    ("mangled", "info"),
    [
        (
            "_ZN7cutlass7Kernel2I42cutlass_80_simt_sgemm_128x64_8x5_nt_align1EEvNT_6ParamsE",
            KernelInfo("gemm", "nt", False),
        ),
        (
            "_ZN2at6native12_GLOBAL__N_119softmax_warp_forwardIfffLi6ELb0EEEvPT0_PKT_iii",
            KernelInfo("softmax"),
        ),
        (
            "_ZN2at6native27unrolled_elementwise_kernelIZZZNS0_12_GLOBAL__N_123"
            "direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE1_clEv",
            KernelInfo("copy"),
        ),
        (
            "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE.kd",
            KernelInfo("communication"),
        ),
        (
            "_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi1",
            KernelInfo("attention", tensor_core=True),
        ),
        ("_ZN7ck_tile6kentryILi1ENS_17GroupedGemmKernelINS_", KernelInfo("gemm")),
    ],
)
def test_a_mangled_name_is_read(mangled, info):
    assert classify(mangled) == info


@pytest.mark.parametrize(
    ("layout", "name"),
    [
        (None, "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1"),
        (None, "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(int)"),
        ("wgrad", "void cudnn::winograd_nonfused::winogradWgradData4x4<float, float>(int)"),
        ("wgrad", "cask_cudnn::computeWgradBOffsetsKernel(cask_cudnn::ComputeWgradBOffsetsParams)"),
        ("wgrad", "igemm_wrw_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x16_wt32x32x8"),
        ("dgrad", "igemm_bwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8"),
        ("dgrad", "volta_scudnn_128x128_stridedB_small_nn_v1"),
        ("wgrad", "volta_scudnn_128x128_stridedB_splitK_small_nn_v1"),
        ("dgrad", "conv_depthwise3d_cuda_backward_input_kernel"),
        ("wgrad", "conv_depthwise3d_cuda_backward_weight_kernel"),
    ],
)
def test_a_convolution_has_the_gradient_that_its_name_tells(layout, name):
    assert classify(name).kind == "convolution"
    assert classify(name).layout == layout


@pytest.mark.parametrize(
    ("layout", "order"),
    [("nn", "Ailk_Bljk"), ("nt", "Ailk_Bjlk"), ("tn", "Alik_Bljk"), ("tt", "Alik_Bjlk")],
)
def test_tensile_spells_out_the_layout(layout, order):
    name = f"Cijk_{order}_HHS_BH_MT128x128x16_MI32x32x8x1_SE"
    assert classify(name) == KernelInfo("gemm", layout, True)
    conjugated = order.replace("Ailk", "AilkC").replace("Alik", "AlikC")
    assert classify(f"Cijk_{conjugated}_CB_MT64x64x8_SE") == KernelInfo("gemm", layout, None)


def test_only_products_have_tensor_cores_and_only_products_and_helpers_a_layout():
    for name, info in NAMES.items():
        if info.kind not in ("gemm", "convolution", "attention") or info.auxiliary:
            assert info.tensor_core is None, name
        if info.kind not in ("gemm", "convolution"):
            assert info.layout is None, name


def test_a_name_without_any_word_is_other():
    for name in ("", "<", ">(", "(", "_Z", "_ZN", "_Z1", "_ZN99999999999x", "void ", "kernel", " "):
        assert classify(name) == KernelInfo("other"), name


def test_upper_and_lower_case_do_not_matter():
    plain = [name for name in NAMES if not re.search(r"[<(]|^_Z", name)]
    assert len(plain) > 80
    for name in plain:
        assert classify(name.upper()) == NAMES[name], name


def test_every_word_of_the_table_can_be_found():
    # A word in upper case or with a space never matches the searched text.
    words = [word for row in ROWS for word in row.words.split()]
    words += [word for _, of_gradient in GRADIENTS for word in of_gradient.split()]
    for word in words:
        assert word == word.lower()
        assert word.rfind("^") <= 0
        assert all(word.split("&")), word
    assert len(set(words)) == len(words)


def test_no_word_is_hidden_by_another_of_an_earlier_row():
    # If an earlier word is part of a later one, the later row never matches.
    earlier: list[str] = []
    for row in ROWS:
        for word in row.words.split():
            hidden = [part for part in earlier if part in word]
            assert hidden == [], f"{word} of {row.kind} is hidden by {hidden}"
        earlier += row.words.split()


def test_patterns_of_tensor_cores_are_in_lower_case():
    for _, pattern in TENSOR_CORES:
        letters = re.sub(r"\\.", "", pattern)
        assert letters == letters.lower()


def test_a_hostile_name_takes_no_time():
    names = [
        "elementwise_kernelINS0_1_GLOBAL__N_" * 3000,
        "elementwise_kernelIZNS0_1gpu_kernel_implI1_GLOBAL__N_" + "_cu_1" * 20_000,
        "std::enable_if<" * 6000,
        "_ZN" + "1a" * 50_000,
        "xmma_" * 20_000,
        "fmha_cutlassf_f16" * 6000,
        "elementwise_kernel<" + "1," * 50_000,
    ]
    start = time.thread_time()
    for name in names:
        classify(name)
    assert time.thread_time() - start < 1
