"""FLOPs and bytes of deformable convolutions. Schema: torchvision, csrc/ops/deform_conv2d.cpp."""

from __future__ import annotations

from math import prod
from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, Part, Work
from fastprof.ops.registry import operators
from fastprof.ops.tensor import short_type
from fastprof.ops.tensor_cores import why_not
from fastprof.ops.traffic import fresh, moved

_KINDS: Final = frozenset({"convolution", "gemm"})


def _sizes(x: Tensor, weight: Tensor, offset: Tensor) -> tuple[Tensor, int, str]:
    """The output, the multiply-adds, and the params."""
    if {len(each.shape) for each in (x, weight, offset)} != {4}:
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
    (x, weight, offset, mask, bias, _, _, _, _, _, _, _, _, masked): torchvision::deform_conv2d
""")
def deformable(
    x: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    masked: bool | Unknown = True,
    *,
    direction: str,
) -> Work:
    """x [n, c, h, w] * w [k, c/g, r, s], sampled at offsets [n, 2 o r s, p, q].

    FLOPs: a multiply-add for each output and weight of its group, 2 n k p q (c/g) r s; backward the
    same for each of the two gradients. Interpolation is not counted, like softmax in attention.
    Bytes: x, weight, offsets, mask and bias read, the output written; backward for each gradient
    the others read and it written.
    """
    output, products, params = _sizes(x, weight, offset)
    reason = why_not(x.dtype, {"C": weight.shape[1], "K": weight.shape[0]})
    extra = [offset, *([] if masked is False else [mask])]
    if direction == "fprop":
        cost = Cost(2 * products, moved(x, weight, *extra, bias, output))
        return Work((Part("main", cost, params, kernels=_KINDS, no_tensor_cores=reason),))
    return _gradients(output, x, weight, extra, products, params, reason)


@operators("""
    (gradient, x, weight, offset, mask, bias, _, _, _, _, _, _, _, _, masked):
        torchvision::_deform_conv2d_backward
""")
def deformable_backward(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    masked: bool | Unknown = True,
) -> Work:
    """Gradients of a deformable convolution: of x, weight, offsets, mask and bias.

    FLOPs: 2 n k p q (c/g) r s for x and for the weight.
    Bytes: for each gradient the others read and it written.
    """
    output, products, params = _sizes(x, weight, offset)
    if gradient.shape != output.shape:
        raise CannotModel(f"gradient {gradient.shape} does not fit {output.shape}")
    reason = why_not(x.dtype, {"C": weight.shape[1], "K": weight.shape[0]})
    extra = [offset, *([] if masked is False else [mask])]
    return _gradients(gradient, x, weight, extra, products, params, reason)


def _gradients(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    extra: list[Tensor],
    products: int,
    params: str,
    reason: str,
) -> Work:
    of_x = moved(gradient, weight, *extra, fresh(x), *map(fresh, extra))
    of_weight = moved(gradient, x, *extra, fresh(weight))
    return Work(
        tuple(
            Part(role, Cost(2 * products, moves), params, None, _KINDS, layout, True, reason)
            for role, moves, layout in (("dgrad", of_x, "nt"), ("wgrad", of_weight, "tn"))
        )
    )
