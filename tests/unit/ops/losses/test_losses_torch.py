"""Softmax and losses against torch: overloads are read, bytes are those of inputs and outputs."""

import random
from typing import Any

import pytest

from fastprof.ops import work

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from support.record_calls import aten_calls, python_calls, recorded  # noqa: E402
from unit.ops.overload_calls import served_by  # noqa: E402

MODULES = ("losses",)
functional = torch.nn.functional
random.seed(13)
ROWS, CLASSES = random.randint(2, 9), random.randint(3, 9)


def x(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.rand(*(shape or (ROWS, CLASSES)), dtype=dtype) * 0.8 + 0.1


def labels(*shape: int) -> Any:
    return torch.randint(0, 3, shape or (ROWS,))


LOSS, TOTAL = torch.ones(()), torch.ones(())
MASK = torch.rand(ROWS, CLASSES) > 0.5
WEIGHT = torch.rand(CLASSES)
ELEMENTWISE = [
    (f"{name}{backward}", (*gradient, x(), x(), reduction, *more))
    for name, more in (
        ("mse_loss", ()),
        ("smooth_l1_loss", (0.5,)),
        ("huber_loss", (0.5,)),
        ("soft_margin_loss", ()),
    )
    for backward, gradient in (("", ()), ("_backward", (LOSS,)))
    for reduction in (0, 1, 2)
    if not backward or reduction
]
# Bytes are those of inputs and outputs.
READ_AND_WRITTEN = [
    ("_softmax", (x(), 1, False)),
    ("_log_softmax", (x(dtype=torch.float64), -1, False)),
    ("_softmax_backward_data", (x(), x(), 1, torch.float32)),
    ("_log_softmax_backward_data", (x(), x(), 1, torch.float32)),
    ("_safe_softmax", (x(), 1)),
    ("_safe_softmax", (x(dtype=torch.float16), 1, torch.float32)),
    ("softmax.int", (x(dtype=torch.bfloat16), 1, torch.float64)),
    ("log_softmax.int", (x(), 1)),
    ("special_softmax", (x(), 0)),
    ("special_log_softmax", (x(), 0)),
    ("_masked_softmax", (x(), MASK, 1, 2)),
    ("_masked_softmax_backward", (x(), x(), MASK, 1)),
    *ELEMENTWISE,
    ("l1_loss", (x(), x(), 0)),
    ("l1_loss", (x(), x(), 1)),
    ("hinge_embedding_loss", (x(), x(), 1.0, 0)),
    ("binary_cross_entropy", (x(), x(), None, 1)),
    ("binary_cross_entropy", (x(), x(), x(), 0)),
    ("binary_cross_entropy_backward", (LOSS, x(), x(), x(), 1)),
    ("binary_cross_entropy_with_logits", (x(), x(), None, WEIGHT, 1)),
    ("kl_div", (x(), x(), 1)),
    ("poisson_nll_loss", (x(), x(), True, False, 1e-8, 0)),
    ("margin_ranking_loss", (x(), x(), x(), 0.1, 2)),
    ("multi_margin_loss", (x(), labels(), 1, 1, None, 0)),
    ("multi_margin_loss_backward", (LOSS, x(), labels(), 2, 1, WEIGHT, 1)),
    ("multilabel_margin_loss_forward", (x(), labels(ROWS, CLASSES), 1)),
    ("multilabel_margin_loss_backward", (LOSS, x(), labels(ROWS, CLASSES), 1, x())),
    ("cosine_similarity", (x(), x(), 1)),
    ("cosine_embedding_loss", (x(), x(), torch.ones(ROWS), 0.0, 0)),
    ("pairwise_distance", (x(), x(), 2.0)),
    ("triplet_margin_loss", (x(), x(), x())),
    ("cdist", (x(), x(2, CLASSES), 1.0)),
    ("cdist", (x(), x(40, CLASSES))),
    ("_cdist_forward", (x(3, ROWS, CLASSES), x(3, 2, CLASSES), 2.0, None)),
    ("_cdist_backward", (x(ROWS, 2), x(), x(2, CLASSES), 2.0, x(ROWS, 2))),
    ("_euclidean_dist", (x(), x(2, CLASSES))),
    ("pdist", (x(),)),
    ("_pdist_forward", (x(),)),
    ("_pdist_backward", (x(ROWS * (ROWS - 1) // 2), x(), 2.0, x(ROWS * (ROWS - 1) // 2))),
]
T = torch.randn(6, 2, CLASSES).log_softmax(2)
LENGTHS = ((6, 6), (2, 2))
FORWARD_VARIABLES = torch.ops.aten._ctc_loss(T, labels(2, 2), *LENGTHS)
# A likelihood reads only picked elements of x; a cross entropy keeps log probabilities internal.
OTHERS = [
    *((name, (x(), labels(), None, 1, -100)) for name in ("nll_loss", "nll_loss_forward")),
    ("nll_loss_nd", (x(2, 3, 4), labels(2, 4), None, 0)),
    ("nll_loss2d", (x(2, 3, 4, 5), labels(2, 4, 5), torch.rand(3), 1, -100)),
    ("nll_loss2d_forward", (x(2, 3, 4, 5), labels(2, 4, 5), None, 1, -100)),
    ("nll_loss_backward", (LOSS, x(), labels(), WEIGHT, 1, -100, TOTAL)),
    ("nll_loss2d_backward", (LOSS, x(2, 3, 4, 5), labels(2, 4, 5), None, 1, -100, TOTAL)),
    ("cross_entropy_loss", (x(), labels())),
    ("cross_entropy_loss", (x(), x(), WEIGHT, 0, -100, 0.1)),
    ("multilabel_margin_loss", (x(), labels(ROWS, CLASSES), 1)),
    ("ctc_loss.IntList", (T, labels(2, 2), *LENGTHS)),
    ("ctc_loss.Tensor", (T, labels(2, 2), torch.tensor([6, 6]), torch.tensor([2, 2]))),
    ("_ctc_loss", (T, labels(4), *LENGTHS)),
    ("_ctc_loss_backward", (torch.ones(2), T, labels(2, 2), *LENGTHS, *FORWARD_VARIABLES, 0)),
]
CASES = READ_AND_WRITTEN + OTHERS
NOT_CALLED = {"_cudnn_ctc_loss", "miopen_ctc_loss"}  # on GPUs only


def steps() -> dict[str, Any]:
    y, target = x(), labels()
    ones = torch.ones(ROWS)
    return {
        "softmax": lambda leaf: functional.softmax(leaf, -1, dtype=torch.float64),
        "log_softmax": lambda leaf: leaf.log_softmax(-1),
        "softmin": lambda leaf: functional.softmin(leaf, 1),
        "mse_loss": lambda leaf: functional.mse_loss(leaf, y, reduction="none"),
        "l1_loss": lambda leaf: functional.l1_loss(leaf, y),
        "smooth_l1_loss": lambda leaf: functional.smooth_l1_loss(leaf, y, beta=0.5),
        "huber_loss": lambda leaf: functional.huber_loss(leaf, y, "sum", 0.5),
        "soft_margin_loss": lambda leaf: functional.soft_margin_loss(leaf, y),
        "hinge_embedding_loss": lambda leaf: functional.hinge_embedding_loss(leaf, y),
        "binary_cross_entropy": lambda leaf: functional.binary_cross_entropy(leaf, y, WEIGHT),
        "binary_cross_entropy_with_logits": lambda leaf: (
            functional.binary_cross_entropy_with_logits(leaf, y, pos_weight=WEIGHT)
        ),
        "kl_div": lambda leaf: functional.kl_div(leaf, y, reduction="batchmean"),
        "poisson_nll_loss": lambda leaf: functional.poisson_nll_loss(leaf, y),
        "gaussian_nll_loss": lambda leaf: functional.gaussian_nll_loss(leaf, y, y),
        "margin_ranking_loss": lambda leaf: functional.margin_ranking_loss(leaf, y, y),
        "multi_margin_loss": lambda leaf: functional.multi_margin_loss(leaf, target),
        "multilabel_soft_margin_loss": lambda leaf: functional.multilabel_soft_margin_loss(leaf, y),
        "nll_loss": lambda leaf: functional.nll_loss(leaf, target, WEIGHT),
        "cross_entropy": lambda leaf: functional.cross_entropy(leaf, target, label_smoothing=0.1),
        "cosine_similarity": lambda leaf: functional.cosine_similarity(leaf, y, dim=-1),
        "cosine_embedding_loss": lambda leaf: functional.cosine_embedding_loss(leaf, y, ones),
        "pairwise_distance": lambda leaf: functional.pairwise_distance(leaf, y),
        "triplet_margin_loss": lambda leaf: functional.triplet_margin_loss(leaf, y, y, swap=True),
        "cdist": lambda leaf: torch.cdist(leaf, y),
        "pdist": lambda leaf: functional.pdist(leaf),
    }


@pytest.mark.parametrize("sizes", [(30, 5, 6), (26, 40, 3)])
def test_gradients_of_distances_by_a_product_count_what_torch_counts(sizes):
    rows, columns, length = sizes
    left = torch.randn(2, rows, length, requires_grad=True)
    right = torch.randn(2, columns, length, requires_grad=True)
    result = torch.cdist(left, right)
    with FlopCounterMode(display=False) as backward:
        result.sum().backward()
    (call,) = recorded(python_calls, lambda: torch.cdist(left, right))
    forward, done = work(call, "fprop"), work(call, "bprop")
    assert forward is not None and done is not None
    assert done.cost.flops == backward.get_total_flops()
    # The forward product is inside _euclidean_dist, where torch does not count.
    assert forward.cost.flops == 2 * 2 * rows * columns * (length + 2)


def test_distances_of_few_vectors_go_by_no_product():
    served = served_by(*MODULES)

    def of(count: int) -> list[str]:
        function = lambda: torch.cdist(torch.randn(count, 6), torch.randn(count, 6))  # noqa: E731
        return [call.op for call in recorded(aten_calls, function) if call.op in served]

    assert (of(25), of(26)) == (["_cdist_forward"], ["_euclidean_dist"])
