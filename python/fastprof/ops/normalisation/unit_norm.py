"""FLOPs and bytes of tensors scaled by their own norm: normalize, weight norm, response norm."""

from __future__ import annotations

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import POWER, SQUARE_ROOT
from fastprof.ops.axes import Dims, left
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.normalisation.batch_norm import statistics
from fastprof.ops.parameters import Number
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts


class Norm(NamedTuple):
    """FLOPs of (sum of |x|^p)^(1/p): for each element, and for each sum."""

    element: int
    root: int


def norm_of(p: Number | str | Unknown | None) -> Norm:
    """FLOPs of a p-norm; p = 2 if unknown."""
    if p is None or isinstance(p, Unknown) or p == 2:
        return Norm(2, SQUARE_ROOT)  # squared, added
    if p in (0, 1) or str(p) in ("inf", "-inf"):
        return Norm(2, 0)  # magnitude or comparison, added or compared
    return Norm(2 + POWER, POWER)


@operators("(x, p, dim, ...): torch.normalize")
def normalize(
    x: Tensor, p: Number | str = 2.0, dim: Dims = 1, *, direction: str
) -> tuple[Cost, str]:
    """x / max(norm of x along dim, eps).

    FLOPs: 3 per element (squared, added, divided), 21 for each norm (root, comparison); backward 5
    (dy y summed 2, y * sum, subtracted, divided). For other p, a power is 20.
    Bytes: x read once, y written. Backward reads dy and x, writes dx.

    Counted as one kernel; torch uses one for the norm, and copies for its maximum.
    """
    count, rows = elements(x.shape), left(x.shape, dim)
    norm = norm_of(p)
    if rows is None:
        raise CannotModel("the dimension is not in the capture")
    if direction == "bprop":
        return Cost(count * 5, moved(x, fresh(x), fresh(x))), texts(x)
    flops = count * (norm.element + 1) + rows * (norm.root + 1)
    return Cost(flops, moved(x, fresh(x))), texts(x)


@operators("""
    aten::renorm aten::renorm_
    (x, p, dim, _): torch.renorm torch.renorm_
""")
def renorm(
    x: Tensor, p: Number | str | Unknown, dim: int | Unknown, *, direction: str
) -> tuple[Cost, str]:
    """x with slices along dim scaled down if their p-norm exceeds a limit.

    FLOPs: 3 per element (squared, added, scaled), 22 for each slice (root, comparison, division);
    backward 5 per element, as normalize. For other p, a power is 20.
    Bytes: x read once, y written. Backward reads dy and x, writes dx.
    """
    count = elements(x.shape)
    norm = norm_of(p)
    if direction == "bprop":
        return Cost(count * 5, moved(x, fresh(x), fresh(x))), texts(x)
    slices = _size_along(x, dim)
    flops = count * (norm.element + 1) + slices * (norm.root + 2)
    return Cost(flops, moved(x, fresh(x))), texts(x)


@operators("(x, p, dim): norm_except_dim")
def norm_except_dim(x: Tensor, p: Number | Unknown = 2, dim: int | Unknown = 0) -> tuple[Cost, str]:
    """Norm of each slice of x along dim.

    FLOPs: 2 per element (squared, added), 20 for each norm.
    Bytes: x read, norms written.
    """
    slices = 1 if dim == -1 else _size_along(x, dim)
    norm = norm_of(p)
    flops = elements(x.shape) * norm.element + slices * norm.root
    return Cost(flops, moved(x, fresh(x, (slices,)))), texts(x)


def _size_along(x: Tensor, dim: int | Unknown) -> int:
    if isinstance(dim, Unknown):
        raise CannotModel("the dimension is not in the capture")
    if not -len(x.shape) <= dim < len(x.shape):
        raise CannotModel(f"no dimension {dim} in {x.shape}")
    return x.shape[dim]


@operators("(v, g, ...): _weight_norm _weight_norm_interface")
def weight_norm(v: Tensor, g: Tensor, *, direction: str) -> tuple[Cost, str]:
    """w = v * (g / norm of v), one norm and one g for each slice of v along one dimension.

    FLOPs: 3 per element (squared, added, scaled), 21 for each norm (root, division); backward 5 (dw
    v summed 2, v * c, subtracted, scaled).
    Bytes: v and g read, w and norms written. Backward reads dw, v, g and norms, writes dv and dg.
    """
    norms = _norms(v, g)
    if direction == "bprop":
        return _weight_gradients(fresh(v), v, g, norms)
    flops = 3 * elements(v.shape) + (SQUARE_ROOT + 1) * elements(g.shape)
    return Cost(flops, moved(v, g, fresh(v), norms)), texts(v, g)


@operators("""
    (gradient, v, g, norms, ...): _weight_norm_interface_backward
        _weight_norm_differentiable_backward
""")
def weight_norm_interface_backward(
    gradient: Tensor, v: Tensor, g: Tensor, norms: Tensor
) -> tuple[Cost, str]:
    """dv and dg of a weight norm from dw, v, g and the norms.

    FLOPs: 5 per element (dw v summed 2, v * c, subtracted, scaled).
    Bytes: dw, v, g and norms read, dv and dg written.
    """
    if gradient.shape != v.shape:
        raise CannotModel(f"gradient {gradient.shape} does not fit {v.shape}")
    _norms(v, g)
    return _weight_gradients(gradient, v, g, norms)


def _norms(v: Tensor, g: Tensor) -> Tensor:
    if elements(g.shape) not in (1, *v.shape):
        raise CannotModel(f"{g.shape} does not fit the slices of {v.shape}")
    return statistics(v, elements(g.shape))


def _weight_gradients(gradient: Tensor, v: Tensor, g: Tensor, norms: Tensor) -> tuple[Cost, str]:
    moves = moved(gradient, v, g, norms, fresh(v), fresh(g))
    return Cost(5 * elements(v.shape), moves), texts(v, g)


@operators("(x, size, ...): torch.local_response_norm")
def local_response_norm(x: Tensor, size: int, *, direction: str) -> tuple[Cost, str]:
    """x[n, c, ..] / (k + alpha * mean of x^2 over `size` channels)^beta.

    FLOPs: size + 24 per element (square 1, mean over the window `size`, alpha, k, power 20,
    division); backward 2 size + 30 (the same root again, and the window over dy x / root).
    Bytes: x read, y written. Backward reads dy and x, writes dx.

    Counted as one kernel; torch uses a dozen.
    """
    if len(x.shape) < 3 or size < 1:
        raise CannotModel(f"window {size} does not fit the channels of {x.shape}")
    count = elements(x.shape)
    if direction == "bprop":
        return Cost(count * (2 * size + POWER + 10), moved(x, fresh(x), fresh(x))), texts(x)
    return Cost(count * (size + POWER + 4), moved(x, fresh(x))), texts(x)
