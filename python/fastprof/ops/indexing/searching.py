"""FLOPs and bytes of look-up by value: binary search, membership, distinct values, histograms.

The number of distinct values is not recorded: if it determines the output, bytes are unknown.
"""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import row_length
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.indexing.sorting import comparisons
from fastprof.ops.parameters import Number
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import byte_count, canonical_type, elements, tensor_bytes, tensor_text
from fastprof.ops.traffic import texts

Operand = Tensor | Number


def _count(operand: Operand) -> int:
    return elements(operand.shape) if isinstance(operand, Tensor) else 1


def _bytes(operand: Operand) -> int | None:
    # Ranges record a number as a tensor without dimensions and type.
    if isinstance(operand, Tensor) and (operand.shape or canonical_type(operand.dtype)):
        return tensor_bytes(operand)
    return 0


@operators("""
    (borders, values, out_int32=out_int32): torch.searchsorted
    (values, boundaries=borders, out_int32=out_int32): torch.bucketize
    (borders, values, out_int32, ...): aten::searchsorted
    (values, borders, out_int32, ...): aten::bucketize
""")
def searchsorted(
    borders: Tensor, values: Operand, out_int32: bool | Unknown = False
) -> tuple[Cost, str]:
    """Index of each value in the sorted borders [.., n] -> integers of the shape of values.

    FLOPs: log2(n + 1), rounded up, comparisons for each value; no backward pass.
    Bytes: borders and values read, int64 (or int32) indices written.
    """
    length = borders.shape[-1] if borders.shape else 1
    width = None if isinstance(out_int32, Unknown) else "int32" if out_int32 else "int64"
    moved = add_known(tensor_bytes(borders), _bytes(values), byte_count(_count(values), width))
    return Cost(_count(values) * length.bit_length(), moved), texts(borders, values)


_LOOP_LIMIT: Final = (10, 0.145)  # aten/src/ATen/native/TensorCompare.cpp, isin


@operators("""
    (values, among, ...): isin
    (elements=values, test_elements=among, ...): torch.isin
""")
def isin(values: Operand, among: Operand) -> tuple[Cost, str]:
    """Whether each value is one of others -> bool of the shape of values.

    FLOPs: a comparison with each of the others if they are few (torch's threshold), else both are
    sorted together: log2(all), rounded up, comparisons for each and 2 to mark duplicates; no
    backward pass.
    Bytes: both read, bools written.

    An estimate if both are sorted.
    """
    count, others = _count(values), _count(among)
    if not isinstance(values, Tensor) and not isinstance(among, Tensor):
        raise CannotModel("no tensor among the operands")
    moved = add_known(_bytes(values), _bytes(among), byte_count(count, "bool"))
    factor, exponent = _LOOP_LIMIT
    if others < factor * min(count, 1 << 60) ** exponent:
        return Cost(count * others, moved), texts(values, among)
    both = count + others
    return Cost(comparisons(both, both) + 2 * both, moved, False), texts(values, among)


@operators("""
    (x, _, _, _, dim): torch.unique
    (x, ...): _unique2 _unique
""")
def unique(x: Tensor, dim: int | Unknown | None = None) -> tuple[Cost, str]:
    """Distinct values of x (or distinct slices along dim), sorted.

    FLOPs: log2(n), rounded up, comparisons for each element to sort them and one to find repeats.
    Bytes: unknown, they depend on the number of distinct values.
    """
    count = elements(x.shape)
    return Cost(comparisons(count, row_length(x.shape, dim)) + count, None, False), tensor_text(x)


@operators("(x, dim, ...): unique_dim")
def unique_dim(x: Tensor, dim: int | Unknown) -> tuple[Cost, str]:
    """Distinct slices of x along dim, sorted.

    FLOPs: log2(slices), rounded up, comparisons for each element to sort them and one to find
    repeats: an upper bound, because comparing slices can stop early.
    Bytes: unknown, they depend on the number of distinct slices.
    """
    if isinstance(dim, Unknown):
        raise CannotModel("the dimension is not in the capture")
    return unique(x, dim)


table_row("""
    Values of x without consecutive duplicates.
    FLOPs: a comparison for each element.
    Bytes: unknown, they depend on the number of distinct values.
    (x, ...): unique_consecutive unique_dim_consecutive
""")("x", lambda x: (Cost(elements(x.shape), None), tensor_text(x)))


@operators("bincount")
def bincount(
    x: Tensor, weights: Tensor | None = None, minlength: int | Unknown = 0
) -> tuple[Cost, str]:
    """How often each number occurs in x [n], or the sum of its weights -> [largest number + 1].

    FLOPs: an addition for each element; no backward pass.
    Bytes: unknown, they depend on the largest number.
    """
    if weights is not None and weights.shape != x.shape:
        raise CannotModel(f"weights {weights.shape} do not fit {x.shape}")
    return Cost(elements(x.shape), None), tensor_text(x)


@operators("""
    (x, bins, min=_, max=_): torch.histc
    (x, bins, _, _, ...): aten::histc
""")
def histc(x: Tensor, bins: int | Unknown = 100) -> tuple[Cost, str]:
    """Histogram of x with equal bins -> [bins] of x's type.

    FLOPs: 4 for each element: difference, product, rounding, and the addition to its bin.
    Bytes: x read, the bins written. Finding a range that is not given is not counted.
    """
    if not isinstance(bins, Unknown) and bins <= 0:
        raise CannotModel(f"invalid number of bins {bins}")
    written = None if isinstance(bins, Unknown) else byte_count(bins, x.dtype)
    return Cost(4 * elements(x.shape), add_known(tensor_bytes(x), written)), tensor_text(x)
