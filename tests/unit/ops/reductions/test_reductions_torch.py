"""Reductions and scans against torch: overloads are read, bytes are those of inputs and outputs."""

import random
from functools import partial
from math import inf
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")

MODULES = ("reductions",)
random.seed(5)
ROWS, COLUMNS = random.randint(2, 9), random.randint(2, 9)


def x(dtype: Any = None) -> Any:
    return torch.randn(3, ROWS, COLUMNS).to(dtype or random.choice([torch.float32, torch.float64]))


def whole(dtype: Any = torch.int32) -> Any:
    return torch.randint(0, 9, (ROWS, COLUMNS), dtype=dtype)


def out(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.empty(shape, dtype=dtype)


SAME = torch.zeros(2, 3)
SEGMENTED = torch.randn(6, 2)
# Bytes are those of inputs and outputs.
READ_AND_WRITTEN = [
    *[("sum", (x(dtype),), {}) for dtype in (torch.float32, torch.int32, torch.bool)],
    ("sum", (x(torch.float16),), {"dtype": torch.float32}),
    ("sum.dim_IntList", (x(), [0, 2]), {}),
    ("sum.dim_IntList", (whole(), [1], True), {}),
    ("sum.dim_IntList", (x(), None), {"dtype": torch.float64}),
    ("sum.dim_IntList", (x(torch.complex64), []), {}),
    ("nansum", (x(),), {}),
    ("nansum", (x(), [1]), {}),
    ("mean", (x(),), {}),
    ("mean", (x(torch.float16),), {"dtype": torch.float32}),
    ("mean.dim", (x(), [-1], True), {}),
    ("mean.dim", (x(), [0, 1]), {}),
    ("nanmean", (x(), [0]), {}),
    ("prod", (whole(),), {}),
    ("prod.dim_int", (x(), 1), {"dtype": torch.float64}),
    ("amax", (x(),), {}),
    ("amin", (x(), [0, -1], True), {}),
    ("aminmax", (x(),), {}),
    ("aminmax", (x(),), {"dim": 1}),
    ("_aminmax", (x(),), {}),
    ("_aminmax.dim", (x(), 2), {}),
    ("argmax", (x(),), {}),
    ("argmin", (x(), -2, True), {}),
    ("any", (x(torch.bool),), {}),
    ("any.dim", (whole(torch.uint8), 0), {}),
    ("any.dims", (x(torch.bool), [0, 1]), {}),
    ("all", (x(),), {}),
    ("all.dim", (x(), 1, True), {}),
    ("all.dims", (x(torch.bool), [0, 1]), {}),
    ("_is_all_true", (x(torch.bool),), {}),
    ("_is_any_true", (x(torch.bool),), {}),
    ("logsumexp", (x(), [1, 2]), {}),
    ("logsumexp", (whole(), [0]), {}),
    ("special_logsumexp", (x(), [0]), {}),
    ("count_nonzero", (whole(),), {}),
    ("count_nonzero", (whole(), 1), {}),
    ("count_nonzero.dim_IntList", (whole(), [0, 1]), {}),
    ("sum_to_size", (x(), [1, COLUMNS]), {}),
    ("segment_reduce", (SEGMENTED, "sum"), {"lengths": torch.tensor([2, 0, 4])}),
    ("segment_reduce", (SEGMENTED, "max"), {"offsets": torch.tensor([0, 2, 6])}),
    (
        "_segment_reduce_backward",
        (SEGMENTED[:3], SEGMENTED[:3], SEGMENTED, "sum"),
        {"lengths": torch.tensor([2, 0, 4])},
    ),
    ("max", (x(),), {}),
    ("min", (x(),), {}),
    ("max.dim", (x(), 1), {}),
    ("min.dim", (whole(), -1, True), {}),
    ("max.other", (x(torch.float16), x(torch.float32)), {}),
    ("min.other", (whole(), whole()[:1]), {}),
    ("value_selecting_reduction_backward", (SAME[0], 0, SAME[0].long(), [2, 3], False), {}),
    ("trace_backward", (torch.tensor(1.0), [4, 5]), {}),
    *[(name, (x(),), {}) for name in ("std", "var", "std_mean", "var_mean")],
    *[(name, (x(), False), {}) for name in ("std", "var", "std_mean", "var_mean")],
    *[(f"{name}.dim", (x(), [1], True, True), {}) for name in ("std", "var", "var_mean")],
    ("std.correction", (x(torch.complex64), [0]), {"correction": 0}),
    ("var_mean.correction", (x(torch.complex64), [0, 2]), {"correction": 0, "keepdim": True}),
    ("std_mean.correction", (x(),), {}),
    ("norm.Scalar", (x(),), {}),
    ("norm.Scalar", (x(), inf), {}),
    ("norm.ScalarOpt_dim", (x(), 1, [0]), {}),
    ("norm.ScalarOpt_dim_dtype", (x(torch.float32), 2, [0], True), {"dtype": torch.float64}),
    ("norm.ScalarOpt_dtype", (x(torch.float32), 3.5), {"dtype": torch.float64}),
    ("linalg_vector_norm", (x(torch.complex64),), {}),
    ("linalg_vector_norm", (x(), 0, [1], True), {}),
    ("linalg_norm", (x(),), {}),
    ("linalg_norm", (x(), 1, [0, 2]), {}),
    ("linalg_norm.ord_str", (x()[0], "fro"), {}),
    ("linalg_matrix_norm", (x(), -inf), {}),
    ("linalg_matrix_norm.str_ord", (x(),), {}),
    ("frobenius_norm.dim", (x(), [0, 1]), {}),
    ("dist", (x(torch.float32), x(torch.float32)[:1], 1), {}),
    ("cumsum", (whole(), 0), {}),
    ("cumsum", (x(torch.float16), 1), {"dtype": torch.float32}),
    ("cumprod", (x(), 0), {}),
    ("logcumsumexp", (x(), 0), {}),
    ("_logcumsumexp", (x(), 0), {}),
    ("cummax", (x(), 0), {}),
    ("cummin", (x(torch.float16), 1), {}),
    ("cumprod_backward", (x(torch.float32),) * 2 + (0, x(torch.float32)), {}),
]
# Bytes differ: an input or output counts differently, or torch writes to an argument.
OTHERS = [
    ("sum.IntList_out", (x(), [0]), {"out": out(ROWS, COLUMNS)}),
    ("sum.out", (x(torch.float32),), {"out": out()}),
    ("mean.out", (x(torch.float32), [0]), {"out": out(ROWS, COLUMNS)}),
    ("amax.out", (x(torch.float32), [0]), {"out": out(ROWS, COLUMNS)}),
    ("all.all_out", (x(),), {"out": out(dtype=torch.bool)}),
    ("argmax.out", (x(), 0), {"out": out(ROWS, COLUMNS, dtype=torch.int64)}),
    ("max.out", (SAME, SAME), {"out": out(2, 3)}),
    ("max.unary_out", (x(torch.float32),), {"out": out()}),
    ("max.dim_max", (SAME, 0), {"max": out(3), "max_values": out(3, dtype=torch.int64)}),
    ("std.out", (SAME, [0]), {"out": out(3)}),
    ("norm.out", (SAME, 2, [0]), {"out": out(3)}),
    ("norm.Scalar_out", (SAME,), {"out": out()}),
    ("linalg_vector_norm.out", (SAME, 2, [0]), {"out": out(3)}),
    ("cumsum.out", (SAME, 0), {"out": out(2, 3)}),
    ("cummax.out", (SAME, 0), {"values": out(2, 3), "indices": out(2, 3, dtype=torch.int64)}),
    ("trace", (whole(),), {}),
    ("equal", (SAME, SAME), {}),
    ("equal", (SAME, SAME[0]), {}),
    ("allclose", (SAME, SAME), {}),
    ("is_nonzero", (torch.tensor(2.0),), {}),
    ("_assert_async", (torch.tensor(2.0),), {}),
    ("_assert_async.msg", (torch.tensor(2.0), "it"), {}),
    ("_functional_assert_async.msg", (torch.tensor(2.0), "it", torch.zeros(0)), {}),
    ("cumsum_", (x(), 0), {}),
    ("cumprod_", (x(), 0), {}),
    ("_cummax_helper", (SAME, out(2, 3), out(2, 3, dtype=torch.int64), 0), {}),
    ("_cummin_helper", (SAME, out(2, 3), out(2, 3, dtype=torch.int64), 0), {}),
    ("cummaxmin_backward", (SAME, SAME, SAME.long(), 0), {}),
]
CASES = READ_AND_WRITTEN + OTHERS


BACKWARD = [
    torch.sum,
    torch.prod,
    torch.max,
    torch.norm,
    torch.trace,
    lambda tensor: torch.max(tensor, 0).values,
    lambda tensor: torch.cummax(tensor, 1).values,
    lambda tensor: torch.cumprod(tensor, 1),
    lambda tensor: torch.cumsum(tensor, 0),
]
OF_BACKWARD = {"sum", "cumsum", "cummax", "cumprod"}


OF_A_TENSOR = [
    (lambda t: t.sum(), 60, 240 + 4),
    (lambda t: torch.sum(t, 1), 60, 240 + 4 * 15),
    (lambda t: t.sum(dim=(0, 2), keepdim=True), 60, 240 + 4 * 4),
    (lambda t: torch.sum(t, axis=1), 60, 240 + 4 * 15),
    (lambda t: torch.sum(t, -1, dtype=torch.float64), 60, 240 + 8 * 12),
    (lambda t: t.mean(1), 60 + 15, 240 + 4 * 15),
    (lambda t: torch.mean(t, dim=[0, 1]), 60 + 5, 240 + 4 * 5),
    (lambda t: torch.prod(t, 0), 60, 240 + 4 * 20),
    (lambda t: torch.max(t), 60, 240 + 4),
    (lambda t: t.max(1), 60, 240 + 15 * 12),
    (lambda t: torch.max(t, dim=1, keepdim=True), 60, 240 + 15 * 12),
    (lambda t: torch.max(t, t), 60, 240 * 3),
    (lambda t: t.min(other=t[0]), 60, 240 + 80 + 240),
    (lambda t: t.argmax(dim=2), 60, 240 + 12 * 8),
    (lambda t: t.amax((0, 1)), 60, 240 + 5 * 4),
    (lambda t: torch.aminmax(t, dim=0), 120, 240 + 2 * 20 * 4),
    (lambda t: (t > 0).any(1), 60, 60 + 15),
    (lambda t: torch.all(t > 0), 60, 60 + 1),
    (lambda t: t.std(), 240 + 22, 240 + 4),
    (lambda t: torch.var(t, 0, unbiased=False), 240 + 2 * 20, 240 + 80),
    (lambda t: torch.var_mean(t, dim=1, correction=0), 240 + 2 * 15, 240 + 2 * 60),
    (lambda t: t.std(False), 240 + 22, 240 + 4),
    (lambda t: t.norm(), 120 + 1, 240 + 4),
    (lambda t: torch.norm(t, 1, 2), 120, 240 + 48),
    (lambda t: torch.norm(t, p=inf, dim=(0, 1), keepdim=True), 120, 240 + 20),
    (lambda t: torch.linalg.norm(t), 120 + 1, 240 + 4),
    (lambda t: torch.linalg.vector_norm(t, 3, 0), 60 * 22 + 20 * 20, 240 + 80),
    (lambda t: torch.linalg.matrix_norm(t), 120 + 3, 240 + 12),
    (lambda t: torch.logsumexp(t, 1), 60 * 23 + 15 * 21, 240 + 60),
    (lambda t: torch.cumsum(t, dim=0), 60, 480),
    (lambda t: t.cummax(0), 60, 240 + 60 * 12),
    (lambda t: torch.count_nonzero(t, dim=(0, 1)), 120, 240 + 5 * 8),
    (lambda t: torch.equal(t, t), 120, 481),
    (lambda t: torch.allclose(t, t), 480, 481),
    (lambda t: torch.dist(t, t), 60 + 120 + 1, 484),
    (lambda t: t[0].trace(), 4, 16 + 4),
]
PYTHON = [(partial(function, torch.randn(3, 4, 5)), *costs) for function, *costs in OF_A_TENSOR]
