"""Distances, distance-based losses, and CTC: FLOPs and bytes by hand."""

from functools import partial

from fastprof.model.call import UNKNOWN
from fastprof.ops import work
from unit.ops.ops_calls import aten, fp32, int64, python
from unit.ops.ops_examples import Rows, cost
from unit.ops.ops_examples import both as both_of

both = partial(both_of, mod="torch._C._nn")

F = "torch.nn.functional"
rows = Rows(globals())
two = Rows(globals(), "torch._C._nn", "aten")
nn = Rows(globals(), F)
X = fp32(7, 6)
N = 7 * 6
ONE = 4  # bytes of a reduced loss


A, B = fp32(7, 6), fp32(5, 6)
FEW = 7 * 5  # distances
DISTANCES = [
    *two("cosine_similarity X X 1 1e-8", 6 * N + 23 * 7, 4 * (2 * N + 7)),
    *two.back("cosine_similarity X X 1", 8 * N, 4 * (4 * N + 7)),
    *nn("cosine_similarity X X dim=0", 6 * N + 23 * 6, 4 * (2 * N + 6)),
    *two("cosine_embedding_loss X X fp32[7] 0.0 1", 6 * N + 30 * 7, 4 * (2 * N + 7) + ONE),
    *two.back("cosine_embedding_loss X X fp32[7] 0.0 0", 8 * N, 4 * (4 * N + 7 + 7)),
    *nn("cosine_embedding_loss X X fp32[7] 0.0 - - 'none'", 6 * N + 29 * 7, 4 * (2 * N + 7 + 7)),
    *two("pairwise_distance X X 2.0 1e-6", 4 * N + 20 * 7, 4 * (2 * N + 7)),
    *two("pairwise_distance X X 1.0", 4 * N, 4 * (2 * N + 7)),
    *two.back("pairwise_distance X X", 4 * N, 4 * (4 * N + 2 * 7)),
    *two(
        "triplet_margin_loss X*3 1.0 2.0 1e-6 false 1",
        *(2 * (4 * N + 20 * 7) + 4 * 7, 4 * 3 * N + ONE),
    ),
    *two(
        "triplet_margin_loss X*3 1.0 2.0 1e-6 true 0", 3 * (4 * N + 20 * 7) + 4 * 7, 4 * (3 * N + 7)
    ),
    *two.back("triplet_margin_loss X*3 1.0 2.0 1e-6 false 1", 2 * 4 * N, 4 * 6 * N + ONE),
    *nn("triplet_margin_loss X*3 reduction='none'", 2 * (4 * N + 20 * 7) + 3 * 7, 4 * (3 * N + 7)),
    *two("cdist A B 2.0", FEW * (3 * 6 + 20), 4 * (42 + 30 + FEW)),
    *two("_cdist_forward A B 1.0 -", FEW * 3 * 6, 4 * (42 + 30 + FEW)),
    *two.back("cdist A B 2.0", 8 * 6 * FEW, 4 * (2 * (42 + 30) + 2 * FEW)),
    *two("_cdist_backward fp32[7,5] A B 2.0 fp32[7,5]", 4 * 6 * FEW, 4 * 184),
    # More than 25 vectors on a side: one product of [30, 6 + 2] and [5, 6 + 2].
    *two("cdist fp32[30,6] B 2.0", 2 * 30 * 5 * 8, 4 * (180 + 30 + 150)),
    *two("_euclidean_dist A B", 2 * FEW * 8, 4 * (42 + 30 + FEW)),
    *two.back("_euclidean_dist A B", 2 * 2 * FEW * 6, 4 * (2 * (42 + 30) + 2 * FEW)),
    *rows(
        "torch.cdist A B compute_mode='use_mm_for_euclid_dist'", 2 * FEW * 8, 4 * (42 + 30 + FEW)
    ),
    *rows("cdist fp32[30,6] B 2.0 2", 150 * 38, 4 * (180 + 30 + 150)),
    *rows("cdist [30,6] [5,6] [] []", 2 * 30 * 5 * 8, None),
    *two("pdist|_pdist_forward X 2.0", 21 * (3 * 6 + 20), 4 * (42 + 21)),
    *two.back("pdist X 2.0", 21 * 8 * 6, 4 * (2 * 42 + 2 * 21)),
    *two("_pdist_backward fp32[21] X 2.0 fp32[21]", 21 * 8 * 6, 4 * (84 + 42)),
]

# 10 steps, a batch of 2, 5 classes; targets of 3 labels: 2 * 3 + 1 states.
STEPS, STATES = 10, 2 * (2 * 3 + 1)
T, LABELLED = fp32(10, 2, 5), int64(2, 3)
LENGTHS = ((10, 10), (3, 3))
CTC = [
    *two(
        "ctc_loss|_ctc_loss T LABELLED *LENGTHS 0",
        *(89 * STEPS * STATES, 4 * 100 + 8 * 6 + 4 * STEPS * STATES + 4 * 2),
    ),
    *two.back(
        "ctc_loss T int64[6] *LENGTHS 0",
        *(155 * STEPS * STATES + 44 * 100, 4 * 2 + 2 * 4 * 100 + 8 * 6 + 2 * 4 * STEPS * STATES),
    ),
    *two(
        "_cudnn_ctc_loss|miopen_ctc_loss T LABELLED *LENGTHS 0 false true",
        *(244 * STEPS * STATES + 44 * 100, 2 * 4 * 100 + 8 * 6 + 4 * 2),
    ),
    *two(
        "_ctc_loss_backward fp32[2] T LABELLED *LENGTHS fp32[2] fp32[2,10,7] 0",
        *(155 * STEPS * STATES + 44 * 100, 4 * 2 + 2 * 4 * 100 + 8 * 6 + 2 * 4 * STEPS * STATES),
    ),
    *rows(
        "ctc_loss T LABELLED int64[2] int64[2] 0 1 false",
        *(89 * STEPS * STATES, 4 * 100 + 8 * 6 + 4 * STEPS * STATES + 4 * 2),
    ),
    *rows("_ctc_loss [10,2,5] [2,3] [] [] []", 89 * STEPS * STATES, None),
]

EXAMPLES = [*DISTANCES, *CTC]


def test_what_depends_on_values_is_not_exact() -> None:
    for call in (aten("ctc_loss", T, LABELLED, *LENGTHS), aten("cdist", A, B, UNKNOWN, UNKNOWN)):
        assert not cost(call).exact


def test_distances_of_no_vectors_cost_no_flops() -> None:
    for call in (
        python("torch", "cdist", fp32(0, 6), fp32(5, 6)),
        python("torch", "pdist", fp32(1, 6)),
    ):
        assert cost(call).flops == 0


def test_distances_by_a_product_may_use_tensor_cores() -> None:
    done = work(python("torch", "cdist", fp32(30, 6), B), "fprop")
    few = work(python("torch", "cdist", A, B), "fprop")
    assert done is not None and few is not None
    assert "TF32" in done.parts[0].no_tensor_cores
    assert few.parts[0].no_tensor_cores == ""


MALFORMED = [
    python("torch", "cosine_similarity", X, X, 2),
    python("torch", "cosine_similarity", fp32(), fp32()),
    python("torch", "cdist", A, fp32(5, 7)),
    python("torch", "cdist", fp32(6), fp32(6)),
    python("torch", "pdist", fp32(2, 3, 4)),
    python(F, "ctc_loss", fp32(10), int64(3), (10,), (3,)),
]
