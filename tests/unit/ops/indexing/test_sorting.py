"""Sorting, selecting and searching: comparisons and bytes by hand."""

import pytest

from fastprof.model.call import UNKNOWN
from fastprof.ops import Cost
from unit.ops.ops_calls import aten, fp16, fp32, int64, python, sizes, tensor
from unit.ops.ops_examples import Example, both, cost

X = fp32(5, 12)  # rows of 12: 4 comparisons per element to sort them; columns of 5: 3
FOUR, THREE = 4 * 60, 3 * 60


EXAMPLES = [
    *both("sort", X, 1, False, flops=FOUR, moved=(4 + 4 + 8) * 60),
    *both("sort", X, 0, True, flops=THREE, moved=(4 + 4 + 8) * 60),
    *both("sort msort", X, flops=0, moved=(4 + 8 + 4) * 60, direction="bprop"),
    *both("msort", X, flops=THREE, moved=(4 + 4) * 60),
    Example(aten("sort", X, True, 0, False), THREE, (4 + 4 + 8) * 60),
    *both("argsort", X, 1, False, flops=FOUR, moved=(4 + 8) * 60),
    Example(aten("argsort", X, True, 0, False), THREE, (4 + 8) * 60),
    *both("topk", X, 3, flops=60, moved=4 * 60 + (4 + 8) * 5 * 3),
    *both("topk", X, 2, 0, True, True, flops=60, moved=4 * 60 + (4 + 8) * 2 * 12),
    *both("topk", X, 3, flops=0, moved=(4 + 8) * 15 + 4 * 60, direction="bprop"),
    *both("kthvalue", X, 3, 1, False, flops=60, moved=4 * 60 + (4 + 8) * 5),
    *both("kthvalue", X, 3, 1, False, flops=0, moved=(4 + 8) * 5 + 4 * 60, direction="bprop"),
    *both("median nanmedian", X, flops=60, moved=4 * 60 + 4),
    *both("median nanmedian", X, 0, False, flops=60, moved=4 * 60 + (4 + 8) * 12),
    *both("median", X, flops=3 * 60, moved=2 * 4 * 60 + 2 * 4, direction="bprop"),
    *both("median", X, 0, False, flops=0, moved=(4 + 8) * 12 + 4 * 60, direction="bprop"),
    *both("mode", X, 1, False, flops=FOUR + 60, moved=4 * 60 + (4 + 8) * 5),
    *both("mode", X, 1, False, flops=0, moved=(4 + 8) * 5 + 4 * 60, direction="bprop"),
    # Of all 60 elements: 6 comparisons each.
    *both("quantile nanquantile", X, 0.5, flops=6 * 60 + 3, moved=4 * 60 + 4 + 4),
    *both("quantile", X, fp32(2), 1, flops=FOUR + 3 * 2 * 5, moved=4 * 60 + 4 * 2 + 4 * 2 * 5),
    # 7 borders separate 8 intervals: 3 comparisons.
    *both("searchsorted", fp32(7), X, flops=3 * 60, moved=4 * 7 + (4 + 8) * 60),
    *both("bucketize", X, fp32(7), flops=3 * 60, moved=4 * 7 + (4 + 8) * 60),
    *both("isin", int64(6), int64(4), flops=6 * 4, moved=8 * 6 + 8 * 4 + 6),
    # 30 together: 5 comparisons for each, and 2.
    *both("isin", int64(6), int64(24), flops=7 * 30, moved=8 * 6 + 8 * 24 + 6),
    Example(python("torch", "unique", int64(6)), 3 * 6 + 6, None),
    *both("_unique _unique2", int64(6), flops=3 * 6 + 6, moved=None),
    *both("unique_dim", X, 0, flops=THREE + 60, moved=None),
    *both("unique_consecutive", int64(6), flops=6, moved=None),
    *both("unique_dim_consecutive", X, 0, flops=60, moved=None),
    *both("bincount", int64(6), flops=6, moved=None),
    *both("bincount", int64(6), fp32(6), 9, flops=6, moved=None),
    *both("histc", X, 10, 0, 1, flops=4 * 60, moved=4 * 60 + 4 * 10),
    Example(sizes("sort", (5, 12), (), ()), FOUR, None),
    Example(sizes("topk", (5, 12), (), (), (), ()), 60, None),
    Example(sizes("median", (5, 12)), 60, None),
    Example(sizes("searchsorted", (7,), (5, 12), (), (), (), ()), 3 * 60, None),
    Example(sizes("bucketize", (), (7,), (), ()), 3, None),
]


def test_comparisons_of_a_sort_are_said_to_be_an_estimate() -> None:
    assert not cost(python("torch", "sort", X)).exact
    assert cost(python("torch", "sort", X), "bprop").exact
    assert cost(python("torch", "searchsorted", fp32(7), X)).exact


@pytest.mark.parametrize(("length", "each"), [(0, 0), (1, 0), (2, 1), (4, 2), (5, 3), (1024, 10)])
def test_a_row_needs_the_rounded_up_logarithm_of_its_length(length: int, each: int) -> None:
    assert cost(python("torch", "argsort", fp16(3, length))).flops == 3 * length * each


def test_keywords_and_defaults_give_the_same_cost() -> None:
    assert cost(python("Tensor", "topk", X, k=3, dim=-1)) == cost(aten("topk", X, 3, 1, True, True))
    assert cost(python("torch", "sort", X, dim=0, stable=True)) == cost(
        aten("sort", X, None, 0, False)
    )
    narrow = cost(python("torch", "bucketize", X, boundaries=fp32(7), out_int32=True))
    assert narrow == Cost(180, 4 * 7 + (4 + 4) * 60)


def test_unknown_k_leaves_comparisons_known_and_bytes_unknown() -> None:
    assert cost(aten("topk", X, UNKNOWN, UNKNOWN)) == Cost(60, None, exact=False)


MALFORMED = [
    python("torch", "sort"),
    python("torch", "sort", X, 2),
    python("torch", "topk", X),
    python("torch", "topk", X, 13),
    python("torch", "topk", X, -1),
    python("torch", "kthvalue", X, 1, 4),
    python("torch", "histc", X, 0),
    python("torch", "bincount", int64(6), fp32(5)),
    python("torch", "isin", 3, 4),
    python("torch", "mode", tensor("float32", 3), "rows"),
    sizes("unique_dim", (5, 12), (), (), (), ()),
]
