"""Fused optimizer steps: FLOPs of the update for each element, tensors read and written."""

import pytest

from fastprof.model.call import UNKNOWN
from unit.ops.ops_calls import aten, bf16, fp16, fp32, python, sizes, tensor
from unit.ops.ops_examples import Example, cost, listed

A, B = fp32(4, 2), fp32(6)
P = (A, B)
N = 4 * 2 + 6  # elements
STEP = fp32()
STEPS = (STEP, STEP)
TEXT = "[4,2]fp32;[6]fp32"
FLAG = tensor("int32", 1)
HALVES = (fp16(4, 2), fp16(6))
VALUES = {"a": A, "b": B, "p": P, "half": HALVES, "step": STEP, "steps": STEPS, "flag": FLAG}

# m: 3, v: 4, sqrt(v) / correction + epsilon: 22, p - step * m / that: 3.
ADAM = 3 + 4 + 22 + 3
# p, m, v read and written, g read, two steps read.
ADAM_BYTES = 4 * (2 * 3 * N + N) + 4 * 2
SCALE = fp32()


def adam_call(name, maxima=(), decay=0.0, maximize=False, scale=None):
    # lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf
    rest = (1e-3, 0.9, 0.999, decay, 1e-8, bool(maxima), maximize, scale, scale)
    return aten(name, P, P, P, P, maxima, STEPS, *rest)


def marker(name, maxima=(), **named):
    """The Python call in a marker: an empty list is one argument."""
    lists = [*P, *P, *P, *P, *(maxima or [()]), *STEPS]
    return python("torch", name, *lists, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, **named)


def range_of(name, count, maxima=0, scalars=9):
    """The call in a range: an empty list is one tensor without dimensions."""
    shapes = [A.shape, B.shape] * count + ([A.shape, B.shape] if maxima else [()])
    return sizes(name, *shapes, (), (), *[()] * scalars)


ADAMS = [
    example
    for name, decay in (("adam", 0), ("adam_", 0), ("adamw", 2), ("adamw_", 2))
    for op in [f"_fused_{name}"]
    for example in [
        Example(adam_call(op), ADAM * N, ADAM_BYTES, TEXT),
        Example(adam_call(op, decay=0.1), (ADAM + 2) * N, ADAM_BYTES),
        Example(adam_call(op, maximize=True), (ADAM + 1) * N, ADAM_BYTES),
        # The largest of v: a comparison, read and written.
        Example(adam_call(op, P), (ADAM + 1) * N, ADAM_BYTES + 4 * 2 * N),
        # Gradients unscaled, and written.
        Example(adam_call(op, scale=SCALE), (ADAM + 1) * N, ADAM_BYTES + 4 * N),
        Example(marker(op, weight_decay=0.0), ADAM * N, ADAM_BYTES),
        Example(marker(op, P, weight_decay=0.1), (ADAM + 3) * N, ADAM_BYTES + 4 * 2 * N),
        # In a range, the decay is unknown: the default is assumed.
        Example(range_of(op, 4), (ADAM + decay) * N, None),
        Example(range_of(op, 4, maxima=1), (ADAM + decay + 1) * N, None),
    ]
]


def rows(table, flops, moved, params=None):
    """Calls of equal costs: p stands for the list of both tensors, ab for both as they come."""
    return listed(table.replace(" ab", " a b"), VALUES, flops, moved, params)


# v: 3, p - rate * v: 2.
SGDS = [
    example
    for op in ("_fused_sgd", "_fused_sgd_")
    for example in [
        # weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, scale, inf
        *rows(f"{op} p p () 0.0 0.0 0.1 0.0 false*3 -*2", 2 * N, 4 * (2 * N + N), TEXT),
        *rows(
            f"{op} p p p 0.1 0.9 0.1 0.0 true true false -*2",
            *((2 + 3 + 2 + 2 + 1) * N, 4 * (2 * 2 * N + N)),
        ),
        *rows(
            f"{op} p p p 0.0 0.9 step 0.0 false false true step step",
            *((2 + 1) * N, 4 * (2 * 2 * N + 2 * N)),
        ),
        *rows(
            f"torch.{op} ab ab () weight_decay=0.1 momentum=0.0 lr=0.1 dampening=0.0",
            *((2 + 2) * N, 4 * (2 * N + N)),
        ),
        *rows(
            f"torch.{op} ab ab ab weight_decay=0 momentum=0.9 lr=0.1 nesterov=false",
            *((2 + 3) * N, 4 * (2 * 2 * N + N)),
        ),
        *rows(f"{op} [4,2] [6] [4,2] [6] []*10", 2 * N, None),
        *rows(f"{op} [4,2] [6] [4,2] [6] [4,2] [6] []*9", (2 + 3) * N, None),
        # Three tensors of equal shape without velocities, not two with them.
        *rows(f"{op} [4,2]*6 []*10", 2 * 3 * 8, None),
        *rows(f"{op} [4,2]*6 []*9", (2 + 3) * 2 * 8, None),
    ]
]

# s + g * g: 2, root + epsilon: 21, p - rate * g / that: 3.
ADAGRADS = [
    example
    for op in ("_fused_adagrad", "_fused_adagrad_")
    for example in [
        *rows(
            f"{op} p p p steps 0.1 0.0 0.0 1e-10 false -*2",
            *(26 * N, 4 * (2 * 2 * N + N + 2), TEXT),
        ),
        *rows(
            f"{op} p p p steps 0.1 0.0 0.5 1e-10 true step step",
            *((26 + 2 + 1 + 1) * N, 4 * (2 * 2 * N + 2 * N + 2)),
        ),
        *rows(
            f"torch.{op} ab ab ab step step lr=0.1 lr_decay=0.0 weight_decay=0.0",
            *(26 * N, 4 * (2 * 2 * N + N + 2)),
        ),
        *rows(f"{op} [4,2] [6] [4,2] [6] [4,2] [6] []*2 []*7", 26 * N, None),
    ]
]

CHECKS = [
    example
    for op in (
        "_amp_foreach_non_finite_check_and_unscale",
        "_amp_foreach_non_finite_check_and_unscale_",
        "_amp_non_finite_check_and_unscale_",
    )
    for example in [
        *rows(f"{op} p step step", 2 * N, 4 * 2 * N, TEXT),
        *rows(f"torch.{op} ab fp32[1] step", 2 * N, 4 * 2 * N),
        *rows(f"{op} [4,2] [6] []*2\n{op} [4,2] [6] [1]*2", 2 * N, None),
    ]
]
SCALES = [
    *rows(
        """_amp_update_scale step int32[] step 2.0 0.5 2000
        torch._amp_update_scale step int32[] step 2.0 0.5 2000
        _amp_update_scale_ step int32[] step 2.0 0.5 2000
        torch._amp_update_scale_ step int32[] step 2.0 0.5 2000""",
        *(3, 4 * 3 + 4 * 2),
    ),
    *rows("_amp_update_scale []*6\n_amp_update_scale_ []*6", 3, None),
]

# PyProf's example: fused_adam_cuda.adam(p, copy, m, v, g, ...) of apex.
NUMBERS = "1e-3 0.9 0.999 1e-8 1.0 1 1 1 0.0"
APEX = [
    *rows(
        f"fused_adam_cuda.adam a fp32[0] a a a {NUMBERS}", 34 * 8, 4 * 6 * 8 + 4 * 8, "[4,2]fp32"
    ),
    *rows(
        f"fused_adam_cuda.adam a fp16[4,2] a a fp16[4,2] {NUMBERS}",
        *(34 * 8, 4 * 6 * 8 + 2 * 8 + 2 * 8),
    ),
    *rows(
        "amp_C.multi_tensor_adam 65536 flag ab ab ab ab 1*8",
        *(35 * N, 4 * (2 * 3 * N + N), TEXT),
    ),
    *rows("amp_C.multi_tensor_adam 65536 flag (p,p,p,p) 1*8", 35 * N, 4 * (2 * 3 * N + N)),
    *rows("amp_C.multi_tensor_scale 65536 flag fp16[9] fp32[9] 0.5", 2 * 9, (2 + 4) * 9),
    *rows("amp_C.multi_tensor_scale 65536 flag (p,p) 0.5", 2 * N, 4 * 2 * N),
    *rows(
        """amp_C.multi_tensor_l2norm 65536 flag ab false
        amp_C.multi_tensor_l2norm 65536 flag (p) false""",
        *(2 * N + 20, 4 * (N + 1)),
    ),
]


def apex_sgd(*lists, decay=0.0, momentum=0.9, nesterov=False, first=False):
    # wd, momentum, dampening, lr, nesterov, first_run, wd_after_momentum, scale
    rest = (decay, momentum, 0.0, 0.1, nesterov, first, False, 1.0)
    return python("amp_C", "multi_tensor_sgd", 65536, FLAG, *lists, *rest)


# lr, beta1, beta2, eps, step, mode, bias_correction, weight_decay, inv_scale
HALF = "fp16[4,2] fp16[6]"
REST = "step 0.9 0.999 1e-8 flag 1 1 0.0 step"
APEX_STEPS = [
    # p - rate v: 2; v: 3. p, v read and written, g read.
    Example(apex_sgd(*P, *P, *P), 5 * N, 4 * 5 * N, TEXT),
    Example(apex_sgd((P, P, P), first=True), 2 * N, 4 * 5 * N, TEXT),
    Example(apex_sgd((P, P, P), decay=0.1, nesterov=True), 9 * N, 4 * 5 * N),
    # Without momentum, velocities are not used.
    Example(apex_sgd(*P, *P, *P, momentum=0.0), 2 * N, 4 * 3 * N),
    # Gradients and copies in half precision.
    Example(apex_sgd(*HALVES, *P, *P, *HALVES), 5 * N, 4 * 4 * N + 2 * 2 * N),
    Example(apex_sgd((P, P, P, HALVES)), 5 * N, 4 * 5 * N + 2 * N),
    # 12 tensors of equal shape: four parameters of the same type, or three with copies.
    Example(apex_sgd(*[B] * 12), 5 * 4 * 6, 4 * 5 * 4 * 6),
    Example(apex_sgd(*[B] * 9, *[fp16(6)] * 3), 5 * 3 * 6, 3 * 6 * (4 * 5 + 2)),
    *rows("amp_C.multi_tensor_adagrad 65536 flag ab ab ab 0.1 1e-8 0 0.0", 28 * N, 4 * 5 * N, TEXT),
    *rows("amp_C.multi_tensor_adagrad 65536 flag (p,p,p) 0.1 1e-8 0 0.0", 28 * N, 4 * 5 * N),
    *rows(
        "amp_C.multi_tensor_novograd 65536 flag ab ab ab fp32[2] 1*10",
        *(11 * N, 4 * 5 * N + 4 * 2 * 2, TEXT),
    ),
    *rows(
        "amp_C.multi_tensor_novograd 65536 flag (p,p,p) fp32[2] 1*10",
        *(11 * N, 4 * 5 * N + 4 * 2 * 2),
    ),
    *rows(
        "amp_C.multi_tensor_lamb 65536 flag ab ab ab ab 1*9 fp32[1] 1.0 false",
        *(40 * N, 4 * 8 * N + 4, TEXT),
    ),
    *rows(
        "amp_C.multi_tensor_lamb 65536 flag (p,p,p,p) 1*9 fp32[1] 1.0 false",
        *(40 * N, 4 * 8 * N + 4),
    ),
    *rows(
        f"amp_C.multi_tensor_axpby 65536 flag ab {HALF} ab 1.0 2.0 0",
        *(4 * N, (4 + 2 + 4) * N, TEXT),
    ),
    *rows("amp_C.multi_tensor_axpby 65536 flag (p,p,p) 1.0 2.0 -1", 4 * N, 4 * 3 * N),
    *rows(
        f"""amp_C.multi_tensor_l2norm_mp 65536 flag {HALF} false
        amp_C.multi_tensor_l2norm_mp 65536 flag (half) false""",
        *(2 * N + 20, 2 * N + 4),
    ),
    # g, p, m, v read and written.
    *rows(
        f"amp_C.multi_tensor_adam_capturable 65536 flag ab ab ab ab {REST}",
        *(36 * N, 4 * 8 * N + 4 * 3, TEXT),
    ),
    *rows(
        f"amp_C.multi_tensor_adam_capturable 65536 flag (p,p,p,p) {REST}",
        *(36 * N, 4 * 8 * N + 4 * 3),
    ),
    # g, m, v and masters read and written, p written.
    *rows(
        f"""amp_C.multi_tensor_adam_capturable_master 65536 flag {HALF} {HALF} ab ab ab {REST}
        amp_C.multi_tensor_adam_capturable_master 65536 flag (half,half,p,p,p) {REST}""",
        *(36 * N, 2 * 2 * N + 2 * N + 4 * 6 * N + 4 * 3),
    ),
]

EXAMPLES = [*ADAMS, *SGDS, *ADAGRADS, *CHECKS, *SCALES, *APEX, *APEX_STEPS]


@pytest.mark.parametrize(
    ("call", "exact"),
    [
        (adam_call("_fused_adam_"), True),
        (range_of("_fused_adam_", 4), False),
        (adam_call("_fused_adamw_", decay=UNKNOWN), False),
        (aten("_fused_sgd_", P, P, P, 0.0, 0.9, 0.1, 0.0, False, False, False), True),
        (aten("_fused_sgd_", P, P, P, 0.0, 0.9, 0.1, 0.0, UNKNOWN, False, False), False),
        (sizes("_fused_sgd_", *[A.shape] * 3, *[()] * 9), False),
    ],
)
def test_a_step_is_exact_where_its_options_are_known(call, exact):
    assert cost(call).exact is exact


@pytest.mark.parametrize("count", range(1, 30))
def test_the_lists_of_a_range_are_told_apart_when_all_shapes_are_the_same(count):
    def flops(op, lists, bare):
        return cost(sizes(op, *[(10,)] * (lists * count), *[()] * bare)).flops

    assert flops("_fused_adam_", 4, 1 + count + 9) == ADAM * 10 * count
    assert flops("_fused_adam_", 5, count + 9) == (ADAM + 1) * 10 * count
    assert flops("_fused_sgd_", 2, 1 + 9) == 2 * 10 * count
    assert flops("_fused_sgd_", 3, 9) == 5 * 10 * count
    assert flops("_fused_adagrad_", 3, count + 7) == 26 * 10 * count


def test_each_tensor_counts_by_its_own_type():
    half = (bf16(10),)
    done = cost(aten("_fused_adam_", half, half, (fp32(10),), (fp32(10),), (), (STEP,)))
    assert done.bytes == 2 * 2 * 10 + 2 * (2 * 4 * 10) + 2 * 10 + 4


MALFORMED = [
    python("torch", "_fused_adam_"),
    aten("_fused_adam_", P, P, P, (A,), (), STEPS),
    aten("_fused_adam_", P, P, P, UNKNOWN, (), STEPS),
    aten("_fused_sgd_", P, (B, A), P),
    python("fused_adam_cuda", "adam", A, B, A, A, A),
    python("amp_C", "multi_tensor_adam", 65536, tensor("int32", 1), (P, P, P), *[1] * 8),
    python("amp_C", "multi_tensor_scale", 65536, tensor("int32", 1), ((A,), (B,)), 0.5),
    aten("_amp_update_scale_", 3, 4),
    apex_sgd((P, P)),
    apex_sgd(A, A, A, A),
    apex_sgd((P, P, (A,))),
    python("amp_C", "multi_tensor_adagrad", 65536, FLAG, (P, P), 0.1, 1e-8, 0, 0.0),
    python("amp_C", "multi_tensor_novograd", 65536, FLAG, (P, P, P), fp32(3), *[1] * 10),
    python("amp_C", "multi_tensor_lamb", 65536, FLAG, (P, P, P, P), *[1] * 9, None, 1.0),
    python("amp_C", "multi_tensor_axpby", 65536, FLAG, (P, P, (B, A)), 1.0, 2.0, 0),
]
