"""Matrix products: FLOPs, bytes, params, and the parts of forward and backward."""

import pytest

from fastprof.model.call import Tensor
from fastprof.ops import Cost, work
from unit.ops.ops_calls import fp16, fp32, python, tensor
from unit.ops.ops_examples import Rows

LANGUAGE_MODEL = python(
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
        assert only(python("torch.nn.functional", "linear", fp16(8, 16), fp16(4, 16), *bias)).cost


def test_linear_takes_keywords_and_one_row():
    part = only(python("torch._C._nn", "linear", input=fp16(768), weight=fp16(3072, 768)))
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
    dgrad, wgrad = work(python("torch", "mm", fp32(2, 3), fp32(3, 5)), "bprop").parts
    # dA[2, 3] = dC[2, 5] @ B^T and dB[3, 5] = A^T @ dC[2, 5], column-major.
    assert (dgrad.params, dgrad.layout) == ("M=3,N=2,K=5,fp32,", None)
    assert (wgrad.params, wgrad.layout) == ("M=5,N=3,K=2,fp32,", "nt")
    assert dgrad.cost == wgrad.cost == Cost(60, 4 * (6 + 15 + 10))


@pytest.mark.parametrize(
    ("the_call", "flops", "count", "params"),
    [
        (python("torch", "mm", fp32(2, 3), mat2=fp32(3, 5)), 60, 31, "M=5,N=2,K=3,fp32,"),
        (python("Tensor", "mm", fp32(2, 3), fp32(3, 5)), 60, 31, "M=5,N=2,K=3,fp32,"),
        (python("torch", "addmm", fp32(5), fp32(2, 3), fp32(3, 5)), 60, 36, "M=5,N=2,K=3,fp32,"),
        (
            python("Tensor", "addmm_", fp32(2, 5), fp32(2, 3), fp32(3, 5)),
            60,
            41,
            "M=5,N=2,K=3,fp32,",
        ),
        (python("Tensor", "bmm", fp32(8, 2, 3), fp32(8, 3, 5)), 480, 248, "B=8,M=5,N=2,K=3,fp32,"),
        (
            python("torch", "baddbmm", fp32(8, 1, 5), fp32(8, 2, 3), fp32(8, 3, 5)),
            480,
            288,
            "B=8,M=5,N=2,K=3,fp32,",
        ),
        (
            python("torch", "addbmm", fp32(2, 5), fp32(8, 2, 3), fp32(8, 3, 5)),
            480,
            8 * (6 + 15) + 10 + 10,
            "B=8,M=5,N=2,K=3,fp32,",
        ),
        (python("torch", "mv", fp32(2, 3), fp32(3)), 12, 11, "M=1,N=2,K=3,fp32,"),
        (python("torch", "addmv", fp32(2), fp32(2, 3), fp32(3)), 12, 13, "M=1,N=2,K=3,fp32,"),
        (python("torch", "dot", fp32(7), fp32(7)), 14, 15, "M=1,N=1,K=7,fp32,"),
        (python("Tensor", "matmul", fp32(7), fp32(7)), 14, 15, "M=1,N=1,K=7,fp32,"),
        (python("torch", "matmul", fp32(4, 2, 3), fp32(3)), 48, 35, "M=1,N=8,K=3,fp32,"),
        (python("torch", "matmul", fp32(4, 2, 3), fp32(3, 5)), 240, 79, "M=5,N=8,K=3,fp32,"),
        (python("operator", "matmul", fp32(3), fp32(3, 5)), 30, 23, "M=5,N=1,K=3,fp32,"),
        (
            python("Tensor", "__matmul__", fp32(4, 1, 2, 3), fp32(6, 3, 5)),
            24 * 60,
            24 + 90 + 240,
            "B=24,M=5,N=2,K=3,fp32,",
        ),
        (python("Tensor", "__rmatmul__", fp32(3, 5), fp32(2, 3)), 60, 31, "M=5,N=2,K=3,fp32,"),
        (python("torch", "mm", fp32(0, 3), fp32(3, 5)), 0, 15, "M=5,N=0,K=3,fp32,"),
    ],
)
def test_product_counts_multiply_adds_and_reads_each_operand_once(the_call, flops, count, params):
    part = only(the_call)
    assert part.cost == Cost(flops, 4 * count)
    assert part.params == params


def test_gradient_of_a_small_addend_is_a_reduction_and_of_a_full_one_nothing():
    small = python("torch", "addmm", fp32(5), fp32(2, 3), fp32(3, 5))
    assert [part.role for part in work(small, "bprop").parts] == ["dgrad", "wgrad", "bias"]
    assert work(small, "bprop").parts[2].cost == Cost(10, 4 * (10 + 5))
    full = python("torch", "addmm", fp32(2, 5), fp32(2, 3), fp32(3, 5))
    assert [part.role for part in work(full, "bprop").parts] == ["dgrad", "wgrad"]


def test_backward_of_vector_products():
    matrix, vector = work(python("torch", "mv", fp32(2, 3), fp32(3)), "bprop").parts
    assert (matrix.role, matrix.kernels, matrix.cost.flops) == ("dgrad", {"elementwise"}, 6)
    assert (vector.role, vector.kernels, vector.cost.flops) == ("wgrad", {"gemm"}, 12)
    assert only(python("torch", "dot", fp32(7), fp32(7)), "bprop").cost == Cost(14, 4 * 28)


def test_mixed_types_count_each_operand_by_its_own():
    part = only(python("torch", "mm", fp16(2, 3), fp32(3, 5)))
    assert part.cost.bytes == 2 * 6 + 4 * 15 + 4 * 10
    assert part.params == "M=5,N=2,K=3,fp32,"


def test_an_aten_call_without_types_has_flops_and_no_bytes():
    aten = python("aten", "addmm", Tensor((5,), None), Tensor((2, 3), None), Tensor((3, 5), None))
    assert only(aten).cost == Cost(60, None)
    assert only(aten).params == "M=5,N=2,K=3,na,"
    linear = python("aten", "linear", Tensor((4, 2, 3), None), Tensor((5, 3), None), None)
    assert only(linear).cost.flops == 240


def test_a_product_of_matrices_says_why_it_ran_without_tensor_cores():
    def reason(dtype):
        left, right = Tensor((2, 3), dtype), Tensor((3, 5), dtype)
        return only(python("torch", "mm", left, right)).no_tensor_cores

    assert reason("float16") == "M=5 is not a multiple of 8 (fp16)"
    assert reason("float8_e4m3fn") == "M=5 is not a multiple of 16 (fp8)"
    assert "TF32" in reason("float32")
    assert reason("int64") == "type int64 is not supported"
    assert reason(None) == "the type is not known"


def test_a_product_with_a_vector_could_not_use_tensor_cores():
    assert only(python("torch", "mv", fp16(2, 3), fp16(3))).no_tensor_cores == ""
    assert only(python("torch", "linear", fp16(1, 8), fp16(16, 8))).no_tensor_cores == ""


MALFORMED = [
    python("torch", "mm"),
    python("torch", "mm", fp32(2, 3)),
    python("torch", "mm", fp32(2, 3), None),
    python("torch", "mm", fp32(2, 3), fp32(4, 5)),
    python("torch", "mm", fp32(2, 3), fp32(3)),
    python("torch", "mm", fp32(2, 3), 7),
    python("torch", "mm", fp32(2, 3), (fp32(3, 5),)),
    python("torch", "mm", fp32(2, -3), fp32(-3, 5)),
    python("torch", "mm", Tensor((2, "x"), None), fp32(3, 5)),
    python("torch", "mm", Tensor(None, None), fp32(3, 5)),
    python("torch", "bmm", fp32(2, 3, 4), fp32(3, 4, 5)),
    python("torch", "bmm", fp32(2, 3), fp32(3, 4)),
    python("torch", "addmm", fp32(7), fp32(2, 3), fp32(3, 5)),
    python("torch", "addmm", 1, fp32(2, 3), fp32(3, 5)),
    python("torch", "baddbmm", fp32(3, 2, 5), fp32(2, 2, 3), fp32(2, 3, 5)),
    python("torch", "addmv", fp32(3), fp32(2, 3), fp32(3)),
    python("torch", "mv", fp32(2, 3), fp32(4)),
    python("torch", "dot", fp32(2), fp32(3)),
    python("torch", "matmul", fp32(), fp32(2)),
    python("torch", "matmul", fp32(2, 3), fp32()),
    python("torch", "matmul", fp32(4, 2, 3), fp32(5, 3, 2)),
    python("torch.nn.functional", "linear", fp32(), fp32(2, 2)),
    python("torch.nn.functional", "linear", fp32(2, 3), fp32(2, 2)),
    python("torch.nn.functional", "linear", fp32(2, 3), fp32(2, 2, 3)),
    python("torch.nn.functional", "linear", fp32(2, 3), fp32(2, 3), fp32(5)),
    python("torch.nn.functional", "linear", fp32(2, 3), fp32(2, 3), 1.0),
]


A, B = fp32(2, 3), fp32(3, 5)  # 6 and 15 elements, product of 10
BATCH = fp32(4, 2, 3), fp32(4, 3, 5)  # 24 and 60 elements, product of 40
COMPLEX = tensor("complex64", 2, 3), tensor("complex64", 3, 5)
PLAIN = 2 * 2 * 5 * 3, 4 * (6 + 15 + 10)
rows = Rows(globals())
two = Rows(globals(), "torch", "aten")
EXAMPLES = [
    *two("mm A B", *PLAIN, "M=5,N=2,K=3,fp32,"),
    *rows("Tensor.mm A mat2=B\ntorch.spmm|torch.dsmm A B", *PLAIN),
    *rows.back("torch.mm A B", 2 * 60, 2 * 4 * (6 + 15 + 10)),
    *rows("mm [2,3] [3,5]", 60, None),
    # The requested type is that of the output.
    *rows(
        """torch.mm fp16[2,3] fp16[3,5] out_dtype='torch.float32'
        mm fp16[2,3] fp16[3,5] 6""",
        *(60, 2 * (6 + 15) + 4 * 10),
    ),
    *rows("mm fp16[2,3] fp16[3,5] []", 60, None),
    *rows("bmm fp16[4,2,3] fp16[4,3,5] 6", 240, 2 * (24 + 60) + 4 * 40),
    *rows("addmm fp16[5] fp16[2,3] fp16[3,5] 6 1 1", 60, 2 * (5 + 6 + 15) + 4 * 10),
    *rows("addmm fp16[5] fp16[2,3] fp16[3,5] 6 1", 60, 2 * (5 + 6 + 15 + 10)),
    # Complex: four multiplications and four additions for each multiply-add.
    *rows("torch.mm *COMPLEX", 8 * 2 * 5 * 3, 8 * (6 + 15 + 10)),
    *two(
        """addmm|_addmm_activation fp32[5] A B
        addmm|_addmm_activation fp32[5] A B 1 1""",
        *(60, 4 * (5 + 6 + 15 + 10)),
    ),
    *two("addmm_ fp32[2,5] A B", 60, 4 * (10 + 6 + 15 + 10)),
    *rows(
        """torch.addmm 2 fp32[5] 3 A B
        torch.addmm 2 fp32[5] A B
        torch.addmm fp32[5] A B beta=0.5 alpha=2""",
        *(60, 4 * (5 + 6 + 15 + 10)),
    ),
    *two("bmm *BATCH", 4 * 60, 4 * (24 + 60 + 40)),
    *two("baddbmm|baddbmm_ fp32[4,2,5] *BATCH", 4 * 60, 4 * (40 + 24 + 60 + 40)),
    *rows(
        "torch.baddbmm fp32[5] batch1=fp32[4,2,3] batch2=fp32[4,3,5] beta=0.5",
        *(240, 4 * (5 + 24 + 60 + 40)),
    ),
    *two("addbmm|addbmm_ fp32[2,5] *BATCH", 4 * 60, 4 * (10 + 24 + 60 + 10)),
    *rows(
        """matmul|linalg_matmul|Tensor.__matmul__|Tensor.__imatmul__|operator.imatmul A B
        torch.linalg.matmul A other=B
        Tensor.__rmatmul__ B A""",
        *PLAIN,
    ),
    *two("linear fp32[7,2,3] fp32[5,3]", 7 * 60, 4 * (42 + 15 + 70)),
    *two("mv A fp32[3]", 2 * 2 * 3, 4 * (6 + 3 + 2)),
    *two("addmv|addmv_ fp32[2] A fp32[3]", 2 * 2 * 3, 4 * (2 + 6 + 3 + 2)),
    *two("dot|vdot fp32[7] fp32[7]", 2 * 7, 4 * (7 + 7 + 1)),
    # Two products, and a sum of the bias's gradient of 2 rows and 5 columns.
    *rows(
        "linear_backward|mkldnn_linear_backward A fp32[2,5] fp32[5,3] (true,true,true)",
        *(2 * 60 + 10, 2 * PLAIN[1] + 4 * (10 + 5)),
    ),
    *rows("linear_backward A fp32[2,5] fp32[5,3] (true,false,false)", *PLAIN),
    *rows("matmul_backward fp32[2,5] A B (true,true)", 2 * 60, 2 * PLAIN[1]),
    *rows("matmul_backward fp32[2,5] A B (false,true)", *PLAIN),
]


def test_an_operand_that_is_expanded_over_the_batch_is_read_once():
    expanded = Tensor((4, 3, 5), "float32", (0, 5, 1))
    assert only(python("torch", "bmm", fp32(4, 2, 3), expanded)).cost == Cost(
        240, 4 * (24 + 15 + 40)
    )
