"""FLOPs and bytes of sums, means, variances and their gradients."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import SQUARE_ROOT, Dims, left
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.parameters import Flag, Ints
from fastprof.ops.reductions.table import Reduction, reduction
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import (
    count_result,
    elements,
    flat,
    fresh,
    moved,
    of_sizes,
    parts,
    real_result,
    sum_result,
    texts,
)

# FLOPs and bytes of variances and standard deviations.

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
    moves = moved(gradient, of_sizes(gradient, sizes))
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
