"""FLOPs and bytes of layer, group and RMS norm, and of tensors scaled by their own norm."""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import POWER, SQUARE_ROOT, Dims, left
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.normalisation.batch_norm import channels_fit, channels_of, statistics
from fastprof.ops.parameters import Int, Ints, Number
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements, fresh, moved, same_shape, texts


class _Norm(NamedTuple):
    """FLOPs per element, from the formulas; per-row operations are not counted."""

    forward: int
    backward: int
    weight_backward: int  # additional for the gradients of x through the weight, and of the weight
    kept: int  # statistics saved per row


# Forward: mean 1, variance 3, (x - mean) * rstd 2. Backward: (x - mean) * rstd 2, dy summed 1,
# dy * x^ summed 2, dx = (dy - m - x^ * c) * rstd 4; dy * weight 1, dy * x^ summed 2.
_CENTRED: Final = _Norm(6, 9, 3, 2)
# Forward: squares summed 2, x * rstd 1. Backward: x * rstd 1, dy * x^ summed 2,
# dx = (dy - x^ * c) * rstd 3; dy * weight 1, dy * x^ summed 2.
_ROOT: Final = _Norm(3, 6, 3, 1)


@operators("""
    x[.., d] normalised by row: (x - mean) / sqrt(var + eps) * weight[d] + bias[d].
    FLOPs: 8 per element (mean 1, variance 3, normalising 2, weight 1, bias 1); backward 13 (9 for
    dx, of the weight 3, of the bias 1).
    Bytes: x read once (a row stays on the chip), y written, weight and bias read, mean and
    deviation of each row written. Backward reads dy and x, writes dx and the gradients of weight
    and bias.

    The row is the weight's shape, else normalized_shape. Per-row operations are not counted. All
    gradients are assumed to be computed. torch 1.4 to 1.6 has rows and row length instead of
    normalized_shape; apex's functions are those of its module.
    (x, normalized_shape, weight, bias, ...): layer_norm native_layer_norm
    (x, weight, bias, _, _, ...): native_layer_norm
    (x, normalized_shape, ...): apex.normalization.fused_layer_norm.fused_layer_norm
    (x, weight, bias, normalized_shape, ...):
        apex.normalization.fused_layer_norm.fused_layer_norm_affine
        apex.normalization.fused_layer_norm.mixed_dtype_fused_layer_norm_affine
""")
def layer_norm(
    x: Tensor,
    normalized_shape: Ints | Unknown | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    direction: str,
) -> Answer:
    rows = _rows(x, normalized_shape, weight)
    return _norm(_CENTRED, x, weight, bias, rows, 2, direction)


@operators("""
    x[.., d] / sqrt(mean(x^2) + eps) * weight[d].
    FLOPs: 4 per element (squares added 2, scaling 1, weight 1); backward 9 (6 for dx, of the weight
    3).
    Bytes: x read once, y written, weight read, one statistic of each row written. Backward reads
    dy and x, writes dx and the gradient of the weight.

    Counted as one kernel, even if torch uses several.
    (x, normalized_shape, weight, ...): rms_norm _fused_rms_norm
        apex.normalization.fused_layer_norm.manual_rms_norm
    (x, normalized_shape, ...): apex.normalization.fused_layer_norm.fused_rms_norm
    (x, weight, normalized_shape, ...):
        apex.normalization.fused_layer_norm.fused_rms_norm_affine
        apex.normalization.fused_layer_norm.mixed_dtype_fused_rms_norm_affine
""")
def rms_norm(
    x: Tensor,
    normalized_shape: Ints | Unknown | None = None,
    weight: Tensor | None = None,
    *,
    direction: str,
) -> Answer:
    rows = _rows(x, normalized_shape, weight)
    return _norm(_ROOT, x, weight, None, rows, 2, direction)


@operators("""
    x[n, c, ..] normalised for each n and group of channels, * weight[c] + bias[c].
    FLOPs: as layer_norm: 8 per element; backward 13.
    Bytes: x read twice (statistics first: a group may exceed on-chip memory), y written, weight and
    bias read, mean and deviation of each group written. Backward reads dy and x twice, writes dx
    and the gradients of weight and bias.
    (x, num_groups, weight, bias, ...): group_norm
    (x, weight, bias, _, _, _, num_groups, ...): native_group_norm
""")
def group_norm(
    x: Tensor,
    num_groups: Int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    direction: str,
) -> Answer:
    channels = channels_of(x)
    channels_fit(channels, weight, bias)
    if isinstance(num_groups, Unknown):
        return _norm(_CENTRED, x, weight, bias, None, 3, direction)
    if num_groups < 1 or channels % num_groups:
        raise CannotModel(f"{channels} channels cannot form {num_groups} groups")
    return _norm(_CENTRED, x, weight, bias, x.shape[0] * num_groups, 3, direction)


def _rows(x: Tensor, normalized_shape: Ints | Unknown | None, weight: Tensor | None) -> int | None:
    # Number of normalised rows; None if unknown.
    if weight is not None:
        row = weight.shape
    elif isinstance(normalized_shape, Unknown | None):
        return None
    else:
        row = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
    place = len(x.shape) - len(row)
    if not row or place < 0 or x.shape[place:] != row:
        raise CannotModel(f"a row of {row} does not fit {x.shape}")
    return elements(x.shape[:place])


def _norm(
    norm: _Norm,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    rows: int | None,
    tensors: int,
    direction: str,
) -> Answer:
    # `tensors` of x's size are moved forward: 2 if x is read once, 3 if twice.
    _same_row(weight, bias)
    params = texts(x, weight, bias)
    if direction == "fprop":
        flops = norm.forward + (weight is not None) + (bias is not None)
        reads = [x] * (tensors - 1)
        kept = _kept(norm, x, rows)
        moves = add_known(moved(*reads, weight, bias, fresh(x)), kept)
        return Cost(elements(x.shape) * flops, moves), params
    return _gradients(norm, fresh(x), x, weight, bias, _kept(norm, x, rows), tensors), params


def _same_row(*vectors: Tensor | None) -> None:
    shapes = {tensor.shape for tensor in vectors if tensor is not None}
    if len(shapes) > 1:
        raise CannotModel(f"weight and bias have shapes {sorted(shapes)}")


def _kept(norm: _Norm, x: Tensor, rows: int | None) -> int | None:
    # Bytes of the statistics of all rows.
    return None if rows is None else moved(statistics(x, rows * norm.kept))


def _gradients(
    norm: _Norm,
    gradient: Tensor,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    kept: int | None,
    tensors: int,
) -> Cost:
    flops = norm.backward
    flops += norm.weight_backward if weight is not None else 0
    flops += 1 if bias is not None else 0
    of_vectors = [fresh(tensor) for tensor in (weight, bias) if tensor is not None]
    reads = [gradient, x] * (tensors - 1)
    moves = add_known(moved(*reads, weight, fresh(x), *of_vectors), kept)
    return Cost(elements(x.shape) * flops, moves)


@operators("""
    dx[.., d], dweight[d] and dbias[d] of a layer norm from dy, x, mean and rstd.
    FLOPs: 13 per element (9 for dx, of the weight 3, of the bias 1).
    Bytes: dy, x, statistics and weight read; dx and the gradients of weight and bias written.

    All gradients are assumed to be computed.
    (gradient, x, normalized_shape, mean, rstd, weight, bias, ...): native_layer_norm_backward
    (gradient, x, mean, rstd, weight, ...): native_layer_norm_backward
""")
def native_layer_norm_backward(
    gradient: Tensor,
    x: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    normalized_shape: Ints | Unknown | None = None,
) -> Answer:
    same_shape(gradient, x)
    _same_row(weight, bias)
    cost = _gradients(_CENTRED, gradient, x, weight, bias, moved(mean, rstd), 2)
    return cost, texts(gradient, x, weight)


@operators("""
    dx[.., d] and dweight[d] of an RMS norm from dy, x and rstd.
    FLOPs: 9 per element (6 for dx, of the weight 3).
    Bytes: dy, x, statistics and weight read; dx and the gradient of the weight written.
    (gradient, x, _, rstd, weight, ...): _fused_rms_norm_backward
""")
def fused_rms_norm_backward(
    gradient: Tensor, x: Tensor, rstd: Tensor, weight: Tensor | None = None
) -> Answer:
    same_shape(gradient, x)
    cost = _gradients(_ROOT, gradient, x, weight, None, moved(rstd), 2)
    return cost, texts(gradient, x, weight)


@operators("""
    dx[n, c, ..], dweight[c] and dbias[c] of a group norm from dy, x, mean and rstd.
    FLOPs: 13 per element (9 for dx, of the weight 3, of the bias 1).
    Bytes: dy and x read twice, statistics and weight read; dx and the gradients of weight and bias
    written.

    With a weight, a bias is assumed. All gradients are assumed to be computed.
    (gradient, x, mean, rstd, weight, ...): native_group_norm_backward
""")
def native_group_norm_backward(
    gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None = None
) -> Answer:
    same_shape(gradient, x)
    channels_fit(channels_of(x), weight)
    cost = _gradients(_CENTRED, gradient, x, weight, weight, moved(mean, rstd), 3)
    return cost, texts(gradient, x, weight)


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


@operators("""
    x / max(norm of x along dim, eps).
    FLOPs: 3 per element (squared, added, divided), 21 for each norm (root, comparison); backward 5
    (dy y summed 2, y * sum, subtracted, divided). For other p, a power is 20.
    Bytes: x read once, y written. Backward reads dy and x, writes dx.

    Counted as one kernel; torch uses one for the norm, and copies for its maximum.
    (x, p, dim, ...): torch.normalize
""")
def normalize(x: Tensor, p: Number | str = 2.0, dim: Dims = 1, *, direction: str) -> Answer:
    count, rows = elements(x.shape), left(x.shape, dim)
    norm = norm_of(p)
    if rows is None:
        raise CannotModel("the dimension is not in the capture")
    if direction == "bprop":
        return Cost(count * 5, moved(x, fresh(x), fresh(x))), texts(x)
    flops = count * (norm.element + 1) + rows * (norm.root + 1)
    return Cost(flops, moved(x, fresh(x))), texts(x)


@operators("""
    x with slices along dim scaled down if their p-norm exceeds a limit.
    FLOPs: 3 per element (squared, added, scaled), 22 for each slice (root, comparison, division);
    backward 5 per element, as normalize. For other p, a power is 20.
    Bytes: x read once, y written. Backward reads dy and x, writes dx.
    (*): aten::renorm aten::renorm_
    (x, p, dim, _): torch.renorm torch.renorm_
""")
def renorm(x: Tensor, p: Number | str | Unknown, dim: Int, *, direction: str) -> Answer:
    count = elements(x.shape)
    norm = norm_of(p)
    if direction == "bprop":
        return Cost(count * 5, moved(x, fresh(x), fresh(x))), texts(x)
    slices = _size_along(x, dim)
    flops = count * (norm.element + 1) + slices * (norm.root + 2)
    return Cost(flops, moved(x, fresh(x))), texts(x)


@operators("""
    Norm of each slice of x along dim.
    FLOPs: 2 per element (squared, added), 20 for each norm.
    Bytes: x read, norms written.
    (x, p, dim): norm_except_dim
""")
def norm_except_dim(x: Tensor, p: Number | Unknown = 2, dim: Int = 0) -> Answer:
    slices = 1 if dim == -1 else _size_along(x, dim)
    norm = norm_of(p)
    flops = elements(x.shape) * norm.element + slices * norm.root
    return Cost(flops, moved(x, fresh(x, (slices,)))), texts(x)


def _size_along(x: Tensor, dim: Int) -> int:
    if isinstance(dim, Unknown):
        raise CannotModel("the dimension is not in the capture")
    if not -len(x.shape) <= dim < len(x.shape):
        raise CannotModel(f"no dimension {dim} in {x.shape}")
    return x.shape[dim]


@operators("""
    w = v * (g / norm of v), one norm and one g for each slice of v along one dimension.
    FLOPs: 3 per element (squared, added, scaled), 21 for each norm (root, division); backward 5 (dw
    v summed 2, v * c, subtracted, scaled).
    Bytes: v and g read, w and norms written. Backward reads dw, v, g and norms, writes dv and dg.
    (v, g, ...): _weight_norm _weight_norm_interface
""")
def weight_norm(v: Tensor, g: Tensor, *, direction: str) -> Answer:
    norms = _norms(v, g)
    if direction == "bprop":
        return _weight_gradients(fresh(v), v, g, norms)
    flops = 3 * elements(v.shape) + (SQUARE_ROOT + 1) * elements(g.shape)
    return Cost(flops, moved(v, g, fresh(v), norms)), texts(v, g)


@operators("""
    dv and dg of a weight norm from dw, v, g and the norms.
    FLOPs: 5 per element (dw v summed 2, v * c, subtracted, scaled).
    Bytes: dw, v, g and norms read, dv and dg written.
    (gradient, v, g, norms, ...): _weight_norm_interface_backward
        _weight_norm_differentiable_backward
""")
def weight_norm_interface_backward(gradient: Tensor, v: Tensor, g: Tensor, norms: Tensor) -> Answer:
    same_shape(gradient, v)
    _norms(v, g)
    return _weight_gradients(gradient, v, g, norms)


def _norms(v: Tensor, g: Tensor) -> Tensor:
    if elements(g.shape) not in (1, *v.shape):
        raise CannotModel(f"{g.shape} does not fit the slices of {v.shape}")
    return statistics(v, elements(g.shape))


def _weight_gradients(gradient: Tensor, v: Tensor, g: Tensor, norms: Tensor) -> Answer:
    moves = moved(gradient, v, g, norms, fresh(v), fresh(g))
    return Cost(5 * elements(v.shape), moves), texts(v, g)


@operators("""
    x[n, c, ..] / (k + alpha * mean of x^2 over `size` channels)^beta.
    FLOPs: size + 24 per element (square 1, mean over the window `size`, alpha, k, power 20,
    division); backward 2 size + 30 (the same root again, and the window over dy x / root).
    Bytes: x read, y written. Backward reads dy and x, writes dx.

    Counted as one kernel; torch uses a dozen.
    (x, size, ...): torch.local_response_norm
""")
def local_response_norm(x: Tensor, size: int, *, direction: str) -> Answer:
    if len(x.shape) < 3 or size < 1:
        raise CannotModel(f"window {size} does not fit the channels of {x.shape}")
    count = elements(x.shape)
    if direction == "bprop":
        return Cost(count * (2 * size + POWER + 10), moved(x, fresh(x), fresh(x))), texts(x)
    return Cost(count * (size + POWER + 4), moved(x, fresh(x))), texts(x)
