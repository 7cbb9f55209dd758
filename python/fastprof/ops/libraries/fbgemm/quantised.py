"""Quantisation of embedding rows for communication between ranks, and its inverse.

Source: fbgemm_gpu/src/quantize_ops/quantize_ops_cpu.cpp in pytorch/FBGEMM. After its elements, an
8-bit row has a float32 scale and bias (8 bytes), a row of 2 or 4 bits two float16 (4 bytes), an fp8
row its scale (padded to 8 bytes).
"""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import byte_count, elements
from fastprof.ops.traffic import moved, texts

_ROW_EXTRA: Final = 8
_NARROW_EXTRA: Final = 4
_TYPES: Final = {0: "float32", 1: "float16", 5: "bfloat16"}  # values of SparseType in arguments


table_row("""
    Elementwise conversion to a narrower format, or back to float32.
    FLOPs: one for each element.
    Bytes: x read, the same number of elements written: one byte each if x is float32 (two for
        bfloat16), else float32.
    (x, ...): fbgemm::FloatToHFP8Quantized fbgemm::FloatToMSFPQuantized fbgemm::HFP8QuantizedToFloat
        fbgemm::MSFPQuantizedToFloat fb::FloatToHFP8Quantized fb::FloatToMSFPQuantized
        fb::HFP8QuantizedToFloat fb::MSFPQuantizedToFloat
    (x): fbgemm::FloatToBfloat16Quantized fbgemm::Bfloat16QuantizedToFloat
        fb::FloatToBfloat16Quantized fb::Bfloat16QuantizedToFloat
""")("x", lambda x: _conversion(x, 1))


def _conversion(x: Tensor, narrow: int) -> tuple[Cost, str]:
    # Bytes of the narrow form: those of x, or `narrow` for each element of x.
    count = elements(x.shape)
    read = moved(x)
    if read is None:
        return Cost(count, None), texts(x)
    written = count * narrow if read == 4 * count else 4 * count
    return Cost(count, read + written), texts(x)


@operators("""
    (x): fbgemm::FloatToFused8BitRowwiseQuantized fbgemm::HalfToFused8BitRowwiseQuantized
        fbgemm::FloatOrHalfToFused8BitRowwiseQuantized fb::FloatToFused8BitRowwiseQuantized
        fb::HalfToFused8BitRowwiseQuantized fb::FloatOrHalfToFused8BitRowwiseQuantized
    (_o, x): fbgemm::FloatToFused8BitRowwiseQuantizedOut fb::FloatToFused8BitRowwiseQuantizedOut
    (x, ...): fbgemm::FloatToFP8RowwiseQuantized fbgemm::FloatToPaddedFP8RowwiseQuantized
        fb::FloatToFP8RowwiseQuantized fb::FloatToPaddedFP8RowwiseQuantized
""")
def float_to_fused8_bit_rowwise_quantized(x: Tensor, _o: Tensor | None = None) -> tuple[Cost, str]:
    """Rows x[.., d] as bytes [.., d + 8], followed by their scale.

    FLOPs: 5 for each element: two comparisons for the range, difference, product, rounding.
    Bytes: x read, a byte per element and 8 bytes per row written.
    """
    rows, count = _rows(x)
    return Cost(5 * count, add_known(moved(x), count + _ROW_EXTRA * rows)), texts(x)


@operators("""
    (x): fbgemm::Fused8BitRowwiseQuantizedToFloat fb::Fused8BitRowwiseQuantizedToFloat
    (_o, x): fbgemm::Fused8BitRowwiseQuantizedToFloatOut fb::Fused8BitRowwiseQuantizedToFloatOut
    (x, dtype, ...): fbgemm::Fused8BitRowwiseQuantizedToFloatOrHalf
        fb::Fused8BitRowwiseQuantizedToFloatOrHalf
    (x, ...): fbgemm::FP8RowwiseQuantizedToFloat fbgemm::PaddedFP8RowwiseQuantizedToFloat
        fb::FP8RowwiseQuantizedToFloat fb::PaddedFP8RowwiseQuantizedToFloat
""")
def fused8_bit_rowwise_quantized_to_float(
    x: Tensor, dtype: int | Unknown | None = None, _o: Tensor | None = None
) -> tuple[Cost, str]:
    """Rows of bytes x[.., d + 8] as float32 [.., d].

    FLOPs: 2 for each element: a product and a sum.
    Bytes: x read, d elements a row written.

    If the type argument is not recorded, float32 is assumed, and the cost is an estimate.
    """
    return _widened(x, _TYPES.get(dtype or 0) if not isinstance(dtype, Unknown) else None)


table_row("""
    Rows of bytes x[.., d + 8] as float16 [.., d].
    FLOPs: 2 for each element: a product and a sum.
    Bytes: x read, d elements a row written.
    (x): fbgemm::Fused8BitRowwiseQuantizedToHalf fb::Fused8BitRowwiseQuantizedToHalf
""")("x", lambda x: _widened(x, "float16"))


def _widened(x: Tensor, dtype: str | None) -> tuple[Cost, str]:
    rows, count = _rows(x)
    if x.shape[-1] < _ROW_EXTRA:
        raise CannotModel(f"rows of {x.shape[-1]} bytes are too short for a scale")
    count -= _ROW_EXTRA * rows
    written = byte_count(count, dtype or "float32")
    return Cost(2 * count, add_known(moved(x), written), dtype is not None), texts(x)


@operators("""
    (x, bits): fbgemm::FloatToFusedNBitRowwiseQuantizedSBHalf
        fbgemm::HalfToFusedNBitRowwiseQuantizedSBHalf
        fbgemm::FloatOrHalfToFusedNBitRowwiseQuantizedSBHalf
        fb::FloatToFusedNBitRowwiseQuantizedSBHalf fb::HalfToFusedNBitRowwiseQuantizedSBHalf
        fb::FloatOrHalfToFusedNBitRowwiseQuantizedSBHalf
""")
def float_to_fused_n_bit_rowwise_quantized_sb_half(
    x: Tensor, bits: int | Unknown | None = None
) -> tuple[Cost, str]:
    """Rows x[.., d] in 2 or 4 bits per element, followed by a float16 scale and bias.

    FLOPs: 5 for each element: two comparisons for the range, difference, product, rounding.
    Bytes: x read, the bits and 4 bytes per row written; unknown if the number of bits is not
        recorded.
    """
    rows, count = _rows(x)
    written = None
    if isinstance(bits, int) and 0 < bits <= 8:
        written = (-(-x.shape[-1] * bits // 8) + _NARROW_EXTRA) * rows
    return Cost(5 * count, add_known(moved(x), written)), texts(x)


def _rows(x: Tensor) -> tuple[int, int]:
    if not x.shape:
        raise CannotModel("a tensor without dimensions has no rows")
    return elements(x.shape[:-1]), elements(x.shape)
