"""FLOPs and bytes of dropout."""

from __future__ import annotations

from typing import Final, TypeAlias

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.random.numbers import RANDOM
from fastprof.ops.registry import TORCH, op, operators
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts

Probability: TypeAlias = float | Unknown
Training: TypeAlias = bool | Unknown | None

# The mask of a dropout is one byte per element.
_MASK: Final = "bool"
# SELU's dropout, x * noise + b: b = (noise - 1) a + c 3, noise * a 1, applied 2.
AFFINE: Final = 6


def _drops(p: Probability, training: Training, default: bool) -> tuple[bool, bool]:
    # Whether elements are dropped, and whether that is certain. torch returns x itself for p = 0.
    if training is False or (training is None and not default) or p == 0:
        return False, True
    return True, not isinstance(training, Unknown) and not isinstance(p, Unknown)


@operators("""
    (x, p, training, _, train): torch.dropout
    (x, p, train=training, _): torch.dropout_
    (x, p, training): native_dropout aten::dropout aten::dropout_
    (x, p, _): _fused_dropout
""")
def dropout(
    x: Tensor,
    p: Probability = 0.5,
    training: Training = None,
    train: Training = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """x with random elements set to 0, the others divided by 1 - p.

    FLOPs: 5 per element (random number 3, compared, scaled), PyProf's count; backward 2 (mask,
    scaled). 0 outside training and for p = 0.
    Bytes: x read, y and a mask of one byte per element written. Backward reads dy and mask, writes
    dx. None outside training: y is x itself.

    PyProf leaves the mask out. If not recorded,  it is assumed to be training (not exact).
    """
    dropping, exact = _drops(p, training if train is None else train, True)
    if not dropping:
        return Cost(0, 0, exact), texts(x)
    mask = fresh(x, dtype=_MASK)
    if direction == "bprop":
        return _gradient(fresh(x), mask, exact), texts(x)
    return Cost(elements(x.shape) * (RANDOM + 2), moved(x, fresh(x), mask), exact), texts(x)


def _gradient(gradient: Tensor, mask: Tensor, exact: bool = True) -> Cost:
    moves = moved(gradient, mask, fresh(gradient))
    return Cost(2 * elements(gradient.shape), moves, exact)


@operators("(gradient, mask, _): native_dropout_backward _masked_scale")
def native_dropout_backward(gradient: Tensor, mask: Tensor) -> tuple[Cost, str]:
    """dx of a dropout: dy masked and scaled.

    FLOPs: 2 per element (mask, scaled).
    Bytes: dy and mask read, dx written.
    """
    if gradient.shape != mask.shape:
        raise CannotModel(f"mask {mask.shape} does not fit {gradient.shape}")
    return _gradient(gradient, mask), texts(gradient)


def _channels(x: Tensor) -> Tensor:
    # One number for each channel of x[n, c, ..].
    if len(x.shape) < 2:
        raise CannotModel(f"shape {x.shape} has no channels")
    return fresh(x, x.shape[:2])


@operators("""
    (x, p, training, _): torch.dropout1d torch.dropout2d torch.dropout3d
    (x, p, train=training): torch.feature_dropout torch.feature_dropout_
    (x, p, training): aten::feature_dropout aten::feature_dropout_
""")
def feature_dropout(
    x: Tensor, p: Probability = 0.5, training: Training = None, *, direction: str
) -> tuple[Cost, str]:
    """x[n, c, ..] with random channels set to 0, the others divided by 1 - p.

    FLOPs: 5 for a channel (random number 3, compared, divided), 1 per element; backward 1. None
    outside training.
    Bytes: x read, y and a number for each channel written. Backward reads dy and those numbers,
    writes dx. None outside training.

    If not recorded,  it is assumed to be training (not exact). x without a batch counts as if its
    first two dimensions were batch and channels.
    """
    dropping, exact = _drops(p, training, True)
    if not dropping:
        return Cost(0, 0, exact), texts(x)
    noise, flops = _channels(x), elements(x.shape)
    if direction == "bprop":
        return Cost(flops, moved(fresh(x), noise, fresh(x)), exact), texts(x)
    drawn = elements(noise.shape) * (RANDOM + 2)
    return Cost(flops + drawn, moved(x, fresh(x), noise), exact), texts(x)


def _register_alpha(name: str, by_channel: bool) -> None:
    aten = (f"{name}(x, p, training)", f"{name}_(x, p, training)")
    python = (f"{name}(x, p, training, _, train)", f"{name}_(x, p, train=training)")

    @op(TORCH, *python, aten=aten)
    def alpha_dropout_of(
        x: Tensor,
        p: Probability = 0.5,
        training: Training = None,
        train: Training = None,
        *,
        direction: str,
    ) -> tuple[Cost, str]:
        """x with random elements (or channels) set to SELU's limit, then scaled and shifted to keep
        mean and variance.

        FLOPs: 8 for each number drawn (random number 3, compared, 4 for scale and shift), 2 per
        element; backward 1. None outside training.
        Bytes: x read, y and the numbers drawn written. Backward reads dy and the numbers, writes
        dx. None outside training.

        Counted as one kernel; torch uses several.
        """
        return alpha_dropout(x, p, training if train is None else train, by_channel, direction)


def alpha_dropout(
    x: Tensor, p: Probability, training: Training, by_channel: bool, direction: str
) -> tuple[Cost, str]:
    """Cost of a dropout that keeps mean and variance."""
    dropping, exact = _drops(p, training, False)
    if not dropping:
        return Cost(0, 0, exact), texts(x)
    noise = _channels(x) if by_channel else fresh(x)
    if direction == "bprop":
        return Cost(elements(x.shape), moved(fresh(x), noise, fresh(x)), exact), texts(x)
    drawn = elements(noise.shape) * (RANDOM + 1 + AFFINE - 2)
    return Cost(2 * elements(x.shape) + drawn, moved(x, fresh(x), noise), exact), texts(x)


_register_alpha("alpha_dropout", by_channel=False)
_register_alpha("feature_alpha_dropout", by_channel=True)
