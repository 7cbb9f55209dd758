"""FLOPs and bytes of padding."""

from __future__ import annotations

from typing import Final, TypeAlias

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts

Pads: TypeAlias = tuple[int, ...] | Unknown
Mode: TypeAlias = str | int | Unknown

# Numbers of _pad_enum (torch/nn/modules/padding). Backward sums the gradients of copied elements.
_REPEATING: Final = frozenset({"reflect", "replicate", "circular", 1, 2, 3})
_CONSTANT: Final = frozenset({"constant", 0})


def _padded(x: Tensor, pads: Pads) -> tuple[Tensor, Tensor]:
    # The part of x that is read (negative pads crop it), and y. Pads are pairs, the last dimension
    # first.
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
        raise CannotModel(f"pad {pads!r} exceeds the size of {x.shape}")
    return fresh(x, tuple(read)), fresh(x, tuple(written))


def _cost(x: Tensor, pads: Pads, repeats: bool, direction: str) -> tuple[Cost, str]:
    read, y = _padded(x, pads)
    if direction == "fprop":
        whole = x if read.shape == x.shape else read
        return Cost(0, moved(whole, y)), texts(x)
    if repeats:
        return Cost(elements(y.shape), moved(y, fresh(x))), texts(x)
    return Cost(0, moved(read, fresh(x))), texts(x)


@operators("(x, pad, mode, _): pad torch._pad aten::_pad_enum")
def pad(x: Tensor, pad: Pads, mode: Mode = "constant", *, direction: str) -> tuple[Cost, str]:
    """x padded with a constant or with its own elements.

    FLOPs: none; backward none for a constant, else one addition for each output.
    Bytes: x read (cropped by negative pads), y written. Backward reads dy (for a constant without
    the border), writes dx.
    """
    repeats = mode in _REPEATING
    if not repeats and mode not in _CONSTANT and not isinstance(mode, Unknown):
        raise CannotModel(f"unknown mode {mode!r}")
    return _cost(x, pad, repeats, direction)


@operators("(x, pad, _): constant_pad_nd")
def constant_pad(x: Tensor, pad: Pads, *, direction: str) -> tuple[Cost, str]:
    """x padded with a constant.

    FLOPs: none.
    Bytes: x read (cropped by negative pads), y written. Backward reads dy without the border,
    writes dx.
    """
    return _cost(x, pad, False, direction)


@operators("""
    (x, padding=pads): reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d
        replication_pad2d replication_pad3d
    (x, pad=pads): torch._pad_circular
    (x, pads): aten::_pad_circular
""")
def repeating_pad(x: Tensor, pads: Pads, *, direction: str) -> tuple[Cost, str]:
    """x padded with its own elements: reflected, replicated or circular.

    FLOPs: none; backward one addition for each output.
    Bytes: x read, y written. Backward reads dy, writes dx.
    """
    return _cost(x, pads, True, direction)


@operators("""
    (gradient, x, _): reflection_pad1d_backward reflection_pad2d_backward
        reflection_pad3d_backward replication_pad1d_backward replication_pad2d_backward
        replication_pad3d_backward
""")
def repeating_pad_backward(gradient: Tensor, x: Tensor) -> tuple[Cost, str]:
    """dx of a reflection or replication pad: dy added to the source elements.

    FLOPs: one addition for each element of dy.
    Bytes: dy read, dx written.
    """
    return Cost(elements(gradient.shape), moved(gradient, fresh(x))), texts(gradient, x)
