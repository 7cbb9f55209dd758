"""FLOPs and bytes of sums, means and other reductions, of variances and of their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import EXPONENTIAL, LOGARITHM, SQUARE_ROOT, Dims, left
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.dtypes import (
    Dtype,
    bool_result,
    chosen,
    count_result,
    float_result,
    parts,
    real_result,
    same,
    sum_result,
)
from fastprof.ops.parameters import Flag, Ints
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements, flat, fresh, moved, resized, texts


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

# name -> (FLOPs to finish one output, whether the mean is a second output)
_MOMENTS: Final = {
    "var": (2, False),
    "std": (2 + SQUARE_ROOT, False),
    "var_mean": (2, True),
    "std_mean": (2 + SQUARE_ROOT, True),
}


def _moments(
    x: Tensor,
    dim: Ints | bool | Unknown | None = None,
    keepdim: Flag | None = None,
    axis: Dims = None,
    second: Ints | bool | Unknown | None = None,
    *,
    finish: int,
    with_mean: bool,
    direction: str,
) -> Answer:
    # ATen has (x, unbiased) and (x, dim, .., ..), distinguished by the number of arguments.
    if keepdim is not None and second is not None:
        dim = second
    dim = axis if dim is None or isinstance(dim, bool) else dim
    outputs, flops = left(x.shape, dim), 4 * elements(x.shape) * parts(x.dtype)
    results = [flat(outputs, real_result(x.dtype)), *[flat(outputs, x.dtype)] * with_mean]
    if direction == "bprop":
        return Cost(flops, moved(x, *results, *results, fresh(x))), texts(x)
    flops += (1 if outputs is None else outputs) * finish
    return Cost(flops, moved(x, *results), outputs is not None), texts(x)


for _name, (_finish, _with_mean) in _MOMENTS.items():
    _deviates = "std" in _name
    table_row(f"""
        {"Standard deviation" if _deviates else "Variance"} of x [..] over the dimensions dim (all
        without them) -> [..].
        FLOPs: 4 for each element (an addition for the mean, difference, square and addition for the
        variance) and {_finish} for each output{", its root with it" if _deviates else ""}; backward
        4 for each element (the mean again, difference and two products).
        Bytes: x read, the outputs written; backward x, the outputs and their gradients read, the
        gradient of x written.

        A complex element counts twice that. If dim is not recorded, per-output FLOPs count for one
        output, and the cost is an estimate.
        (x, dim, unbiased=_, keepdim, axis): torch.{_name}
        (x, second, _, keepdim, ...): aten::{_name}
    """)(_moments, finish=_finish, with_mean=_with_mean)


@operators("""
    Number of nonzero elements of x [..] over the dimensions dim -> [..].
    FLOPs: a comparison and an addition for each element; no backward pass.
    Bytes: x read, the counts (int64) written.
    (x, dim, axis=axis): torch.count_nonzero
    (x, dim, ...): aten::count_nonzero
""")
def count_nonzero(x: Tensor, dim: Dims = None, axis: Dims = None) -> Answer:
    counted = Reduction(2, count_result, None)
    return reduction(counted, x, axis if dim is None else dim, None, "fprop")


@operators("""
    Sum of x [..] down to a shape that broadcasts to it.
    FLOPs: an addition for each element of x, none if x has the shape; backward none.
    Bytes: x read and the sums written; backward the gradient of the sums read, that of x written.

    If the shape is not recorded, a sum is counted, an estimate.
    (*): sum_to_size
""")
def sum_to_size(x: Tensor, size: Ints | Unknown, *, direction: str) -> Answer:
    flops = elements(x.shape) if direction == "fprop" else 0
    if isinstance(size, Unknown):
        return Cost(flops, None, exact=False), texts(x)
    shape = (size,) if isinstance(size, int) else size
    if any(number < 0 for number in shape) or len(shape) > len(x.shape):
        raise CannotModel(f"{x.shape} does not sum to {shape}")
    if shape == x.shape:
        return Cost(0, 0), texts(x)
    return Cost(parts(x.dtype) * flops, moved(x, Tensor(shape, sum_result(x.dtype)))), texts(x)


@operators("""
    Sum of the diagonal of x [m, n] -> [].
    FLOPs: an addition for each element of the diagonal; backward none.
    Bytes: the diagonal read, the sum written; backward its gradient read, that of x written.
    (*): trace
""")
def trace(x: Tensor, *, direction: str) -> Answer:
    if len(x.shape) != 2:
        raise CannotModel(f"x has shape {x.shape}, not 2-d")
    length, total = min(x.shape), Tensor((), sum_result(x.dtype))
    if direction == "fprop":
        return Cost(parts(x.dtype) * length, moved(fresh(x, (length,)), total)), texts(x)
    return Cost(0, moved(total, fresh(x))), texts(x)


@operators("""
    Gradient [] of a trace along the diagonal of zeros [m, n].
    FLOPs: none.
    Bytes: the gradient read, [m, n] written.
    (*): aten::trace_backward
""")
def trace_backward(gradient: Tensor, sizes: Ints | Unknown) -> Answer:
    moves = moved(gradient, resized(gradient, sizes))
    return Cost(0, moves), texts(gradient)


@operators("""
    Sum, mean, product or extreme of each segment of x [.., n, d] -> [.., segments, d].
    FLOPs: an operation for each element of x.
    Bytes: x and the lengths (or offsets) of the segments read, the results written.
    (x, _, lengths=lengths, _, offsets=offsets, ...): torch.segment_reduce
    (x, _, lengths, _, offsets, ...): aten::segment_reduce
""")
def segment_reduce(
    x: Tensor, lengths: Tensor | None = None, offsets: Tensor | None = None
) -> Answer:
    segments = lengths if offsets is None else offsets
    if segments is None or not segments.shape or len(segments.shape) > len(x.shape):
        raise CannotModel("no lengths of segments")
    *outer, count = segments.shape
    rows = max(count - (offsets is not None), 0)
    rest = x.shape[len(segments.shape) :]
    written = fresh(x, (*outer, rows, *rest))
    return Cost(elements(x.shape), moved(x, segments, written)), texts(x, segments)


table_row("""
    Gradient of a reduction of segments, back to the elements of each.
    FLOPs: an operation for each element of x.
    Bytes: gradient, output, x and the lengths (or offsets) read, the gradient of x written.
    (gradient, output, x, _, segments, offsets, ...): aten::_segment_reduce_backward
""")(
    "gradient, output, x, segments?, offsets?",
    Traffic(1, "gradient output x segments offsets x'", "gradient x", of="x"),
)
