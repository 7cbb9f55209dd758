"""Lookups in embedding tables of fbgemm, and the operators of their backward passes.

fbgemm stores the tables of several features in one tensor. The number of indices per feature and
the rows they pick are values that no capture records.

Quantisation of embedding rows for communication between ranks, and its inverse. After its elements,
an 8-bit row has a float32 scale and bias (8 bytes), a row of 2 or 4 bits two float16 (4 bytes), an
fp8 row its scale (padded to 8 bytes).

Sources, in fbgemm_gpu of pytorch/FBGEMM: codegen/training (layout of the tables), in it
backward/embedding_backward_split_host_template.cpp,
pt2/embedding_split_host_pt2_autograd_template.cpp and pt2/*_cuda_wrapper_template.cpp;
codegen/inference/embedding_forward_quantized_host.cpp; src/quantize_ops/quantize_ops_cpu.cpp.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.dtypes import is_floating
from fastprof.ops.parameters import Int, Size, Tensors
from fastprof.ops.registry import generated, operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import byte_count, elements, fresh, moved, present, texts

NO_POOLING: Final = 2  # fbgemm's PoolingMode: 0 sum, 1 mean
MEAN: Final = 1
_OUTPUT: Final = "float32"  # fbgemm's default `output_dtype`


class Picks(NamedTuple):
    """Which rows a call picks, and the widths of its tables.

    Parameters
    ----------
    indices, offsets : Tensor
        Rows of the tables, and where each bag begins among them.
    total, widest : int or None
        Sum of the tables' widths, and the largest; either may be unknown.
    pooling : int or None
        fbgemm's PoolingMode.
    per_sample : Tensor or None
        Weights of the picked rows.
    """

    indices: Tensor
    offsets: Tensor
    total: Size = None
    widest: Size = None
    pooling: Size = None
    per_sample: Tensor | None = None

    @property
    def bytes(self) -> int | None:
        """Bytes of the tensors that tell the picked rows."""
        return moved(self.indices, self.offsets, self.per_sample)


class EmbeddingTables(NamedTuple):
    """Sizes of one lookup.

    Parameters
    ----------
    weights : Tensor
        The elements of all tables in one memory.
    rows : int or None
        Rows of all tables; None if unknown.
    width : Fraction
        Elements of a row; the average if tables differ in width.
    indices : int
        Number of picked rows, with repetitions.
    output : Tensor
        Sums over the bags [bags, total of the widths], or the picked rows themselves.
    exact : bool
        Whether all rows have this width, and the output's type is known.
    """

    weights: Tensor
    rows: int | None
    width: Fraction
    indices: int
    output: Tensor
    exact: bool

    @property
    def picked(self) -> int:
        """Elements of all picked rows."""
        return round(self.indices * self.width)

    @property
    def touched(self) -> int:
        """Upper bound on the elements of distinct picked rows."""
        known = [self.indices] if self.rows is None else [self.indices, self.rows]
        return round(min(known) * self.width)

    def element_bytes(self, count: int) -> int | None:
        """Bytes of `count` elements of the tables."""
        return byte_count(count, self.weights.dtype)


def tables(
    weights: tuple[Tensor, ...],
    features: int | None,
    picks: Picks,
    momentum: Any,
    result: Tensor | Unknown | None,
) -> EmbeddingTables:
    """The sizes of a lookup.

    Raises CannotModel when the widths are unknown.

    Parameters
    ----------
    weights : tuple of Tensor
        On the device and in unified memory; all but one are empty.
    features : int or None
        Number of tables; None without pooling ("no bag").
    momentum : Tensor or any other value
        The first state of the optimizer, with one element per row or per weight.
    result : Tensor or Unknown
        The output, if recorded.
    """
    stored = max(weights, key=lambda tensor: elements(tensor.shape))
    size = elements(stored.shape)
    count = elements(picks.indices.shape)
    pooled = picks.pooling != NO_POOLING and features is not None
    of_features = features if features is not None and pooled else 1
    bags = max((elements(picks.offsets.shape) - 1) // max(of_features, 1), 0) if pooled else count
    fits = isinstance(result, Tensor) and len(result.shape) == 2 and result.shape[0] == bags
    recorded = result if isinstance(result, Tensor) and fits else None
    total, largest = (
        value if isinstance(value, int) else None for value in (picks.total, picks.widest)
    )
    if not pooled:
        total = largest = largest if recorded is None else recorded.shape[1]
    elif total is None and recorded is not None:
        total = recorded.shape[1]
    rows = _rows(size, momentum)
    if total is not None:
        width = Fraction(total, max(of_features, 1))
    elif rows:
        width = Fraction(size, rows)
    else:
        raise CannotModel("the widths of the tables are not in the capture")
    if rows is None and width and largest == width:
        rows = round(size / width)
    dtype = None if recorded is None else recorded.dtype
    output = Tensor((bags, round(width * of_features)), dtype or _OUTPUT)
    same = of_features == 1 or (largest is not None and largest == width)
    return EmbeddingTables(stored, rows, width, count, output, same and dtype is not None)


def _rows(size: int, momentum: Any) -> int | None:
    # A state with one element per row determines the number of rows.
    if not isinstance(momentum, Tensor):
        return None
    count = elements(momentum.shape)
    return count if 0 < count < size else None


# FLOPs of updating one element of a touched row: gradient descent 2; Adagrad square, addition, root
# (20), division and subtraction, with the root shared in row-wise Adagrad; Adam as in torch; LAMB
# and LARS also two norms and their ratio.
OPTIMIZERS: Final = {
    "sgd": 2,
    "adagrad": 26,
    "rowwise_adagrad": 4,
    "rowwise_adagrad_with_weight_decay": 6,
    "rowwise_adagrad_with_counter": 6,
    "rowwise_weighted_adagrad": 5,
    "ensemble_rowwise_adagrad": 7,
    "adam": 32,
    "partial_rowwise_adam": 10,
    "lamb": 38,
    "partial_rowwise_lamb": 16,
    "lars_sgd": 8,
    "none": 0,
}
_APPROXIMATE: Final = ("", "approx_", "exact_")

# The first tensor is only for autograd. Weights: on the device, unified, cached.
_SPLIT: Final = (
    "(other, device_weights, unified_weights, other, other, other, ends, total, widest, other, _,"
    " indices, offsets, pooling, per_sample, other, other, _, _, _, momentum, ...)"
)
_PT2: Final = (
    "(other, lists, ends, total, widest, other, _, indices, offsets, pooling, per_sample, other,"
    " ...)"
)
_FLAT_PT2: Final = (
    "(other, other, device_weights, unified_weights, other, other, other, ends, total, widest,"
    " other, _, indices, offsets, pooling, per_sample, other, other, _, _, _, momentum, ...)"
)


def _lookup(
    picks: Picks,
    ends: Tensor,
    device_weights: Tensor | None = None,
    unified_weights: Tensor | None = None,
    lists: Tensors = (),
    momentum: Any = None,
    *,
    optimizer: str,
    update: int,
    result: Tensor | Unknown = UNKNOWN,
    direction: str,
) -> Answer:
    if direction == "bprop" and optimizer == "none":
        raise CannotModel("the gradient goes to a separate optimizer")
    weights = lists or present(device_weights, unified_weights)
    if not weights:
        raise CannotModel("the tables are not in the capture")
    found = tables(weights, _features(ends), picks, momentum, result)
    if lists and found.weights.dtype is None:
        raise CannotModel("the type of the tables is not in the capture")
    params = texts(found.weights, picks.indices, found.output)
    if direction == "fprop":
        return lookup(found, picks), params
    return gradient(found, picks, momentum, update), params


for _optimizer, _update in OPTIMIZERS.items():
    _functions = [
        f"fbgemm|fb::{kind}_embedding_codegen_lookup_{about}{_optimizer}_function"
        for kind in ("split", "ssd")
        for about in _APPROXIMATE
    ]
    _of_functions = "\n        ".join(
        f"{_SPLIT}: {name}\n        {_PT2}: {name}_pt2\n        {_FLAT_PT2}: {name}_pt2"
        for name in _functions
    )
    table_row(f"""
        Rows of several embedding tables picked by indices, summed bag by bag: [bags, widths].
        FLOPs: one addition for each element of each picked row, two with per-sample weights; none
            without pooling; one more per output for a mean. Backward the same (one for each without
            pooling), and the optimizer's for each element of the rows that it touches: 2 for SGD, 4
            for row-wise Adagrad, 26 for Adagrad, 32 for Adam.
        Bytes: indices, offsets, per-sample weights and each picked row read, the output written.
            Backward the output's gradient, indices and offsets read, each touched row and its state
            read and written.

        An estimate if tables differ in width (the average width is assumed) or the output's type is
        unknown (float32 is assumed), and in backward: the number of touched rows is at most that of
        indices and of rows. Widths that are not recorded follow from the output, or from a state
        with one element per row.
        {_of_functions}
    """)(_lookup, optimizer=_optimizer, update=_update)


def _features(ends: Tensor) -> int | None:
    if len(ends.shape) != 1:
        raise CannotModel(f"ends of features have shape {ends.shape}, not 1-d")
    return max(ends.shape[0] - 1, 1)


def lookup(found: EmbeddingTables, picks: Picks) -> Cost:
    """Forward work: picked rows are read and summed."""
    flops = 0
    if picks.pooling != NO_POOLING:
        flops = found.picked * (1 if picks.per_sample is None else 2)
        flops += elements(found.output.shape) if picks.pooling == MEAN else 0
    read = add_known(picks.bytes, found.element_bytes(found.picked))
    known = found.exact and isinstance(picks.pooling, int)
    return Cost(flops, add_known(read, moved(found.output)), known)


def gradient(found: EmbeddingTables, picks: Picks, momentum: Any, update: int) -> Cost:
    """Backward work: the output's gradient is summed by row, and rows are updated."""
    weighted = picks.per_sample is not None or picks.pooling == MEAN
    flops = found.picked * (2 if weighted else 1) + found.touched * update
    rows = found.element_bytes(found.touched)
    read = add_known(picks.bytes, moved(found.output))
    state: int | None = 0
    if isinstance(momentum, Tensor) and elements(found.weights.shape):
        of_state = moved(momentum)
        share = found.touched / elements(found.weights.shape)
        state = None if of_state is None else 2 * round(of_state * min(share, 1))
    return Cost(flops, add_known(read, rows, rows, state), exact=False)


@operators("""
    Rows of embedding tables picked by indices and summed; their gradient is a dense tensor.
    FLOPs: as a lookup with an optimizer; backward one addition for each element of each picked row.
    Bytes: as a lookup with an optimizer; backward the output's gradient, indices and offsets read,
        the tables' gradient written, and each touched row of it read and written.

    Includes the operators inside a lookup, `*_embedding_*codegen_forward_*`.
    (device_weights, other, ends, total, widest, other, _, indices, offsets, pooling, per_sample,
        other, ...): fbgemm|fb::dense_embedding_codegen_lookup_function
        fbgemm|fb::dense_embedding_codegen_lookup_function_pt2
    (device_weights, unified_weights, other, other, other, ends, total, widest, indices, offsets,
        pooling, other**): fbgemm|fb::split_embedding_codegen_forward
    (other, device_weights, unified_weights, other, other, other, ends, total, widest, other,
        indices, offsets, pooling, other**): fbgemm|fb::split_embedding_codegen_forward
    (device_weights, unified_weights, other, other, other, widest, indices, offsets, other**):
        fbgemm|fb::split_embedding_codegen_forward
    (other, device_weights, unified_weights, other, other, other, widest, other, indices, offsets,
        other**): fbgemm|fb::split_embedding_codegen_forward
""")
def dense_embedding_codegen_lookup_function(
    picks: Picks,
    device_weights: Tensor,
    unified_weights: Tensor | None = None,
    ends: Tensor | None = None,
    other: Any = None,
    *,
    result: Tensor | Unknown = UNKNOWN,
    direction: str,
) -> Answer:
    if isinstance(other, tuple) and other and isinstance(other[0], Tensor):
        weight = other[0]
        fits = weight.shape == picks.indices.shape and weight.dtype != picks.indices.dtype
        if picks.per_sample is None and fits:
            picks = picks._replace(per_sample=weight)
    weights = present(device_weights, unified_weights)
    features = None if ends is None else _features(ends)
    found = tables(weights, features, picks, None, result)
    params = texts(found.weights, picks.indices, found.output)
    if direction == "fprop":
        return lookup(found, _unpooled(picks, ends)), params
    rows = found.element_bytes(found.touched)
    read = add_known(picks.bytes, moved(found.output))
    written = moved(fresh(found.weights))
    return Cost(found.picked, add_known(read, written, rows, rows), exact=False), params


def _unpooled(picks: Picks, ends: Tensor | None) -> Picks:
    # Without ends of features ("no bag"), rows are not summed.
    return picks._replace(pooling=NO_POOLING) if ends is None else picks


generated(
    r"(fbgemm|fb)::(split|ssd|dense)_embedding\w*_codegen_forward_\w+",
    "fbgemm::split_embedding_codegen_forward",
)


@operators("""
    Rows of embedding tables of 2 to 16 bits per element picked by indices and summed.
    FLOPs: 3 for each element of each picked row: scale, bias, sum; one more with per-sample
        weights.
    Bytes: unknown; the bits per element of each table are a tensor value.
    (device_weights, unified_weights, other, other, other, ends, total, _, _, _, _, _, indices,
        offsets, pooling, per_sample, ...):
        fbgemm|fb::int_nbit_split_embedding_codegen_lookup_function
        fbgemm|fb::int_nbit_split_embedding_uvm_caching_codegen_lookup_function
""")
def int_nbit_split_embedding_codegen_lookup_function(
    picks: Picks,
    ends: Tensor,
    device_weights: Tensor | None = None,
    unified_weights: Tensor | None = None,
    *,
    result: Tensor | Unknown = UNKNOWN,
) -> Answer:
    features = _features(ends) or 1
    shape = result.shape if isinstance(result, Tensor) and len(result.shape) == 2 else None
    known = picks.total if isinstance(picks.total, int) else (shape[1] if shape else None)
    if known is None:
        raise CannotModel("the widths of the tables are not in the capture")
    picked = elements(picks.indices.shape) * known // features
    flops = picked * (3 if picks.per_sample is None else 4)
    same = features == 1 and picks.pooling != NO_POOLING
    return Cost(flops, None, same), texts(picks.indices, picks.offsets)


_BAGS: Final = "ends, widest, _, other, _, indices, offsets, pooling, others**)"
_OLDER: Final = "ends, widest, other, _, indices, offsets, pooling, others**)"
_NO_BAGS: Final = "widest, other, _, indices, offsets, others**)"
_DEVICE: Final = "(gradients, device_weights, unified_weights, other, other, other, "
_HOST: Final = "(gradients, other, device_weights, unified_weights, other, other, other, "


def _gradients(
    gradients: Tensor,
    picks: Picks,
    device_weights: Tensor,
    unified_weights: Tensor | None = None,
    ends: Tensor | None = None,
    others: Tensors = (),
    *,
    update: int,
) -> Answer:
    floating = [tensor for tensor in others if is_floating(tensor.dtype)]
    if floating and floating[0] is others[0] and others[0].shape == picks.indices.shape:
        picks, floating = picks._replace(per_sample=others[0]), floating[1:]
    vectors = (one for one in floating if len(one.shape) == 1 and elements(one.shape) > 1)
    momentum = next(vectors, None)
    weights = present(device_weights, unified_weights)
    result = _backward(gradients, weights, ends, picks, momentum)
    cost = gradient(result, _unpooled(picks, ends), momentum, update)
    return cost, texts(gradients, result.weights, picks.indices)


def _backward(
    gradients: Tensor, weights: Tensors, ends: Tensor | None, picks: Picks, momentum: Tensor | None
) -> EmbeddingTables:
    # The lookup, as far as known.
    if len(gradients.shape) != 2:
        raise CannotModel(f"the gradient has shape {gradients.shape}, not 2-d")
    features = None if ends is None else max(elements(ends.shape) - 1, 1)
    picks = picks._replace(total=gradients.shape[1])
    return tables(weights, features, picks, momentum, gradients)


for _optimizer, _update in OPTIMIZERS.items():
    if _optimizer != "none":
        _name = f"split_embedding_backward_codegen_{_optimizer}"
        _forms = (head + tail for head in (_DEVICE, _HOST) for tail in (_BAGS, _OLDER, _NO_BAGS))
        _rows_of_forms = "\n            ".join(f"{form}: fbgemm|fb::{_name}" for form in _forms)
        table_row(f"""
            Gradient [bags, widths] of a lookup summed by row, and the rows updated.
            FLOPs: one for each element of each picked row, two for a mean or with per-sample
                weights, and the optimizer's for each element of the rows that it touches.
            Bytes: gradient, indices and offsets read; each touched row and its state read and
                written.

            An estimate: the number of touched rows is at most that of indices and of rows.
            {_rows_of_forms}
        """)(_gradients, update=_update)
        for _kind in ("split", "ssd"):
            generated(
                rf"(fbgemm|fb)::{_kind}_embedding\w*_backward_codegen_(approx_)?{_optimizer}"
                r"_(un)?weighted\w*",
                f"fbgemm::split_embedding_backward_codegen_{_optimizer}",
            )


_OF_WEIGHTS: Final = "split_embedding_codegen_grad_indice_weights"


@operators("""
    Dot product of each picked row and its bag's gradient [bags, widths].
    FLOPs: 2 for each element of each picked row.
    Bytes: gradient, indices, offsets and picked rows read, one float32 number per index written.
    (gradients, device_weights, unified_weights, other, other, other, ends, widest, indices,
        offsets, ...): fbgemm|fb::split_embedding_codegen_grad_indice_weights
    (gradients, device_weights, unified_weights, other, other, other, ends, widest, _, indices,
        offsets, ...): fbgemm|fb::split_embedding_codegen_grad_indice_weights
    (gradients, other, device_weights, unified_weights, other, other, other, ends, widest, indices,
        offsets, ...): fbgemm|fb::split_embedding_codegen_grad_indice_weights
    (gradients, other, device_weights, unified_weights, other, other, other, ends, widest, _,
        indices, offsets, ...): fbgemm|fb::split_embedding_codegen_grad_indice_weights
""")
def split_embedding_codegen_grad_indice_weights(
    gradients: Tensor,
    picks: Picks,
    device_weights: Tensor,
    unified_weights: Tensor | None = None,
    ends: Tensor | None = None,
) -> Answer:
    weights = present(device_weights, unified_weights)
    result = _backward(gradients, weights, ends, picks._replace(pooling=0), None)
    written = moved(fresh(picks.indices, dtype="float32"))
    read = add_known(moved(gradients), picks.bytes, result.element_bytes(result.picked))
    cost = Cost(2 * result.picked, add_known(read, written), result.exact)
    return cost, texts(gradients, result.weights, picks.indices)


generated(
    r"(fbgemm|fb)::(split|ssd|dense)_embedding\w*_grad_indice_weights\w*", f"fbgemm::{_OF_WEIGHTS}"
)


_ROW_EXTRA: Final = 8
_NARROW_EXTRA: Final = 4
_TYPES: Final = {0: "float32", 1: "float16", 5: "bfloat16"}  # values of SparseType in arguments


@operators("""
    Elementwise conversion to a narrower format, or back to float32.
    FLOPs: one for each element.
    Bytes: x read, the same number of elements written: one byte each if x is float32 (two for
        bfloat16), else float32.
    (x, ...): fbgemm|fb::FloatToHFP8Quantized fbgemm|fb::FloatToMSFPQuantized
        fbgemm|fb::HFP8QuantizedToFloat fbgemm|fb::MSFPQuantizedToFloat
    (x): fbgemm|fb::FloatToBfloat16Quantized fbgemm|fb::Bfloat16QuantizedToFloat
""")
def float_to_hfp8_quantized(x: Tensor) -> Answer:
    count, read = elements(x.shape), moved(x)
    written = None if read is None else count if read == 4 * count else 4 * count
    return Cost(count, add_known(read, written)), texts(x)


@operators("""
    Rows x[.., d] as bytes [.., d + 8], followed by their scale.
    FLOPs: 5 for each element: two comparisons for the range, difference, product, rounding.
    Bytes: x read, a byte per element and 8 bytes per row written.
    (x): fbgemm|fb::FloatToFused8BitRowwiseQuantized fbgemm|fb::HalfToFused8BitRowwiseQuantized
        fbgemm|fb::FloatOrHalfToFused8BitRowwiseQuantized
    (_o, x): fbgemm|fb::FloatToFused8BitRowwiseQuantizedOut
    (x, ...): fbgemm|fb::FloatToFP8RowwiseQuantized fbgemm|fb::FloatToPaddedFP8RowwiseQuantized
""")
def float_to_fused8_bit_rowwise_quantized(x: Tensor) -> Answer:
    rows, count = _quantised_rows(x)
    return Cost(5 * count, add_known(moved(x), count + _ROW_EXTRA * rows)), texts(x)


@operators("""
    Rows of bytes x[.., d + 8] as float32 [.., d].
    FLOPs: 2 for each element: a product and a sum.
    Bytes: x read, d elements a row written.

    If the type argument is not recorded, float32 is assumed, and the cost is an estimate.
    (x): fbgemm|fb::Fused8BitRowwiseQuantizedToFloat
    (_o, x): fbgemm|fb::Fused8BitRowwiseQuantizedToFloatOut
    (x, dtype, ...): fbgemm|fb::Fused8BitRowwiseQuantizedToFloatOrHalf
    (x, ...): fbgemm|fb::FP8RowwiseQuantizedToFloat fbgemm|fb::PaddedFP8RowwiseQuantizedToFloat
""")
def fused8_bit_rowwise_quantized_to_float(x: Tensor, dtype: Int | None = None) -> Answer:
    return _widened(x, _TYPES.get(dtype or 0) if not isinstance(dtype, Unknown) else None)


table_row("""
    Rows of bytes x[.., d + 8] as float16 [.., d].
    FLOPs: 2 for each element: a product and a sum.
    Bytes: x read, d elements a row written.
    (x): fbgemm|fb::Fused8BitRowwiseQuantizedToHalf
""")("x", lambda x: _widened(x, "float16"))


def _widened(x: Tensor, dtype: str | None) -> Answer:
    rows, count = _quantised_rows(x)
    if x.shape[-1] < _ROW_EXTRA:
        raise CannotModel(f"rows of {x.shape[-1]} bytes are too short for a scale")
    count -= _ROW_EXTRA * rows
    written = byte_count(count, dtype or "float32")
    return Cost(2 * count, add_known(moved(x), written), dtype is not None), texts(x)


@operators("""
    Rows x[.., d] in 2 or 4 bits per element, followed by a float16 scale and bias.
    FLOPs: 5 for each element: two comparisons for the range, difference, product, rounding.
    Bytes: x read, the bits and 4 bytes per row written; unknown if the number of bits is not
        recorded.
    (x, bits): fbgemm|fb::FloatToFusedNBitRowwiseQuantizedSBHalf
        fbgemm|fb::HalfToFusedNBitRowwiseQuantizedSBHalf
        fbgemm|fb::FloatOrHalfToFusedNBitRowwiseQuantizedSBHalf
""")
def float_to_fused_n_bit_rowwise_quantized_sb_half(x: Tensor, bits: Size = None) -> Answer:
    rows, count = _quantised_rows(x)
    written = None
    if isinstance(bits, int) and 0 < bits <= 8:
        written = (-(-x.shape[-1] * bits // 8) + _NARROW_EXTRA) * rows
    return Cost(5 * count, add_known(moved(x), written)), texts(x)


def _quantised_rows(x: Tensor) -> tuple[int, int]:
    if not x.shape:
        raise CannotModel("a tensor without dimensions has no rows")
    return elements(x.shape[:-1]), elements(x.shape)
