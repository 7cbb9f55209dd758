"""Determines from the channels whether a convolution is transposed, if not recorded."""

from __future__ import annotations

from fastprof.model.call import Tensor
from fastprof.ops.convolution.images import images, rank_of
from fastprof.ops.cost import CannotModel


def is_transposed(x: Tensor, weight: Tensor, filters: int | None) -> bool:
    """Whether a convolution is transposed, by its channels.

    Raises
    ------
    CannotModel
        When they fit both, or neither.
    """
    plain, transposed = (_fit(x, weight, filters, flag) for flag in (False, True))
    if plain == transposed:
        raise CannotModel("the channels do not determine whether the convolution is transposed")
    return transposed


def is_transposed_likely(x: Tensor, weight: Tensor, output: Tensor) -> tuple[bool, bool]:
    """Whether a convolution with known output is transposed, and whether that is certain.

    If channels fit both kinds, equal image sizes have the same cost either way, and a smaller
    output is assumed to be that of a plain convolution. A transposed one shrinks an image only if
    its padding exceeds half of the kernel.

    Raises
    ------
    CannotModel
        When channels fit neither, or fit both and the output is larger.
    """
    rank = rank_of(weight)
    before, after = images(x, rank), images(output, rank)
    plain, transposed = (_fit(x, weight, after.channels, flag) for flag in (False, True))
    if not plain or not transposed:
        return is_transposed(x, weight, after.channels), True
    if any(new > old for old, new in zip(before.sizes, after.sizes, strict=True)):
        raise CannotModel("cannot determine whether the convolution is transposed")
    return False, before.sizes == after.sizes


def _fit(x: Tensor, weight: Tensor, filters: int | None, transposed: bool) -> bool:
    # Whether the channels fit the weight for some number of groups; `filters` None always fits.
    channels = images(x, rank_of(weight)).channels
    first, each = weight.shape[:2]
    whole, grouped = (channels, filters) if transposed else (filters, channels)
    if whole not in (None, first):
        return False
    if grouped is None or not each:
        return True
    return grouped > 0 and grouped % each == 0 and first % (grouped // each) == 0
