"""Sizes of a product from its operands, for any storage of the weight."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel
from fastprof.ops.matrix.product import Product
from fastprof.ops.serving.quantising import packed_float4
from fastprof.ops.tensor import canonical_type, elements, numbers_per_element


def dense(
    x: Tensor,
    weight: Tensor,
    out: Tensor | None,
    written: str | Unknown | None,
    *,
    float4: bool = False,
) -> Product:
    """x[.., k] times a weight of k n numbers, stored as [n, k], [k, n] or in tiles.

    The orientation is irrelevant: n is the weight's size over k. With three dimensions each, the
    first is a batch. A float4 element of either operand contains two numbers along k; with
    `float4`, bytes are such elements.

    Raises
    ------
    CannotModel
        When the size of the weight is not a multiple of k, or the output has another width.
    """
    if not x.shape or not weight.shape:
        raise CannotModel(f"cannot multiply {x.shape} and {weight.shape}")
    if float4:
        x, weight = packed_float4(x), packed_float4(weight)
    inner = x.shape[-1]
    batch = None
    rows = elements(x.shape[:-1])
    numbers = elements(weight.shape)
    if len(x.shape) == len(weight.shape) == 3 and weight.shape[0] in x.shape[:2]:
        batch = weight.shape[0]
        if not batch:
            raise CannotModel(f"cannot multiply {x.shape} and {weight.shape}")
        rows, numbers = rows // batch, numbers // batch
    k, numbers = inner * numbers_per_element(x), numbers * numbers_per_element(weight)
    if not k or numbers % k:
        raise CannotModel(f"cannot multiply {x.shape} and {weight.shape}")
    columns = numbers // k
    _fits(out, columns)
    return Product(rows, columns, k, x, weight, batch, written=_type(out, written))


def with_columns(
    x: Tensor, weight: Tensor, columns: int, out: Tensor | None, written: str | Unknown | None
) -> Product:
    """x[.., k] times a packed weight of n columns, which do not follow from its shape.

    Raises
    ------
    CannotModel
        When the weight is too small for k n numbers of one bit or too large for k n of 64.
    """
    if not x.shape or columns < 1:
        raise CannotModel(f"cannot multiply {x.shape} with {columns} columns")
    inner, stored = x.shape[-1], elements(weight.shape)
    if stored > inner * columns * 2 or inner * columns > stored * 64:
        raise CannotModel(f"{weight.shape} does not pack {inner} times {columns} numbers")
    _fits(out, columns)
    written = _type(out, written)
    return Product(elements(x.shape[:-1]), columns, inner, x, weight, written=written)


def _type(out: Tensor | None, written: str | Unknown | None) -> str | Unknown | None:
    return written if out is None else canonical_type(out.dtype) or Unknown.UNKNOWN


def _fits(out: Tensor | None, columns: int) -> None:
    if out is not None and out.shape[-1:] != (columns,):
        raise CannotModel(f"an output {out.shape} does not have {columns} columns")
