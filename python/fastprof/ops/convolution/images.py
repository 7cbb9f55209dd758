"""Batch, channels and image sizes of a convolution's tensors, for all dimension orders."""

from __future__ import annotations

from typing import Final, NamedTuple

from fastprof.model.call import Tensor
from fastprof.ops.convolution.window import Sizes
from fastprof.ops.cost import CannotModel

_RANKS: Final = (1, 2, 3)


class Images(NamedTuple):
    """A batch of images, the input or the output of a convolution: [N, channels, *sizes]."""

    batch: int
    channels: int
    sizes: Sizes


def images(tensor: Tensor, rank: int) -> Images:
    """Split a shape. A shape without a batch dimension is a batch of one.

    Raises
    ------
    CannotModel
        When it does not have `rank` dimensions after the channels.
    """
    shape = tensor.shape
    if len(shape) not in (rank + 1, rank + 2):
        raise CannotModel(f"shape {shape} is not that of images in {rank} dimensions")
    batch = shape[0] if len(shape) == rank + 2 else 1
    return Images(batch, shape[-rank - 1], shape[-rank:])


def rank_of(weight: Tensor) -> int:
    """Dimensions of the images that a weight is for.

    Raises
    ------
    CannotModel
        When they are not one to three, or the kernel has no elements.
    """
    rank = len(weight.shape) - 2
    if rank not in _RANKS or min(weight.shape[2:]) < 1:
        raise CannotModel(f"weight has shape {weight.shape}")
    return rank


def channels_first(tensor: Tensor) -> Tensor:
    """Permute conv_tbc's [time, batch, channels] to [batch, channels, time]."""
    return _permuted(tensor, (1, 2, 0))


def filters_first(weight: Tensor) -> Tensor:
    """Permute conv_tbc's [time, channels, filters] to [filters, channels, time]."""
    return _permuted(weight, (2, 1, 0))


def _permuted(tensor: Tensor, order: tuple[int, ...]) -> Tensor:
    shape, strides = tensor.shape, tensor.strides
    if len(shape) != len(order):
        raise CannotModel(f"shape {shape} does not have {len(order)} dimensions")
    if strides is not None and len(strides) == len(order):
        strides = tuple(strides[i] for i in order)
    return Tensor(tuple(shape[i] for i in order), tensor.dtype, strides)
