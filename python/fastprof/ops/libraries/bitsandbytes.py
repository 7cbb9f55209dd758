"""bitsandbytes: products and optimizers of 8 and 4 bits.

Source: bitsandbytes/_ops.py, bitsandbytes/autograd/_functions.py in
bitsandbytes-foundation/bitsandbytes. A byte contains two 4-bit numbers; each block of numbers has a
float32 scale.
"""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor
from fastprof.ops.cost import Answer, CannotModel, Cost, Part, Work, add_known
from fastprof.ops.dtypes import Dtype, item_size, named
from fastprof.ops.matrix.matmul import GEMM, Product, forward
from fastprof.ops.optimizers import step
from fastprof.ops.parameters import Size
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import byte_count, elements, moved, present, texts


def _product(x: Tensor, weight: Tensor, written: str | None) -> Product:
    if len(weight.shape) != 2:
        raise CannotModel(f"weight has shape {weight.shape}, not 2-d")
    return _of_sizes(x, weight.shape[0], weight.shape[1], weight, written)


def _of_sizes(x: Tensor, n: int, k: int, weight: Tensor, written: str | None) -> Product:
    if not x.shape or x.shape[-1] != k:
        raise CannotModel(f"cannot multiply {x.shape} and a weight [{n},{k}]")
    return Product(elements(x.shape[:-1]), n, k, x, weight, written=written)


@operators("""
    x[.., k] @ w[n, k]^T of int8, result in int32, or scaled to a float type.
    FLOPs: 2 rows n k.
    Bytes: x and w read, the result written: int32, or if scaled the requested type, float16 by
        default.
    (x, weight, other): bitsandbytes::int8_linear_matmul
    (x, weight, scales, other, other, dtype): bitsandbytes::int8_scaled_mm
    (wide, x, weight, scales, other, other, other): bitsandbytes::int8_mixed_scaled_mm
""")
def int8_linear_matmul(
    x: Tensor,
    weight: Tensor,
    scales: Tensor | None = None,
    dtype: Dtype = None,
    wide: Tensor | None = None,
) -> Work:
    written = named("float16" if dtype is None else dtype)
    if scales is None:
        written = "int32"
    elif wide is not None:
        written = named(wide.dtype)
    return Work((forward(_product(x, weight, written)),))


table_row("""
    Rows of x[.., k] quantised to int8 by their absolute maximum.
    FLOPs: 4 per element (magnitude, largest, product, rounding).
    Bytes: x read, int8 and a float32 scale per row written.
    (x, ...): bitsandbytes::int8_vectorwise_quant
""")("x", lambda x: _quantised(x, 4, elements(x.shape), elements(x.shape[:-1])))

table_row("""
    x[.., k] quantised to int8 twice: by the absolute maximum of each row, and of each column.
    FLOPs: 8 per element.
    Bytes: x read, two int8 tensors and a float32 scale per row and column written.
    (x, ...): bitsandbytes::int8_double_quant
""")(
    "x",
    lambda x: _quantised(x, 8, 2 * elements(x.shape), elements(x.shape[:-1]) + sum(x.shape[-1:])),
)


def _quantised(
    x: Tensor, flops: int, written: int, scales: int | None, code: Tensor | None = None
) -> Answer:
    # FLOPs per element, bytes of the numbers, and float32 scales.
    of_scales = None if scales is None else 4 * scales
    moves = add_known(moved(x, code), written, of_scales)
    return Cost(flops * elements(x.shape), moves), texts(x)


table_row("""
    Rows of int8 x[.., k] times their scale, as float32.
    FLOPs: 2 per element.
    Bytes: x and scales read, float32 written.
    (x, scales): bitsandbytes::int8_vectorwise_dequant
""")("x, scales", Traffic(2, "x scales x:float32"))


@operators("""
    int32 x[m, n] times the scales of its rows and columns (+ bias), float16 by default.
    FLOPs: 3 per element, 4 with a bias.
    Bytes: x, scales and bias read, the result written.
    (x, rows, columns, dtype, bias): bitsandbytes::int8_mm_dequant
""")
def int8_mm_dequant(
    x: Tensor, rows: Tensor, columns: Tensor, dtype: Dtype = None, bias: Tensor | None = None
) -> Answer:
    count = elements(x.shape)
    written = "float16" if dtype is None else named(dtype)
    moves = add_known(moved(x, rows, columns, bias), byte_count(count, written))
    return Cost(count * (3 + (bias is not None)), moves), texts(x)


@operators("""
    x quantised to 4 bits by the absolute maximum of each block.
    FLOPs: 7 per element (magnitude, largest, product, four comparisons).
    Bytes: x read, half a byte per element and a float32 scale per block written; unknown if the
        capture does not record the block's size.
    (x, block, ...): bitsandbytes::quantize_4bit
""")
def quantize_4bit(x: Tensor, block: Size = None) -> Answer:
    return _quantised(x, 7, (elements(x.shape) + 1) // 2, _scales(x, block))


def _scales(x: Tensor, block: Size) -> int | None:
    return -(-elements(x.shape) // block) if isinstance(block, int) and block > 0 else None


def _packed(x: Tensor) -> int:
    size = item_size(x.dtype)
    if size is None:
        raise CannotModel("the type of packed numbers is not in the capture")
    return 2 * size * elements(x.shape)


@operators("""
    Packed 4-bit numbers times their blocks' scales.
    FLOPs: one product for each number.
    Bytes: packed numbers and scales read, the numbers written in the requested type; unknown if the
        capture does not record it.
    (x, scales, _, _, _, dtype, _o): bitsandbytes::dequantize_4bit
""")
def dequantize_4bit(
    x: Tensor, scales: Tensor, dtype: Dtype = None, _o: Tensor | None = None
) -> Answer:
    return _dequantised(x, moved(x, scales), _packed(x), dtype, _o)


def _dequantised(
    x: Tensor, read: int | None, count: int, dtype: Dtype, out: Tensor | None
) -> Answer:
    written = out.dtype if out is not None else None if dtype is None else named(dtype)
    return Cost(count, add_known(read, byte_count(count, written))), texts(x)


@operators("""
    x quantised to the nearest of 256 codes by the absolute maximum of each block.
    FLOPs: 11 per element (magnitude, largest, product, eight comparisons).
    Bytes: x and codes read, a byte per element and a float32 scale per block written.
    (x, code, block): bitsandbytes::quantize_blockwise
""")
def quantize_blockwise(x: Tensor, code: Tensor, block: Size = None) -> Answer:
    return _quantised(x, 11, elements(x.shape), _scales(x, block), code)


@operators("""
    Codes of 8 bits looked up and multiplied by their blocks' scales.
    FLOPs: one product for each number.
    Bytes: codes, scales and the table read, the numbers written in the requested type.
    (x, scales, code, _, dtype, _o): bitsandbytes::dequantize_blockwise
""")
def dequantize_blockwise(
    x: Tensor, scales: Tensor, code: Tensor, dtype: Dtype = None, _o: Tensor | None = None
) -> Answer:
    return _dequantised(x, moved(x, scales, code), elements(x.shape), dtype, _o)


@operators("""
    x[.., k] @ w^T, w of n rows of k packed 4-bit numbers.
    FLOPs: 2 rows n k.
    Bytes: x, packed weight and scales read, the result written in x's type.
    (x, weight, _, scales, other, ...): bitsandbytes::gemv_4bit
    (x, weight, _, scales, _, _, ...): bitsandbytes::gemm_4bit
""")
def gemv_4bit(x: Tensor, weight: Tensor, scales: Tensor | None = None) -> Work:
    product = _four_bits(x, weight)
    cost = Cost(product.flops, add_known(moved(x, weight, scales), product.output_bytes))
    return Work((Part("main", cost, product.forward_params),))


def _four_bits(x: Tensor, weight: Tensor) -> Product:
    numbers = _packed(weight)
    k = x.shape[-1] if x.shape else 0
    if not k or numbers % k:
        raise CannotModel(f"{numbers} numbers of 4 bits do not fit {x.shape}")
    return _of_sizes(x, numbers // k, k, weight, named(x.dtype))


@operators("""
    x[.., k] @ w^T, w of n rows of k packed 4-bit numbers, widened first.
    FLOPs: 2 rows n k, and one for each weight; backward the same: the weight has no gradient.
    Bytes: for the product x and the wide weight read, the result written; for widening the packed
        weight read, the wide one written.
    (x, weight, ...): aten::MatMul4Bit
""")
def mat_mul4_bit(x: Tensor, weight: Tensor, *, direction: str) -> Work:
    product = _four_bits(x, weight)
    wide = Tensor((product.n, product.k), x.dtype)
    widening = Cost(product.n * product.k, moved(weight, wide))
    return Work((_wide_gemm(product, wide), Part("main", widening, texts(weight))))


def _wide_gemm(product: Product, wide: Tensor) -> Part:
    # The product with a weight that was widened before.
    cost = Cost(product.flops, add_known(moved(product.left, wide), product.output_bytes))
    return Part("main", cost, product.forward_params, kernels=GEMM)


@operators("""
    x[.., k] @ w[n, k]^T, both in int8, including the quantisation of x and the scaling of the
    result.
    FLOPs: 2 rows n k, 4 per element of x and 3 for one of the result; backward the product with a
        wide weight, 2 rows n k, and one for each weight.
    Bytes: for the product both in int8 and the result in int32; for the rest x and the result read
        and written.
    (x, weight, ...): aten::MatMul8bitLt
""")
def mat_mul8bit_lt(x: Tensor, weight: Tensor, *, direction: str) -> Work:
    product = _product(x, weight, named(x.dtype))
    count, result, narrow = elements(x.shape), product.output_elements, elements(weight.shape)
    if direction == "bprop":
        wide = Tensor(weight.shape, x.dtype)
        gemm, extra = _wide_gemm(product, wide), Cost(narrow, moved(weight, wide))
    else:
        cost = Cost(product.flops, count + narrow + 4 * result)
        gemm = Part("main", cost, product.forward_params, kernels=GEMM)
        moves = add_known(moved(x), count, 4 * result, product.output_bytes)
        extra = Cost(4 * count + 3 * result, moves)
    return Work((gemm, Part("main", extra, gemm.params)))


_ADAM: Final = 32
_MOMENTUM: Final = 4


@operators("""
    A step of an optimizer with one state (momentum, Lion, RMSprop) or two (Adam).
    FLOPs: 32 for each element with two states, 4 with one: an estimate, because few captures record
        the optimizer's name.
    Bytes: parameter and states read and written, gradient read.
    (_, gradient, parameter, first, second, other, ...): bitsandbytes::optimizer_update_32bit
""")
def optimizer_update_32bit(
    gradient: Tensor, parameter: Tensor, first: Tensor, second: Tensor | None = None
) -> Answer:
    states = present(parameter, first, second)
    flops = _MOMENTUM if second is None else _ADAM
    return step(flops, [(state,) for state in states], [(gradient,)], (), exact=False)


@operators("""
    A step of an optimizer whose states have 8 bits per element and a scale per block.
    FLOPs: 32 for each element with two states, 4 with one, and 12 for each state: looked up, scaled
        and searched among 256 codes. An estimate: the optimizer's name is a string, which is not
        recorded.
    Bytes: parameter, states and scales read and written, gradient read.
    (_, gradient, parameter, first, second, _, _, _, _, _, _, _, other, other, scales,
        more_scales, ...): bitsandbytes::optimizer_update_8bit_blockwise
""")
def optimizer_update_8bit_blockwise(
    gradient: Tensor,
    parameter: Tensor,
    first: Tensor,
    second: Tensor | None = None,
    scales: Tensor | None = None,
    more_scales: Tensor | None = None,
) -> Answer:
    cost, params = optimizer_update_32bit(gradient, parameter, first, second)
    codes = Cost(12 * elements(parameter.shape) * (1 if second is None else 2), 0)
    return cost + codes + Cost(0, moved(*2 * (scales, more_scales))), params
