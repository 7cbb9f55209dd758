"""Softmax and its logarithm: FLOPs and bytes by hand."""

from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from fastprof.ops import work
from unit.ops.ops_calls import aten, bf16, fp16, fp32, int64, python, sizes, tensor
from unit.ops.ops_examples import Example, both, cost

F = "torch.nn.functional"
X = fp32(7, 6)
N = 7 * 6


EXAMPLES = [
    *both("softmax log_softmax", X, -1, flops=24 * N, moved=4 * 2 * N),
    *both("_softmax _log_softmax", X, -1, False, flops=24 * N, moved=4 * 2 * N),
    *both("_softmax _log_softmax", fp16(7, 6), -1, True, flops=24 * N, moved=(2 + 4) * N),
    *both("softmax", X, -1, flops=4 * N, moved=4 * 3 * N, direction="bprop"),
    *both("log_softmax", X, -1, flops=23 * N, moved=4 * 3 * N, direction="bprop"),
    *both("_softmax", fp16(7, 6), 1, True, flops=4 * N, moved=(4 + 4 + 2) * N, direction="bprop"),
    *(
        Example(aten(f"special_{name}", bf16(7, 6), 0, None), 24 * N, 2 * 2 * N)
        for name in ("softmax", "log_softmax")
    ),
    # The type of the output: by keyword, by position after a stack level, by number.
    Example(python(F, "softmax", fp16(7, 6), dim=1, dtype="torch.float32"), 24 * N, 6 * N),
    Example(python(F, "softmax", fp16(7, 6), 1, 3, "torch.float32"), 24 * N, 6 * N),
    Example(python(F, "softmax", fp16(7, 6), 1, 3), 24 * N, 4 * N),
    Example(python("Tensor", "log_softmax", fp16(7, 6), 1, "torch.float64"), 24 * N, 10 * N),
    Example(aten("softmax", fp16(7, 6), 1, 6), 24 * N, 6 * N),
    Example(aten("softmax", int64(7, 6), 1, 6), 24 * N, (8 + 4) * N),
    Example(
        python(F, "log_softmax", fp32(35, 20, 33278), -1),
        24 * 35 * 20 * 33278,
        4 * 2 * 35 * 20 * 33278,
        "[35,20,33278]fp32",
    ),
    Example(sizes("_softmax", (7, 6), (), ()), 24 * N, None),
    Example(sizes("log_softmax", (7, 6), (), ()), 23 * N, None, direction="bprop"),
    # A negation, then a softmax.
    Example(python(F, "softmin", X, 1), 25 * N, 4 * 4 * N),
    Example(python(F, "softmin", X, 1), 5 * N, 4 * 5 * N, direction="bprop"),
    *both("_safe_softmax", X, -1, flops=26 * N, moved=4 * 2 * N),
    *both("_safe_softmax", X, -1, flops=4 * N, moved=4 * 3 * N, direction="bprop"),
    *both("_masked_softmax", X, tensor("bool", 7, 6), 1, 2, flops=24 * N, moved=(4 * 2 + 1) * N),
    *both(
        "_masked_softmax_backward",
        *(X, X, tensor("bool", 7, 6), 1),
        flops=4 * N,
        moved=(4 * 3 + 1) * N,
    ),
    *both("_softmax_backward_data", X, X, 1, 6, flops=4 * N, moved=4 * 3 * N),
    *both("_softmax_backward_data", X, X, 1, 5, flops=4 * N, moved=(4 + 4 + 2) * N),
    *both("_log_softmax_backward_data", X, X, 1, 15, flops=23 * N, moved=(4 + 4 + 2) * N),
    # torch 1 passes the input instead of its type.
    *both("_log_softmax_backward_data", X, X, 1, fp16(7, 6), flops=23 * N, moved=10 * N),
    Example(sizes("_softmax_backward_data", (7, 6), (7, 6), (), (7, 6)), 4 * N, None),
    Example(sizes("_softmax_backward_data", (7, 6), (7, 6), (), ()), 4 * N, None),
]


def test_half_precision_may_turn_into_float_and_then_bytes_are_not_exact() -> None:
    unsure = work(aten("_softmax", fp16(7, 6), 1, UNKNOWN), "fprop")
    sure = work(aten("_softmax", X, 1, UNKNOWN), "fprop")
    assert unsure is not None and sure is not None
    assert (unsure.cost.exact, sure.cost.exact) == (False, True)


def test_a_row_of_no_elements_costs_nothing() -> None:
    empty = cost(python(F, "softmax", fp32(0, 6), 1))
    assert (empty.flops, empty.bytes) == (0, 0)


MALFORMED = [
    python(F, "softmax"),
    python(F, "softmax", 1.0, 2),
    Call(F, "softmax", (Arg("", Tensor((None,), "float32")),)),
    python(F, "softmax", X, 1, dtype=2.5),
    aten("_softmax_backward_data", X, fp32(7, 5), 1, 6),
    aten("_masked_softmax", X, None),
]
