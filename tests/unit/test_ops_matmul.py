"""Matrix products: FLOPs, bytes, params, and the parts of forward and backward."""

import pytest

from fastprof.call import Arg, Call, Tensor
from fastprof.ops import Cost, has_model, work


def call(mod, op, *values, **named):
    arguments = [Arg("", value) for value in values]
    return Call(mod, op, (*arguments, *(Arg(name, value) for name, value in named.items())))


def fp32(*shape):
    return Tensor(shape, "float32")


def fp16(*shape):
    return Tensor(shape, "float16")


LANGUAGE_MODEL = call(
    "torch.nn.functional", "linear", fp32(35, 20, 200), fp32(33278, 200), fp32(33278)
)


def only(the_call, direction="fprop"):
    (part,) = work(the_call, direction).parts
    return part


def test_linear_multiplies_rows_of_all_leading_dimensions():
    main, bias = work(LANGUAGE_MODEL, "fprop").parts
    assert main.role == "main" and main.kernels == {"gemm"} and not main.optional
    assert main.cost == Cost(9317840000, 4 * (700 * 200 + 33278 * 200 + 700 * 33278))
    assert main.params == "M=33278,N=700,K=200,fp32,"
    assert bias.role == bias.op == "bias" and bias.kernels == {"elementwise"} and bias.optional
    assert bias.cost == Cost(23294600, 186356800)
    assert bias.params == "M=33278,N=700,fp32,"


def test_linear_without_a_bias_has_no_bias_part():
    for bias in ((), (None,), (Tensor((), None),)):
        assert only(call("torch.nn.functional", "linear", fp16(8, 16), fp16(4, 16), *bias)).cost


def test_linear_takes_keywords_and_one_row():
    part = only(call("torch._C._nn", "linear", input=fp16(768), weight=fp16(3072, 768)))
    assert part.params == "M=3072,N=1,K=768,fp16,"
    assert part.cost == Cost(2 * 3072 * 768, 2 * (768 + 3072 * 768 + 3072))


def test_backward_of_linear_tells_its_products_by_layout():
    dgrad, wgrad, bias = work(LANGUAGE_MODEL, "bprop").parts
    moved = 4 * (700 * 200 + 33278 * 200 + 700 * 33278)
    assert (dgrad.role, dgrad.layout) == ("dgrad", "nn")
    assert dgrad.params == "M=200,N=700,K=33278,fp32,"
    assert (wgrad.role, wgrad.layout) == ("wgrad", "nt")
    assert wgrad.params == "M=200,N=33278,K=700,fp32,"
    assert dgrad.cost == wgrad.cost == Cost(9317840000, moved)
    assert dgrad.optional and wgrad.optional and bias.optional
    assert bias.op == "bias" and bias.kernels == {"reduction"}
    assert bias.cost == Cost(23294600, 4 * (23294600 + 33278))


def test_backward_of_mm_guesses_by_layout():
    dgrad, wgrad = work(call("torch", "mm", fp32(2, 3), fp32(3, 5)), "bprop").parts
    # dA[2, 3] = dC[2, 5] @ B^T and dB[3, 5] = A^T @ dC[2, 5], by columns.
    assert (dgrad.params, dgrad.layout) == ("M=3,N=2,K=5,fp32,", None)
    assert (wgrad.params, wgrad.layout) == ("M=5,N=3,K=2,fp32,", "nt")
    assert dgrad.cost == wgrad.cost == Cost(60, 4 * (6 + 15 + 10))


@pytest.mark.parametrize(
    ("the_call", "flops", "count", "params"),
    [
        (call("torch", "mm", fp32(2, 3), mat2=fp32(3, 5)), 60, 31, "M=5,N=2,K=3,fp32,"),
        (call("Tensor", "mm", fp32(2, 3), fp32(3, 5)), 60, 31, "M=5,N=2,K=3,fp32,"),
        (call("torch", "addmm", fp32(5), fp32(2, 3), fp32(3, 5)), 60, 36, "M=5,N=2,K=3,fp32,"),
        (call("Tensor", "addmm_", fp32(2, 5), fp32(2, 3), fp32(3, 5)), 60, 41, "M=5,N=2,K=3,fp32,"),
        (call("Tensor", "bmm", fp32(8, 2, 3), fp32(8, 3, 5)), 480, 248, "B=8,M=5,N=2,K=3,fp32,"),
        (
            call("torch", "baddbmm", fp32(8, 1, 5), fp32(8, 2, 3), fp32(8, 3, 5)),
            480,
            288,
            "B=8,M=5,N=2,K=3,fp32,",
        ),
        (
            call("torch", "addbmm", fp32(2, 5), fp32(8, 2, 3), fp32(8, 3, 5)),
            480,
            8 * (6 + 15) + 10 + 10,
            "B=8,M=5,N=2,K=3,fp32,",
        ),
        (call("torch", "mv", fp32(2, 3), fp32(3)), 12, 11, "M=1,N=2,K=3,fp32,"),
        (call("torch", "addmv", fp32(2), fp32(2, 3), fp32(3)), 12, 13, "M=1,N=2,K=3,fp32,"),
        (call("torch", "dot", fp32(7), fp32(7)), 14, 15, "M=1,N=1,K=7,fp32,"),
        (call("Tensor", "matmul", fp32(7), fp32(7)), 14, 15, "M=1,N=1,K=7,fp32,"),
        (call("torch", "matmul", fp32(4, 2, 3), fp32(3)), 48, 35, "M=1,N=8,K=3,fp32,"),
        (call("torch", "matmul", fp32(4, 2, 3), fp32(3, 5)), 240, 79, "M=5,N=8,K=3,fp32,"),
        (call("operator", "matmul", fp32(3), fp32(3, 5)), 30, 23, "M=5,N=1,K=3,fp32,"),
        (
            call("Tensor", "__matmul__", fp32(4, 1, 2, 3), fp32(6, 3, 5)),
            24 * 60,
            24 + 90 + 240,
            "B=24,M=5,N=2,K=3,fp32,",
        ),
        (call("Tensor", "__rmatmul__", fp32(3, 5), fp32(2, 3)), 60, 31, "M=5,N=2,K=3,fp32,"),
        (call("torch", "mm", fp32(0, 3), fp32(3, 5)), 0, 15, "M=5,N=0,K=3,fp32,"),
    ],
)
def test_product_counts_multiply_adds_and_reads_each_operand_once(the_call, flops, count, params):
    part = only(the_call)
    assert part.cost == Cost(flops, 4 * count)
    assert part.params == params


def test_gradient_of_a_small_addend_is_a_reduction_and_of_a_full_one_nothing():
    small = call("torch", "addmm", fp32(5), fp32(2, 3), fp32(3, 5))
    assert [part.role for part in work(small, "bprop").parts] == ["dgrad", "wgrad", "bias"]
    assert work(small, "bprop").parts[2].cost == Cost(10, 4 * (10 + 5))
    full = call("torch", "addmm", fp32(2, 5), fp32(2, 3), fp32(3, 5))
    assert [part.role for part in work(full, "bprop").parts] == ["dgrad", "wgrad"]


def test_backward_of_vector_products():
    matrix, vector = work(call("torch", "mv", fp32(2, 3), fp32(3)), "bprop").parts
    assert (matrix.role, matrix.kernels, matrix.cost.flops) == ("dgrad", {"elementwise"}, 6)
    assert (vector.role, vector.kernels, vector.cost.flops) == ("wgrad", {"gemm"}, 12)
    assert only(call("torch", "dot", fp32(7), fp32(7)), "bprop").cost == Cost(14, 4 * 28)


def test_mixed_types_count_each_operand_by_its_own():
    part = only(call("torch", "mm", fp16(2, 3), fp32(3, 5)))
    assert part.cost.bytes == 2 * 6 + 4 * 15 + 4 * 10
    assert part.params == "M=5,N=2,K=3,fp32,"


def test_an_aten_call_without_types_has_flops_and_no_bytes():
    aten = call("aten", "addmm", Tensor((5,), None), Tensor((2, 3), None), Tensor((3, 5), None))
    assert only(aten).cost == Cost(60, None)
    assert only(aten).params == "M=5,N=2,K=3,na,"
    linear = call("aten", "linear", Tensor((4, 2, 3), None), Tensor((5, 3), None), None)
    assert only(linear).cost.flops == 240


def test_tensor_cores_are_for_matrices_of_floats_and_bytes():
    def could(dtype):
        return work(
            call("torch", "mm", Tensor((2, 3), dtype), Tensor((3, 5), dtype)), "fprop"
        ).tensor_cores

    assert all(map(could, ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "int8")))
    assert could(None)
    assert not could("int64")
    assert not work(call("torch", "mv", fp16(2, 3), fp16(3)), "fprop").tensor_cores


@pytest.mark.parametrize(
    "malformed",
    [
        call("torch", "mm"),
        call("torch", "mm", fp32(2, 3)),
        call("torch", "mm", fp32(2, 3), None),
        call("torch", "mm", fp32(2, 3), fp32(4, 5)),
        call("torch", "mm", fp32(2, 3), fp32(3)),
        call("torch", "mm", fp32(2, 3), 7),
        call("torch", "mm", fp32(2, 3), (fp32(3, 5),)),
        call("torch", "mm", fp32(2, -3), fp32(-3, 5)),
        call("torch", "mm", Tensor((2, "x"), None), fp32(3, 5)),
        call("torch", "mm", Tensor(None, None), fp32(3, 5)),
        call("torch", "bmm", fp32(2, 3, 4), fp32(3, 4, 5)),
        call("torch", "bmm", fp32(2, 3), fp32(3, 4)),
        call("torch", "addmm", fp32(7), fp32(2, 3), fp32(3, 5)),
        call("torch", "addmm", 1, fp32(2, 5), 2, fp32(2, 3), fp32(3, 5)),
        call("torch", "baddbmm", fp32(3, 2, 5), fp32(2, 2, 3), fp32(2, 3, 5)),
        call("torch", "addmv", fp32(3), fp32(2, 3), fp32(3)),
        call("torch", "mv", fp32(2, 3), fp32(4)),
        call("torch", "dot", fp32(2), fp32(3)),
        call("torch", "inner", fp32(2, 3), fp32(2, 3)),
        call("torch", "matmul", fp32(), fp32(2)),
        call("torch", "matmul", fp32(2, 3), fp32()),
        call("torch", "matmul", fp32(4, 2, 3), fp32(5, 3, 2)),
        call("torch.nn.functional", "linear", fp32(), fp32(2, 2)),
        call("torch.nn.functional", "linear", fp32(2, 3), fp32(2, 2)),
        call("torch.nn.functional", "linear", fp32(2, 3), fp32(2, 2, 3)),
        call("torch.nn.functional", "linear", fp32(2, 3), fp32(2, 3), fp32(5)),
        call("torch.nn.functional", "linear", fp32(2, 3), fp32(2, 3), 1.0),
    ],
)
def test_malformed_product_has_no_work(malformed):
    assert work(malformed, "fprop") is None
    assert work(malformed, "bprop") is None
    assert not has_model(malformed)
