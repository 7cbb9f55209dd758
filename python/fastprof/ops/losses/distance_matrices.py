"""FLOPs and bytes of distances between all pairs of vectors: cdist and pdist."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import POWER
from fastprof.ops.cost import CannotModel, Cost, Part, Work
from fastprof.ops.matrix.product import GEMM
from fastprof.ops.normalisation.unit_norm import norm_of
from fastprof.ops.registry import operators
from fastprof.ops.tensor import broadcast, elements, result_type
from fastprof.ops.tensor_cores import why_not
from fastprof.ops.traffic import fresh, moved, texts

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
    """p-norms of x[b, m, d] - y[b, n, d] for all pairs: [b, m, n].

    FLOPs: for p = 2 and more than 25 vectors on a side (unless the mode overrides it) as
    euclidean_distance; else 3 d for each pair (subtracted, squared, added) and 20 for the root,
    backward 4 d for each pair and operand. For p other than 0, 1, 2 and infinity, a power is 20.
    Bytes: x and y read, the distances written. Backward reads their gradient, distances, x and y,
    writes dx and dy.

    If not recorded,  p is assumed to be 2 and the mode torch's default (not exact).
    """
    output = _output(x, y)
    mode = _MODES.get(compute_mode, 0) if isinstance(compute_mode, str) else compute_mode
    mode = 0 if mode is None or isinstance(mode, Unknown) else mode
    many = max(x.shape[-2], y.shape[-2]) > _PRODUCT_ABOVE
    exact = not isinstance(p, Unknown) and not isinstance(compute_mode, Unknown)
    if (isinstance(p, Unknown) or p == 2) and (mode == 1 or (mode == 0 and many)):
        work = euclidean_distance(x, y, direction=direction)
        return _as_sure(work, exact)
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


def _as_sure(work: Work, exact: bool) -> Work:
    (part,) = work.parts
    cost = Cost(part.cost.flops, part.cost.bytes, exact)
    reason = part.no_tensor_cores
    return Work((Part(part.role, cost, part.params, kernels=GEMM, no_tensor_cores=reason),))


@operators("(x, y): _euclidean_dist")
def euclidean_distance(x: Tensor, y: Tensor, *, direction: str) -> Work:
    """Euclidean distances of x[b, m, d] and y[b, n, d] by one product of [m, d + 2] and [n, d + 2].

    FLOPs: 2 m n (d + 2) for each b, only the product's multiply-adds; backward 2 m n d for each of
    dx and dy.
    Bytes: x and y read, the distances written. Backward reads their gradient, distances, x and y,
    writes dx and dy.

    The product of [-2 x, |x|^2, 1] and [y, 1, |y|^2]; of it FlopCounterMode counts only the
    backward pass.
    """
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


@operators("(gradient, x, y, p, distances): _cdist_backward")
def cdist_backward(
    gradient: Tensor, x: Tensor, y: Tensor, distances: Tensor, p: float | Unknown = 2.0
) -> tuple[Cost, str]:
    """dx of a cdist without matrix product; torch calls it once for dx and once for dy.

    FLOPs: 4 d for each pair (difference, scaled twice, added), 24 for p other than 0, 1, 2 and
    infinity.
    Bytes: the gradient, distances, x and y read, dx written.
    """
    output = _output(x, y)
    flops = elements(output.shape) * x.shape[-1] * _gradient_flops(norm_of(p).element)
    moves = moved(gradient, distances, x, y, fresh(x))
    return Cost(flops, moves, not isinstance(p, Unknown)), texts(gradient, x, y)


def _pairs(x: Tensor) -> int:
    if len(x.shape) != 2:
        raise CannotModel(f"shape {x.shape} is not a list of vectors")
    return x.shape[0] * (x.shape[0] - 1) // 2


@operators("(x, p): pdist _pdist_forward")
def pdist(x: Tensor, p: float | Unknown = 2.0, *, direction: str) -> tuple[Cost, str]:
    """p-norms of x_i - x_j for all pairs of rows of x[n, d]: [n (n - 1) / 2].

    FLOPs: 3 d for each pair (subtracted, squared, added) and 20 for the root; backward 8 d. For p
    other than 0, 1, 2 and infinity, a power is 20.
    Bytes: x read, the distances written. Backward reads their gradient, distances and x, writes dx.
    """
    pairs, norm, exact = _pairs(x), norm_of(p), not isinstance(p, Unknown)
    found = fresh(x, (pairs,))
    if direction == "bprop":
        return _pdist_gradient(found, x, found, p)
    flops = pairs * ((x.shape[1]) * (1 + norm.element) + norm.root)
    return Cost(flops, moved(x, found), exact), texts(x)


@operators("(gradient, x, p, distances): _pdist_backward")
def pdist_backward(
    gradient: Tensor, x: Tensor, distances: Tensor, p: float | Unknown = 2.0
) -> tuple[Cost, str]:
    """dx of a pdist.

    FLOPs: 8 d for each pair: difference, scaled twice, added to both rows.
    Bytes: the gradient, distances and x read, dx written.
    """
    return _pdist_gradient(gradient, x, distances, p)


def _pdist_gradient(
    gradient: Tensor, x: Tensor, distances: Tensor, p: float | Unknown
) -> tuple[Cost, str]:
    flops = 2 * _pairs(x) * x.shape[1] * _gradient_flops(norm_of(p).element)
    moves = moved(gradient, distances, x, fresh(x))
    return Cost(flops, moves, not isinstance(p, Unknown)), texts(x)
