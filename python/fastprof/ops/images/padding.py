"""Padding to bytes, and to the FLOPs of its backward pass."""

from __future__ import annotations

from typing import Final, TypeAlias

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.registry import TORCH, op
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts

__all__ = ["constant_pad", "pad", "repeating_pad", "repeating_pad_backward"]

Pads: TypeAlias = tuple[int, ...] | Unknown
Mode: TypeAlias = str | int | Unknown

# torch/nn/modules/padding: numbers of _pad_enum. What the border repeats is added up backward.
_REPEATING: Final = frozenset({"reflect", "replicate", "circular", 1, 2, 3})
_CONSTANT: Final = frozenset({"constant", 0})


def _padded(x: Tensor, pads: Pads) -> tuple[Tensor, Tensor]:
    # What is read of x (negative pads cut it), and y. Pads come in pairs, the last dimension first.
    if isinstance(pads, Unknown):
        raise CannotModel("pad is not in the capture")
    if len(pads) % 2 or len(pads) > 2 * len(x.shape):
        raise CannotModel(f"pad {pads!r} does not fit {x.shape}")
    read, written = list(x.shape), list(x.shape)
    for i in range(len(pads) // 2):
        place = len(x.shape) - 1 - i
        low, high = pads[2 * i : 2 * i + 2]
        written[place] += low + high
        read[place] += min(low, 0) + min(high, 0)
    if min((*read, *written), default=0) < 0:
        raise CannotModel(f"pad {pads!r} cuts more than there is of {x.shape}")
    return fresh(x, tuple(read)), fresh(x, tuple(written))


def _cost(x: Tensor, pads: Pads, repeats: bool, direction: str) -> tuple[Cost, str]:
    read, y = _padded(x, pads)
    if direction == "fprop":
        whole = x if read.shape == x.shape else read
        return Cost(0, moved(whole, y)), texts(x)
    if repeats:
        return Cost(elements(y.shape), moved(y, fresh(x))), texts(x)
    return Cost(0, moved(read, fresh(x))), texts(x)


@op(
    TORCH,
    "pad(x, pad, mode, _)",
    "_pad(x, pad, mode, _)",
    aten=("pad(x, pad, mode, _)", "_pad_enum(x, pad, mode, _)"),
)
def pad(x: Tensor, pad: Pads, mode: Mode = "constant", *, direction: str) -> tuple[Cost, str]:
    """x with a border of a constant, or of its own elements.

    FLOPs: none; backward none for a constant, else one addition for each output.
    Bytes: x read (where a pad is negative, what it leaves), y written. Backward reads dy (for a
    constant without the border), writes dx.
    """
    repeats = mode in _REPEATING
    if not repeats and mode not in _CONSTANT and not isinstance(mode, Unknown):
        raise CannotModel(f"mode {mode!r} is not known")
    return _cost(x, pad, repeats, direction)


@op(TORCH, "constant_pad_nd(x, pad, _)", aten=("constant_pad_nd(x, pad, _)",))
def constant_pad(x: Tensor, pad: Pads, *, direction: str) -> tuple[Cost, str]:
    """x with a border of a constant.

    FLOPs: none.
    Bytes: x read (where a pad is negative, what it leaves), y written. Backward reads dy without
    the border, writes dx.
    """
    return _cost(x, pad, False, direction)


_KINDS: Final = tuple(
    f"{kind}_pad{dimensions}d" for kind in ("reflection", "replication") for dimensions in (1, 2, 3)
)
_FORWARD: Final = tuple(f"{name}(x, padding=pads)" for name in _KINDS)


@op(TORCH, *_FORWARD, "_pad_circular(x, pad=pads)", aten=(*_FORWARD, "_pad_circular(x, pads)"))
def repeating_pad(x: Tensor, pads: Pads, *, direction: str) -> tuple[Cost, str]:
    """x with a border of its own elements: mirrored, repeated or from the other side.

    FLOPs: none; backward one addition for each output.
    Bytes: x read, y written. Backward reads dy, writes dx.
    """
    return _cost(x, pads, True, direction)


_BACKWARD: Final = tuple(f"{name}_backward(gradient, x, _)" for name in _KINDS)


@op(TORCH, *_BACKWARD, aten=_BACKWARD)
def repeating_pad_backward(gradient: Tensor, x: Tensor) -> tuple[Cost, str]:
    """dx of a reflection or replication pad: dy added to what it is a copy of.

    FLOPs: one addition for each element of dy.
    Bytes: dy read, dx written.
    """
    return Cost(elements(gradient.shape), moved(gradient, fresh(x))), texts(gradient, x)
