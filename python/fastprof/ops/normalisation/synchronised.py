"""FLOPs and bytes of the steps of SyncBatchNorm."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.normalisation.batch_norm import (
    APPLIED,
    GRADIENT,
    STATISTICS,
    SUMS,
    channels_fit,
    channels_of,
    statistics,
)
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts

MERGED: Final = 18  # variance 1/s^2 - eps (3), merged (8), mean merged (5), factor (2)


@operators("""
    (x, ...): batch_norm_stats
    (x, running_mean, running_var, ...): batch_norm_update_stats
""")
def batch_norm_stats(
    x: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None
) -> tuple[Cost, str]:
    """Mean[c] and inverse deviation[c] of x[n, c, ..] on one GPU.

    FLOPs: 4 per element: x added; x - mean, squared, added.
    Bytes: x read, two vectors of c elements written; running ones read and written.
    """
    channels = channels_of(x)
    channels_fit(channels, running_mean, running_var)
    found = statistics(x, channels)
    running = (running_mean, running_var)
    moves = moved(x, found, found, *running, *running)
    return Cost(elements(x.shape) * STATISTICS, moves), texts(x)


@operators("""
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
) -> tuple[Cost, str]:
    """Mean[c] and inverse deviation[c] from those[gpus, c] of several GPUs.

    FLOPs: 18 for each GPU and channel: variances and means are merged in pairs.
    Bytes: statistics read, merged ones written, running ones read and written. x is not read.

    Merging: Chan, Golub, LeVeque, Updating formulae for computing sample variances.
    """
    if len(mean.shape) != 2 or mean.shape != invstd.shape:
        raise CannotModel(f"{mean.shape}, {invstd.shape} are not statistics of several GPUs")
    channels = mean.shape[1]
    channels_fit(channels, running_mean, running_var)
    merged = fresh(mean, (channels,))
    running = (running_mean, running_var)
    counted = counts if isinstance(counts, Tensor) else None
    moves = moved(mean, invstd, merged, merged, *running, *running, counted)
    return Cost(elements(mean.shape) * MERGED, moves), texts(mean, invstd)


@operators("(x, weight, bias, mean, invstd, ...): batch_norm_elemt")
def batch_norm_elemt(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor
) -> tuple[Cost, str]:
    """(x[n, c, ..] - mean[c]) * invstd[c] * weight[c] + bias[c].

    FLOPs: 2 per element, one more for weight and one for bias.
    Bytes: x read, y written, the vectors read.
    """
    channels_fit(channels_of(x), weight, bias, mean, invstd)
    flops = APPLIED + (weight is not None) + (bias is not None)
    moves = moved(x, weight, bias, mean, invstd, fresh(x))
    return Cost(elements(x.shape) * flops, moves), texts(x, weight, bias)


@operators("(gradient, x, mean, invstd, weight, ...): batch_norm_backward_reduce")
def batch_norm_backward_reduce(
    gradient: Tensor, x: Tensor, mean: Tensor, invstd: Tensor, weight: Tensor | None = None
) -> tuple[Cost, str]:
    """Sums[c] of dy and of dy * (x - mean) over x[n, c, ..] on one GPU.

    FLOPs: 4 per element: dy added; x - mean, times dy, added.
    Bytes: dy, x and the statistics read, both sums written, and dweight and dbias with a weight.
    """
    if gradient.shape != x.shape:
        raise CannotModel(f"gradient {gradient.shape} does not fit {x.shape}")
    channels_fit(channels_of(x), mean, invstd, weight)
    of_vectors = () if weight is None else (fresh(weight), fresh(weight))
    moves = moved(gradient, x, mean, invstd, fresh(mean), fresh(mean), *of_vectors)
    return Cost(elements(x.shape) * SUMS, moves), texts(gradient, x)


@operators("""
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
) -> tuple[Cost, str]:
    """dx[n, c, ..] = (dy - mean(dy) - (x - mean) * c) * factor, from the sums of all GPUs.

    FLOPs: 5 per element.
    Bytes: dy, x and the vectors of c elements read, dx written.
    """
    if gradient.shape != x.shape:
        raise CannotModel(f"gradient {gradient.shape} does not fit {x.shape}")
    vectors = (mean, invstd, weight, sum_dy, sum_dy_xmu)
    channels_fit(channels_of(x), *vectors)
    return Cost(elements(x.shape) * GRADIENT, moved(gradient, x, *vectors, fresh(x))), texts(
        gradient, x
    )
