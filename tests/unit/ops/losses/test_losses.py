"""Losses: FLOPs and bytes by hand."""

from functools import partial
from typing import Any

from fastprof.model.call import UNKNOWN
from fastprof.ops import work
from unit.ops.ops_calls import aten, fp16, fp32, int64, python, sizes, tensor
from unit.ops.ops_examples import Example, Rows, cost, exact
from unit.ops.ops_examples import both as both_of

both = partial(both_of, mod="torch._C._nn")

F = "torch.nn.functional"
rows = Rows(globals())
two = Rows(globals(), "torch._C._nn", "aten")
nn = Rows(globals(), F)
X = fp32(7, 6)
N = 7 * 6
ONE = 4  # bytes of a reduced loss
LOSS = fp32()


def of_elements(name: str, forward: int, backward: int) -> list[Example]:
    """A loss of (x, target, reduction): FLOPs per element without the reduction."""
    kept, added = "none", "mean"
    return [
        *both(name, X, X, 1, flops=(forward + 1) * N, moved=4 * 2 * N + ONE),
        *both(name, X, X, 0, flops=forward * N, moved=4 * 3 * N),
        *both(name, X, X, 2, flops=backward * N, moved=4 * 3 * N + ONE, direction="bprop"),
        *both(name, X, X, 0, flops=backward * N, moved=4 * 4 * N, direction="bprop"),
        Example(python(F, name, X, X, reduction=kept), forward * N, 4 * 3 * N),
        Example(python(F, name, X, X), (forward + 1) * N, 4 * 2 * N + ONE, "[7,6]fp32;[7,6]fp32"),
        Example(python(F, name, fp16(7, 6), X, reduction=added), (forward + 1) * N, 6 * N + ONE),
        Example(sizes(name, (7, 6), (7, 6), ()), (forward + 1) * N, None),
    ]


def of_gradients(name: str, flops: int, *more: Any) -> list[Example]:
    return [
        *both(name, LOSS, X, X, *more, flops=flops * N, moved=4 * 3 * N + ONE),
        *both(name, X, X, X, *more, flops=flops * N, moved=4 * 4 * N),
        Example(sizes(name, (), (7, 6), (7, 6)), flops * N, None),
    ]


PAIRS = [
    *of_elements("mse_loss", 2, 3),
    *of_elements("l1_loss", 2, 3),
    *of_elements("smooth_l1_loss", 6, 6),
    *of_elements("huber_loss", 5, 5),
    *of_elements("soft_margin_loss", 20 + 20 + 2, 20 + 5),
    *of_gradients("mse_loss_backward", 3, 1),
    *of_gradients("l1_loss_backward", 3, 1),
    *of_gradients("smooth_l1_loss_backward", 6, 1, 1.0),
    *of_gradients("huber_loss_backward", 5, 1, 1.0),
    *of_gradients("soft_margin_loss_backward", 25, 1),
    # Legacy arguments before reduction, and a weight after it.
    *nn("mse_loss X X - - 'none'", 2 * N, 4 * 3 * N),
    *nn("mse_loss X X - false", 2 * N, 4 * 3 * N),
    *nn("mse_loss X X weight=X", 4 * N, 4 * 3 * N + ONE),
    *nn("mse_loss X X - - 'sum' fp32[6]", 4 * N, 4 * (2 * N + 6) + ONE),
    *nn("smooth_l1_loss X X - - 'none' 0.5", 6 * N, 4 * 3 * N),
    *nn("huber_loss X X 'none' 1.0 X", 6 * N, 4 * 4 * N),
    *rows("smooth_l1_loss X X 0 1.0", 6 * N, 4 * 3 * N),
    *nn("hinge_embedding_loss X X 1.0 - - 'none'", 5 * N, 4 * 3 * N),
    *two("hinge_embedding_loss X X 1.0 1", 6 * N, 4 * 2 * N + ONE),
    *two.back("hinge_embedding_loss X X", 3 * N, 4 * 3 * N + ONE),
    # A broadcast target is read at its own size.
    *nn("mse_loss X fp32[7,1] reduction='none'", 2 * N, 4 * (2 * N + 7)),
]

PROBABILITIES = [
    *of_elements("binary_cross_entropy", 46, 6)[8:],
    *two("binary_cross_entropy X X - 1", 47 * N, 4 * 2 * N + ONE),
    *two("binary_cross_entropy X X fp32[6] 0", 47 * N, 4 * (3 * N + 6)),
    *two.back("binary_cross_entropy X*3", 7 * N, 4 * 4 * N + ONE),
    *two("binary_cross_entropy_backward LOSS X X - 1", 6 * N, 4 * 3 * N + ONE),
    *two("binary_cross_entropy_backward X*4 0", 7 * N, 4 * 5 * N),
    *nn(
        "binary_cross_entropy_with_logits X*3 - - 'none' fp32[6]", (44 + 1 + 4) * N, 4 * (4 * N + 6)
    ),
    *two("binary_cross_entropy_with_logits X X - - 1", 45 * N, 4 * 2 * N + ONE),
    *two.back(
        "binary_cross_entropy_with_logits X X - fp32[6] 2", (24 + 4) * N, 4 * (3 * N + 6) + ONE
    ),
    *two("kl_div X X 1 false", 24 * N, 4 * 2 * N + ONE),
    *two("kl_div X X 0 true", 22 * N, 4 * 3 * N),
    *two.back("kl_div X X 0 true", 21 * N, 4 * 3 * N),
    *two.back("kl_div X X 1 false", N, 4 * 2 * N + ONE),
    *nn("kl_div X X reduction='batchmean'", 24 * N, 4 * 2 * N + ONE),
    *nn("kl_div X X - - 'none' true", 22 * N, 4 * 3 * N),
    *two("poisson_nll_loss X X true false 1e-8 0", 22 * N, 4 * 3 * N),
    *two("poisson_nll_loss X X false true 1e-8 0", 70 * N, 4 * 3 * N),
    *two.back("poisson_nll_loss X X true false 1e-8 1", 22 * N, 4 * 3 * N + ONE),
    *nn("poisson_nll_loss X X false false - 1e-8 - 'none'", 23 * N, 4 * 3 * N),
    *nn("gaussian_nll_loss X*3", 27 * N, 4 * 3 * N + ONE),
    *nn("gaussian_nll_loss X X fp32[7] true reduction='none'", 27 * N, 4 * (3 * N + 7)),
    *nn("gaussian_nll_loss X X 0.5", 27 * N, 4 * 2 * N + ONE),
    *nn.back("gaussian_nll_loss X*3", 8 * N, 4 * 5 * N + ONE),
    *two("margin_ranking_loss X*3 0.0 1", 5 * N, 4 * 3 * N + ONE),
    *two.back("margin_ranking_loss X*3 0.0 0", 3 * N, 4 * 6 * N),
    *nn("margin_ranking_loss X*3 0.0 - - 'none'", 4 * N, 4 * 4 * N),
    *rows("poisson_nll_loss [7,6] [7,6] [] [] [] []", 23 * N, None),
    *rows("kl_div [7,6] [7,6] [] []", 24 * N, None),
]

LABELS = int64(7)
CLASSES = [
    *nn("multilabel_soft_margin_loss X X", 87 * N, 4 * 2 * N + ONE),
    *nn("multilabel_soft_margin_loss X X fp32[6] reduction='none'", 88 * N, 4 * (2 * N + 6 + 7)),
    *nn.back("multilabel_soft_margin_loss X X", 24 * N, 4 * 3 * N + ONE),
    *two("multi_margin_loss X LABELS 1 1 - 1", 4 * N, 4 * N + 8 * 7 + ONE),
    *two("multi_margin_loss X LABELS 2 1 fp32[6] 0", 6 * N, 4 * (N + 13) + 56),
    *two.back("multi_margin_loss X LABELS 1 1 - 1", 4 * N, 4 * 2 * N + 56 + ONE),
    *two("multi_margin_loss_backward LOSS X LABELS 1 1 - 1", 4 * N, 4 * 2 * N + 56 + ONE),
    *nn("multi_margin_loss X LABELS reduction='none'", 4 * N, 4 * (N + 7) + 56),
    # The number of targets per row is unknown, and so are the FLOPs.
    *two(
        "multilabel_margin_loss|multilabel_margin_loss_forward X int64[7,6] 1",
        *(None, (4 + 8 + 4) * N + ONE),
    ),
    *two.back("multilabel_margin_loss X int64[7,6] 1", None, (4 + 8 + 4 + 4) * N + ONE),
    *two("multilabel_margin_loss_backward LOSS X int64[7,6] 1 X", None, (4 + 8 + 4 + 4) * N + ONE),
]

# Log probabilities of 6 classes for 7 rows; of 3 classes for images.
PIXELS, TARGETS = fp32(2, 3, 4, 5), int64(2, 4, 5)
NLL = 8 * 7 + 4 * 7 + ONE + 4  # targets, picked elements, loss, sum of weights
NLL_BACKWARD = ONE + 8 * 7 + 4 + 4 * N
LIKELIHOOD = [
    *two("nll_loss|nll_loss_nd|nll_loss_forward X LABELS - 1 -100", 7, NLL),
    *two("nll_loss X LABELS fp32[6] 1 -100", 3 * 7, NLL + 4 * 6),
    *two("nll_loss X LABELS - 0 -100", 0, 8 * 7 + 2 * 4 * 7),
    *two(
        "nll_loss2d|nll_loss2d_forward PIXELS TARGETS fp32[3] 0 -100",
        *(40, 8 * 40 + 4 * 3 + 2 * 4 * 40),
    ),
    *two.back("nll_loss X LABELS - 1 -100", 7, NLL_BACKWARD),
    *two("nll_loss_backward LOSS X LABELS - 1 -100 fp32[]", 7, NLL_BACKWARD),
    *two(
        "nll_loss2d_backward fp32[2,4,5] PIXELS TARGETS fp32[3] 0 -100 fp32[]",
        *(2 * 40, 4 * 40 + 8 * 40 + 4 * 3 + 4 + 4 * 120),
    ),
    *nn("nll_loss X LABELS", 7, NLL),
    *nn("nll_loss X LABELS - - -100 - 'none'", 0, 8 * 7 + 8 * 7),
    *nn("nll_loss X LABELS - - -100 false", 0, 8 * 7 + 8 * 7),
    *nn("nll_loss fp32[6] int64[]", 1, 8 + 4 + ONE + 4),
    *rows("nll_loss_forward [7,6] [7] [6] [] []", 3 * 7, None),
    *rows("nll_loss_backward [] [7,6] [7] [] [] [] []", 7, None),
]

LOGITS = 24 * N  # log_softmax: x read, log probabilities written
ENTROPY = [
    *nn("cross_entropy X LABELS", LOGITS + 7, 4 * 2 * N + NLL, "[7,6]fp32;[7]int64"),
    *two("cross_entropy_loss X LABELS - 1 -100 0.0", LOGITS + 7, 8 * N + NLL),
    *two.back("cross_entropy_loss X LABELS - 1 -100 0.0", 23 * N + 7, 4 * 3 * N + NLL_BACKWARD),
    *nn(
        "cross_entropy X LABELS label_smoothing=0.1",
        *(LOGITS + 7 + N + 4 * 7, 4 * 2 * N + NLL + 4 * N),
    ),
    *nn.back(
        "cross_entropy X LABELS label_smoothing=0.1",
        *(23 * N + 7 + N, 4 * 3 * N + NLL_BACKWARD + 4 * N),
    ),
    # Probabilities in place of classes.
    *nn("cross_entropy X X", LOGITS + 2 * N, 4 * 2 * N + 4 * 2 * N + ONE),
    *nn(
        "cross_entropy X X fp32[6] reduction='none'",
        *(LOGITS + 3 * N, 4 * 2 * N + 4 * (2 * N + 6 + 7)),
    ),
    *nn.back("cross_entropy X X", 23 * N + 2 * N, 4 * 3 * N + 4 * 2 * N + ONE),
    *nn(
        "cross_entropy fp16[7,6] LABELS - - -100 - 'mean' 0.0",
        *(LOGITS + 7, 2 * 2 * N + 8 * 7 + 2 * 7 + 2 + 2),
    ),
    *rows("cross_entropy_loss [7,6] [7] [] [] [] []", LOGITS + 7, None),
    *rows("cross_entropy_loss [7,6] [7,6] [] [] [] []", LOGITS + 2 * N, None),
]

EXAMPLES = [*PAIRS, *PROBABILITIES, *CLASSES, *LIKELIHOOD, *ENTROPY]


def test_a_reduction_that_is_not_known_is_taken_for_the_mean_and_is_not_exact() -> None:
    unsure, sure = aten("mse_loss", X, X, UNKNOWN), aten("mse_loss", X, X, 1)
    assert (exact(unsure), exact(sure)) == (False, True)
    costs = [work(call, "fprop") for call in (unsure, sure)]
    assert costs[0] is not None and costs[1] is not None
    assert costs[0].cost.bytes == costs[1].cost.bytes


def test_what_depends_on_values_is_not_exact() -> None:
    assert not exact(aten("cross_entropy_loss", X, LABELS, None, 1, -100, UNKNOWN))
    assert exact(aten("cross_entropy_loss", X, LABELS, None, 1, -100, 0.0))


def test_a_cross_entropy_is_its_log_softmax_and_its_nll_loss() -> None:
    for direction in ("fprop", "bprop"):
        whole = work(python(F, "cross_entropy", X, LABELS), direction)
        inner = [
            work(call, direction)
            for call in (aten("log_softmax", X, 1), aten("nll_loss", X, LABELS, None, 1, -100))
        ]
        assert whole is not None and inner[0] is not None and inner[1] is not None
        assert whole.cost == inner[0].cost + inner[1].cost


def test_losses_of_no_rows_cost_no_flops() -> None:
    for call in (
        python(F, "mse_loss", fp32(0, 6), fp32(0, 6)),
        python(F, "cross_entropy", fp32(0, 6), int64(0)),
    ):
        assert cost(call).flops == 0


MALFORMED = [
    python(F, "mse_loss", X),
    python(F, "mse_loss", X, 1.0),
    python(F, "mse_loss", X, fp32(5)),
    python(F, "mse_loss", X, X, reduction="best"),
    aten("mse_loss", X, X, 7),
    aten("mse_loss_backward", fp32(3), X, X, 1),
    python(F, "nll_loss", X, int64(6)),
    python(F, "nll_loss", X, LABELS, fp32(5)),
    python(F, "nll_loss", fp32(), int64()),
    python(F, "cross_entropy", X, int64(7, 5)),
    python(F, "cross_entropy", X, X, fp32(5)),
    aten("multilabel_margin_loss", X, tensor("int64", 7), 1),
]
