"""FLOPs and bytes of batch norm and instance norm, and of the steps of SyncBatchNorm."""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.dtypes import canonical_type
from fastprof.ops.parameters import Flag
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import elements, fresh, moved, same_shape, texts

# FLOPs per element, from the formulas. Per-channel operations (a square root, a division) are not
# counted.
STATISTICS: Final = 4  # mean and variance: x added; x - mean, squared, added
APPLIED: Final = 2  # (x - mean) * invstd; times weight and plus bias are one more each
SUMS: Final = 4  # dy added; x - mean, times dy, added
GRADIENT: Final = 5  # (dy - mean(dy) - (x - mean) * c) * factor


class Vectors(NamedTuple):
    """The vectors of a batch norm, one element for each channel."""

    weight: Tensor | None = None
    bias: Tensor | None = None
    running_mean: Tensor | None = None
    running_var: Tensor | None = None

    def ordered(self, cudnn_enabled: Flag | None) -> Vectors:
        """Those of torch.batch_norm, whose argument this is, begin with weight and bias."""
        return self if cudnn_enabled is None else Vectors(*self[2:], *self[:2])


def statistics(x: Tensor, count: int) -> Tensor:
    """Means (or variances, or their inverse roots) in torch's type: float32 or wider."""
    name = canonical_type(x.dtype)
    return Tensor((count,), name if name in (None, "float64") else "float32")


def channels_fit(size: int, *vectors: Tensor | None) -> None:
    """Raise `CannotModel` if a vector has another number of elements."""
    for tensor in vectors:
        if tensor is not None and elements(tensor.shape) != size:
            raise CannotModel(f"{tensor.shape} does not fit {size} channels")


def channels_of(x: Tensor) -> int:
    """The c of x[n, c, ..]; raises CannotModel when x has no channel dimension."""
    if len(x.shape) < 2:
        raise CannotModel(f"shape {x.shape} has no channels")
    return x.shape[1]


@operators("""
    x[n, c, ..] normalised by channel: (x - mean) / sqrt(var + eps) * weight[c] + bias[c].
    FLOPs: 8 per element in training (mean 1, variance 3, normalising 2, weight 1, bias 1), 4 in
    evaluation; backward 9 in training (two sums 4, gradient 5), 1 (and 4 for those of weight and
    bias) in evaluation.
    Bytes: training reads x twice (statistics require the entire batch), evaluation once; y written;
    the vectors of c elements read, running and saved statistics written. Backward reads dy and x
    twice (evaluation once), writes dx and the gradients of the vectors.

    PyProf also counts 8; its bytes are 4 tensors forward and 5 backward. Per-channel operations are
    not counted. All gradients are assumed to be computed. If not recorded, training is assumed (not
    exact). torch.batch_norm, identified by its ninth argument, has weight and bias before the
    running statistics.
    (x, running_mean, running_var, weight, bias, training, _, _, cudnn_enabled):
        torch.batch_norm
    (x, weight, bias, running_mean, running_var, training, ...): _batch_norm_impl_index
        native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional
        cudnn_batch_norm miopen_batch_norm aten::batch_norm
    (x, weight, bias, training, ...): _native_batch_norm_legit
""")
def batch_norm(
    x: Tensor,
    vectors: Vectors,
    training: Flag = False,
    cudnn_enabled: Flag | None = None,
    *,
    direction: str,
) -> Answer:
    return _norm(x, vectors.ordered(cudnn_enabled), training, direction)


def _batch_norm(
    x: Tensor,
    vectors: Vectors,
    momentum: float | Unknown = 0.0,
    eps: float | Unknown = 0.0,
    *,
    training: bool,
    direction: str,
) -> Answer:
    return batch_norm(x, vectors, training, direction=direction)


table_row("""
    x[n, c, ..] normalised by running statistics.
    FLOPs: 2 per element, one more for weight and one for bias; backward as batch_norm.
    Bytes: x read, y written, the vectors read; backward as batch_norm.
    (x, weight, bias, running_mean, running_var, momentum, eps):
        _native_batch_norm_legit_no_training _batch_norm_no_update
""")(_batch_norm, training=False)

table_row("""
    x[n, c, ..] normalised by its own statistics; updates the running statistics.
    FLOPs: 6 per element, one more for weight and one for bias; backward 9.
    Bytes: x read twice, y written, the vectors; backward as batch_norm.
    (x, weight, bias, running_mean, running_var, momentum, eps):
        _batch_norm_with_update _batch_norm_with_update_functional
""")(_batch_norm, training=True)


@operators("""
    x[n, c, ..] normalised for each n and c: the batch norm of x[1, n c, ..], as in torch.
    FLOPs: as batch_norm; in training mode if it uses the input's statistics.
    Bytes: as batch_norm with n c saved statistics.
    (x, running_mean, running_var, weight, bias, use_input_stats, _, _, cudnn_enabled):
        torch.instance_norm
    (x, weight, bias, running_mean, running_var, use_input_stats, ...): aten::instance_norm
""")
def instance_norm(
    x: Tensor,
    vectors: Vectors,
    use_input_stats: Flag = True,
    cudnn_enabled: Flag | None = None,
    *,
    direction: str,
) -> Answer:
    return _norm(x, vectors.ordered(cudnn_enabled), use_input_stats, direction, by_sample=True)


def _norm(
    x: Tensor, vectors: Vectors, training: Flag, direction: str, *, by_sample: bool = False
) -> Answer:
    channels = channels_of(x)
    channels_fit(channels, *vectors)
    groups = channels * (x.shape[0] if by_sample else 1)
    weight, bias, running_mean, running_var = vectors
    params = texts(x, weight, bias)
    exact = not isinstance(training, Unknown)
    if direction == "bprop":
        saved = statistics(x, groups)
        flops, moves = _gradients(fresh(x), x, weight, bias, (saved, saved), bool(training))
    elif training:
        saved = statistics(x, groups)
        flops = elements(x.shape) * _per_element(STATISTICS + APPLIED, weight, bias)
        running = (running_mean, running_var)
        moves = moved(x, x, fresh(x), weight, bias, *running, *running, saved, saved)
    else:
        flops = elements(x.shape) * _per_element(APPLIED, weight, bias)
        moves = moved(x, fresh(x), *vectors)
    return Cost(flops, moves, exact), params


def _per_element(flops: int, weight: Tensor | None, bias: Tensor | None) -> int:
    return flops + (weight is not None) + (bias is not None)


def _gradients(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    saved: tuple[Tensor | None, Tensor | None],
    training: bool,
) -> tuple[int, int | None]:
    # FLOPs and bytes of dx and of the gradients of weight and bias, if any.
    of_vectors = [fresh(tensor) for tensor in (weight, bias) if tensor is not None]
    count = elements(x.shape)
    if training:
        moves = moved(gradient, x, gradient, x, fresh(x), weight, *saved, *of_vectors)
        return count * (SUMS + GRADIENT), moves
    if of_vectors:
        moves = moved(gradient, x, fresh(x), weight, *saved, *of_vectors)
        return count * (SUMS + 1), moves
    return count, moved(gradient, fresh(x), *saved)


@operators("""
    dx[n, c, ..], dweight[c] and dbias[c] of a batch norm from dy, x and saved statistics.
    FLOPs: 9 per element in training (two sums 4, gradient 5), else 1, and 4 with a weight.
    Bytes: in training dy and x read twice, else once; dx written; the vectors of c elements.

    cuDNN's and MIOpen's operators are for training. With a weight, a bias and both gradients are
    assumed. If not recorded, training is assumed (not exact).
    (gradient, x, weight, running_mean, running_var, save_mean, save_var, training, ...):
        native_batch_norm_backward batch_norm_backward
    (x, gradient, weight, running_mean, running_var, save_mean, save_var, ...):
        cudnn_batch_norm_backward miopen_batch_norm_backward
    (_, x, gradient, weight, running_mean, running_var, save_mean, save_var, training, ...):
        _batch_norm_impl_index_backward
""")
def batch_norm_backward(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor | None = None,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    save_mean: Tensor | None = None,
    save_var: Tensor | None = None,
    training: Flag = True,
) -> Answer:
    channels = channels_of(x)
    same_shape(gradient, x)
    saved = (save_mean, save_var) if training else (running_mean, running_var)
    channels_fit(channels, weight, running_mean, running_var)
    flops, moves = _gradients(gradient, x, weight, weight, saved, bool(training))
    return Cost(flops, moves, not isinstance(training, Unknown)), texts(gradient, x, weight)


MERGED: Final = 18  # variance 1/s^2 - eps (3), merged (8), mean merged (5), factor (2)


@operators("""
    Mean[c] and inverse deviation[c] of x[n, c, ..] on one GPU.
    FLOPs: 4 per element: x added; x - mean, squared, added.
    Bytes: x read, two vectors of c elements written; running ones read and written.
    (x, ...): batch_norm_stats
    (x, running_mean, running_var, ...): batch_norm_update_stats
""")
def batch_norm_stats(
    x: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None
) -> Answer:
    channels = channels_of(x)
    channels_fit(channels, running_mean, running_var)
    tensor = statistics(x, channels)
    running = (running_mean, running_var)
    moves = moved(x, tensor, tensor, *running, *running)
    return Cost(elements(x.shape) * STATISTICS, moves), texts(x)


@operators("""
    Mean[c] and inverse deviation[c] from those[gpus, c] of several GPUs.
    FLOPs: 18 for each GPU and channel: variances and means are merged in pairs.
    Bytes: statistics read, merged ones written, running ones read and written. x is not read.

    Merging: Chan, Golub, LeVeque, Updating formulae for computing sample variances.
    (x, mean, invstd, running_mean, running_var, _, _, counts): batch_norm_gather_stats
        batch_norm_gather_stats_with_counts
""")
def batch_norm_gather_stats(
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    counts: Tensor | int | Unknown | None = None,
) -> Answer:
    if len(mean.shape) != 2 or mean.shape != invstd.shape:
        raise CannotModel(f"{mean.shape}, {invstd.shape} are not statistics of several GPUs")
    channels = mean.shape[1]
    channels_fit(channels, running_mean, running_var)
    merged = fresh(mean, (channels,))
    running = (running_mean, running_var)
    counted = counts if isinstance(counts, Tensor) else None
    moves = moved(mean, invstd, merged, merged, *running, *running, counted)
    return Cost(elements(mean.shape) * MERGED, moves), texts(mean, invstd)


@operators("""
    (x[n, c, ..] - mean[c]) * invstd[c] * weight[c] + bias[c].
    FLOPs: 2 per element, one more for weight and one for bias.
    Bytes: x read, y written, the vectors read.
    (x, weight, bias, mean, invstd, ...): batch_norm_elemt
""")
def batch_norm_elemt(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor
) -> Answer:
    channels_fit(channels_of(x), weight, bias, mean, invstd)
    flops = elements(x.shape) * _per_element(APPLIED, weight, bias)
    return Cost(flops, moved(x, weight, bias, mean, invstd, fresh(x))), texts(x, weight, bias)


@operators("""
    Sums[c] of dy and of dy * (x - mean) over x[n, c, ..] on one GPU.
    FLOPs: 4 per element: dy added; x - mean, times dy, added.
    Bytes: dy, x and the statistics read, both sums written, and dweight and dbias with a weight.
    (gradient, x, mean, invstd, weight, ...): batch_norm_backward_reduce
""")
def batch_norm_backward_reduce(
    gradient: Tensor, x: Tensor, mean: Tensor, invstd: Tensor, weight: Tensor | None = None
) -> Answer:
    same_shape(gradient, x)
    channels_fit(channels_of(x), mean, invstd, weight)
    of_vectors = () if weight is None else (fresh(weight), fresh(weight))
    moves = moved(gradient, x, mean, invstd, fresh(mean), fresh(mean), *of_vectors)
    return Cost(elements(x.shape) * SUMS, moves), texts(gradient, x)


@operators("""
    dx[n, c, ..] = (dy - mean(dy) - (x - mean) * c) * factor, from the sums of all GPUs.
    FLOPs: 5 per element.
    Bytes: dy, x and the vectors of c elements read, dx written.
    (gradient, x, mean, invstd, weight, sum_dy, sum_dy_xmu, ...): batch_norm_backward_elemt
""")
def batch_norm_backward_elemt(
    gradient: Tensor,
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    sum_dy: Tensor,
    sum_dy_xmu: Tensor,
) -> Answer:
    same_shape(gradient, x)
    vectors = (mean, invstd, weight, sum_dy, sum_dy_xmu)
    channels_fit(channels_of(x), *vectors)
    return Cost(elements(x.shape) * GRADIENT, moved(gradient, x, *vectors, fresh(x))), texts(
        gradient, x
    )
