"""Operators of torchvision for detection: boxes, regions, deformable convolutions.

Schemas: torchvision, csrc/ops/nms.cpp, deform_conv2d.cpp, roi_align.cpp, roi_pool.cpp,
ps_roi_align.cpp, ps_roi_pool.cpp.
"""

from __future__ import annotations

from math import prod
from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import UNKNOWN, Call, Tensor, Unknown
from fastprof.ops.cost import Answer, CannotModel, Cost, Part, Work, add_known
from fastprof.ops.dtypes import short_type
from fastprof.ops.parameters import Flag, Int
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements, fresh, moved, same_shape, tensor_bytes, texts
from fastprof.ops.tensor_cores import why_not

# Corners of the intersection 4, its sides 2, clamped at zero 2, its area 1, the union 2, the ratio
# 1, the comparison 1.
_PAIR = 13


@operators("""
    Non-maximum suppression: indices [kept] of the boxes [n, 4] without a better overlapping box.
    FLOPs: 13 for each of n (n - 1) / 2 pairs (corners of the intersection 4, sides 2, clamped at
    zero 2, area 1, union 2, ratio 1, comparison 1), 3 for the area of each box.
    Bytes: boxes and scores read, the indices written (all n if the size of the result is unknown).

    An estimate: suppressed boxes are not compared further, and sorting is not counted.
    (boxes, scores, ...): torchvision::nms
""")
def nms(boxes: Tensor, scores: Tensor, *, result: Tensor | Unknown = UNKNOWN) -> Answer:
    if len(boxes.shape) != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise CannotModel(f"boxes {boxes.shape} do not fit scores {scores.shape}")
    n = boxes.shape[0]
    kept = result.shape if isinstance(result, Tensor) else (n,)
    moves = moved(boxes, scores, Tensor(kept, "int64"))
    return Cost(_PAIR * n * (n - 1) // 2 + 3 * n, moves, False), texts(boxes, scores)


_KINDS: Final = frozenset({"convolution", "gemm"})


class Deformed(NamedTuple):
    """The operands of a deformable convolution; `masked` is False if it has no mask."""

    x: Tensor
    weight: Tensor
    offset: Tensor
    mask: Tensor
    bias: Tensor
    masked: Flag = True

    @property
    def extra(self) -> list[Tensor]:
        """Where x is sampled, and the mask."""
        return [self.offset, *([] if self.masked is False else [self.mask])]

    @property
    def reason(self) -> str:
        """Why kernels may not use tensor cores."""
        return why_not(self.x.dtype, {"C": self.weight.shape[1], "K": self.weight.shape[0]})


def _sizes(operands: Deformed) -> tuple[Tensor, int, str]:
    """The output, the multiply-adds, and the params."""
    x, weight, offset = operands[:3]
    if {len(tensor.shape) for tensor in (x, weight, offset)} != {4}:
        raise CannotModel(f"no deformable convolution of {x.shape} with {weight.shape}")
    n, c, h, w = x.shape
    k, each, r, s = weight.shape
    p, q = offset.shape[2:]
    groups, left = divmod(c, max(each, 1))
    if offset.shape[0] != n or offset.shape[1] % (2 * r * s) or left:
        raise CannotModel(f"offsets {offset.shape} do not fit {x.shape} and {weight.shape}")
    output = Tensor((n, k, p, q), x.dtype)
    fields = f"N={n},C={c},H={h},W={w},K={k},P={p},Q={q},R={r},S={s},g={groups}"
    return output, n * p * q * prod(weight.shape), f"{fields},{short_type(x.dtype)},"


@operators("""
    x [n, c, h, w] * w [k, c/g, r, s], sampled at offsets [n, 2 o r s, p, q].
    FLOPs: a multiply-add for each output and weight of its group, 2 n k p q (c/g) r s; backward the
    same for each of the two gradients. Interpolation is not counted, like softmax in attention.
    Bytes: x, weight, offsets, mask and bias read, the output written; backward for each gradient
    the others read and it written.
    (x, weight, offset, mask, bias, _, _, _, _, _, _, _, _, masked): torchvision::deform_conv2d
""")
def deform_conv2d(operands: Deformed, *, direction: str) -> Work:
    output, products, params = _sizes(operands)
    if direction == "bprop":
        return _gradients(output, operands, products, params)
    read = (operands.x, operands.weight, *operands.extra, operands.bias)
    cost = Cost(2 * products, moved(*read, output))
    part = Part("main", cost, params, kernels=_KINDS, no_tensor_cores=operands.reason)
    return Work((part,))


@operators("""
    Gradients of a deformable convolution: of x, weight, offsets, mask and bias.
    FLOPs: 2 n k p q (c/g) r s for x and for the weight.
    Bytes: for each gradient the others read and it written.
    (gradient, x, weight, offset, mask, bias, _, _, _, _, _, _, _, _, masked):
        torchvision::_deform_conv2d_backward
""")
def deform_conv2d_backward(gradient: Tensor, operands: Deformed) -> Work:
    output, products, params = _sizes(operands)
    same_shape(gradient, output)
    return _gradients(gradient, operands, products, params)


def _gradients(gradient: Tensor, operands: Deformed, products: int, params: str) -> Work:
    (x, weight), extra, reason = operands[:2], operands.extra, operands.reason
    of_x = moved(gradient, weight, *extra, fresh(x), *map(fresh, extra))
    of_weight = moved(gradient, x, *extra, fresh(weight))
    return Work(
        tuple(
            Part(role, Cost(2 * products, moves), params, None, _KINDS, layout, True, reason)
            for role, moves, layout in (("dgrad", of_x, "nt"), ("wgrad", of_weight, "tn"))
        )
    )


# One bilinear sample: four products and four additions.
_SAMPLE: Final = 8


def _samples(count: int, ratio: Int) -> int | None:
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
    Regions rois [k, 5] of x [n, c, h, w], resampled -> [k, c, height, width].
    FLOPs: 8 for each sample between four pixels, ratio x ratio of them for each element of the
    result; unknown if the ratio depends on the region's size. Backward the same.
    Bytes: the pixels around the samples (no more than x) and the regions read, the result written
    (position-sensitive ones also an int32 channel for each element); backward the gradient read
    and that of x written.

    An estimate: regions may overlap or not cover all pixels.
    (x, rois, _, height, width, ratio, _): torchvision::roi_align
    (x, rois, _, height, width, ratio): torchvision::ps_roi_align
""")
def roi_align(
    x: Tensor, rois: Tensor, height: Int, width: Int, ratio: Int, *, call: Call, direction: str
) -> Answer:
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
    Gradient [k, c, height, width] of resampled regions -> that of the images [n, c, h, w].
    FLOPs: 8 for each sample, as forward; unknown without a ratio.
    Bytes: gradient and regions read, the gradient of the images written.
    (gradient, rois, _, _, _, batch, channels, rows, columns, ratio, _):
        torchvision::_roi_align_backward
""")
def roi_align_backward(
    gradient: Tensor, rois: Tensor, batch: Int, channels: Int, rows: Int, columns: Int, ratio: Int
) -> Answer:
    count = _samples(elements(gradient.shape), ratio)
    sizes = (batch, channels, rows, columns)
    known = tuple(size for size in sizes if isinstance(size, int))
    whole = byte_count(elements(known), gradient.dtype) if len(known) == len(sizes) else None
    flops = None if count is None else _SAMPLE * count
    return Cost(flops, add_known(moved(gradient, rois), whole), False), texts(gradient, rois)


@operators("""
    The largest (position-sensitive: the mean) of each part of the regions rois [k, 5] of x.
    FLOPs: unknown, because the size of regions is not recorded; backward one addition for each
    element of the result.
    Bytes: x and the regions read, the result and int32 indices written; backward the gradient and
    indices read, the gradient of x written.

    An estimate: regions may overlap or not cover all pixels.
    (x, rois, _, height, width): torchvision::roi_pool torchvision::ps_roi_pool
""")
def pooled_regions(
    x: Tensor, rois: Tensor, height: Int, width: Int, *, call: Call, direction: str
) -> Answer:
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
