"""FLOPs and bytes of region pooling (RoI).

Schemas: torchvision, csrc/ops/roi_align.cpp, roi_pool.cpp, ps_roi_align.cpp, ps_roi_pool.cpp.
"""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Call, Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements, tensor_bytes
from fastprof.ops.traffic import fresh, moved, texts

# One bilinear sample: four products and four additions.
_SAMPLE: Final = 8


def _samples(count: int, ratio: int | Unknown) -> int | None:
    # Without a sampling ratio, the number of samples is the region's number of pixels.
    return count * ratio * ratio if isinstance(ratio, int) and ratio > 0 else None


def _touched(x: Tensor, pixels: int | None) -> int | None:
    # At most the pixels around all samples, and at most the entire images.
    whole = tensor_bytes(x)
    met = None if pixels is None else byte_count(pixels, x.dtype)
    return whole if whole is None or met is None else min(whole, met)


def _checked(x: Tensor, rois: Tensor) -> None:
    if len(x.shape) != 4 or len(rois.shape) != 2 or rois.shape[1] != 5:
        raise CannotModel(f"regions {rois.shape} do not fit images {x.shape}")


@operators("""
    (x, rois, _, height, width, ratio, _): torchvision::roi_align
    (x, rois, _, height, width, ratio): torchvision::ps_roi_align
""")
def aligned(
    x: Tensor,
    rois: Tensor,
    height: int | Unknown,
    width: int | Unknown,
    ratio: int | Unknown,
    *,
    call: Call,
    direction: str,
) -> tuple[Cost, str]:
    """Regions rois [k, 5] of x [n, c, h, w], resampled -> [k, c, height, width].

    FLOPs: 8 for each sample between four pixels, ratio x ratio of them for each element of the
    result; unknown if the ratio depends on the region's size. Backward the same.
    Bytes: the pixels around the samples (no more than x) and the regions read, the result written
    (position-sensitive ones also an int32 channel for each element); backward the gradient read
    and that of x written.

    An estimate: regions may overlap or not cover all pixels.
    """
    _checked(x, rois)
    if isinstance(height, Unknown) or isinstance(width, Unknown):
        raise CannotModel("the size of the regions is not in the capture")
    sensitive = call.op.startswith("ps_")
    channels = x.shape[1] // (height * width) if sensitive else x.shape[1]
    result = Tensor((rois.shape[0], channels, height, width), x.dtype)
    count = _samples(elements(result.shape), ratio)
    flops = None if count is None else _SAMPLE * count
    if direction == "bprop":
        return Cost(flops, moved(result, rois, fresh(x)), False), texts(x, rois)
    read = _touched(x, None if count is None else 4 * count)
    mapping = Tensor(result.shape, "int32") if sensitive else None
    return Cost(flops, add_known(read, moved(rois, result, mapping)), False), texts(x, rois)


@operators("""
    (gradient, rois, _, _, _, batch, channels, rows, columns, ratio, _):
        torchvision::_roi_align_backward
""")
def aligned_backward(
    gradient: Tensor,
    rois: Tensor,
    batch: int | Unknown,
    channels: int | Unknown,
    rows: int | Unknown,
    columns: int | Unknown,
    ratio: int | Unknown,
) -> tuple[Cost, str]:
    """Gradient [k, c, height, width] of resampled regions -> that of the images [n, c, h, w].

    FLOPs: 8 for each sample, as forward; unknown without a ratio.
    Bytes: gradient and regions read, the gradient of the images written.
    """
    count = _samples(elements(gradient.shape), ratio)
    sizes = (batch, channels, rows, columns)
    known = tuple(each for each in sizes if isinstance(each, int))
    whole = byte_count(elements(known), gradient.dtype) if len(known) == len(sizes) else None
    flops = None if count is None else _SAMPLE * count
    return Cost(flops, add_known(moved(gradient, rois), whole), False), texts(gradient, rois)


@operators("(x, rois, _, height, width): torchvision::roi_pool torchvision::ps_roi_pool")
def pooled(
    x: Tensor,
    rois: Tensor,
    height: int | Unknown,
    width: int | Unknown,
    *,
    call: Call,
    direction: str,
) -> tuple[Cost, str]:
    """The largest (position-sensitive: the mean) of each part of the regions rois [k, 5] of x.

    FLOPs: unknown, because the size of regions is not recorded; backward one addition for each
    element of the result.
    Bytes: x and the regions read, the result and int32 indices written; backward the gradient and
    indices read, the gradient of x written.

    An estimate: regions may overlap or not cover all pixels.
    """
    _checked(x, rois)
    if isinstance(height, Unknown) or isinstance(width, Unknown):
        raise CannotModel("the size of the regions is not in the capture")
    parts = height * width if call.op.startswith("ps_") else 1
    shape = (rois.shape[0], x.shape[1] // max(parts, 1), height, width)
    result, places = Tensor(shape, x.dtype), Tensor(shape, "int32")
    if direction == "bprop":
        moves = moved(result, places, rois, fresh(x))
        return Cost(elements(shape), moves, False), texts(x, rois)
    return Cost(None, moved(x, rois, result, places), False), texts(x, rois)
