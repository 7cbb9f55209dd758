"""FLOPs and bytes of reductions: one formula and a table."""

from __future__ import annotations

from collections.abc import Callable

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import EXPONENTIAL, LOGARITHM, Dims, left
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.parameters import Flag, Ints
from fastprof.ops.table import table_row
from fastprof.ops.tensor import (
    Dtype,
    bool_result,
    chosen,
    count_result,
    elements,
    flat,
    float_result,
    fresh,
    moved,
    parts,
    same,
    sum_result,
    texts,
)


class Back(NamedTuple):
    """The backward pass of a reduction.

    Parameters
    ----------
    flops : int
        FLOPs for one element of the input.
    reads_input : bool
        Whether the input is read again.
    outputs : int
        Number of tensors of the output's size that are read: its gradient and the output.
    """

    flops: int
    reads_input: bool
    outputs: int


class Reduction(NamedTuple):
    """A reduction.

    Parameters
    ----------
    flops : int
        FLOPs for one element of the input.
    result : callable
        Function from the input's type to the output's.
    back : Back or None
        None if there is no backward pass.
    finish : int
        Additional FLOPs for one output.
    complex_flops : int or None
        FLOPs for one complex element; None: twice those of a real element.
    """

    flops: int
    result: Callable[[str | None], str | None]
    back: Back | None
    finish: int = 0
    complex_flops: int | None = None


def reduction(what: Reduction, x: Tensor, dim: Dims, dtype: Dtype, direction: str) -> Answer:
    """Cost of a reduction of x over dimensions; None for all."""
    outputs, count = left(x.shape, dim), elements(x.shape)
    written = flat(outputs, chosen(dtype, what.result(x.dtype)))
    twice = parts(x.dtype)
    if direction == "bprop":
        if what.back is None:
            raise CannotModel("no backward pass")
        again = (x,) if what.back.reads_input else ()
        moves = moved(fresh(x), *again, *[written] * what.back.outputs)
        return Cost(count * what.back.flops * twice, moves, exact=True), texts(x)
    flops = what.flops * twice
    if twice == 2 and what.complex_flops is not None:
        flops = what.complex_flops
    # At least one output; the number is unknown if the dimensions are.
    total = count * flops + (1 if outputs is None else outputs) * what.finish * twice
    return Cost(total, moved(x, written), outputs is not None or not what.finish), texts(x)


def _reduced(
    x: Tensor,
    dim: Dims = None,
    keepdim: Flag | None = None,
    dtype: Dtype = None,
    axis: Dims = None,
    second: Ints | str | Unknown | None = None,
    *,
    what: Reduction,
    direction: str,
) -> Answer:
    # ATen has two overloads, (x, dtype) and (x, dim, keepdim, dtype), distinguished by the number
    # of arguments: `second` is dim only if keepdim follows.
    if keepdim is None and second is not None:
        dtype = dtype if isinstance(second, tuple) else second
    elif isinstance(second, str):
        raise CannotModel(f"no dimension {second!r}")
    else:
        dim = second if second is not None else dim
    return reduction(what, x, axis if dim is None else dim, dtype, direction)


def _register(names: str, says: str, what: Reduction, *, typed: bool = False) -> None:
    # `typed`: whether it has an argument dtype=.
    for name in names.split():
        table_row(f"""
            Reduction of x [..] over the dimensions dim (all without them) -> [..].
            FLOPs: {says}.
            Bytes: x read and the outputs written, in their own types; backward the outputs'
            gradients (and x, and the outputs, if needed) read and the gradient of x written.

            A complex element counts its real operations: 2 for an addition. If dim is not recorded,
            per-output FLOPs count for one output, and the cost is an estimate. The gradient of a
            sum is a view; if a kernel runs, it copies it. n operations for n elements, as in
            PyProf.
            (x, dim, keepdim, {"dtype, axis" if typed else "axis=axis"}): torch.{name}
            (x, second, keepdim, {"dtype, " if typed else ""}...): aten::{name}
        """)(_reduced, what=what)


# The gradient of a selected value is divided among equal elements: a mask, its sum, and a product.
_register(
    "sum",
    "an addition for each element; backward none",
    Reduction(1, sum_result, Back(0, False, 1)),
    typed=True,
)
_register(
    "nansum",
    "a test for NaN and an addition for each element; backward a test and a product",
    Reduction(2, sum_result, Back(2, True, 1)),
    typed=True,
)
_register(
    "mean",
    "an addition for each element and a division for each output; backward a product for each"
    " element",
    Reduction(1, same, Back(1, False, 1), finish=1),
    typed=True,
)
_register(
    "nanmean",
    "two tests for NaN and two additions (sum and count) for each element, a division for each"
    " output; backward a test and two products for each element",
    Reduction(4, same, Back(3, True, 1), finish=1),
    typed=True,
)
_register(
    "prod",
    "a product for each element; backward a product and a division",
    Reduction(1, sum_result, Back(2, True, 2), complex_flops=6),
    typed=True,
)
_register(
    "amax amin",
    "a comparison for each element; backward a comparison, an addition and a product",
    Reduction(1, same, Back(3, True, 2)),
)
_register(
    "argmax argmin",
    "a comparison for each element; no backward pass",
    Reduction(1, count_result, None),
)
_register(
    "any all _is_all_true _is_any_true",
    "a logical operation for each element; no backward",
    Reduction(1, bool_result, None),
)
_register(
    "logsumexp special_logsumexp",
    "maximum, difference, exponential and addition for each element, a logarithm and an addition"
    " for each output; backward a difference, an exponential and a product for each element",
    Reduction(EXPONENTIAL + 3, float_result, Back(EXPONENTIAL + 2, True, 2), finish=LOGARITHM + 1),
)
