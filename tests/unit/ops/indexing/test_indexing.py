"""Picking, placing and masking: FLOPs and bytes by hand."""

from dataclasses import replace

import pytest

from fastprof.model.call import UNKNOWN, Call, Tensor
from fastprof.ops import Cost, work
from unit.ops.ops_calls import aten, fp16, fp32, int64, python, sizes, tensor
from unit.ops.ops_examples import Example, both, cost

X = fp32(4, 6)
WHOLE = 4 * 24  # bytes of X
INDEX, SOURCE = int64(3, 2), fp32(3, 2)
SIX = 8 * 6  # bytes of INDEX
ROWS = int64(3)
THREE = 8 * 3
MASK = tensor("bool", 4, 6)
SLICE = "slice(None, None, None)"


PICKED = [
    *both("gather", X, 0, INDEX, moved=SIX + 2 * 4 * 6),
    *both("gather", X, 0, INDEX, flops=6, moved=SIX + 4 * 6 + WHOLE, direction="bprop"),
    *both("take", X, INDEX, moved=SIX + 2 * 4 * 6),
    *both("take_along_dim", X, int64(2, 1), 0, moved=8 * 2 + 2 * 4 * 2 * 6),
    *both("take_along_dim", X, INDEX, moved=SIX + 2 * 4 * 6),
    *both("take_along_dim", X, INDEX, flops=6, moved=SIX + 4 * 6 + WHOLE, direction="bprop"),
    *both("index_select", X, 1, ROWS, moved=THREE + 2 * 4 * 4 * 3),
    *both("index_select", X, 1, ROWS, flops=12, moved=THREE + 48 + WHOLE, direction="bprop"),
    Example(aten("gather_backward", SOURCE, X, 0, INDEX, False), 6, SIX + 4 * 6 + WHOLE),
    Example(aten("index_select_backward", fp32(3, 6), (4, 6), 0, ROWS), 18, THREE + 72 + WHOLE),
    Example(sizes("gather", (4, 6), (), (3, 2), ()), 0, None),
    Example(sizes("index_select", (4, 6), (), (3,)), 0, None),
    Example(sizes("index_select_backward", (3, 6), (), (), (3,)), 18, None),
]

PLACED = [
    *both("scatter", X, 0, INDEX, SOURCE, moved=SIX + 4 * 6 + 2 * WHOLE),
    *both("scatter", X, 0, INDEX, 2.0, moved=SIX + 2 * WHOLE),
    *both("scatter_", X, 0, INDEX, SOURCE, moved=SIX + 2 * 4 * 6),
    *both("scatter_", X, 0, INDEX, SOURCE, "add", flops=6, moved=SIX + 3 * 4 * 6),
    *both(
        "scatter scatter_",
        *(X, 0, INDEX, SOURCE),
        moved=(SIX + 2 * 4 * 6) + (SIX + 2 * WHOLE),
        direction="bprop",
    ),
    *both("scatter_add", X, 0, INDEX, SOURCE, flops=6, moved=SIX + 4 * 6 + 2 * WHOLE),
    *both("scatter_add_", X, 0, INDEX, SOURCE, flops=6, moved=SIX + 3 * 4 * 6),
    *both("scatter_add", X, 0, INDEX, SOURCE, moved=SIX + 2 * 4 * 6, direction="bprop"),
    *both("scatter_reduce", X, 0, INDEX, SOURCE, "amax", flops=6, moved=SIX + 24 + 2 * WHOLE),
    *both("scatter_reduce", X, 0, INDEX, SOURCE, "mean", flops=12 + 24, moved=SIX + 24 + 192),
    *both("scatter_reduce_", X, 0, INDEX, SOURCE, "prod", flops=6, moved=SIX + 3 * 4 * 6),
    *both("index_add", X, 0, ROWS, fp32(3, 6), flops=18, moved=THREE + 72 + 2 * WHOLE),
    *both("index_add_", X, 0, ROWS, fp32(3, 6), flops=18, moved=THREE + 3 * 72),
    *both("index_add_", X, 0, ROWS, fp32(3, 6), moved=THREE + 2 * 72, direction="bprop"),
    *both("index_copy", X, 0, ROWS, fp32(3, 6), moved=THREE + 72 + 2 * WHOLE),
    *both("index_copy_", X, 0, ROWS, fp32(3, 6), moved=THREE + 2 * 72),
    *both("index_reduce", X, 0, ROWS, fp32(3, 6), "amin", flops=18, moved=THREE + 72 + 192),
    *both("index_reduce_", X, 0, ROWS, fp32(3, 6), "amin", flops=18, moved=THREE + 3 * 72),
    *both("index_fill", X, 0, ROWS, 1.0, moved=THREE + 2 * WHOLE),
    *both("index_fill_", X, 0, ROWS, 1.0, moved=THREE + 72),
    *both("put", X, INDEX, SOURCE, moved=SIX + 4 * 6 + 2 * WHOLE),
    *both("put_", X, INDEX, SOURCE, True, flops=6, moved=SIX + 3 * 4 * 6),
    Example(sizes("scatter_add_", (4, 6), (), (3, 2), (3, 2)), 6, None),
    Example(sizes("index_add_", (4, 6), (), (3,), (3, 6), ()), 18, None),
]

ADVANCED = [
    Example(aten("index", X, (ROWS,)), 0, THREE + 2 * 72, "[4,6]fp32;[3]int64"),
    Example(aten("index", X, (None, ROWS)), 0, THREE + 2 * 48),
    Example(aten("index", X, ROWS, ROWS), 0, 2 * THREE + 2 * 12),
    Example(aten("index", X, (MASK,)), 0, None),
    Example(aten("index", X, (ROWS,)), 18, THREE + 72 + WHOLE, direction="bprop"),
    Example(aten("_unsafe_index", X, (ROWS, ROWS)), 0, 2 * THREE + 2 * 12),
    Example(aten("_unsafe_masked_index", X, MASK, (ROWS,), 0), 0, 24 + THREE + 2 * 72),
    Example(
        aten("_unsafe_masked_index_put_accumulate", X, MASK, (ROWS,), fp32(3, 6)),
        18,
        24 + THREE + 72 + 2 * WHOLE,
    ),
    *[
        Example(python("Tensor", name, X, ROWS, fp32(3, 6)), 0, THREE + moved)
        for name, moved in (("index_put_", 2 * 72), ("index_put", 72 + 2 * WHOLE))
    ],
    *[
        Example(aten(name, X, (ROWS,), fp32(6), True), 18, THREE + moved)
        for name, moved in (("index_put_", 24 + 2 * 72), ("index_put", 24 + 2 * WHOLE))
    ],
    Example(aten("_index_put_impl_", X, (ROWS,), fp32(3, 6), True, False), 18, THREE + 3 * 72),
    Example(aten("_index_put_impl", X, (ROWS,), fp32(3, 6), False, False), 0, THREE + 72 + 192),
    Example(aten("_unsafe_index_put", X, (ROWS,), fp32(3, 6), True), 18, THREE + 72 + 192),
    Example(aten("index_put_", X, (MASK,), fp32(), False), 0, 24 + 2 * WHOLE),
    Example(
        aten("index_put_", X, (ROWS,), fp32(3, 6), False),
        0,
        (THREE + 2 * 72) + (THREE + 2 * WHOLE),
        direction="bprop",
    ),
    Example(python("Tensor", "__getitem__", X, 1), 0, 0),
    Example(python("Tensor", "__getitem__", X, (SLICE, None, "Ellipsis", -1)), 0, 0),
    Example(
        python("Tensor", "__getitem__", X, ("slice(0, 2, None)", 1)), 0, 8 + 96, direction="bprop"
    ),
    Example(python("Tensor", "__getitem__", X, ROWS), 0, THREE + 2 * 72),
    Example(python("Tensor", "__getitem__", X, (SLICE, ROWS)), 0, THREE + 2 * 48),
    Example(python("Tensor", "__getitem__", X, ROWS, ROWS), 0, 2 * THREE + 2 * 12),
    Example(python("Tensor", "__getitem__", X, MASK), 0, None),
    Example(python("Tensor", "__setitem__", X, 0, 1.0), 0, 24),
    Example(python("Tensor", "__setitem__", X, (0, SLICE), fp16(6)), 0, 2 * 6 + 24),
    Example(python("Tensor", "__setitem__", X, ROWS, fp32(3, 6)), 0, THREE + 2 * 72),
    Example(python("Tensor", "__setitem__", X, MASK, 0.0), 0, 24 + 2 * WHOLE),
    Example(sizes("index", (4, 6), (3,), (3,)), 0, None),
    Example(sizes("index_put_", (4, 6), (3,), (3,), (3,), ()), 3, None),
]

MASKED = [
    *both("masked_fill masked_fill_", X, MASK, 0.0, moved=24 + 2 * WHOLE),
    *both("masked_fill", fp32(6), MASK, 0.0, moved=4 * 6 + 24 + WHOLE),
    *both("masked_fill", X, MASK, 0.0, moved=24 + 2 * WHOLE, direction="bprop"),
    *both("masked_scatter masked_scatter_", X, MASK, fp32(9), moved=24 + 2 * WHOLE + 4 * 9),
    *both("masked_scatter", X, MASK, fp32(9), moved=24 + 192 + 72, direction="bprop"),
    Example(aten("masked_scatter_backward", X, MASK, (9,)), 0, 24 + 2 * 4 * 9),
    *both("masked_select", X, MASK, moved=None),
    Example(aten("masked_select_backward", fp32(9), X, MASK), 0, 4 * 9 + 24 + WHOLE),
    *both("nonzero argwhere", X, flops=24, moved=None),
    Example(aten("nonzero_numpy", X), 24, None),
    Example(python("torch", "nonzero_static", X, size=5), 24, WHOLE + 8 * 5 * 2),
    Example(aten("nonzero_static", X, 5, -1), 24, WHOLE + 8 * 5 * 2),
    Example(sizes("masked_fill_", (4, 6), (4, 6), ()), 0, None),
    Example(sizes("nonzero", (4, 6)), 24, None),
    Example(sizes("masked_scatter_backward", (4, 6), (4, 6), ()), 0, None),
]

EXAMPLES = [*PICKED, *PLACED, *ADVANCED, *MASKED]


def test_how_many_elements_a_mask_picks_is_not_known():
    assert cost(aten("index", X, (MASK,)), "bprop") == Cost(None, None)
    # Without types, an index of its dimension's size may be a mask and one of another size is not.
    assert cost(sizes("index", (4, 6), (4,)), "bprop") == Cost(None, None)
    assert cost(sizes("index", (4, 6), (3,)), "bprop") == Cost(18, None)


def with_result(call: Call, dtype: str, *shape: int) -> Call:
    return replace(call, result=tensor(dtype, *shape))


# A list of optional tensors in a profiler trace: no dimensions, no type.
NOT_TOLD = [Tensor((), ""), UNKNOWN, (None, None), (Tensor((), ""),)]


@pytest.mark.parametrize("indices", NOT_TOLD)
def test_indices_that_are_not_told_pick_what_the_result_has(indices):
    call = aten("index", X, indices)
    assert cost(call) == Cost(0, None, False)
    assert cost(with_result(call, "float32", 3, 6)) == Cost(0, 2 * 72, False)
    backward = work(with_result(call, "float32", 3, 6), "bprop")
    assert backward is not None and backward.cost == Cost(18, 72 + WHOLE, False)
    # A recorded value takes precedence over an assumption.
    told = with_result(aten("index", X, (ROWS,)), "float32", 1, 1)
    assert cost(told) == Cost(0, THREE + 2 * 72)


@pytest.mark.parametrize("indices", NOT_TOLD)
def test_indices_that_are_not_told_place_as_many_as_there_are_values(indices):
    placed = cost(aten("index_put_", X, indices, fp32(3, 6), False))
    assert placed == Cost(0, 2 * 72, False)
    assert cost(aten("_index_put_impl_", X, indices, fp32(3, 6), True, False)) == Cost(
        18, 3 * 72, False
    )
    assert cost(aten("index_put_", X, indices, fp32(), False)).bytes is None


def test_the_result_tells_how_many_a_mask_picks():
    mask = tensor("bool", 4, 6)
    assert cost(with_result(aten("index", X, (mask,)), "float32", 5)) == Cost(0, 24 + 2 * 20)
    selected = with_result(aten("masked_select", X, mask), "float32", 5)
    assert cost(selected) == Cost(0, WHOLE + 24 + 20)
    result = with_result(aten("nonzero", mask), "int64", 5, 2)
    assert cost(result) == Cost(24, 24 + 80)


def test_what_combines_elements_and_is_not_known_makes_an_estimate():
    call = sizes("scatter_reduce", (4, 6), (), (3, 2), (3, 2), (), ())
    assert cost(call) == Cost(6, None, exact=False)
    assert work(call, "bprop") is None
    unclear = aten("index_put_", X, (ROWS,), fp32(3, 6), UNKNOWN)
    assert cost(unclear) == Cost(18, None, exact=False)


def test_keywords_give_the_same_cost_as_positions():
    assert cost(python("torch", "gather", X, dim=0, index=INDEX)) == cost(
        aten("gather", X, 0, INDEX)
    )
    assert cost(python("torch", "scatter", X, 0, INDEX, src=SOURCE, reduce="add")) == cost(
        aten("scatter", X, 0, INDEX, SOURCE, "add")
    )
    assert cost(python("Tensor", "scatter_", X, 0, INDEX, value=1.0)) == Cost(0, SIX + 24)


def test_negative_and_open_slices_pick_what_python_picks():
    for text, rows in (("slice(-3, None, 2)", 2), ("slice(9, None, None)", 0)):
        call = python("Tensor", "__getitem__", X, (text, ROWS))
        assert cost(call) == Cost(0, THREE + 2 * 4 * 3 * rows)


def test_empty_indices_move_nothing_but_what_is_copied_whole():
    none = int64(0)
    assert cost(python("torch", "index_select", X, 0, none)) == Cost(0, 0)
    assert cost(aten("index_put_", X, (none,), fp32(0, 6), False)) == Cost(0, 0)
    assert cost(python("torch", "index_copy", X, 0, none, fp32(0, 6))) == Cost(0, 2 * WHOLE)


MALFORMED = [
    python("torch", "gather", X, 0),
    python("torch", "index_select", X, 2, ROWS),
    python("torch", "take_along_dim", X, int64(2, 5), 0),
    python("torch", "scatter_reduce", X, 0, INDEX, SOURCE, "median"),
    aten("index", X, (ROWS, ROWS, ROWS)),
    aten("index", X, (ROWS, int64(2))),
    aten("index_put_", X),
    python("Tensor", "__getitem__", X),
    python("Tensor", "__getitem__", X, (0, 0, 0, ROWS)),
    python("Tensor", "__getitem__", X, ("slice(None, None, -1)", ROWS)),
    python("Tensor", "__getitem__", X, ("rows", ROWS)),
    python("Tensor", "__setitem__", X, 0),
    python("torch", "masked_fill", X, fp32(5), 0.0),
    python("torch", "masked_select", X, tensor("bool", 5)),
    python("torch", "nonzero_static", X, size=-1),
    aten("index_select_backward", X, (-1,), 0, ROWS),
    aten("masked_scatter_backward", X, MASK, (-1,)),
    aten("gather_backward", Tensor((-1,), "float32"), X, 0, INDEX, False),
]
