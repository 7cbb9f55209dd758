"""Operators over lists of tensors: the sum of the tensors' costs."""

from fastprof.model.call import UNKNOWN, Tensor
from fastprof.ops import work
from unit.ops.ops_calls import aten, bf16, fp32, python, sizes
from unit.ops.ops_examples import Example, cost

A, B, W = fp32(4, 2), fp32(6), fp32(6, 1)
N = 4 * 2 + 6  # elements of A and B
STEP = fp32()

# FLOPs for one element of the operator of the same name on one tensor.
UNARY = {
    **dict.fromkeys(("abs", "ceil", "floor", "frac", "neg", "reciprocal"), 1),
    **dict.fromkeys(("round", "sign", "trunc"), 1),
    **dict.fromkeys(("acos", "asin", "atan", "cos", "cosh", "sin", "sinh", "tan", "tanh"), 20),
    **dict.fromkeys(("erf", "erfc", "exp", "expm1", "lgamma"), 20),
    **dict.fromkeys(("log", "log10", "log1p", "log2", "rsqrt", "sqrt"), 20),
    "sigmoid": 22,
}
BINARY = {
    **dict.fromkeys(("clamp_max", "clamp_min", "div", "maximum", "minimum", "mul"), 1),
    "pow": 20,
}


def doors(name, *values):
    return [python("torch", name, *values), aten(name, *values)]


def of(calls, flops, moved, params=None):
    return [Example(call, flops, moved, params) for call in calls]


def forms(names):
    return [(f"_foreach_{name}{end}", flops) for name, flops in names.items() for end in ("", "_")]


ONE_LIST = [
    example
    for name, flops in forms(UNARY)
    for example in [
        *of(doors(name, (A, B)), flops * N, 4 * 2 * N, "[4,2]fp32;[6]fp32"),
        Example(python("torch", name, A, B), flops * N, 4 * 2 * N),
        Example(sizes(name, A.shape, B.shape), flops * N, None),
    ]
]

# A number counts as one element for each tensor.
TWO_LISTS = [
    example
    for name, flops in forms(BINARY)
    for example in [
        *of(doors(name, (A, B), (A, B)), flops * N, 4 * 3 * N, "[4,2]fp32;[6]fp32"),
        *of(doors(name, (A, B), 0.5), flops * N, 4 * (2 * N + 2)),
        *of(doors(name, (A, B), (0.5, 2)), flops * N, 4 * (2 * N + 2)),
        *of(doors(name, (A, B), UNKNOWN), flops * N, 4 * (2 * N + 2)),
        *of(doors(name, (A, B), STEP), flops * N, 4 * (2 * N + 2)),
        Example(python("torch", name, A, B, A, B), flops * N, 4 * 3 * N),
        Example(python("torch", name, A, B, 0.5), flops * N, 4 * (2 * N + 2)),
        Example(sizes(name, A.shape, B.shape, A.shape, B.shape), flops * N, None),
        Example(sizes(name, A.shape, B.shape, ()), flops * N, None),
        # Four equal tensors and a number: not two lists, which would have no number after them.
        Example(sizes(name, *[A.shape] * 4, ()), flops * 4 * 8, None),
    ]
]

# alpha follows the operands in a range; in a Python call it is a keyword.
WITH_ALPHA = [
    example
    for name in ("_foreach_add", "_foreach_add_", "_foreach_sub", "_foreach_sub_")
    for example in [
        Example(aten(name, (A, B), (A, B), 2), N, 4 * 3 * N),
        Example(aten(name, (A, B), 0.5), N, 4 * (2 * N + 2)),
        Example(aten(name, (STEP, STEP, STEP), 1.0), 3, 4 * 3 * 3),
        Example(python("torch", name, A, B, A, B, alpha=-0.1), N, 4 * 3 * N),
        Example(python("torch", name, (A, B), (A, B)), N, 4 * 3 * N),
        Example(python("torch", name, STEP, STEP, STEP, 1), 3, 4 * 3 * 3),
        Example(sizes(name, A.shape, B.shape, A.shape, B.shape, ()), N, None),
        Example(sizes(name, A.shape, B.shape, ()), N, None),
        Example(sizes(name, A.shape, B.shape, (), ()), N, None),
    ]
]

THREE_LISTS = [
    example
    for name in ("addcdiv", "addcdiv_", "addcmul", "addcmul_")
    for example in [
        *of(doors(f"_foreach_{name}", (A, B), (A, B), (A, B), 0.5), 3 * N, 4 * 4 * N),
        *of(doors(f"_foreach_{name}", (A, B), (A, B), (A, B), (1, 2)), 3 * N, 4 * 4 * N),
        Example(aten(f"_foreach_{name}", (A,), (A,), (A,), fp32(1)), 3 * 8, 4 * 4 * 8),
        Example(python("torch", f"_foreach_{name}", A, B, A, B, A, B), 3 * N, 4 * 4 * N),
        Example(python("torch", f"_foreach_{name}", A, A, A, value=-1), 3 * 8, 4 * 4 * 8),
        Example(sizes(f"_foreach_{name}", *[A.shape, B.shape] * 3, ()), 3 * N, None),
        Example(sizes(f"_foreach_{name}", *[A.shape, B.shape] * 3, (2,)), 3 * N, None),
    ]
]

LERPS = [
    example
    for name in ("_foreach_lerp", "_foreach_lerp_")
    for example in [
        *of(doors(name, (A, B), (A, B), (A, B)), 3 * N, 4 * 4 * N),
        *of(doors(name, (A, B), (A, B), 0.1), 3 * N, 4 * (3 * N + 2)),
        *of(doors(name, (A, B), (A, B), (0.1, 0.2)), 3 * N, 4 * (3 * N + 2)),
        Example(sizes(name, *[A.shape, B.shape] * 2, ()), 3 * N, None),
        Example(sizes(name, *[A.shape, B.shape] * 3), 3 * N, None),
    ]
]

OTHERS = [
    *of(doors("_foreach_pow", 2.0, (A, B)), 20 * N, 4 * (2 * N + 2)),
    *of(doors("_foreach_zero_", (A, B)), 0, 4 * N, "[4,2]fp32;[6]fp32"),
    *of(doors("_foreach_zero", (A, B)), 0, 4 * N),
    Example(sizes("_foreach_zero_", A.shape), 0, None),
    *of(doors("_foreach_copy_", (A,), (bf16(4, 2),), False), 0, (4 + 2) * 8),
    *of(doors("_foreach_copy", (A,), (bf16(4, 2),), False), 0, (4 + 2) * 8),
    Example(python("torch", "_foreach_copy_", A, B, A, B), 0, 2 * 4 * N),
    *of(doors("_foreach_clone", (A, B), None), 0, 2 * 4 * N),
    Example(python("torch", "_foreach_clone", A, B), 0, 2 * 4 * N),
    *of(doors("_foreach_max", (A, B)), N, 4 * (N + 2)),
    # A square and a sum; a root for each tensor.
    *of(doors("_foreach_norm", (A, B), 2, None), 2 * N + 2 * 20, 4 * (N + 2)),
    *of(doors("_foreach_powsum", (A, B), 2, None), 2 * N + 2 * 20, 4 * (N + 2)),
    *of(doors("_foreach_norm", (A, B), 3.0, None), 21 * N + 2 * 20, 4 * (N + 2)),
    Example(python("torch", "_foreach_norm", A, B), 2 * N + 2 * 20, 4 * (N + 2)),
    Example(python("torch", "_foreach_norm", A, B, float("inf")), 2 * N + 2 * 20, 4 * (N + 2)),
    Example(sizes("_foreach_norm", A.shape, B.shape, (), ()), 2 * N + 2 * 20, None),
    *of(
        [*doors("_foreach_mm", (A, W), (fp32(2, 3), fp32(1, 5)))],
        2 * (4 * 2 * 3) + 2 * (6 * 1 * 5),
        4 * (4 * 2 + 2 * 3 + 4 * 3) + 4 * (6 * 1 + 1 * 5 + 6 * 5),
    ),
    Example(aten("_native::_foreach_mm_native_0", (W,), (fp32(1, 5),)), 60, 4 * (6 + 5 + 30)),
]

EXAMPLES = [*ONE_LIST, *TWO_LISTS, *WITH_ALPHA, *THREE_LISTS, *LERPS, *OTHERS]


def test_in_place_the_type_of_the_first_list_is_written():
    integers = Tensor((10,), "int64")
    assert cost(aten("_foreach_sqrt", (integers,))).bytes == 8 * 10 + 4 * 10
    old = cost(aten("_foreach_mul_", (Tensor((10,), "float16"),), (fp32(10),)))
    assert old.bytes == 2 * 10 + 4 * 10 + 2 * 10


def test_lists_that_only_seem_to_repeat_are_an_estimate_where_alpha_hides_it():
    guessed = cost(sizes("_foreach_add_", *[A.shape] * 4, ()))
    assert (guessed.flops, guessed.exact) == (2 * 8, False)
    sure = cost(sizes("_foreach_add_", *[A.shape] * 3, ()))
    assert (sure.flops, sure.exact) == (3 * 8, True)


def test_no_tensors_cost_nothing():
    done = cost(aten("_foreach_mul_", (), ()))
    assert (done.flops, done.bytes) == (0, 0)


MALFORMED = [
    python("torch", "_foreach_add"),
    python("torch", "_foreach_add", A),
    python("torch", "_foreach_sqrt", 3),
    aten("_foreach_mul", UNKNOWN, UNKNOWN),
    aten("_foreach_mul", (A, B), (A,)),
    aten("_foreach_mul", (A, B), (1.0,)),
    aten("_foreach_mul_", (B,), (W,)),  # does not broadcast to [6]
    aten("_foreach_mm", (A,), (B,)),
    aten("_foreach_mm", (A,), (A,)),
    aten("_foreach_mm", (A, W), (fp32(2, 3),)),
    sizes("_foreach_add_", (), (), (), ()),  # three numbers and one, or two and two
]


def test_lists_have_no_backward_pass_of_their_own():
    assert work(aten("_foreach_sqrt", (A,)), "bprop") is None
