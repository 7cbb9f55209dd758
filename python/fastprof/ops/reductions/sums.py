"""FLOPs and bytes of sums, means, variances and their gradients."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import SQUARE_ROOT, Dims, left
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.parameters import Ints
from fastprof.ops.reductions.table import Reduction, reduction
from fastprof.ops.registry import TORCH, op, operators
from fastprof.ops.tensor import (
    byte_count,
    count_result,
    elements,
    parts,
    real_result,
    sum_result,
    tensor_bytes,
    tensor_text,
)

# FLOPs and bytes of variances and standard deviations.

# name -> (FLOPs to finish one output, whether the mean is a second output)
_MOMENTS: Final = {
    "var": (2, False),
    "std": (2 + SQUARE_ROOT, False),
    "var_mean": (2, True),
    "std_mean": (2 + SQUARE_ROOT, True),
}

_DOCUMENTATION: Final = """{what} of x [..] over the dimensions dim (all without them) -> [..].

    FLOPs: 4 for each element (an addition for the mean, difference, square and addition for the
    variance) and {finish} for each output{root}; backward 4 for each element (the mean
    again, difference and two products).
    Bytes: x read, the outputs written; backward x, the outputs and their gradients read, the
    gradient of x written.

    A complex element counts twice that. If dim is not recorded, per-output FLOPs count for one
    output, and the cost is an estimate.
    """


def _register(name: str, finish: int, with_mean: bool) -> None:
    # ATen has (x, unbiased) and (x, dim, .., ..), distinguished by the number of arguments.
    def formula(
        x: Tensor,
        dim: Ints | bool | Unknown | None = None,
        keepdim: bool | Unknown | None = None,
        axis: Dims = None,
        second: Ints | bool | Unknown | None = None,
        *,
        direction: str,
    ) -> Answer:
        if keepdim is not None and second is not None:
            dim = second
        dim = axis if dim is None or isinstance(dim, bool) else dim
        outputs, count = left(x.shape, dim), elements(x.shape) * parts(x.dtype)
        spread = None if outputs is None else byte_count(outputs, real_result(x.dtype))
        mean: int | None = 0
        if with_mean:
            mean = None if outputs is None else byte_count(outputs, x.dtype)
        flops = 4 * count + (1 if outputs is None else outputs) * finish
        moved = add_known(tensor_bytes(x), spread, mean)
        if direction == "bprop":
            flops = 4 * count
            written = byte_count(elements(x.shape), x.dtype)
            moved = add_known(moved, spread, mean, written)
        exact = outputs is not None or direction == "bprop"
        return Cost(flops, moved, exact), tensor_text(x)

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = _DOCUMENTATION.format(
        what="Standard deviation" if "std" in name else "Variance",
        finish=finish,
        root=", its root with it" if "std" in name else "",
    )
    op(
        TORCH,
        f"{name}(x, dim, unbiased=_, keepdim, axis)",
        aten=(f"{name}(x, second, _, keepdim, ...)",),
    )(formula)


for _name, (_finish, _with_mean) in _MOMENTS.items():
    _register(_name, _finish, _with_mean)


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
    if isinstance(size, Unknown):
        return Cost(elements(x.shape) if direction == "fprop" else 0, None, False), tensor_text(x)
    shape = (size,) if isinstance(size, int) else size
    if any(number < 0 for number in shape) or len(shape) > len(x.shape):
        raise CannotModel(f"{x.shape} does not sum to {shape}")
    if shape == x.shape:
        return Cost(0, 0), tensor_text(x)
    written = byte_count(elements(shape), sum_result(x.dtype))
    flops = parts(x.dtype) * elements(x.shape) if direction == "fprop" else 0
    return Cost(flops, add_known(tensor_bytes(x), written)), tensor_text(x)


@operators("""
    Sum of the diagonal of x [m, n] -> [].
    FLOPs: an addition for each element of the diagonal; backward none.
    Bytes: the diagonal read, the sum written; backward its gradient read, that of x written.
    (*): trace
""")
def trace(x: Tensor, *, direction: str) -> Answer:
    if len(x.shape) != 2:
        raise CannotModel(f"x has shape {x.shape}, not 2-d")
    length = min(x.shape)
    out = byte_count(1, sum_result(x.dtype))
    if direction == "fprop":
        moved = add_known(byte_count(length, x.dtype), out)
        return Cost(parts(x.dtype) * length, moved), tensor_text(x)
    return Cost(0, add_known(out, byte_count(elements(x.shape), x.dtype))), tensor_text(x)


@operators("""
    Gradient [] of a trace along the diagonal of zeros [m, n].
    FLOPs: none.
    Bytes: the gradient read, [m, n] written.
    (*): aten::trace_backward
""")
def trace_backward(gradient: Tensor, sizes: Ints | Unknown) -> Answer:
    if isinstance(sizes, Unknown):
        return Cost(0, None), tensor_text(gradient)
    shape = (sizes,) if isinstance(sizes, int) else sizes
    if any(size < 0 for size in shape):
        raise CannotModel(f"invalid shape {shape}")
    moved = add_known(tensor_bytes(gradient), byte_count(elements(shape), gradient.dtype))
    return Cost(0, moved), tensor_text(gradient)


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
    written = byte_count(elements(outer) * rows * elements(rest), x.dtype)
    moved = add_known(tensor_bytes(x), tensor_bytes(segments), written)
    return Cost(elements(x.shape), moved), f"{tensor_text(x)};{tensor_text(segments)}"


@operators("""
    Gradient of a reduction of segments, back to the elements of each.
    FLOPs: an operation for each element of x.
    Bytes: gradient, output, x and the lengths (or offsets) read, the gradient of x written.
    (gradient, output, x, _, segments, offsets, ...): aten::_segment_reduce_backward
""")
def segment_reduce_backward(
    gradient: Tensor,
    output: Tensor,
    x: Tensor,
    segments: Tensor | None = None,
    offsets: Tensor | None = None,
) -> Answer:
    given = (gradient, output, x, segments, offsets)
    read = add_known(*(tensor_bytes(tensor) for tensor in given if tensor is not None))
    moved = add_known(read, byte_count(elements(x.shape), x.dtype))
    return Cost(elements(x.shape), moved), f"{tensor_text(gradient)};{tensor_text(x)}"
