"""Fused cross entropy and divergences, some including the model's last product.

Sources: src/liger_kernel/ops in linkedin/Liger-Kernel; apex/contrib/xentropy in NVIDIA/apex;
flash_attn/losses/cross_entropy.py in Dao-AILab/flash-attention;
transformer_engine/pytorch/cross_entropy.py in NVIDIA/TransformerEngine;
unsloth/kernels/cross_entropy_loss.py in unslothai/unsloth.
"""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor
from fastprof.ops.arithmetic import EXPONENTIAL, LOGARITHM
from fastprof.ops.cost import Answer, CannotModel, Cost, Part, Work, add_known
from fastprof.ops.matrix.product import GEMM, Product
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts

# For each score: its largest 1, difference 1, exponential 20, sum 1; then the gradient's, from the
# scores again: difference 1, exponential 20, product 1, target subtracted 1.
_SUM: Final = EXPONENTIAL + 3
_GRADIENT: Final = EXPONENTIAL + 3


def _rows(scores: Tensor, targets: Tensor) -> int:
    rows = elements(scores.shape[:-1])
    if not scores.shape or elements(targets.shape) != rows:
        raise CannotModel(f"targets {targets.shape} do not fit {scores.shape}")
    return rows


@operators("""
    (scores, targets, ...): aten::SoftmaxCrossEntropyLoss aten::CrossEntropyLoss
        aten::Fast_CrossEntropyLoss
""")
def fused_cross_entropy(scores: Tensor, targets: Tensor, *, direction: str) -> Answer:
    """log(sum of exp(x)) - x[t] of rows of scores x[.., classes].

    FLOPs: 23 per score (largest 1, difference 1, exponential 20, sum 1); backward the same
        (difference 1, exponential 20, product 1, target 1).
    Bytes: scores and targets read, loss and logarithm (4 bytes each) written; backward these and
        the scores read, their gradient written.
    """
    rows = _rows(scores, targets)
    kept = 2 * 4 * rows
    if direction == "bprop":
        moves = add_known(moved(scores, targets, fresh(scores)), kept)
        return Cost(elements(scores.shape) * _GRADIENT, moves), texts(scores, targets)
    moves = add_known(moved(scores, targets), kept)
    return Cost(elements(scores.shape) * _SUM, moves), texts(scores, targets)


@operators("(scores, targets, ...): aten::LigerCrossEntropyFunction aten::CrossEntropyFunction")
def liger_cross_entropy_function(scores: Tensor, targets: Tensor, *, direction: str) -> Answer:
    """log(sum of exp(x)) - x[t] of rows of scores x[.., classes]; the gradient overwrites the
    scores.

    FLOPs: 46 per score (sum 23, gradient 23); backward 1 (times the loss's gradient).
    Bytes: scores read twice and their gradient written, targets read, 4 bytes per row written;
        backward the gradient read and written.

    Backward is an estimate: torch skips it if the loss's gradient is 1.
    """
    rows = _rows(scores, targets)
    count = elements(scores.shape)
    if direction == "bprop":
        return Cost(count, moved(scores, scores), exact=False), texts(scores, targets)
    moves = add_known(moved(scores, scores, scores, targets), 4 * rows)
    return Cost(count * (_SUM + _GRADIENT), moves), texts(scores, targets)


@operators("(x, weight, targets, bias, ...): aten::LigerFusedLinearCrossEntropyFunction")
def liger_fused_linear_cross_entropy_function(
    x: Tensor, weight: Tensor, targets: Tensor, bias: Tensor | None = None, *, direction: str
) -> Work:
    """Cross entropy of scores x[rows, k] @ w[classes, k]^T, all gradients at once.

    FLOPs: 6 rows classes k, three products, and 46 per score; backward one for each element of the
        gradients (times the loss's gradient).
    Bytes: for each product both operands read and the result written, scores read twice and their
        gradient written; backward the gradients of x and w read and written.

    Scores are computed in chunks of rows; rereading the weight for each chunk is not counted.
    Backward is an estimate: torch skips it if the loss's gradient is 1.
    """
    product = _product(x, weight)
    scores = Tensor((product.m, product.n), x.dtype)
    _rows(scores, targets)
    if direction == "bprop":
        return _scaled(x, weight, bias)
    return _at_once(product, ((product, 3),), [scores], moved(targets, bias))


def _product(x: Tensor, weight: Tensor) -> Product:
    if len(weight.shape) != 2 or not x.shape or x.shape[-1] != weight.shape[1]:
        raise CannotModel(f"cannot multiply {x.shape} and {weight.shape}")
    return Product(elements(x.shape[:-1]), weight.shape[0], weight.shape[1], x, weight)


def _at_once(
    first: Product,
    products: tuple[tuple[Product, int], ...],
    scores: list[Tensor],
    extra: int | None,
) -> Work:
    # The products are done by gemms; the loss and its gradient by other kernels.
    flops = sum(times * product.flops for product, times in products)
    each = [
        add_known(moved(product.left, product.right), product.output_bytes)
        for product, times in products
        for _ in range(times)
    ]
    params = first.params(first.n, first.m, first.k)
    count = sum(elements(one.shape) for one in scores)
    loss = Cost(
        count * (_SUM + _GRADIENT),
        add_known(moved(*scores, *scores, *scores), extra),
    )
    reason = first.no_tensor_cores(first.n, first.m, first.k)
    return Work(
        (
            Part("main", Cost(flops, add_known(*each)), params, kernels=GEMM,
                 no_tensor_cores=reason),
            Part("main", loss, texts(*scores)),
        )
    )  # fmt: skip


def _scaled(*tensors: Tensor | None) -> Work:
    given = [tensor for tensor in tensors if tensor is not None]
    count = sum(elements(tensor.shape) for tensor in given)
    cost = Cost(count, moved(*given, *given), exact=False)
    return Work((Part("main", cost, texts(*given)),))


@operators("""
    (x, targets, ...): aten::LigerKLDivLossFunction aten::LigerJSDFunction
        aten::LigerTVDLossFunction
""")
def liger_kl_div_loss_function(x: Tensor, targets: Tensor, *, direction: str) -> Answer:
    """Divergence of two distributions [.., classes], elementwise, summed by row.

    FLOPs: 45 per element (an exponential and a logarithm 40, product, difference, sums 5); backward
        1. The total variation has 3: an upper bound.
    Bytes: both read, losses of x's size written; backward the gradient read and written.
    """
    if x.shape != targets.shape:
        raise CannotModel(f"targets {targets.shape} do not fit {x.shape}")
    count = elements(x.shape)
    if direction == "bprop":
        return Cost(count, moved(x, x), exact=False), texts(x, targets)
    flops = count * (EXPONENTIAL + LOGARITHM + 5)
    return Cost(flops, moved(x, targets, fresh(x)), exact=False), texts(x, targets)


@operators("(x, weight, teacher, teacher_weight, ...): aten::LigerFusedLinearJSDFunction")
def liger_fused_linear_jsd_function(
    x: Tensor, weight: Tensor, teacher: Tensor, teacher_weight: Tensor, *, direction: str
) -> Work:
    """Divergence of the scores of a model x @ w^T and of a teacher's, all gradients at once.

    FLOPs: 6 rows classes k for the model, three products, 2 rows classes k' for the teacher, and 46
        for each score; backward one for each element of the gradients.
    Bytes: for each product both operands read and the result written, both scores read twice and
        written; backward the gradients of x and w read and written.
    """
    product, given = _product(x, weight), _product(teacher, teacher_weight)
    if (product.m, product.n) != (given.m, given.n):
        raise CannotModel(f"scores of {x.shape} and {teacher.shape} differ in size")
    if direction == "bprop":
        return _scaled(x, weight)
    scores = [Tensor((each.m, each.n), each.left.dtype) for each in (product, given)]
    return _at_once(product, ((product, 3), (given, 1)), scores, 0)
