"""FLOPs and bytes of cumulative sums, products and extremes."""

from __future__ import annotations

from fastprof.model.call import Tensor
from fastprof.ops.arithmetic import EXPONENTIAL, LOGARITHM
from fastprof.ops.cost import Cost, add_known
from fastprof.ops.dtypes import Dtype, chosen, float_result, parts, sum_result
from fastprof.ops.reductions.extremes import selected, selected_gradient
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import byte_count, elements, is_complex, tensor_bytes, tensor_text


@operators("""
    (x, _, dtype): torch.cumsum
    (x, _, dtype, ...): aten::cumsum
    (x, _): aten::_cumsum
""")
def cumsum(x: Tensor, dtype: Dtype = None, *, direction: str) -> tuple[Cost, str]:
    """Running sum of x along a dimension, of its shape.

    FLOPs: an addition for each element, forward and backward.
    Bytes: x read, the sums written (int64 of integers); backward their gradient read, that of x
    written.
    """
    count, result = elements(x.shape), chosen(dtype, sum_result(x.dtype))
    moved = add_known(tensor_bytes(x), byte_count(count, result))
    if direction == "bprop":
        moved = add_known(byte_count(count, result), byte_count(count, x.dtype))
    return Cost(parts(x.dtype) * count, moved), tensor_text(x)


@operators("""
    (x, _, dtype): torch.cumprod
    (x, _, dtype, ...): aten::cumprod
    (x, _): aten::_cumprod
""")
def cumprod(x: Tensor, dtype: Dtype = None, *, direction: str) -> tuple[Cost, str]:
    """Running product of x along a dimension, of its shape.

    FLOPs: a product for each element; backward 3: product, running sum, division.
    Bytes: x read, the products written; backward x, the products and their gradient read, the
    gradient of x written. The separate path for zeros in x is not counted.
    """
    count, result = elements(x.shape), chosen(dtype, sum_result(x.dtype))
    product = 6 if is_complex(x.dtype) else 1
    written = byte_count(count, result)
    if direction == "fprop":
        return Cost(product * count, add_known(tensor_bytes(x), written)), tensor_text(x)
    flops = count * (2 * product + parts(x.dtype))
    own = byte_count(count, x.dtype)
    return Cost(flops, add_known(tensor_bytes(x), written, written, own)), tensor_text(x)


table_row("""
    Running sum of x along a dimension, in place of x.
    FLOPs: an addition for each element, forward and backward.
    Bytes: x read and written; backward its gradient read and written.
    (x, ...): cumsum_
""")("x", lambda x, direction: cumsum(x, x.dtype, direction=direction))

table_row("""
    Running product of x along a dimension, in place of x.
    FLOPs: a product for each element; backward 3: product, running sum, division.
    Bytes: x read and written; backward x, the products and their gradient read, the gradient of x
    written.
    (x, ...): cumprod_
""")("x", lambda x, direction: cumprod(x, x.dtype, direction=direction))


@operators("""
    (x, ...): torch.logcumsumexp
    (x, _, ...): aten::logcumsumexp aten::_logcumsumexp
""")
def logcumsumexp(x: Tensor, *, direction: str) -> tuple[Cost, str]:
    """Running logarithm of a sum of exponentials of x along a dimension, of its shape.

    FLOPs: 44 for each element: larger, smaller, difference, exponential, 1 + and logarithm, and an
    addition; backward twice that, and two exponentials, logarithms and differences.
    Bytes: x read, the result written; backward x, the result and its gradient read, the gradient
    of x written.
    """
    count, result = elements(x.shape), float_result(x.dtype)
    step = EXPONENTIAL + LOGARITHM + 4
    written = byte_count(count, result)
    if direction == "fprop":
        return Cost(step * count, add_known(tensor_bytes(x), written)), tensor_text(x)
    flops = 2 * count * (step + EXPONENTIAL + LOGARITHM + 1)
    return Cost(flops, add_known(tensor_bytes(x), written, written, written)), tensor_text(x)


@operators("""
    (x, ...): torch.cummax torch.cummin
    (x, _, ...): aten::cummax aten::cummin
""")
def cummax(x: Tensor, *, direction: str) -> tuple[Cost, str]:
    """Running maximum or minimum of x along a dimension and its indices, both of its shape.

    FLOPs: a comparison for each element; backward an addition for each.
    Bytes: x read, values and int64 indices written; backward gradient and indices read, the
    gradient of x written.
    """
    count = elements(x.shape)
    if direction == "fprop":
        return selected(x, count, count), tensor_text(x)
    return Cost(count, selected_gradient(x, count).bytes), tensor_text(x)


table_row("""
    Running maximum or minimum of x along a dimension, into values and indices.
    FLOPs: a comparison for each element.
    Bytes: x read, values and indices written.
    (x, values, indices, _): aten::_cummax_helper aten::_cummin_helper
""")("x, values, indices", Traffic(1, "x values indices"))


@operators("(gradient, x, indices, _): aten::cummaxmin_backward")
def cummaxmin_backward(gradient: Tensor, x: Tensor, indices: Tensor) -> tuple[Cost, str]:
    """Gradient of a running maximum or minimum: summed at its indices.

    FLOPs: an addition for each element.
    Bytes: gradient and indices read, the gradient of x written.
    """
    moved = add_known(
        tensor_bytes(gradient), tensor_bytes(indices), byte_count(elements(x.shape), gradient.dtype)
    )
    return Cost(elements(gradient.shape), moved), f"{tensor_text(gradient)};{tensor_text(indices)}"


@operators("(gradient, x, _, output): aten::cumprod_backward")
def cumprod_backward(gradient: Tensor, x: Tensor, output: Tensor) -> tuple[Cost, str]:
    """Gradient of a running product: running sum of gradient * output from the end, by x.

    FLOPs: 3 for each element: product, addition, division.
    Bytes: gradient, x and output read, the gradient of x written.
    """
    read = add_known(tensor_bytes(gradient), tensor_bytes(x), tensor_bytes(output))
    count = elements(x.shape)
    product = 6 if is_complex(x.dtype) else 1
    flops = count * (2 * product + parts(x.dtype))
    return Cost(flops, add_known(read, byte_count(count, x.dtype))), tensor_text(x)
