"""Copies, views, conversions and new tensors against torch: every overload is read."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from unit.ops.ops_examples import cost  # noqa: E402
from unit.ops.overload_calls import run  # noqa: E402

MODULES = ("movement",)
X = torch.randn(4, 6)
Z = torch.randn(4, 6, dtype=torch.complex64)
HALF = torch.randn(4, 6).half()
IMAGE = torch.randn(2, 8, 4, 4)
CPU = torch.device("cpu")

# Bytes are those of inputs and outputs.
READ_AND_WRITTEN = [
    *[(name, ([X, X],), {}) for name in ("cat", "concat", "concatenate", "stack", "_stack")],
    ("cat", ([X, HALF, X], 1), {}),
    *[
        (name, ([X, X, HALF],), {})
        for name in ("hstack", "vstack", "dstack", "column_stack", "row_stack", "block_diag")
    ],
    ("_chunk_cat", ([X, X[:3]], 0, 2), {}),
    ("roll", (X, [1], [0]), {}),
    ("flip", (X, [0]), {}),
    *[(name, (X,), {}) for name in ("fliplr", "flipud", "rot90", "tril", "triu", "clone")],
    ("view_copy", (X, [24]), {}),
    ("permute_copy", (X, [1, 0]), {}),
    ("transpose_copy.int", (X, 0, 1), {}),
    ("split_copy.Tensor", (X, 3), {}),
    ("split_with_sizes_copy", (X, [1, 3]), {}),
    ("unbind_copy.int", (X,), {}),
    ("unsqueeze_copy", (X, 0), {}),
    *[
        (name, (X,), {})
        for name in ("t_copy", "squeeze_copy", "detach_copy", "alias_copy", "lift_fresh_copy")
    ],
    ("_reshape_copy", (X, [24]), {}),
    ("_conj_copy", (Z,), {}),
    ("_neg_view_copy", (X,), {}),
    ("view_as_real_copy", (Z,), {}),
    ("view_as_complex_copy", (torch.randn(4, 3, 2),), {}),
    ("pixel_shuffle", (torch.randn(2, 8, 3, 3), 2), {}),
    ("pixel_unshuffle", (torch.randn(2, 2, 6, 6), 2), {}),
    ("channel_shuffle", (torch.randn(2, 8, 3, 3), 4), {}),
    ("native_channel_shuffle", (torch.randn(2, 8, 3, 3), 4), {}),
    ("flatten_dense_tensors", ([X, X[0]],), {}),
    ("contiguous", (X.t(),), {}),
    ("reshape", (X.t(), [24]), {}),
    ("flatten.using_ints", (X.t(),), {}),
    ("ravel", (X.t(),), {}),
    ("repeat", (X, [2, 1, 3]), {}),
    ("tile", (X, [2]), {}),
    ("repeat_interleave.self_int", (X, 3, 0), {}),
    ("repeat_interleave.self_Tensor", (X, torch.tensor([1, 0, 2, 2]), 0), {"output_size": 5}),
    ("_to_copy", (X,), {}),
    ("_to_copy", (X,), {"dtype": torch.float16}),
    ("to.dtype", (X, torch.float64), {}),
    ("to.device", (HALF, CPU, torch.float32), {}),
    ("to.dtype_layout", (HALF,), {"dtype": torch.float32}),
    ("_cast_Half", (X,), {}),
    *[
        (f"_cast_{name}", (HALF,), {})
        for name in ("Byte", "Char", "Double", "Float", "Int", "Long", "Short")
    ],
    *[(f"{name}_scatter", (X, X[0], 0, 0), {}) for name in ("select",)],
    ("slice_scatter", (X, X[:2], 0, 0, 2), {}),
    ("diagonal_scatter", (X, X[0, :4]), {}),
    ("as_strided_scatter", (X, X[0, :2], [2], [1]), {}),
    ("slice_backward", (X, [8, 6], 0, 0, 4, 1), {}),
    ("select_backward", (X, [8, 4, 6], 0, 0), {}),
    ("diagonal_backward", (X[0, :4], [4, 6], 0, 0, 1), {}),
    ("unfold_backward", (torch.randn(3, 2), [4], 0, 2, 1), {}),
    ("zeros", ([2, 3],), {"dtype": torch.float16}),
    ("ones", ([2, 3],), {}),
    ("full", ([2, 3], 1.5), {}),
    ("full", ([2, 3], True), {}),
    ("full", ([2, 3], 7), {}),
    ("full", ([2, 3], 7), {"dtype": torch.float16}),
    ("scalar_tensor", (1.5,), {}),
    ("eye", (3,), {}),
    ("eye", (3,), {"dtype": torch.float64}),
    ("eye.m", (3, 5), {}),
    ("eye.m", (3, 5), {"dtype": torch.float64}),
    ("tril_indices", (4, 6, 1), {}),
    ("tril_indices", (6, 4), {"dtype": torch.int32}),
    ("triu_indices", (4, 6, -2), {}),
    ("triu_indices", (6, 4, 3), {}),
    ("arange", (7,), {}),
    ("arange", (7.5,), {}),
    ("arange.start", (2, 7), {}),
    ("arange.start", (2, 7), {"dtype": torch.float16}),
    ("arange.start_step", (0, 1, 0.3), {}),
    ("arange.start_step", (9, -2, -2), {}),
    ("linspace", (0, 1, 9), {}),
    ("logspace", (0, 1, 9), {"dtype": torch.float64}),
    ("item", (torch.tensor(2.0),), {}),
    ("_local_scalar_dense", (torch.tensor(2.0),), {}),
]
# Arguments that torch does not read: only the shape counts, or it is overwritten.
WRITTEN = [
    ("fill_.Scalar", (X.clone(), 1), {}),
    ("fill.Scalar", (X, 1), {}),
    ("zero_", (X.clone(),), {}),
    ("zero", (X,), {}),
    *[(name, (X,), {}) for name in ("zeros_like", "ones_like")],
    ("zeros_like", (X,), {"dtype": torch.int8}),
    ("full_like", (X, 3), {"dtype": torch.int8}),
    ("new_zeros", (X, [2, 3]), {}),
    ("new_ones", (X, [2, 3]), {"dtype": torch.int8}),
    ("new_full", (X, [2, 3], 1), {}),
]
# No kernel runs.
NOTHING = [
    ("contiguous", (X,), {}),
    ("reshape", (X, [24]), {}),
    ("reshape_as", (X, X.view(24)), {}),
    ("empty.memory_format", ([2, 3],), {}),
    ("empty_strided", ([2, 3], [3, 1]), {}),
    ("empty_permuted", ([2, 3], [0, 1]), {}),
    ("_efficientzerotensor", ([2, 3],), {}),
    ("new_empty", (X, [2, 3]), {}),
    ("new_empty_strided", (X, [2, 3], [3, 1]), {}),
    ("empty_like", (X,), {}),
    ("transpose.int", (X, 0, 1), {}),
    ("permute", (X, [1, 0]), {}),
    ("swapaxes", (X, 0, 1), {}),
    ("swapdims", (X, 0, 1), {}),
    ("swapaxes_", (X.clone(), 0, 1), {}),
    ("swapdims_", (X.clone(), 0, 1), {}),
    ("movedim.int", (X, 0, 1), {}),
    ("moveaxis.int", (X, 0, 1), {}),
    ("unsqueeze", (X, 0), {}),
    ("unsqueeze_", (X.clone(), 0), {}),
    ("transpose_", (X.clone(), 0, 1), {}),
    *[
        (name, (X.clone(),), {})
        for name in (
            *("t", "t_", "adjoint", "mT", "mH", "numpy_T", "matrix_H", "squeeze", "squeeze_"),
            *("detach", "detach_", "alias", "lift", "lift_fresh", "set_", "conj"),
            *("_neg_view", "atleast_1d", "atleast_2d", "atleast_3d", "requires_grad_"),
        )
    ],
    ("resize_", (X.clone(), [3, 4]), {}),
    ("resize_as_", (X.clone(), X), {}),
    ("view_as_real", (X.to(torch.complex64),), {}),
    ("_conj", (X.to(torch.complex64),), {}),
    ("view_as_complex", (torch.randn(3, 2),), {}),
    ("real", (X.to(torch.complex64),), {}),
    ("imag", (X.to(torch.complex64),), {}),
    ("view", (X, [24]), {}),
    ("view_as", (X, X), {}),
    ("unflatten.int", (X, 1, [2, 3]), {}),
    ("_unsafe_view", (X, [24]), {}),
    ("_reshape_alias", (X, [24], [1]), {}),
    ("split.Tensor", (X, 2), {}),
    ("split_with_sizes", (X, [2, 2]), {}),
    ("chunk", (X, 2), {}),
    ("unbind.int", (X,), {}),
    ("tensor_split.sections", (X, 2), {}),
    ("hsplit.int", (X, 2), {}),
    ("vsplit.int", (X, 2), {}),
    ("dsplit.int", (IMAGE, 2), {}),
    ("unsafe_split.Tensor", (X, 2), {}),
    ("unsafe_split_with_sizes", (X, [2, 2]), {}),
    ("unsafe_chunk", (X, 2), {}),
    ("diagonal", (X,), {}),
    ("as_strided", (X, [2], [1]), {}),
    ("as_strided_", (X.clone(), [2], [1]), {}),
    ("unfold", (X, 0, 2, 1), {}),
    ("meshgrid", ([X[0], X[0]],), {}),
    ("broadcast_tensors", ([X, X[0]],), {}),
    ("select.int", (X, 0, 1), {}),
    ("narrow", (X, 0, 1, 2), {}),
    ("slice.Tensor", (X, 0, 1, 2), {}),
    ("expand", (X, [3, 4, 6]), {}),
    ("broadcast_to", (X, [3, 4, 6]), {}),
    ("expand_as", (X, X), {}),
]
# Supported, but bytes differ: overwritten arguments, or conversions without effect.
OTHERS = [
    ("copy_", (X.clone(), HALF), {}),
    ("copy", (X, HALF[0]), {}),
    ("cat.out", ([X, X],), {"out": torch.empty(8, 6)}),
    ("fill_.Tensor", (X.clone(), torch.tensor(2.0)), {}),
    ("fill_diagonal_", (X.clone(), 1.0), {}),
    ("tril_", (X.clone(),), {}),
    ("triu_", (X.clone(),), {}),
    ("_lazy_clone", (X,), {}),
    ("to.other", (HALF, X), {}),
    ("type_as", (HALF, X), {}),
    ("_autocast_to_full_precision", (HALF, False, False), {}),
    ("_autocast_to_reduced_precision", (X, False, False, torch.float16, torch.bfloat16), {}),
    ("repeat_interleave.self_Tensor", (X, torch.tensor([1, 0, 2, 2]), 0), {}),
    ("repeat_interleave.Tensor", (torch.tensor([1, 0, 2, 2]),), {}),
]
# Names in the installed torch without an overload for CPU tensors.
NOT_CALLED = {"_copy_from", "_copy_from_and_resize", "cpu", "cuda", "range"}
CASES = READ_AND_WRITTEN + WRITTEN + NOTHING + OTHERS


def name_of(case: tuple[str, Any, Any]) -> str:
    return case[0]


@pytest.mark.parametrize("case", WRITTEN, ids=name_of)
def test_what_is_filled_is_only_written(case: tuple[str, Any, Any]) -> None:
    done = run(case)
    result = cost(done.call)
    assert (result.flops, result.bytes) == (0, done.written)


@pytest.mark.parametrize("case", NOTHING, ids=name_of)
def test_views_and_new_memory_move_nothing(case: tuple[str, Any, Any]) -> None:
    done = run(case)
    result = cost(done.call)
    assert (result.flops, result.bytes) == (0, 0)


WIDE = torch.randn(4, 6, dtype=torch.float64)
CONVERTED = [
    (lambda: torch.cat([X, X], dim=1), 384),
    (lambda: torch.stack((X, X)), 384),
    (lambda: X.to(torch.float16), 96 + 48),
    (lambda: X.to("cpu", torch.float16), 96 + 48),
    (lambda: X.to(dtype=torch.float64), 96 + 192),
    (lambda: X.to(WIDE), 96 + 192),
    (lambda: X.half(), 96 + 48),
    (lambda: X.float(), 0),
    (lambda: X.bool(), 96 + 24),
    (lambda: X.type(torch.int32), 96 + 96),
    (lambda: X.type("torch.DoubleTensor"), 96 + 192),
    (lambda: X.type_as(WIDE), 96 + 192),
    (lambda: X.repeat(2, 3), 96 * 7),
    (lambda: X.repeat((2, 3)), 96 * 7),
    (lambda: X.tile((2,)), 96 * 3),
    (lambda: X.expand(3, -1, -1), 0),
    (lambda: X.view(24), 0),
    (lambda: X.permute(1, 0), 0),
    (lambda: X.t().contiguous(), 192),
    (lambda: X.contiguous(), 0),
    (lambda: X.t().reshape(24), 192),
    (lambda: torch.clone(X), 192),
    (lambda: X.clone().copy_(HALF), 96 + 48),
    (lambda: X.clone().zero_(), 96),
    (lambda: X.clone().fill_(2), 96),
    (lambda: torch.zeros_like(X), 96),
    (lambda: torch.full_like(X, 2, dtype=torch.int8), 24),
    (lambda: X.new_zeros((2, 3)), 24),
    (lambda: X.new_zeros(2, 3, dtype=torch.float16), 12),
    (lambda: X.new_full((2, 3), 2.0), 24),
    (lambda: torch.tril(X), 192),
    (lambda: X.roll(1, 0), 192),
    (lambda: X.split(2), 0),
    (lambda: torch.repeat_interleave(X, 2, dim=0), 96 * 3),
    (lambda: X[0, 0].item(), 4),
]
PYTHON = [(function, 0, moved) for function, moved in CONVERTED]


BACKWARD = [
    lambda t: t[1],
    lambda t: t[1:3],
    lambda t: t.expand(3, 4, 6),
    lambda t: t.diagonal(),
    lambda t: t.half(),
    lambda t: t.unfold(0, 2, 1),
    lambda t: torch.cat([t, t]),
    lambda t: t.repeat(2, 1),
]
OF_BACKWARD = {"select_backward", "slice_backward", "diagonal_backward", "unfold_backward"}
