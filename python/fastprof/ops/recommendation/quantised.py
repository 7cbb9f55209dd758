"""Rows of embeddings in fewer bits for their way between ranks, and back.

Source: fbgemm_gpu/src/quantize_ops/quantize_ops_cpu.cpp in pytorch/FBGEMM. A row of 8 bits an
element carries a float32 scale and bias (8 bytes) behind its elements, one of 2 or 4 bits two
float16 (4 bytes), one in fp8 its scale (8 bytes with what fills them up).
"""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.recommendation.names import fbgemm
from fastprof.ops.registry import op
from fastprof.ops.tensor import byte_count, elements
from fastprof.ops.traffic import moved, texts

__all__ = ["converted", "dequantised_rows", "narrow_rows", "quantised_rows", "widened_rows"]

_ROW_EXTRA: Final = 8
_NARROW_EXTRA: Final = 4
_TYPES: Final = {0: "float32", 1: "float16", 5: "bfloat16"}  # SparseType, as an argument has it


@op(
    None,
    aten=fbgemm(
        "FloatToHFP8Quantized(x, ...)",
        "FloatToMSFPQuantized(x, ...)",
        "HFP8QuantizedToFloat(x, ...)",
        "MSFPQuantizedToFloat(x, ...)",
        "FloatToBfloat16Quantized(x)",
        "Bfloat16QuantizedToFloat(x)",
    ),
)
def converted(x: Tensor) -> tuple[Cost, str]:
    """Elements to a narrower format, each for itself, or back to float32.

    FLOPs: one for each element.
    Bytes: x read, as many elements written: of one byte where x is float32 (two for bfloat16), of
        float32 else.
    """
    return _conversion(x, 1)


def _conversion(x: Tensor, narrow: int) -> tuple[Cost, str]:
    # Bytes of the narrow form: those of x, or `narrow` for each element of x.
    count = elements(x.shape)
    read = moved(x)
    if read is None:
        return Cost(count, None), texts(x)
    written = count * narrow if read == 4 * count else 4 * count
    return Cost(count, read + written), texts(x)


_TO_BYTES: Final = (
    "FloatToFused8BitRowwiseQuantized(x)",
    "HalfToFused8BitRowwiseQuantized(x)",
    "FloatOrHalfToFused8BitRowwiseQuantized(x)",
    "FloatToFused8BitRowwiseQuantizedOut(_o, x)",
    "FloatToFP8RowwiseQuantized(x, ...)",
    "FloatToPaddedFP8RowwiseQuantized(x, ...)",
)


@op(None, aten=fbgemm(*_TO_BYTES))
def quantised_rows(x: Tensor, _o: Tensor | None = None) -> tuple[Cost, str]:
    """Rows x[.., d] as bytes [.., d + 8], with their scale behind them.

    FLOPs: 5 for each element: two comparisons for the range, difference, product, rounding.
    Bytes: x read, a byte an element and 8 a row written.
    """
    rows, count = _rows(x)
    return Cost(5 * count, add_known(moved(x), count + _ROW_EXTRA * rows)), texts(x)


_FROM_BYTES: Final = (
    "Fused8BitRowwiseQuantizedToFloat(x)",
    "Fused8BitRowwiseQuantizedToFloatOut(_o, x)",
    "Fused8BitRowwiseQuantizedToFloatOrHalf(x, dtype, ...)",
    "FP8RowwiseQuantizedToFloat(x, ...)",
    "PaddedFP8RowwiseQuantizedToFloat(x, ...)",
)


@op(None, aten=fbgemm(*_FROM_BYTES))
def dequantised_rows(
    x: Tensor, dtype: int | Unknown | None = None, _o: Tensor | None = None
) -> tuple[Cost, str]:
    """Rows of bytes x[.., d + 8] as float32 [.., d].

    FLOPs: 2 for each element: a product and a sum.
    Bytes: x read, d elements a row written.

    Where the type of the result is an argument that the capture does not hold, float32 is taken,
    and the cost is an estimate.
    """
    return _widened(x, _TYPES.get(dtype or 0) if not isinstance(dtype, Unknown) else None)


@op(None, aten=fbgemm("Fused8BitRowwiseQuantizedToHalf(x)"))
def widened_rows(x: Tensor) -> tuple[Cost, str]:
    """Rows of bytes x[.., d + 8] as float16 [.., d].

    FLOPs: 2 for each element: a product and a sum.
    Bytes: x read, d elements a row written.
    """
    return _widened(x, "float16")


def _widened(x: Tensor, dtype: str | None) -> tuple[Cost, str]:
    rows, count = _rows(x)
    if x.shape[-1] < _ROW_EXTRA:
        raise CannotModel(f"rows of {x.shape[-1]} bytes have no place for a scale")
    count -= _ROW_EXTRA * rows
    written = byte_count(count, dtype or "float32")
    return Cost(2 * count, add_known(moved(x), written), dtype is not None), texts(x)


_TO_BITS: Final = (
    "FloatToFusedNBitRowwiseQuantizedSBHalf(x, bits)",
    "HalfToFusedNBitRowwiseQuantizedSBHalf(x, bits)",
    "FloatOrHalfToFusedNBitRowwiseQuantizedSBHalf(x, bits)",
)


@op(None, aten=fbgemm(*_TO_BITS))
def narrow_rows(x: Tensor, bits: int | Unknown | None = None) -> tuple[Cost, str]:
    """Rows x[.., d] in 2 or 4 bits an element, with a scale and a bias of float16 behind them.

    FLOPs: 5 for each element: two comparisons for the range, difference, product, rounding.
    Bytes: x read, the bits and 4 bytes a row written; unknown where the capture does not hold how
        many bits.
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
