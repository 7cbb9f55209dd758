"""Reductions, norms, extremes, moments and scans: FLOPs, bytes and params by hand."""

from math import inf

import pytest

from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from fastprof.ops import Cost, work
from unit.ops.ops_calls import aten, fp16, fp32, int64, python, sizes, tensor
from unit.ops.ops_examples import Example, both, cost

X = fp32(2, 3, 4)
OF_4, OF_6 = 4 * 4, 4 * 6  # bytes after reducing dimensions 0 and 1, and 2


REDUCTIONS = [
    *both("sum", X, flops=24, moved=4 * 24 + 4),
    *both("sum", X, flops=0, moved=4 * 24 + 4, direction="bprop"),
    *both("nansum", X, flops=2 * 24, moved=4 * 24 + 4),
    *both("nansum", X, flops=2 * 24, moved=2 * 4 * 24 + 4, direction="bprop"),
    *both("mean", X, flops=24 + 1, moved=4 * 24 + 4),
    *both("mean", X, flops=24, moved=4 * 24 + 4, direction="bprop"),
    *both("nanmean", X, flops=4 * 24 + 1, moved=4 * 24 + 4),
    *both("nanmean", X, flops=3 * 24, moved=2 * 4 * 24 + 4, direction="bprop"),
    *both("prod", X, flops=24, moved=4 * 24 + 4),
    *both("prod", X, flops=2 * 24, moved=2 * 4 * 24 + 2 * 4, direction="bprop"),
    *both("amax amin", X, (0, 1), False, flops=24, moved=4 * 24 + OF_4),
    *both("amax", X, (0, 1), False, flops=72, moved=8 * 24 + 2 * OF_4, direction="bprop"),
    *both("argmax argmin", X, -1, True, flops=24, moved=4 * 24 + 8 * 6),
    *both("any all", tensor("bool", 5, 2), 0, False, flops=10, moved=10 + 2),
    *both("_is_all_true _is_any_true", tensor("bool", 5, 2), flops=10, moved=10 + 1),
    *both(
        "logsumexp special_logsumexp", X, (2,), False, flops=23 * 24 + 21 * 6, moved=4 * 24 + OF_6
    ),
    *both("logsumexp", X, (2,), False, flops=22 * 24, moved=8 * 24 + 2 * OF_6, direction="bprop"),
    *both("count_nonzero", X, flops=2 * 24, moved=4 * 24 + 8),
    *both("count_nonzero", X, 2, flops=2 * 24, moved=4 * 24 + 8 * 6),
    *both("sum_to_size", X, (1, 4), flops=24, moved=4 * 24 + OF_4),
    *both("sum_to_size", X, (2, 3, 4), flops=0, moved=0),
    *both("sum_to_size", X, (3, 1), flops=0, moved=4 * 24 + 4 * 3, direction="bprop"),
    *both("trace", fp32(3, 5), flops=3, moved=4 * 3 + 4),
    *both("trace", fp32(3, 5), flops=0, moved=4 + 4 * 15, direction="bprop"),
    Example(aten("trace_backward", fp32(), (3, 5)), 0, 4 + 4 * 15),
    Example(sizes("trace_backward", (), ()), 0, None),
    Example(python("torch", "segment_reduce", X, "sum", lengths=int64(5)), 24, 96 + 40 + 4 * 60),
    Example(aten("segment_reduce", X, "max", None, None, int64(2, 3)), 24, 96 + 48 + 4 * 16),
    Example(
        aten("_segment_reduce_backward", fp32(5, 3, 4), fp32(5, 3, 4), X, "sum", int64(5)),
        24,
        2 * 240 + 96 + 40 + 96,
    ),
    Example(sizes("sum", (2, 3, 4), ()), 24, None),
    Example(sizes("sum", (2, 3, 4), (), (), ()), 24, None),
    Example(sizes("mean", (2, 3, 4), ()), 25, None),
    Example(sizes("argmax", (2, 3, 4), (), ()), 24, None),
]

EXTREMES = [
    *both("max min", X, flops=24, moved=4 * 24 + 4),
    *both("max min", X, flops=3 * 24, moved=2 * 4 * 24 + 2 * 4, direction="bprop"),
    *both("max min", X, 2, False, flops=24, moved=4 * 24 + (4 + 8) * 6),
    *both("max min", X, 2, False, flops=0, moved=(4 + 8) * 6 + 4 * 24, direction="bprop"),
    *both("max min", X, fp32(4), flops=24, moved=4 * (24 + 4 + 24)),
    *both("max", X, fp32(4), flops=72, moved=2 * 4 * (24 + 4) + 4 * 24, direction="bprop"),
    *both("aminmax _aminmax", X, flops=2 * 24, moved=4 * 24 + 2 * 4),
    *both("aminmax", X, 0, flops=6 * 24, moved=8 * 24 + 2 * 2 * 4 * 12, direction="bprop"),
    Example(
        aten("value_selecting_reduction_backward", fp32(6), 2, int64(6), (2, 3, 4), False),
        0,
        (4 + 8) * 6 + 4 * 24,
    ),
    Example(sizes("max", (2, 3, 4)), 24, None),
    Example(sizes("max", (2, 3, 4), (4,)), 24, None),
    Example(sizes("max", (2, 3, 4), (), ()), 24, None),
    Example(sizes("max", (2, 3, 4), (4,), (2, 3, 4)), 24, None),
]

MOMENTS = [
    *both("var", X, flops=4 * 24 + 2, moved=4 * 24 + 4),
    *both("std", X, flops=4 * 24 + 22, moved=4 * 24 + 4),
    *both("var", X, 2, True, False, flops=4 * 24 + 2 * 6, moved=4 * 24 + OF_6),
    *both("var_mean", X, 2, True, False, flops=4 * 24 + 2 * 6, moved=4 * 24 + 2 * OF_6),
    *both("std_mean", X, 2, True, False, flops=4 * 24 + 22 * 6, moved=4 * 24 + 2 * OF_6),
    *both("std", X, flops=4 * 24, moved=8 * 24 + 2 * 4, direction="bprop"),
    Example(sizes("std", (2, 3, 4), ()), 4 * 24 + 22, None),
]

NORMS = [
    # PyProf printed 240001 FLOPs for this norm of the language model.
    Example(
        python("Tensor", "norm", fp32(600, 200), 2),
        2 * 600 * 200 + 1,
        4 * 600 * 200 + 4,
        "[600,200]fp32",
    ),
    *both("norm", X, flops=2 * 24 + 1, moved=4 * 24 + 4),
    *both("norm", X, 1, (0, 1), False, flops=2 * 24, moved=4 * 24 + OF_4),
    *both("norm", X, inf, (0, 1), False, flops=2 * 24, moved=4 * 24 + OF_4),
    *both("norm", X, 3, 2, False, flops=22 * 24 + 20 * 6, moved=4 * 24 + OF_6),
    *both("norm", X, flops=24 + 1, moved=8 * 24 + 8, direction="bprop"),
    *both("norm", X, 1, flops=2 * 24, moved=8 * 24 + 8, direction="bprop"),
    *both("norm", X, 3, flops=23 * 24 + 21, moved=8 * 24 + 8, direction="bprop"),
    *both("frobenius_norm", X, (0, 1), False, flops=2 * 24 + 4, moved=4 * 24 + OF_4),
    Example(python("torch.linalg", "vector_norm", X, 2, (0, 1)), 2 * 24 + 4, 4 * 24 + OF_4),
    Example(aten("linalg_vector_norm", X, 0, (0, 1), False, None), 2 * 24, 4 * 24 + OF_4),
    *both("linalg_norm", X, flops=2 * 24 + 1, moved=4 * 24 + 4),
    *both("linalg_norm", fp32(3, 5), 1, flops=2 * 15 + 5, moved=4 * 15 + 4),
    *both("linalg_norm", fp32(3, 5), inf, flops=2 * 15 + 3, moved=4 * 15 + 4),
    *both("linalg_norm", fp32(3, 5), "fro", flops=2 * 15 + 1, moved=4 * 15 + 4),
    *both("linalg_norm", X, flops=24 + 1, moved=8 * 24 + 8, direction="bprop"),
    *both("linalg_matrix_norm", X, flops=2 * 24 + 2, moved=4 * 24 + 4 * 2),
    Example(python("torch.linalg", "matrix_norm", X), 2 * 24 + 2, 4 * 24 + 4 * 2),
    *both("dist", X, fp32(4), flops=24 + 2 * 24 + 1, moved=4 * (24 + 4 + 1)),
    *both("dist", X, X, flops=24 + 1 + 2 * 24, moved=4 * 4 * 24 + 8, direction="bprop"),
    Example(sizes("norm", (2, 3, 4), ()), 2 * 24 + 1, None),
    Example(sizes("linalg_vector_norm", (2, 3, 4), (), (), (), ()), 2 * 24 + 1, None),
]

COMPARISONS = [
    *both("equal", X, X, flops=2 * 24, moved=2 * 4 * 24 + 1),
    *both("equal", X, fp32(2), flops=0, moved=0),
    *both("allclose", X, X, flops=8 * 24, moved=2 * 4 * 24 + 1),
    *both("is_nonzero _assert_async", fp32(), flops=1, moved=4),
    Example(python("Tensor", "__bool__", tensor("bool")), 1, 1),
    Example(aten("_functional_assert_async", tensor("bool"), "text", fp32(0)), 1, 1),
    Example(sizes("equal", (2, 3), (2, 3)), 2 * 6, None),
]

SCANS = [
    *both("cumsum", X, 1, flops=24, moved=2 * 4 * 24),
    *both("cumsum", X, 1, flops=24, moved=2 * 4 * 24, direction="bprop"),
    *both("cumsum cumprod", tensor("int32", 7), 0, flops=7, moved=(4 + 8) * 7),
    *both("cumsum_ cumprod_", tensor("int32", 7), 0, flops=7, moved=2 * 4 * 7),
    *both("cumsum_", X, 0, flops=24, moved=2 * 4 * 24, direction="bprop"),
    *both("cumprod cumprod_", X, 1, flops=3 * 24, moved=4 * 4 * 24, direction="bprop"),
    *[Example(aten(name, X, 1), 24, 2 * 4 * 24) for name in ("_cumsum", "_cumprod")],
    *both("logcumsumexp", X, 1, flops=44 * 24, moved=2 * 4 * 24),
    *both("logcumsumexp", X, 1, flops=2 * 85 * 24, moved=4 * 4 * 24, direction="bprop"),
    Example(aten("_logcumsumexp", X, 1), 44 * 24, 2 * 4 * 24),
    *both("cummax cummin", X, 1, flops=24, moved=(4 + 4 + 8) * 24),
    *both("cummax cummin", X, 1, flops=24, moved=(4 + 8 + 4) * 24, direction="bprop"),
    *[
        Example(aten(name, X, X, int64(2, 3, 4), 1), 24, (4 + 4 + 8) * 24)
        for name in ("_cummax_helper", "_cummin_helper")
    ],
    Example(aten("cummaxmin_backward", X, X, int64(2, 3, 4), 1), 24, (4 + 8 + 4) * 24),
    Example(aten("cumprod_backward", X, X, 1, X), 3 * 24, 4 * 4 * 24),
    Example(sizes("cumsum", (2, 3, 4), (), ()), 24, None),
    Example(sizes("_cummax_helper", (7,), (7,), (7,), ()), 7, None),
]

EXAMPLES = [*REDUCTIONS, *EXTREMES, *MOMENTS, *NORMS, *COMPARISONS, *SCANS]


def test_keywords_positions_and_defaults_give_the_same_cost() -> None:
    by_position = cost(python("torch", "sum", X, (0, 1), True))
    assert by_position == Cost(24, 4 * 24 + OF_4)
    assert cost(python("Tensor", "sum", X, dim=(0, 1), keepdim=True)) == by_position
    assert cost(python("torch", "sum", input=X, axis=(-2, -3))) == by_position
    assert cost(aten("sum", X, (0, 1), True, None)) == by_position
    assert cost(python("torch", "std", X, dim=2, unbiased=False)) == cost(
        aten("std", X, (2,), 0, False)
    )


def test_a_type_that_is_asked_for_is_written_by_text_and_by_number() -> None:
    for dtype in ("torch.float64", "float64", 7):
        assert cost(python("torch", "sum", fp16(10), dtype=dtype)) == Cost(10, 2 * 10 + 8)
        assert cost(aten("sum", fp16(10), dtype)) == Cost(10, 2 * 10 + 8)
        assert cost(aten("sum", fp16(10), (0,), False, dtype)) == Cost(10, 2 * 10 + 8)


@pytest.mark.parametrize(
    ("name", "dtype", "written"),
    [("sum", "int32", 8), ("sum", "bool", 8), ("prod", "uint8", 8), ("sum", "float16", 2)],
)
def test_sums_and_products_of_integers_are_int64(name: str, dtype: str, written: int) -> None:
    read = {"int32": 4, "bool": 1, "uint8": 1, "float16": 2}[dtype] * 10
    assert cost(python("torch", name, tensor(dtype, 10))).bytes == read + written


def test_complex_numbers_count_their_real_work_and_their_magnitudes_are_real() -> None:
    numbers = tensor("complex64", 10)
    assert cost(python("torch", "sum", numbers)) == Cost(2 * 10, 80 + 8)
    assert cost(python("torch", "prod", numbers)) == Cost(6 * 10, 80 + 8)
    assert cost(python("torch", "norm", numbers)) == Cost(4 * 10 + 1, 80 + 4)
    assert cost(python("torch", "var", numbers)) == Cost(8 * 10 + 2, 80 + 4)


def test_where_the_dimensions_are_not_known_flops_of_outputs_are_an_estimate() -> None:
    assert cost(sizes("mean", (2, 3, 4), (), (), ())) == Cost(25, None, exact=False)
    assert cost(sizes("sum", (2, 3, 4), (), (), ())).exact
    assert cost(aten("mean", X, UNKNOWN, UNKNOWN, UNKNOWN)) == Cost(25, None, exact=False)
    assert cost(aten("max", X, UNKNOWN, UNKNOWN)) == Cost(24, None)


def test_a_norm_of_unknown_order_counts_as_the_euclidean_one() -> None:
    assert cost(aten("norm", X, UNKNOWN)) == Cost(49, 100, exact=False)


def test_an_expanded_tensor_is_read_by_its_own_size_and_its_gradient_written_whole() -> None:
    expanded = Tensor((5, 8), "float32", (0, 1))
    assert cost(python("torch", "sum", expanded)) == Cost(40, 4 * 8 + 4)
    assert cost(python("torch", "mean", expanded), "bprop") == Cost(40, 4 * 40 + 4)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "norm", "std", "max", "cumsum"])
def test_empty_tensors_and_those_without_dimensions_have_a_cost(name: str) -> None:
    empty = cost(python("torch", name, fp32(0, 3)))
    assert empty.flops in (0, 1, 22) and empty.bytes in (0, 4)
    assert cost(python("torch", name, fp32(), 0)).bytes in (8, 16)


MALFORMED = [
    python("torch", "sum"),
    python("torch", "sum", X, 3),
    python("torch", "sum", X, (0, 0)),
    python("torch", "sum", X, "rows"),
    python("torch", "max", X, 5),
    python("torch", "max", X, fp32(7)),
    python("torch", "mean", 3.0),
    python("torch", "std", X, 9),
    python("torch", "norm", X, "nuc"),
    python("torch", "norm", X, float("nan")),
    python("torch", "norm", fp32(3, 3), ord=2),
    python("torch", "linalg_norm", fp32(3, 3), "nuc"),
    python("torch", "linalg_norm", fp32(3, 3), 2, (0, 1)),
    python("torch", "matrix_norm", fp32(3)),
    python("torch", "trace", fp32(3)),
    python("torch", "sum_to_size", X, (-1,)),
    python("torch", "dist", X, fp32(7)),
    aten("trace_backward", fp32(), (-1, 2)),
    aten("value_selecting_reduction_backward", fp32(), 0, int64(), (-2,), False),
    Call("aten", "sum", (Arg("", Tensor((-1,), "float32")),)),
]


def test_what_has_no_gradient_has_no_backward_work() -> None:
    for name in ("argmax", "any", "count_nonzero", "equal"):
        assert work(python("torch", name, X, *([X] if name == "equal" else [])), "bprop") is None
