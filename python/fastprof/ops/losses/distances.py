"""FLOPs and bytes of elementwise losses, and of distances between vectors and their losses.

What torch computes by several kernels counts as one.
"""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import EXPONENTIAL, LOGARITHM, POWER, SIGMOID, SQUARE_ROOT
from fastprof.ops.cost import Answer, CannotModel, Cost, Part, Work, add_known
from fastprof.ops.dtypes import result_type
from fastprof.ops.matrix.matmul import GEMM
from fastprof.ops.normalisation.layer_norm import norm_of
from fastprof.ops.parameters import Flag, Int
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import broadcast, elements, fresh, moved, present, texts
from fastprof.ops.tensor_cores import why_not

# Python calls record "mean"; ATen calls record its number: 0 none, 1 mean, 2 sum. The legacy
# argument reduce=False of torch 0.4 is reduction="none".
_KEPT = ("none", 0)
_ADDED = ("mean", "sum", "batchmean", 1, 2)


class Reduce(NamedTuple):
    """The arguments of a call."""

    reduction: str | int | Unknown = "mean"
    reduce: bool | None = None

    def read(self, *others: object) -> Reduced:
        """The reduction of a loss; an unknown value among its other arguments makes it inexact.

        Raises CannotModel when the reduction is invalid.
        """
        if isinstance(self.reduction, Unknown):
            return Reduced(1, False)
        if self.reduction not in (*_KEPT, *_ADDED):
            raise CannotModel(f"expected reduction none, mean or sum, found {self.reduction!r}")
        kept = self.reduction in _KEPT or self.reduce is False
        return Reduced(0 if kept else 1, Unknown.UNKNOWN not in others)


class Reduced(NamedTuple):
    """The reduction of the elementwise losses.

    `added` is the FLOPs per element: 1 if reduced, else 0. `exact` is False if the reduction is not
    recorded; torch's default, a mean, is then assumed.
    """

    added: int
    exact: bool

    def loss(self, shape: tuple[int, ...], dtype: str | None) -> Tensor:
        """The loss that is written, and whose gradient is read."""
        return Tensor(() if self.added else shape, dtype)


# Arguments of the operator, of its Python binding, and of the function, which has legacy arguments
# before reduction.
_PLAIN: Final = (
    "x, target, reduction",
    "x, target, reduction, reduce, weight",
    "x, target, _, reduce, reduction, weight",
)
_SCALED: Final = (
    "x, target, reduction, _",
    "x, target, reduction, _, weight, reduce",
    "x, target, _, reduce, reduction, _",
)
_MARGIN: Final = (
    "x, target, _, reduction",
    "x, target, _, reduction, reduce",
    "x, target, _, _, reduce, reduction",
)


class _Loss(NamedTuple):
    """FLOPs per element forward and backward, and the formulas that they come from."""

    forward: int
    backward: int
    what: str
    forward_text: str
    backward_text: str
    arguments: tuple[str, str, str] = _PLAIN


_PAIRS: Final = {
    "mse_loss": _Loss(
        2, 3, "(x - t)^2", "subtracted, squared", "difference, times 2/n, times dloss"
    ),
    "l1_loss": _Loss(2, 3, "|x - t|", "subtracted, magnitude", "difference, sign, times dloss"),
    "smooth_l1_loss": _Loss(
        6,
        6,
        "(x - t)^2 / (2 beta) where |x - t| < beta, else |x - t| - beta / 2",
        "subtracted, magnitude, compared, 3 of the square",
        "difference, 2 comparisons, 3 products",
        _SCALED,
    ),
    "huber_loss": _Loss(
        5,
        5,
        "(x - t)^2 / 2 where |x - t| < delta, else delta (|x - t| - delta / 2)",
        "subtracted, magnitude, compared, 2 of the square",
        "difference, 2 comparisons, 2 products",
        _SCALED,
    ),
    "soft_margin_loss": _Loss(
        EXPONENTIAL + LOGARITHM + 2,
        EXPONENTIAL + 5,
        "log(1 + exp(-t x))",
        "product, exponential, 1 added, logarithm",
        "product, exponential, 1 added, times t, divided, times dloss",
    ),
    "hinge_embedding_loss": _Loss(
        5,
        3,
        "x where t = 1, max(0, margin - x) where t = -1",
        "subtracted, maximum, 2 comparisons, added",
        "3 comparisons",
        _MARGIN,
    ),
}


def elementwise_loss(
    forward: int,
    operands: tuple[Tensor, ...],
    reduced: Reduced,
    backward: int,
    direction: str,
    gradients: tuple[Tensor, ...] | None = None,
) -> Answer:
    """Cost of a loss over operands that broadcast.

    Parameters
    ----------
    forward, backward : int
        FLOPs for one element of the broadcast operands.
    operands : tuple of Tensor
        All tensors that are read; the first is the prediction.
    reduced : Reduced
        The reduction of the elementwise losses.
    direction : str
        "fprop" or "bprop".
    gradients : tuple of Tensor, optional
        Operands with a gradient; default: the first.
    """
    shape = broadcast(*(tensor.shape for tensor in operands))
    loss = reduced.loss(shape, result_type(operands[:2]))
    params = texts(*operands)
    if direction == "bprop":
        wanted = operands[:1] if gradients is None else gradients
        moves = moved(loss, *operands, *map(fresh, wanted))
        return Cost(elements(shape) * backward, moves, reduced.exact), params
    flops = elements(shape) * (forward + reduced.added)
    return Cost(flops, moved(*operands, loss), reduced.exact), params


def loss_gradient(
    gradient: Tensor, x: Tensor, target: Tensor, weight: Tensor | None = None, *, flops: int
) -> Answer:
    """Cost of an operator that computes the gradient of x from dloss; 1 FLOP more with a weight."""
    operands = present(x, target, weight)
    shape = broadcast(*(tensor.shape for tensor in operands))
    if broadcast(gradient.shape, shape) != shape:
        raise CannotModel(f"gradient {gradient.shape} does not fit {shape}")
    moves = moved(gradient, *operands, fresh(x))
    return Cost(elements(shape) * (flops + len(operands) - 2), moves), texts(gradient, *operands)


def weighted_loss(
    x: Tensor,
    target: Tensor,
    reduce: Reduce,
    weight: Tensor | None = None,
    *,
    forward: int,
    backward: int,
    direction: str,
) -> Answer:
    """Cost of a loss of x and a target; 1 FLOP more with a weight, forward and backward."""
    more = int(weight is not None)
    reduced = reduce.read()
    operands = present(x, target, weight)
    return elementwise_loss(forward + more, operands, reduced, backward + more, direction)


def _register(name: str, loss: _Loss) -> None:
    operator, binding, function = loss.arguments
    table_row(f"""
        {loss.what}, elementwise, reduced or not.
        FLOPs: {loss.forward} per element ({loss.forward_text}), 1 more if reduced and 1 with a
        weight; backward {loss.backward} ({loss.backward_text}) and 1 with a weight.
        Bytes: x, t and weight read, the loss written: one number, or all of them. Backward reads
        dloss, x, t and weight, writes dx.

        The target is assumed to need no gradient. An unknown reduction counts as a sum (not exact).
        ({binding}): torch.{name}
        ({function}): torch.{name}
        ({operator}): aten::{name}
    """)(weighted_loss, forward=loss.forward, backward=loss.backward)
    if name != "hinge_embedding_loss":  # built of others
        table_row(f"""
            dx of {loss.what}.
            FLOPs: {loss.backward} per element ({loss.backward_text}).
            Bytes: dloss, x and t read, dx written.
            (gradient, x, target, ...): {name}_backward
        """)(loss_gradient, flops=loss.backward)


for _name, _loss in _PAIRS.items():
    _register(_name, _loss)


# Three sums of products and a quotient: x y, x x, y y; product of norms, limit, root, division.
DOTS: Final = 6
QUOTIENT: Final = SQUARE_ROOT + 3
# dx = (y - x c) k and dy = (x - y c) k, each 4 with the scaling by dloss.
COSINE_BACKWARD: Final = 8


def _paired(x: Tensor, y: Tensor) -> tuple[int, ...]:
    shape = broadcast(x.shape, y.shape)
    if not shape:
        raise CannotModel("no vectors to compare")
    return shape


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    if not -len(shape) <= dim < len(shape):
        raise CannotModel(f"no dimension {dim} in {shape}")
    place = dim % len(shape)
    return shape[:place] + shape[place + 1 :]


@operators("""
    x . y / max(|x| |y|, eps) along one dimension.
    FLOPs: 6 per element (three sums of products), 23 for each pair (product, limit, root,
    division); backward 8 per element.
    Bytes: x and y read, the similarities written. Backward reads dloss, x and y, writes dx and dy.
    (x, x2=y, dim, _): torch.cosine_similarity
    (x, y, dim, _): aten::cosine_similarity
""")
def cosine_similarity(x: Tensor, y: Tensor, dim: Int = 1, *, direction: str) -> Answer:
    shape = _paired(x, y)
    if isinstance(dim, Unknown):
        raise CannotModel("the dimension is not in the capture")
    pairs = _without(shape, dim)
    tensor = Tensor(pairs, result_type((x, y)))
    if direction == "bprop":
        moves = moved(tensor, x, y, fresh(x), fresh(y))
        return Cost(elements(shape) * COSINE_BACKWARD, moves), texts(x, y)
    flops = elements(shape) * DOTS + elements(pairs) * QUOTIENT
    return Cost(flops, moved(x, y, tensor)), texts(x, y)


@operators("""
    1 - cos(x, y) where t = 1, max(0, cos(x, y) - margin) where t = -1, for rows of x[n, d].
    FLOPs: 6 per element, 29 for each row (cosine 23, two branches 3, two comparisons, added), 1
    more if reduced; backward 8 per element.
    Bytes: x, y and t read, the loss written: one number, or all of them. Backward reads dloss, x, y
    and t, writes dx and dy.
    (x, input2=y, target, _, reduction, reduce): cosine_embedding_loss
    (x, y, target, _, _, reduce, reduction): torch.cosine_embedding_loss
""")
def cosine_embedding_loss(
    x: Tensor, y: Tensor, target: Tensor, reduce: Reduce, *, direction: str
) -> Answer:
    shape = _paired(x, y)
    rows = shape[:-1]
    reduced = reduce.read()
    loss, params = reduced.loss(rows, result_type((x, y))), texts(x, y, target)
    if direction == "bprop":
        moves = moved(loss, x, y, target, fresh(x), fresh(y))
        return Cost(elements(shape) * COSINE_BACKWARD, moves, reduced.exact), params
    flops = elements(shape) * DOTS + elements(rows) * (QUOTIENT + 6 + reduced.added)
    return Cost(flops, moved(x, y, target, loss), reduced.exact), params


@operators("""
    (sum of |x - y + eps|^p)^(1/p) along the last dimension.
    FLOPs: 4 per element (subtracted, eps added, squared, added), 20 for each pair; backward 4
    (difference 2, scaled, times dloss). For p other than 0, 1, 2 and infinity, the power is 20.
    Bytes: x and y read, the distances written. Backward reads dloss, distances, x and y, writes dx
    and dy.

    Counted as one kernel; torch uses one for the difference and one for the norm. If not recorded,
    p is assumed to be 2 (not exact).
    (x, x2=y, p, ...): torch.pairwise_distance
    (x, y, p, ...): aten::pairwise_distance
""")
def pairwise_distance(x: Tensor, y: Tensor, p: float | Unknown = 2.0, *, direction: str) -> Answer:
    shape = _paired(x, y)
    norm, exact = norm_of(p), not isinstance(p, Unknown)
    tensor = Tensor(shape[:-1], result_type((x, y)))
    if direction == "bprop":
        flops = 4 + (POWER if norm.element > POWER else 0)
        moves = moved(tensor, tensor, x, y, fresh(x), fresh(y))
        return Cost(elements(shape) * flops, moves, exact), texts(x, y)
    flops = elements(shape) * (2 + norm.element) + elements(shape[:-1]) * norm.root
    return Cost(flops, moved(x, y, tensor), exact), texts(x, y)


@operators("""
    max(0, d(x, positive) - d(x, negative) + margin) with pairwise distances, for each row.
    FLOPs: those of two pairwise distances (three with swap, and a minimum), 3 for each row, 1 more
    if reduced; backward those of the distances' backward passes.
    Bytes: x, positive and negative read, the loss written: one number, or all of them. Backward
    reads dloss and the three, writes their gradients.

    If not recorded,  swap is assumed to be off (not exact).
    (anchor=x, positive, negative, _, p, _, swap, reduction, reduce): torch.triplet_margin_loss
    (anchor=x, positive, negative, _, p, _, swap, _, reduce, reduction):
        torch.triplet_margin_loss
    (x, positive, negative, _, p, _, swap, reduction, reduce): aten::triplet_margin_loss
""")
def triplet_margin_loss(
    x: Tensor,
    positive: Tensor,
    negative: Tensor,
    reduce: Reduce,
    p: float | Unknown = 2.0,
    swap: Flag = False,
    *,
    direction: str,
) -> Answer:
    pairs = [(x, positive), (x, negative)]
    if swap is True:
        pairs.append((positive, negative))
    costs = [pairwise_distance(*pair, p, direction=direction)[0] for pair in pairs]
    flops = add_known(*(cost.flops for cost in costs))
    rows = _paired(x, positive)[:-1]
    reduced = reduce.read()
    exact = all(cost.exact for cost in costs) and reduced.exact and not isinstance(swap, Unknown)
    operands = (x, positive, negative)
    loss = reduced.loss(rows, result_type(operands))
    if direction == "bprop":
        moves = moved(loss, *operands, *map(fresh, operands))
        return Cost(flops, moves, exact), texts(*operands)
    per_row = 3 + reduced.added + (swap is True)
    flops = add_known(flops, elements(rows) * per_row)
    return Cost(flops, moved(*operands, loss), exact), texts(*operands)


# torch uses a matrix product if either side has more vectors than this.
_PRODUCT_ABOVE: Final = 25
_MODES: Final = {
    "use_mm_for_euclid_dist_if_necessary": 0,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


def _output(x: Tensor, y: Tensor) -> Tensor:
    if len(x.shape) < 2 or len(y.shape) < 2 or x.shape[-1] != y.shape[-1]:
        raise CannotModel(f"cannot compute distances between {x.shape} and {y.shape}")
    batch = broadcast(x.shape[:-2], y.shape[:-2])
    return Tensor((*batch, x.shape[-2], y.shape[-2]), result_type((x, y)))


@operators("""
    p-norms of x[b, m, d] - y[b, n, d] for all pairs: [b, m, n].
    FLOPs: for p = 2 and more than 25 vectors on a side (unless the mode overrides it) as
    euclidean_distance; else 3 d for each pair (subtracted, squared, added) and 20 for the root,
    backward 4 d for each pair and operand. For p other than 0, 1, 2 and infinity, a power is 20.
    Bytes: x and y read, the distances written. Backward reads their gradient, distances, x and y,
    writes dx and dy.

    If not recorded,  p is assumed to be 2 and the mode torch's default (not exact).
    (x, x2=y, p, compute_mode): torch.cdist
    (x, y, p, compute_mode): _cdist_forward aten::cdist
""")
def cdist(
    x: Tensor,
    y: Tensor,
    p: float | Unknown = 2.0,
    compute_mode: str | int | Unknown | None = None,
    *,
    direction: str,
) -> Work:
    output = _output(x, y)
    mode = _MODES.get(compute_mode, 0) if isinstance(compute_mode, str) else compute_mode
    mode = 0 if mode is None or isinstance(mode, Unknown) else mode
    many = max(x.shape[-2], y.shape[-2]) > _PRODUCT_ABOVE
    exact = not isinstance(p, Unknown) and not isinstance(compute_mode, Unknown)
    if (isinstance(p, Unknown) or p == 2) and (mode == 1 or (mode == 0 and many)):
        return euclidean_distance(x, y, direction=direction).estimated(exact)
    norm, pairs, length = norm_of(p), elements(output.shape), x.shape[-1]
    if direction == "bprop":
        flops = 2 * pairs * length * _gradient_flops(norm.element)
        moves = moved(output, output, x, y, fresh(x), fresh(y))
    else:
        flops = pairs * (length * (1 + norm.element) + norm.root)
        moves = moved(x, y, output)
    return Work((Part("main", Cost(flops, moves, exact), texts(x, y)),))


def _gradient_flops(element: int) -> int:
    # Difference, scaled by dloss and the distance, summed; and the power where p needs one.
    return 4 + (POWER if element > POWER else 0)


@operators("""
    Euclidean distances of x[b, m, d] and y[b, n, d] by one product of [m, d + 2] and [n, d + 2].
    FLOPs: 2 m n (d + 2) for each b, only the product's multiply-adds; backward 2 m n d for each of
    dx and dy.
    Bytes: x and y read, the distances written. Backward reads their gradient, distances, x and y,
    writes dx and dy.

    The product of [-2 x, |x|^2, 1] and [y, 1, |y|^2]; of it FlopCounterMode counts only the
    backward pass.
    (x, y): _euclidean_dist
""")
def euclidean_distance(x: Tensor, y: Tensor, *, direction: str) -> Work:
    output = _output(x, y)
    flops = 2 * elements(output.shape) * (x.shape[-1] + 2)
    moves = moved(x, y, output)
    if direction == "bprop":
        flops = 2 * 2 * elements(output.shape) * x.shape[-1]
        moves = moved(output, output, x, y, fresh(x), fresh(y))
    sizes = {"M": output.shape[-1], "N": output.shape[-2], "K": x.shape[-1] + 2}
    reason = why_not(output.dtype, sizes)
    cost = Cost(flops, moves)
    return Work((Part("main", cost, texts(x, y), kernels=GEMM, no_tensor_cores=reason),))


@operators("""
    dx of a cdist without matrix product; torch calls it once for dx and once for dy.
    FLOPs: 4 d for each pair (difference, scaled twice, added), 24 for p other than 0, 1, 2 and
    infinity.
    Bytes: the gradient, distances, x and y read, dx written.
    (gradient, x, y, p, distances): _cdist_backward
""")
def cdist_backward(
    gradient: Tensor, x: Tensor, y: Tensor, distances: Tensor, p: float | Unknown = 2.0
) -> Answer:
    output = _output(x, y)
    flops = elements(output.shape) * x.shape[-1] * _gradient_flops(norm_of(p).element)
    moves = moved(gradient, distances, x, y, fresh(x))
    return Cost(flops, moves, not isinstance(p, Unknown)), texts(gradient, x, y)


def _pairs(x: Tensor) -> int:
    if len(x.shape) != 2:
        raise CannotModel(f"shape {x.shape} is not a list of vectors")
    return x.shape[0] * (x.shape[0] - 1) // 2


@operators("""
    p-norms of x_i - x_j for all pairs of rows of x[n, d]: [n (n - 1) / 2].
    FLOPs: 3 d for each pair (subtracted, squared, added) and 20 for the root; backward 8 d. For p
    other than 0, 1, 2 and infinity, a power is 20.
    Bytes: x read, the distances written. Backward reads their gradient, distances and x, writes dx.
    (x, p): pdist _pdist_forward
""")
def pdist(x: Tensor, p: float | Unknown = 2.0, *, direction: str) -> Answer:
    pairs, norm, exact = _pairs(x), norm_of(p), not isinstance(p, Unknown)
    tensor = fresh(x, (pairs,))
    if direction == "bprop":
        return _pdist_gradient(tensor, x, tensor, p)
    flops = pairs * ((x.shape[1]) * (1 + norm.element) + norm.root)
    return Cost(flops, moved(x, tensor), exact), texts(x)


def _pdist_gradient(
    gradient: Tensor, x: Tensor, distances: Tensor, p: float | Unknown = 2.0
) -> Answer:
    flops = 2 * _pairs(x) * x.shape[1] * _gradient_flops(norm_of(p).element)
    moves = moved(gradient, distances, x, fresh(x))
    return Cost(flops, moves, not isinstance(p, Unknown)), texts(x)


table_row("""
    dx of a pdist.
    FLOPs: 8 d for each pair: difference, scaled twice, added to both rows.
    Bytes: the gradient, distances and x read, dx written.
    (gradient, x, p, distances): _pdist_backward
""")(_pdist_gradient)


LOG_SIGMOID: Final = EXPONENTIAL + LOGARITHM + 1


table_row("""
    (t - 1) log(1 - x) - t log(x), elementwise, reduced or not.
    FLOPs: 46 per element (two logarithms 40, two limits 2, the rest 4), 1 more if reduced and 1
    with a weight; backward 6 ((x - t) dloss / max((1 - x) x, eps)) and 1 with a weight.
    Bytes: x, t and weight read, the loss written: one number, or all of them. Backward reads dloss,
    x, t and weight, writes dx.
    (x, target, weight, reduction, reduce): torch.binary_cross_entropy
    (x, target, weight, _, reduce, reduction): torch.binary_cross_entropy
    (x, target, weight, reduction): aten::binary_cross_entropy
""")(weighted_loss, forward=2 * LOGARITHM + 6, backward=6)

table_row("""
    dx = (x - t) dloss / max((1 - x) x, eps).
    FLOPs: 6 per element, 1 more with a weight.
    Bytes: dloss, x, t and weight read, dx written.
    (gradient, x, target, weight, ...): binary_cross_entropy_backward
""")(loss_gradient, flops=6)


@operators("""
    (1 - t) x - log(sigmoid(x)), elementwise, reduced or not.
    FLOPs: 44 per element (exponential and logarithm 40, the rest 4), 1 more if reduced, 1 with a
    weight, 4 for the weight of positives; backward 24 (sigmoid 22, minus t, times dloss) and 1 and
    4 for those weights.
    Bytes: x, t and weights read, the loss written: one number, or all of them. Backward reads
    dloss, x, t and weights, writes dx.
    (x, target, weight, pos_weight, reduction, reduce): torch.binary_cross_entropy_with_logits
    (x, target, weight, _, reduce, reduction, pos_weight):
        torch.binary_cross_entropy_with_logits
    (x, target, weight, pos_weight, reduction): aten::binary_cross_entropy_with_logits
""")
def binary_cross_entropy_with_logits(
    x: Tensor,
    target: Tensor,
    reduce: Reduce,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    *,
    direction: str,
) -> Answer:
    more = (weight is not None) + 4 * (pos_weight is not None)
    return elementwise_loss(
        LOG_SIGMOID + 3 + more,
        present(x, target, weight, pos_weight),
        reduce.read(),
        SIGMOID + 2 + more,
        direction,
    )


@operators("""
    t (log(t) - x), elementwise, reduced or not; t is exp(t) with log_target.
    FLOPs: 23 per element (logarithm 20, two products, subtracted), 22 with log_target, 1 more if
    reduced; backward 1 (t dloss), 21 with log_target.
    Bytes: x and t read, the loss written: one number, or all of them. Backward reads dloss and t,
    writes dx.

    If not recorded,  log_target is assumed to be off (not exact).
    (x, target, reduction, log_target, reduce): torch.kl_div
    (x, target, _, reduce, reduction, log_target): torch.kl_div
    (x, target, reduction, log_target): aten::kl_div
""")
def kl_div(
    x: Tensor, target: Tensor, reduce: Reduce, log_target: Flag = False, *, direction: str
) -> Answer:
    reduced = reduce.read(log_target)
    logarithmic = log_target is True
    forward, backward = (EXPONENTIAL + 2, EXPONENTIAL + 1) if logarithmic else (LOGARITHM + 3, 1)
    if direction == "bprop":  # x itself is not read
        return elementwise_loss(0, (target,), reduced, backward, direction, (x,))
    return elementwise_loss(forward, (x, target), reduced, backward, direction)


@operators("""
    exp(x) - t x, or x - t log(x + eps) without log_input; with full, Stirling's term.
    FLOPs: 22 per element, 23 without log_input (exponential or logarithm 20), 47 more with full (t
    log(t) - t + log(2 pi t) / 2 where t > 1), 1 more if reduced; backward 22 (exp(x) - t, times
    dloss), 4 without log_input.
    Bytes: x and t read, the loss written: one number, or all of them. Backward reads dloss, x and
    t, writes dx.

    If not recorded,  log_input is assumed to be on and full off (not exact).
    (x, target, log_input, full, _, reduction, reduce): torch.poisson_nll_loss
    (x, target, log_input, full, _, _, reduce, reduction): torch.poisson_nll_loss
    (x, target, log_input, full, _, reduction): aten::poisson_nll_loss
""")
def poisson_nll_loss(
    x: Tensor,
    target: Tensor,
    reduce: Reduce,
    log_input: Flag = True,
    full: Flag = False,
    *,
    direction: str,
) -> Answer:
    reduced = reduce.read(log_input, full)
    forward, backward = (EXPONENTIAL + 2, EXPONENTIAL + 2) if log_input else (LOGARITHM + 3, 4)
    if full is True:
        forward += 2 * LOGARITHM + 7
    return elementwise_loss(forward, (x, target), reduced, backward, direction)


@operators("""
    (log(max(v, eps)) + (x - t)^2 / v) / 2, elementwise, reduced or not.
    FLOPs: 26 per element (logarithm 20, limit 1, the rest 5), 1 more with full, 1 more if reduced;
    backward 8 (dx 3, dv 5).
    Bytes: x, t and v read, the loss written: one number, or all of them. Backward reads dloss, x, t
    and v, writes dx and dv.

    A v with one dimension less than x (one variance per row) is expanded by a dimension of size 1.
    (x, target, variance, full, _, reduction): torch.gaussian_nll_loss
""")
def gaussian_nll_loss(
    x: Tensor,
    target: Tensor,
    variance: Tensor | float,
    reduce: Reduce,
    full: Flag = False,
    *,
    direction: str,
) -> Answer:
    operands = present(x, target)
    if isinstance(variance, Tensor):
        shape = variance.shape
        if shape != x.shape and shape == x.shape[:-1]:
            variance = Tensor((*shape, 1), variance.dtype)
        operands = (*operands, variance)
    reduced = reduce.read(full)
    gradients = (x, *operands[2:])
    forward = LOGARITHM + 6 + (full is True)
    return elementwise_loss(forward, operands, reduced, 8, direction, gradients)


@operators("""
    max(0, margin - t (x - y)), elementwise, reduced or not.
    FLOPs: 4 per element (subtracted, product, added, maximum), 1 more if reduced; backward 3
    (compared, times t, times dloss).
    Bytes: x, y and t read, the loss written: one number, or all of them. Backward reads dloss, x, y
    and t, writes dx and dy.
    (x, input2=other, target, _, reduction, reduce): torch.margin_ranking_loss
    (x, other, target, _, _, reduce, reduction): torch.margin_ranking_loss
    (x, other, target, _, reduction): aten::margin_ranking_loss
""")
def margin_ranking_loss(
    x: Tensor, other: Tensor, target: Tensor, reduce: Reduce, *, direction: str
) -> Answer:
    reduced = reduce.read()
    return elementwise_loss(4, (x, other, target), reduced, 3, direction, (x, other))
