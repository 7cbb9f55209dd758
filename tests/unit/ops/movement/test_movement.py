"""Copies, views, conversions and new tensors: bytes by hand."""

from dataclasses import replace

import pytest

from fastprof.model.call import UNKNOWN, Call, Tensor
from fastprof.ops import Cost, work
from unit.ops.ops_calls import aten, bf16, fp16, fp32, int64, python, sizes, tensor
from unit.ops.ops_examples import Example, both, cost

X = fp32(4, 6)
WHOLE = 4 * 24  # bytes of X
TURNED = Tensor((4, 6), "float32", (1, 4))
DENSE = Tensor((4, 6), "float32", (6, 1))


JOINED = [
    *both("cat concat concatenate _cat stack _stack", X, X, 0, moved=2 * 2 * WHOLE),
    *both(
        "hstack vstack dstack column_stack row_stack flatten_dense_tensors",
        X,
        X,
        moved=2 * 2 * WHOLE,
    ),
    Example(aten("cat", (X, fp16(2, 6)), 0), 0, WHOLE + 2 * 12 + 4 * 36, "[4,6]fp32;[2,6]fp16"),
    *both("cat", X, fp16(2, 6), moved=4 * 36 + WHOLE + 2 * 12, direction="bprop"),
    *both("block_diag", X, fp32(5), moved=WHOLE + 4 * 5 + 4 * 5 * 11),
    *both("_chunk_cat", (X, fp32(3, 5)), 0, 2, moved=WHOLE + 4 * 15 + 4 * (24 + 4 * 5)),
    Example(
        aten("fsdp::chunk_cat", (X, fp32(3, 5)), 0, 2, bf16(2, 22)),
        0,
        WHOLE + 4 * 15 + 2 * (24 + 4 * 5),
    ),
    Example(sizes("cat", (4, 6), (2, 6), ()), 0, None),
]

# If the trace does not record the tensors of a list, only the result's size is known.
UNTOLD = replace(aten("cat", UNKNOWN, 0), result=fp32(6, 6))
JOINED.append(Example(UNTOLD, 0, 2 * 4 * 36, "[6,6]fp32"))

COPIES = [
    *both("roll flip fliplr flipud rot90 tril triu tril_ triu_ clone", X, moved=2 * WHOLE),
    *both("roll flip tril", X, moved=2 * WHOLE, direction="bprop"),
    *both("clone", X, moved=0, direction="bprop"),
    *both(
        "view_copy permute_copy t_copy transpose_copy squeeze_copy unsqueeze_copy detach_copy"
        " alias_copy split_copy split_with_sizes_copy unbind_copy unsafe_split_copy _reshape_copy"
        " lift_fresh_copy _lazy_clone _conj_copy _neg_view_copy view_as_real_copy"
        " view_as_complex_copy pixel_shuffle pixel_unshuffle channel_shuffle"
        " native_channel_shuffle",
        X,
        moved=2 * WHOLE,
    ),
    Example(python("Tensor", "__deepcopy__", X, ()), 0, 2 * WHOLE),
    Example(aten("fsdp::split_with_sizes_copy", X, (2, 2), 0), 0, 2 * WHOLE),
    *both("contiguous", X, moved=2 * WHOLE),
    *both("contiguous reshape flatten ravel", DENSE, moved=0),
    *both("contiguous reshape flatten ravel", TURNED, moved=2 * WHOLE),
    *both("reshape_as", TURNED, fp32(24), moved=2 * WHOLE),
    *both("reshape", X, (24,), moved=2 * WHOLE, direction="bprop"),
    *both("contiguous", TURNED, moved=0, direction="bprop"),
    *both("repeat tile", X, (2, 3), moved=WHOLE + 6 * WHOLE),
    *both("repeat", X, (2, 3), flops=6 * 24, moved=6 * WHOLE + WHOLE, direction="bprop"),
    *both("repeat_interleave", X, 3, 0, moved=WHOLE + 3 * WHOLE),
    *both("repeat_interleave", X, int64(4), 0, moved=None),
    *both("repeat_interleave", X, int64(4), 0, 9, moved=WHOLE + 8 * 4 + 4 * 9 * 6),
    *both("repeat_interleave", X, 3, flops=72, moved=3 * WHOLE + WHOLE, direction="bprop"),
    Example(sizes("repeat", (4, 6), ()), 0, None),
    Example(sizes("clone", (4, 6), ()), 0, None),
]

VIEWS = [
    *both(
        "transpose permute t swapaxes swapdims movedim moveaxis adjoint mT mH numpy_T matrix_H"
        " squeeze unsqueeze transpose_ t_ squeeze_ unsqueeze_ swapaxes_ swapdims_ detach detach_"
        " alias lift lift_fresh requires_grad_ resize_ resize_as_ set_ view_as_real"
        " view_as_complex conj _conj _neg_view atleast_1d atleast_2d atleast_3d view view_as"
        " unflatten _unsafe_view _reshape_alias split split_with_sizes chunk unbind tensor_split"
        " hsplit vsplit dsplit unsafe_split unsafe_split_with_sizes unsafe_chunk diagonal"
        " as_strided as_strided_ real imag",
        X,
        moved=0,
    ),
    *both("transpose", X, 0, 1, moved=0, direction="bprop"),
    *both("view", X, (24,), moved=2 * WHOLE, direction="bprop"),
    *both("split", X, 2, moved=2 * WHOLE, direction="bprop"),
    Example(aten("unfold", X, 0, 2, 1), 0, 0),
    *both("meshgrid broadcast_tensors", fp32(4), fp32(4), moved=0),
    *both("select", X, 0, 1, moved=0),
    *both("select", X, 0, 1, moved=4 * 6 + WHOLE, direction="bprop"),
    *both("narrow", X, 0, 1, 2, moved=0),
    *both("narrow", X, 0, 1, 2, moved=4 * 12 + WHOLE, direction="bprop"),
    *both("slice", X, 1, 0, -1, 2, moved=0),
    *both("slice", X, 1, 0, -1, 2, moved=4 * 4 * 3 + WHOLE, direction="bprop"),
    *both("expand broadcast_to", X, (3, -1, 6), moved=0),
    *both("expand_as", X, fp32(3, 4, 6), moved=0),
    *both("expand", X, (3, 4, 6), flops=72, moved=4 * WHOLE, direction="bprop"),
    *both("expand_as", X, fp32(3, 4, 6), flops=72, moved=4 * WHOLE, direction="bprop"),
    *both("expand", X, (4, 6), moved=0, direction="bprop"),
    *[
        Example(aten(name, X, (8, 4, 6), 0, 0), 0, WHOLE + 8 * WHOLE)
        for name in ("select_backward", "slice_backward", "diagonal_backward")
    ],
    Example(aten("unfold_backward", X, (9,), 0, 6, 1), 24, WHOLE + 4 * 9),
    *[
        example
        for part in ("select", "slice", "diagonal", "as_strided")
        for example in both(f"{part}_scatter", X, fp32(6), moved=2 * WHOLE + 4 * 6)
    ],
    *both("slice_scatter", X, fp32(6), moved=2 * WHOLE + 4 * 6, direction="bprop"),
    Example(sizes("slice_backward", (4, 6), (), (), (), (), ()), 0, None),
]

METHODS = (
    ("double", 8),
    ("half", 2),
    ("bfloat16", 2),
    ("long", 8),
    ("int", 4),
    ("short", 2),
    ("char", 1),
    ("byte", 1),
    ("bool", 1),
    ("cfloat", 8),
    ("cdouble", 16),
)
CASTS = ("Double", 8), ("Half", 2), ("Long", 8), ("Int", 4), ("Short", 2), ("Char", 1), ("Byte", 1)

CONVERSIONS = [
    *[Example(python("Tensor", name, X), 0, (4 + width) * 24) for name, width in METHODS],
    *[Example(aten(f"_cast_{name}", X, False), 0, (4 + width) * 24) for name, width in CASTS],
    Example(python("Tensor", "float", X), 0, 0),
    Example(aten("_cast_Float", fp16(4, 6), False), 0, (2 + 4) * 24),
    Example(python("Tensor", "half", X), 0, (2 + 4) * 24, direction="bprop"),
    *both("copy_", X, fp16(6), moved=2 * 6 + WHOLE),
    *both("copy_", X, fp16(6), moved=WHOLE + 2 * 6, direction="bprop"),
    Example(aten("copy", X, fp16(4, 6), False), 0, (2 + 4) * 24),
    Example(aten("_copy_from", fp16(4, 6), X, False), 0, (2 + 4) * 24),
    Example(aten("_copy_from_and_resize", fp16(4, 6), X), 0, (2 + 4) * 24),
    Example(aten("_to_copy", X, 5, None, None, None, False, None), 0, (4 + 2) * 24, "[4,6]fp32"),
    Example(aten("_to_copy", X, None, None, "cuda:0"), 0, 2 * WHOLE),
    *both("to", X, "torch.float16", False, False, moved=(4 + 2) * 24),
    *both("to", X, "cuda:0", "torch.float16", False, moved=(4 + 2) * 24),
    *both("to", X, fp16(1), moved=(4 + 2) * 24),
    Example(aten("to", X, 15, False, False, None), 0, (4 + 2) * 24),
    Example(aten("to", X, 5, 0, None, None, False, False, None), 0, (4 + 2) * 24),
    Example(python("Tensor", "to", X, 1), 0, 2 * WHOLE),
    Example(python("Tensor", "type", X), 0, 0),
    Example(python("Tensor", "type", X, "torch.cuda.HalfTensor"), 0, (4 + 2) * 24),
    *both("type_as", X, fp16(1), moved=(4 + 2) * 24),
    *both("cpu cuda", X, moved=2 * WHOLE),
    Example(aten("_autocast_to_full_precision", fp16(4, 6), True, True), 0, (2 + 4) * 24),
    Example(aten("_autocast_to_reduced_precision", X, True, True, 5, 15), 0, (4 + 2) * 24),
    *both("item", fp32(), moved=4),
    *[
        Example(python("Tensor", name, fp16(1)), 0, 2)
        for name in ("tolist", "__float__", "__int__", "__index__")
    ],
    Example(aten("_local_scalar_dense", fp32()), 0, 4),
    Example(sizes("copy_", (4, 6), (6,), ()), 0, None),
    Example(sizes("to", (4, 6), (), (), (), ()), 0, None),
]

CREATED = [
    *both("fill_ fill", X, 1.0, moved=WHOLE),
    *both("fill_", X, fp32(), moved=WHOLE + 4),
    *both("zero_ zero one_", X, moved=WHOLE),
    *both("zero_", X, moved=WHOLE, direction="bprop"),
    *both("fill_diagonal_", X, 1.0, moved=4 * 4),
    *both("zeros ones", (4, 6), moved=WHOLE),
    Example(python("torch", "zeros", 4, 6), 0, WHOLE),
    Example(python("torch", "ones", 2, 3, 4, dtype="torch.int8"), 0, 24),
    Example(aten("zeros", (4, 6), 5, None, None, None), 0, 2 * 24),
    *both("full", (4, 6), 1.5, moved=WHOLE),
    *both("full", (4, 6), 1, moved=8 * 24),
    *both("full", (4, 6), True, moved=24),
    *both(
        "empty empty_strided empty_like empty_permuted new_empty new_empty_strided"
        " _efficientzerotensor",
        (4, 6),
        moved=0,
    ),
    *both("zeros_like ones_like", X, moved=WHOLE),
    *both("full_like", X, 2.0, moved=WHOLE),
    Example(aten("zeros_like", X, 11), 0, 24),
    *both("new_zeros new_ones", fp16(1), (4, 6), moved=2 * 24),
    *both("new_full", fp16(1), (4, 6), 1.0, moved=2 * 24),
    *both("scalar_tensor", 1.0, moved=4),
    *both("eye", 3, moved=4 * 9),
    *both("eye", 3, 5, None, None, None, None, moved=4 * 15),
    # 1 + 2 + 3 + 3 indices in the lower triangle of a [4, 3], 3 + 2 + 1 in the upper one.
    *both("tril_indices", 4, 3, moved=8 * 2 * 9),
    *both("triu_indices", 4, 3, moved=8 * 2 * 6),
    *both("arange range", 7, None, None, None, None, flops=2 * 7, moved=8 * 7)[1::2],
    Example(python("torch", "arange", 2, 12, 3), 2 * 4, 8 * 4),
    Example(python("torch", "arange", 0.0, 1.0, 0.25), 2 * 4, 4 * 4),
    Example(python("torch", "arange", 5, dtype="torch.float16"), 2 * 5, 2 * 5),
    Example(python("torch", "range", 0, 5), 2 * 5, 8 * 5),
    Example(aten("arange", 2, 12, 6, None, None, None), 2 * 10, 4 * 10),
    *both("linspace", 0, 1, 9, flops=2 * 9, moved=4 * 9),
    *both("logspace", 0, 1, 9, flops=22 * 9, moved=4 * 9),
    Example(sizes("zeros", (), (), (), (), ()), 0, None),
    Example(sizes("fill_", (4, 6), ()), 0, None),
]

EXAMPLES = [*JOINED, *COPIES, *VIEWS, *CONVERSIONS, *CREATED]


def test_an_expanded_tensor_is_read_by_its_own_size_and_copied_whole() -> None:
    expanded = Tensor((5, 8), "float32", (0, 1))
    assert cost(python("torch", "clone", expanded)).bytes == 4 * 8 + 4 * 40
    assert cost(python("Tensor", "contiguous", expanded)).bytes == 4 * 8 + 4 * 40


def test_a_copy_that_strides_do_not_show_is_an_estimate() -> None:
    assert not cost(python("Tensor", "contiguous", X)).exact
    assert cost(python("Tensor", "contiguous", TURNED)).exact
    assert not cost(python("Tensor", "reshape", TURNED, 24)).exact
    assert cost(python("Tensor", "reshape", DENSE, 24)).exact
    last = python("Tensor", "contiguous", DENSE, memory_format="torch.channels_last")
    assert cost(last) == Cost(0, 2 * WHOLE, exact=False)


def test_a_conversion_to_the_same_type_is_an_estimate_and_to_another_is_not() -> None:
    assert cost(python("Tensor", "to", X, "torch.float32")) == Cost(0, 2 * WHOLE, exact=False)
    assert cost(python("Tensor", "to", X, dtype="torch.float64")) == Cost(0, 12 * 24)
    assert cost(aten("to", X, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)) == Cost(0, None, exact=False)


def test_a_type_that_is_torchs_default_is_an_estimate() -> None:
    assert not cost(python("torch", "zeros", 3)).exact
    assert cost(python("torch", "zeros", 3, dtype="torch.float32")).exact
    assert cost(python("torch", "full", (3,), 1)).exact
    assert not cost(python("torch", "full", (3,), 1.0)).exact
    assert cost(python("torch", "arange", 3)).exact


def test_empty_tensors_move_nothing() -> None:
    for name in ("clone", "contiguous", "flip", "zero_", "half", "select"):
        rest = (1, 0) if name == "select" else ()
        assert cost(python("Tensor", name, fp32(0, 3), *rest)).bytes == 0


MALFORMED = [
    python("torch", "cat"),
    python("torch", "cat", 3),
    python("torch", "block_diag", fp32(1, 2, 3)),
    aten("_chunk_cat", (X, X), 0, 0),
    python("Tensor", "repeat", X, -1),
    python("torch", "repeat_interleave", X, -1),
    python("torch", "repeat_interleave", X, int64(3), 4, 5),
    python("Tensor", "copy_", fp32(3), fp32(4)),
    python("Tensor", "select", X, 2, 0),
    python("torch", "zeros", -1),
    python("torch", "eye", -1),
    python("torch", "arange", 0, 3, 0),
    python("torch", "arange", "inf"),
    python("torch", "arange", 0.0, float("nan"), 1.0),
    python("torch", "arange", 0.0, 1e308, 1e-308),
    python("torch", "linspace", 0, 1, -2),
    python("torch", "tril_indices", -1, 3),
    sizes("arange", (), (), (), (), ()),
    aten("slice_backward", X, (-1,), 0, 0, 0, 0),
]


@pytest.mark.parametrize(
    "malformed",
    [
        python("Tensor", "narrow", X, 0, 0, 9),
        python("Tensor", "expand", X, (-1, 4, 6)),
        python("torch", "diagonal", X),
        aten("slice", tensor("int8", 3), 0, 0, 3, 0),
    ],
    ids=lambda call: call.op,
)
def test_a_gradient_of_what_cannot_be_has_no_work(malformed: Call) -> None:
    assert work(malformed, "bprop") is None
