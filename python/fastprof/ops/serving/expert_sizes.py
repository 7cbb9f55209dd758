"""Cost of expert matrices [e, n, k], of which some are read."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, Part, Work, add_known
from fastprof.ops.tensor import canonical_type, elements, short_type, tensor_bytes
from fastprof.ops.tensor_cores import why_not
from fastprof.ops.traffic import moved, texts

Count = int | Unknown


def width(w2: Tensor, x: Tensor) -> int:
    """h: the second size of w2 [e, h, i] if it matches x, possibly packed."""
    if len(w2.shape) == 3 and x.shape and w2.shape[1] % max(x.shape[-1], 1) == 0:
        return w2.shape[1]
    return x.shape[-1] if x.shape else 0


def float_type(x: Tensor) -> str | None:
    """The accumulation type: x's, or bfloat16 if x has 8 or 4 bits."""
    name = canonical_type(x.dtype)
    return name if name in ("float16", "bfloat16", "float32") else "bfloat16"


def _packing(w1: Tensor | None, w2: Tensor | None, x: Tensor | None) -> int:
    # Numbers per element of the weights: h over the last size of w1 [e, n, h]; h is the second size
    # of w2 [e, h, i], or x's if x is not packed.
    wide = None
    if w2 is not None and len(w2.shape) == 3:
        wide = w2.shape[1]
    elif x is not None and x.shape:
        wide = x.shape[-1]
    if wide and w1 is not None and len(w1.shape) == 3:
        if wide in w1.shape[1:]:
            return 1
        if w1.shape[-1] and wide % w1.shape[-1] == 0 and wide // w1.shape[-1] in (2, 4, 8):
            return wide // w1.shape[-1]
        raise CannotModel(f"weights {w1.shape} do not fit a width of {wide}")
    weight = w1 or w2
    packed = weight is not None and (canonical_type(weight.dtype) or "").startswith("float4")
    return 2 if packed else 1


def numbers(w1: Tensor | None, w2: Tensor | None, x: Tensor | None) -> int:
    """Numbers per expert in w1 if x is given, else in w2."""
    weight = w1 if x is not None else w2
    if weight is None or len(weight.shape) < 3 or not weight.shape[0]:
        raise CannotModel("no weights of experts")
    return elements(weight.shape[1:]) * _packing(w1, w2, x)


def _read(weight: Tensor, rows: int) -> int | None:
    # Bytes of the matrices of the selectable experts.
    total, experts = tensor_bytes(weight), weight.shape[0] if weight.shape else 0
    if total is None or not experts:
        return total
    return total // experts * min(experts, rows)


def layer(x: Tensor, w1: Tensor, w2: Tensor, rows: int, touched: tuple[Tensor | None, ...]) -> Work:
    """Both products for a number of rows."""
    if min(len(w1.shape), len(w2.shape)) < 3 or w1.shape[0] != w2.shape[0] or not w1.shape[0]:
        raise CannotModel(f"{w1.shape} and {w2.shape} are not weights of experts")
    packing = _packing(w1, w2, x)
    one = (elements(w1.shape[1:]) + elements(w2.shape[1:])) * packing
    read = add_known(_read(w1, rows), _read(w2, rows))
    return _work(x, w1, Cost(2 * rows * one, add_known(moved(*touched), read), False), (w1, w2))


def one_product(
    x: Tensor, weight: Tensor, rows: int, numbers: int, touched: tuple[Tensor | None, ...]
) -> Work:
    """One product of a number of rows with matrices of a number of elements."""
    total = add_known(moved(*touched), _read(weight, rows))
    return _work(x, weight, Cost(2 * rows * numbers, total, False), (weight,))


def grouped(
    x: Tensor, weight: Tensor, out: Tensor, more: tuple[Tensor | None, ...], packing: int
) -> Work:
    """One product whose rows and columns are those of the output."""
    if not out.shape or not x.shape:
        raise CannotModel(f"cannot multiply {x.shape} and {weight.shape}")
    rows = elements(out.shape[:-1])
    numbers = out.shape[-1] * x.shape[-1] * packing
    return one_product(x, weight, rows, numbers, (x, *more, out))


def _work(x: Tensor, weight: Tensor, cost: Cost, weights: tuple[Tensor, ...]) -> Work:
    size = weight.shape[-1] if weight.shape else 0
    reason = why_not(x.dtype if short_type(x.dtype) != "uint8" else weight.dtype, {"K": size})
    return Work((Part("main", cost, texts(x, *weights), no_tensor_cores=reason),))
