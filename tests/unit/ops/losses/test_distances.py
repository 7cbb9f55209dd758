"""Distances, distance-based losses, and CTC: FLOPs and bytes by hand."""

from __future__ import annotations

from functools import partial

import pytest

from fastprof.model.call import UNKNOWN, Call
from fastprof.ops import work
from unit.ops.ops_examples import Example, aten, fp32, int64, python, sizes
from unit.ops.ops_examples import both as both_of

both = partial(both_of, mod="torch._C._nn")

F = "torch.nn.functional"
X = fp32(7, 6)
N = 7 * 6
ONE = 4  # bytes of a reduced loss


A, B = fp32(7, 6), fp32(5, 6)
FEW = 7 * 5  # distances
DISTANCES = [
    *both("cosine_similarity", X, X, 1, 1e-8, flops=6 * N + 23 * 7, moved=4 * (2 * N + 7)),
    *both("cosine_similarity", X, X, 1, flops=8 * N, moved=4 * (4 * N + 7), direction="bprop"),
    Example(python(F, "cosine_similarity", X, X, dim=0), 6 * N + 23 * 6, 4 * (2 * N + 6)),
    *both(
        "cosine_embedding_loss",
        *(X, X, fp32(7), 0.0, 1),
        flops=6 * N + 30 * 7,
        moved=4 * (2 * N + 7) + ONE,
    ),
    *both(
        "cosine_embedding_loss",
        *(X, X, fp32(7), 0.0, 0),
        flops=8 * N,
        moved=4 * (4 * N + 7 + 7),
        direction="bprop",
    ),
    Example(
        python(F, "cosine_embedding_loss", X, X, fp32(7), 0.0, None, None, "none"),
        6 * N + 29 * 7,
        4 * (2 * N + 7 + 7),
    ),
    *both("pairwise_distance", X, X, 2.0, 1e-6, flops=4 * N + 20 * 7, moved=4 * (2 * N + 7)),
    *both("pairwise_distance", X, X, 1.0, flops=4 * N, moved=4 * (2 * N + 7)),
    *both("pairwise_distance", X, X, flops=4 * N, moved=4 * (4 * N + 2 * 7), direction="bprop"),
    *both(
        "triplet_margin_loss",
        *(X, X, X, 1.0, 2.0, 1e-6, False, 1),
        flops=2 * (4 * N + 20 * 7) + 4 * 7,
        moved=4 * 3 * N + ONE,
    ),
    *both(
        "triplet_margin_loss",
        *(X, X, X, 1.0, 2.0, 1e-6, True, 0),
        flops=3 * (4 * N + 20 * 7) + 4 * 7,
        moved=4 * (3 * N + 7),
    ),
    *both(
        "triplet_margin_loss",
        *(X, X, X, 1.0, 2.0, 1e-6, False, 1),
        flops=2 * 4 * N,
        moved=4 * 6 * N + ONE,
        direction="bprop",
    ),
    Example(
        python(F, "triplet_margin_loss", X, X, X, reduction="none"),
        2 * (4 * N + 20 * 7) + 3 * 7,
        4 * (3 * N + 7),
    ),
    *both("cdist", A, B, 2.0, flops=FEW * (3 * 6 + 20), moved=4 * (42 + 30 + FEW)),
    *both("_cdist_forward", A, B, 1.0, None, flops=FEW * 3 * 6, moved=4 * (42 + 30 + FEW)),
    *both(
        "cdist",
        A,
        B,
        2.0,
        flops=8 * 6 * FEW,
        moved=4 * (2 * (42 + 30) + 2 * FEW),
        direction="bprop",
    ),
    *both("_cdist_backward", fp32(7, 5), A, B, 2.0, fp32(7, 5), flops=4 * 6 * FEW, moved=4 * 184),
    # More than 25 vectors on a side: one product of [30, 6 + 2] and [5, 6 + 2].
    *both("cdist", fp32(30, 6), B, 2.0, flops=2 * 30 * 5 * 8, moved=4 * (180 + 30 + 150)),
    *both("_euclidean_dist", A, B, flops=2 * FEW * 8, moved=4 * (42 + 30 + FEW)),
    *both(
        "_euclidean_dist",
        *(A, B),
        flops=2 * 2 * FEW * 6,
        moved=4 * (2 * (42 + 30) + 2 * FEW),
        direction="bprop",
    ),
    Example(
        python("torch", "cdist", A, B, compute_mode="use_mm_for_euclid_dist"),
        2 * FEW * 8,
        4 * (42 + 30 + FEW),
    ),
    Example(aten("cdist", fp32(30, 6), B, 2.0, 2), 150 * 38, 4 * (180 + 30 + 150)),
    Example(sizes("cdist", (30, 6), (5, 6), (), ()), 2 * 30 * 5 * 8, None),
    *both("pdist _pdist_forward", X, 2.0, flops=21 * (3 * 6 + 20), moved=4 * (42 + 21)),
    *both("pdist", X, 2.0, flops=21 * 8 * 6, moved=4 * (2 * 42 + 2 * 21), direction="bprop"),
    *both("_pdist_backward", fp32(21), X, 2.0, fp32(21), flops=21 * 8 * 6, moved=4 * (84 + 42)),
]

# 10 steps, a batch of 2, 5 classes; targets of 3 labels: 2 * 3 + 1 states.
STEPS, STATES = 10, 2 * (2 * 3 + 1)
T, LABELLED = fp32(10, 2, 5), int64(2, 3)
LENGTHS = ((10, 10), (3, 3))
CTC = [
    *both(
        "ctc_loss _ctc_loss",
        *(T, LABELLED, *LENGTHS, 0),
        flops=89 * STEPS * STATES,
        moved=4 * 100 + 8 * 6 + 4 * STEPS * STATES + 4 * 2,
    ),
    *both(
        "ctc_loss",
        *(T, int64(6), *LENGTHS, 0),
        flops=155 * STEPS * STATES + 44 * 100,
        moved=4 * 2 + 2 * 4 * 100 + 8 * 6 + 2 * 4 * STEPS * STATES,
        direction="bprop",
    ),
    *both(
        "_cudnn_ctc_loss miopen_ctc_loss",
        *(T, LABELLED, *LENGTHS, 0, False, True),
        flops=244 * STEPS * STATES + 44 * 100,
        moved=2 * 4 * 100 + 8 * 6 + 4 * 2,
    ),
    *both(
        "_ctc_loss_backward",
        *(fp32(2), T, LABELLED, *LENGTHS, fp32(2), fp32(2, 10, 7), 0),
        flops=155 * STEPS * STATES + 44 * 100,
        moved=4 * 2 + 2 * 4 * 100 + 8 * 6 + 2 * 4 * STEPS * STATES,
    ),
    Example(
        aten("ctc_loss", T, LABELLED, int64(2), int64(2), 0, 1, False),
        89 * STEPS * STATES,
        4 * 100 + 8 * 6 + 4 * STEPS * STATES + 4 * 2,
    ),
    Example(sizes("_ctc_loss", (10, 2, 5), (2, 3), (), (), ()), 89 * STEPS * STATES, None),
]

EXAMPLES = [*DISTANCES, *CTC]


def test_what_depends_on_values_is_not_exact() -> None:
    for call in (aten("ctc_loss", T, LABELLED, *LENGTHS), aten("cdist", A, B, UNKNOWN, UNKNOWN)):
        done = work(call, "fprop")
        assert done is not None
        assert not done.cost.exact


def test_distances_of_no_vectors_cost_no_flops() -> None:
    for call in (
        python("torch", "cdist", fp32(0, 6), fp32(5, 6)),
        python("torch", "pdist", fp32(1, 6)),
    ):
        done = work(call, "fprop")
        assert done is not None
        assert done.cost.flops == 0


def test_distances_by_a_product_may_use_tensor_cores() -> None:
    done = work(python("torch", "cdist", fp32(30, 6), B), "fprop")
    few = work(python("torch", "cdist", A, B), "fprop")
    assert done is not None and few is not None
    assert "TF32" in done.parts[0].no_tensor_cores
    assert few.parts[0].no_tensor_cores == ""


@pytest.mark.parametrize(
    "call",
    [
        python("torch", "cosine_similarity", X, X, 2),
        python("torch", "cosine_similarity", fp32(), fp32()),
        python("torch", "cdist", A, fp32(5, 7)),
        python("torch", "cdist", fp32(6), fp32(6)),
        python("torch", "pdist", fp32(2, 3, 4)),
        python(F, "ctc_loss", fp32(10), int64(3), (10,), (3,)),
    ],
)
def test_a_malformed_distance_has_no_cost(call: Call) -> None:
    assert work(call, "fprop") is None
