"""Features of recommendation models, pooled embeddings permuted or merged, and jagged tensors.

A feature has a number of indices for each sample ("lengths", [features, samples]); all indices are
concatenated. A jagged tensor consists of values [n, d] and the start of each sample ("offsets",
samples + 1 elements; a list of them if several dimensions are jagged). Jagged tensors are padded,
multiplied and normalised sample by sample.

Sources, in fbgemm_gpu of pytorch/FBGEMM: src/permute_pooled_embedding_ops,
src/permute_multi_embedding_ops, src/merge_pooled_embedding_ops, src/sparse_ops/sparse_ops_cpu.cpp,
src/jagged_tensor_ops/jagged_tensor_ops_cpu.cpp, codegen/embedding_bounds_check_host.cpp and
fbgemm_gpu/docs/jagged_tensor_ops.py.
"""

from __future__ import annotations

from math import prod
from typing import Any

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.axes import EXPONENTIAL
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.parameters import Flag, Ints, Size, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import byte_count, elements, flat, moved, texts


@operators("""
    Features [t, samples] permuted, with possible repetitions and omissions: [p, ..].
    FLOPs: one addition for each length read and each written: offsets are sums of lengths.
    Bytes: permutation, lengths and values (and weights) read, those of the result written.

    The number of values in the result is an argument that few captures record. If the number of
    features is unchanged, so is the number of values; else p / t of it is assumed, an estimate.
    (permute, lengths, values, weights, total, ...): fbgemm|fb::permute_1D_sparse_data
        fbgemm|fb::permute_2D_sparse_data fbgemm|fb::permute_2D_sparse_preallocated_out
        fbgemm|fb::permute_sparse_data
    (permute, lengths, values, _, weights, total): fbgemm|fb::permute_2D_sparse_data_input1D
    (permute, lengths, values, weights): fbgemm|fb::permute_sparse_features
""")
def permute_1_d_sparse_data(
    permute: Tensor,
    lengths: Tensor,
    values: Tensor,
    weights: Tensor | None = None,
    total: Size = None,
) -> Answer:
    if not lengths.shape:
        raise CannotModel("lengths without dimensions")
    features, kept = lengths.shape[0], elements(permute.shape)
    # A flat list of lengths counts as one feature per length.
    length_count = elements(lengths.shape) * kept // max(features, 1)
    count, exact = elements(values.shape), True
    if isinstance(total, int) and total >= 0:
        count = total
    elif kept != features and len(lengths.shape) > 1:
        count, exact = count * kept // max(features, 1), False
    elif kept != features:
        exact = False
    read = moved(permute, lengths, values, weights)
    lists = (values,) if weights is None else (values, weights)
    written = add_known(
        byte_count(length_count, lengths.dtype),
        *(byte_count(count, tensor.dtype) for tensor in lists),
    )
    flops = elements(lengths.shape) + length_count
    return Cost(flops, add_known(read, written), exact), texts(permute, lengths, values)


table_row("""
    Sums of x up to each element, by row.
    FLOPs: one addition for each element.
    Bytes: x read, the same amount written (a complete sum has one more element a row, not counted).
    (x): fbgemm|fb::asynchronous_complete_cumsum fbgemm|fb::asynchronous_inclusive_cumsum
        fbgemm|fb::asynchronous_exclusive_cumsum fbgemm|fb::asynchronous_batched_complete_cumsum
        fbgemm|fb::asynchronous_batched_inclusive_cumsum
        fbgemm|fb::asynchronous_batched_exclusive_cumsum
""")("x", Traffic(1, "x x"))


@operators("""
    Check of each index against the size of its table.
    FLOPs: two comparisons for each index, one for each offset.
    Bytes: table sizes, indices and offsets read; corrections of indices are rare and not counted.
    (rows, indices, offsets, ...): fbgemm|fb::bounds_check_indices
""")
def bounds_check_indices(rows: Tensor, indices: Tensor, offsets: Tensor) -> Answer:
    flops = 2 * elements(indices.shape) + elements(offsets.shape)
    return Cost(flops, moved(rows, indices, offsets)), texts(indices, offsets)


@operators("""
    Indices grouped by the rank (bucket) that owns their row.
    FLOPs: two divisions for each index, one addition for each length of the result.
    Bytes: lengths and indices (and weights) read, and written: lengths once for each bucket,
        positions and the inverse if requested.

    Unknown if the number of buckets is not recorded; an estimate if the requested outputs are
    unknown.
    (lengths, indices, positions, sequence, other, buckets, weights, ...):
        fbgemm|fb::block_bucketize_sparse_features
        fbgemm|fb::block_bucketize_sparse_features_inference
    (lengths, indices, positions, buckets, weights): fbgemm|fb::bucketize_sparse_features
""")
def bucketize(
    lengths: Tensor,
    indices: Tensor,
    positions: Flag = False,
    sequence: Flag = False,
    buckets: Size = None,
    weights: Tensor | None = None,
) -> Answer:
    if not isinstance(buckets, int):
        raise CannotModel("the number of buckets is not in the capture")
    count = elements(indices.shape)
    flags = sum(flag is True for flag in (positions, sequence))
    exact = not isinstance(positions, Unknown) and not isinstance(sequence, Unknown)
    lists = moved(indices, weights)
    extra = None if lists is None else byte_count(flags * count, indices.dtype)
    read = add_known(moved(lengths), lists)
    new_lengths = moved(*[lengths] * buckets)
    flops = 2 * count + elements(lengths.shape) * buckets
    return Cost(flops, add_known(read, new_lengths, lists, extra), exact), texts(lengths, indices)


@operators("""
    0, 1, 2, ... within each segment, concatenated.
    FLOPs: one addition for each element.
    Bytes: offsets read, one number of their type per element written.
    (offsets, count): fbgemm|fb::offsets_range
    (offsets, like): fbgemm|fb::offsets_range
""")
def ranges(offsets: Tensor, count: Size = None, like: Tensor | None = None) -> Answer:
    if like is not None:
        count = elements(like.shape)
    if not isinstance(count, int):
        return Cost(None, None), texts(offsets)
    return Cost(count, add_known(moved(offsets), byte_count(count, offsets.dtype))), texts(offsets)


@operators("""
    A permutation of segments expanded to their elements.
    FLOPs: one addition for each element.
    Bytes: permutation and both offsets read, an index for each element written; unknown if the
        number of elements is not in the capture.
    (permute, before, after, count): fbgemm|fb::expand_into_jagged_permute
""")
def expand_into_jagged_permute(
    permute: Tensor, before: Tensor, after: Tensor, count: Size = None
) -> Answer:
    known = count if isinstance(count, int) else None
    written = flat(known, permute.dtype)
    return Cost(known, moved(permute, before, after, written)), texts(permute)


table_row("""
    The elements of x in another order.
    FLOPs: 0.
    Bytes: x read, the same amount written.
    (x): fbgemm|fb::invert_permute
    (x, ...): fbgemm|fb::recat_embedding_grad_output fbgemm|fb::recat_embedding_grad_output_mixed_D
        fbgemm|fb::recat_embedding_grad_output_mixed_D_batch fbgemm|fb::reorder_batched_ad_lengths
""")("x", Traffic(0, "x x"))


@operators("""
    Sums of x over segments given by their ends.
    FLOPs: one addition for each element.
    Bytes: x and ends read, one number per segment written.
    (_, ends, x): fbgemm|fb::segment_sum_csr
""")
def segment_sum_csr(x: Tensor, ends: Tensor) -> Answer:
    written = byte_count(max(elements(ends.shape) - 1, 0), x.dtype)
    return Cost(elements(x.shape), add_known(moved(x, ends), written)), texts(x, ends)


@operators("""
    The segments of some samples, picked by indices from values [n, ..].
    FLOPs: forward one addition for each length; backward one for each element picked.
    Bytes: lengths, indices, offsets and picked values (and weights) read, the picked values
        written; backward their gradient read and added to that of the values.

    The number of picked values is an argument that few captures record. Otherwise samples are
    assumed to have the average length, an estimate.
    (values, lengths, offsets, indices, samples, weights, total):
        fbgemm|fb::keyed_jagged_index_select_dim1
    (values, lengths, indices, ...): fbgemm|fb::jagged_index_select
""")
def keyed_jagged_index_select_dim1(
    values: Tensor,
    lengths: Tensor,
    indices: Tensor,
    offsets: Tensor | None = None,
    samples: Size = None,
    weights: Tensor | None = None,
    total: Size = None,
    *,
    direction: str,
) -> Answer:
    all_samples = samples if isinstance(samples, int) else lengths.shape[0] if lengths.shape else 0
    known = isinstance(total, int)
    rows = values.shape[0] if values.shape else 0
    picked = (
        total if isinstance(total, int) else rows * elements(indices.shape) // (all_samples or 1)
    )
    width = elements(values.shape[1:])
    of_picked = byte_count(picked * width, values.dtype)
    if weights is not None:
        of_picked = add_known(of_picked, byte_count(picked, weights.dtype))
    if direction == "bprop":
        moves = add_known(moved(indices), of_picked, of_picked, of_picked)
        return Cost(picked * width, moves, known), texts(values, indices)
    moves = add_known(moved(lengths, offsets, indices), of_picked, of_picked)
    return Cost(elements(lengths.shape), moves, known), texts(values, indices)


@operators("""
    Rows of x picked by indices, or of several tensors by several lists.
    FLOPs: 0; backward one addition for each element picked.
    Bytes: indices and picked rows read, the same amount written; backward the gradient of the
        picked rows read, and the target rows read and written.
    (x, indices, ...): fbgemm|fb::index_select_dim0
    (tables*, lists*): fbgemm|fb::group_index_select_dim0
    (x, other, other, indices): fbgemm|fb::batched_unary_embeddings
""")
def index_select_dim0(
    x: Tensor | None = None,
    indices: Tensor | None = None,
    tables: Tensors = (),
    lists: Tensors = (),
    *,
    direction: str,
) -> Answer:
    pairs = [(x, indices)] if x is not None and indices is not None else []
    pairs += list(zip(tables, lists, strict=False))
    if not pairs:
        raise CannotModel("no tensors to pick from are in the capture")
    picked, moves = 0, []
    for source, places in pairs:
        if source is None or places is None:
            raise CannotModel("a tensor to pick from is not in the capture")
        count = elements(places.shape) * elements(source.shape[1:])
        rows = byte_count(count, source.dtype)
        picked += count
        moves += [moved(places), rows, rows] + ([rows] if direction == "bprop" else [])
    text = ";".join(texts(*(tensor for tensor in pair if tensor is not None)) for pair in pairs)
    return Cost(picked if direction == "bprop" else 0, add_known(*moves)), text


table_row("""
    Columns of pooled embeddings, permuted by feature.
    FLOPs: 0.
    Bytes: the embeddings read, the same amount written; backward the same for their gradient.
    (pooled, ...): fbgemm|fb::permute_pooled_embs fbgemm|fb::permute_pooled_embs_auto_grad
        fbgemm|fb::permute_pooled_embs_split fbgemm|fb::permute_pooled_embs_auto_grad_split
""")("pooled", Traffic(0, "pooled pooled"), both=True)


@operators("""
    Pooled embeddings of several devices or groups, merged.
    FLOPs: 0 (the sum of a reduction to one device is not counted).
    Bytes: the embeddings read, the same amount written: an estimate: features may be omitted or
        repeated.
    (pooled*, ...): fbgemm|fb::merge_pooled_embeddings fbgemm|fb::all_to_one_device
        fbgemm|fb::permute_multi_embedding fbgemm|fb::regroup_keyed_tensor
        fbgemm|fb::permute_multi_embedding_function fbgemm|fb::sum_reduce_to_one
""")
def merge_pooled_embeddings(pooled: Tensors, *, direction: str) -> Answer:
    if not pooled:
        raise CannotModel("the embeddings are not in the capture")
    return Cost(0, moved(*pooled, *pooled), exact=False), texts(*pooled)


def offset_bytes(offsets: Any) -> int | None:
    """Bytes of one tensor of offsets or of a list of them."""
    listed = offsets if isinstance(offsets, tuple) else (offsets,)
    return moved(*(tensor for tensor in listed if isinstance(tensor, Tensor)))


def _samples(offsets: Any) -> int | None:
    first = offsets[0] if isinstance(offsets, tuple) and offsets else offsets
    if not isinstance(first, Tensor) or len(first.shape) != 1:
        return None
    return max(first.shape[0] - 1, 0)


@operators("""
    Jagged values [n, d] as a dense tensor [samples, longest, d], padded.
    FLOPs: 0.
    Bytes: values and offsets read, the dense tensor written; backward the dense gradient at the
        values read, the gradient of the values written. Unknown if the capture does not record the
        length.
    (values, offsets, longest, _): fbgemm|fb::jagged_to_padded_dense
        fbgemm|fb::jagged_to_padded_dense_forward fbgemm|fb::jagged_1d_to_dense
    (values, offsets, longest): fbgemm|fb::jagged_2d_to_dense
""")
def jagged_to_padded_dense(
    values: Tensor,
    offsets: Any,
    longest: Ints | Unknown | None = None,
    *,
    result: Tensor | Unknown = UNKNOWN,
    direction: str,
) -> Answer:
    if direction == "bprop":
        return Cost(0, add_known(moved(values, values), offset_bytes(offsets))), texts(values)
    written = None
    samples = _samples(offsets)
    if isinstance(result, Tensor):
        written = moved(Tensor(result.shape, result.dtype or values.dtype))
    elif samples is not None and isinstance(longest, int | tuple):
        lengths = longest if isinstance(longest, tuple) else (longest,)
        count = samples * prod(lengths) * elements(values.shape[1:])
        written = byte_count(count, values.dtype)
    return Cost(0, add_known(moved(values), offset_bytes(offsets), written)), texts(values)


@operators("""
    Gradient of jagged values [total, d] from that of the dense tensor.
    FLOPs: 0.
    Bytes: offsets read, and one row per value read and written; at most those of the dense
        gradient, an estimate if the capture does not record the number.
    (gradient, offsets, total): fbgemm|fb::jagged_to_padded_dense_backward
""")
def jagged_to_padded_dense_backward(gradient: Tensor, offsets: Any, total: Size = None) -> Answer:
    return _taken(gradient, offsets, total)


@operators("""
    The rows of a dense tensor [samples, longest, d] within each sample's length, concatenated.
    FLOPs: 0.
    Bytes: offsets read, and one row per value read and written; at most those of the dense tensor,
        an estimate if the capture does not record the number. Backward the values' gradient read,
        the dense tensor's written.
    (dense, offsets, total): fbgemm|fb::dense_to_jagged fbgemm|fb::dense_to_jagged_forward
""")
def dense_to_jagged(dense: Tensor, offsets: Any, total: Size = None, *, direction: str) -> Answer:
    cost, params = _taken(dense, offsets, total)
    if direction == "bprop":
        half = None if cost.bytes is None else (cost.bytes - (offset_bytes(offsets) or 0)) // 2
        moves = add_known(half, moved(dense), offset_bytes(offsets))
        return Cost(0, moves, cost.exact), params
    return cost, params


def _taken(dense: Tensor, offsets: Any, total: Size) -> Answer:
    if len(dense.shape) < 2:
        raise CannotModel(f"shape {dense.shape} has no dimension that is padded")
    known = isinstance(total, int)
    levels = len(offsets) if isinstance(offsets, tuple) else 1
    width = elements(dense.shape[1 + levels :])
    count = total * width if isinstance(total, int) else elements(dense.shape)
    rows = byte_count(count, dense.dtype)
    return Cost(0, add_known(offset_bytes(offsets), rows, rows), known), texts(dense)


@operators("""
    Jagged values [n, d] and one or two dense tensors added or multiplied, as jagged values.
    FLOPs: one for each value and dense tensor; backward the same.
    Bytes: values, offsets and the corresponding elements of each dense tensor read, the result
        written; backward the gradient and the same elements read, the gradients written.

    (The sum as a dense tensor, `jagged_dense_elementwise_add`, is counted the same.)
    (values, offsets, dense): fbgemm|fb::jagged_dense_elementwise_add
        fbgemm|fb::jagged_dense_elementwise_add_jagged_output
        fbgemm|fb::jagged_dense_elementwise_mul fbgemm|fb::jagged_dense_elementwise_mul_forward
    (values, offsets, dense, second): fbgemm|fb::jagged_dense_dense_elementwise_add_jagged_output
        fbgemm|fb::jagged_dense_dense_elementwise_add_jagged_output_forward
""")
def jagged_dense_elementwise_add(
    values: Tensor, offsets: Any, dense: Tensor, second: Tensor | None = None, *, direction: str
) -> Answer:
    operands = 1 if second is None else 2
    count = elements(values.shape)
    of_dense = byte_count(count * operands, dense.dtype)
    times = 3 if direction == "bprop" else 2
    moves = add_known(moved(*[values] * times), of_dense, offset_bytes(offsets))
    return Cost(count * operands, moves), texts(values, dense, second)


@operators("""
    Row vectors [b h, longest] times jagged matrices, values [n, h d]: [b h, d].
    FLOPs: 2 n h d; backward 4 n h d, a product for each operand.
    Bytes: values, offsets and one element of the vectors for each value's row and head read, the
        result written; backward these and the result's gradient read, both gradients written.
    (vectors, values, offsets): fbgemm|fb::batched_dense_vec_jagged_2d_mul
        fbgemm|fb::batched_dense_vec_jagged_2d_mul_forward
""")
def batched_dense_vec_jagged_2d_mul(
    vectors: Tensor, values: Tensor, offsets: Any, *, direction: str
) -> Answer:
    if len(vectors.shape) != 2 or len(values.shape) != 2:
        raise CannotModel(f"cannot multiply {vectors.shape} and jagged {values.shape}")
    samples = _known_samples(offsets)
    heads = max(vectors.shape[0] // max(samples, 1), 1)
    weights = byte_count(values.shape[0] * heads, vectors.dtype)
    result = byte_count(samples * values.shape[1], values.dtype)
    once = add_known(moved(values), weights, result)
    moves = add_known(once, offset_bytes(offsets))
    flops = 2 * elements(values.shape)
    if direction == "bprop":
        gradients = add_known(moved(values), byte_count(elements(vectors.shape), vectors.dtype))
        return Cost(2 * flops, add_known(moves, gradients)), texts(vectors, values)
    return Cost(flops, moves), texts(vectors, values)


@operators("""
    Jagged [n, d] times dense [b, d, t] -> jagged [n, t]; or times jagged [n, t] -> [b, d, t].
    FLOPs: 2 n d t; backward 4 n d t, a product for each operand.
    Bytes: operands and offsets read, the result written; backward these and the result's gradient
        read, both gradients written.
    (values, offsets, dense, _): fbgemm|fb::jagged_dense_bmm fbgemm|fb::jagged_dense_bmm_forward
    (values, second, offsets, _): fbgemm|fb::jagged_jagged_bmm fbgemm|fb::jagged_jagged_bmm_forward
""")
def products(
    values: Tensor,
    offsets: Any,
    dense: Tensor | None = None,
    second: Tensor | None = None,
    *,
    direction: str,
) -> Answer:
    rows, depth = _two(values)
    if dense is not None and len(dense.shape) == 3 and dense.shape[1] == depth:
        width = dense.shape[2]
        result = byte_count(rows * width, values.dtype)
    elif second is not None and _two(second)[0] == rows:
        width = second.shape[1]
        result = byte_count(_known_samples(offsets) * depth * width, values.dtype)
    else:
        raise CannotModel(f"cannot multiply jagged {values.shape} and this operand")
    operands = moved(values, dense, second)
    moves = add_known(operands, offset_bytes(offsets), result)
    flops = 2 * rows * depth * width
    if direction == "bprop":
        return Cost(2 * flops, add_known(moves, operands)), texts(values, dense, second)
    return Cost(flops, moves), texts(values, dense, second)


@operators("""
    Softmax of jagged values [n, d] over each sample's rows.
    FLOPs: 24 for each value (largest 1, difference 1, exponential 20, sum 1, division 1); backward
        4 (product and sum 2, difference and product 2).
    Bytes: values and offsets read, the same amount written; backward values and gradient read.
    (values, offsets, _): fbgemm|fb::jagged_softmax fbgemm|fb::jagged_softmax_forward
""")
def jagged_softmax(values: Tensor, offsets: Any, *, direction: str) -> Answer:
    count = elements(values.shape)
    if direction == "bprop":
        moves = add_known(moved(values, values, values), offset_bytes(offsets))
        return Cost(4 * count, moves), texts(values)
    moves = add_known(moved(values, values), offset_bytes(offsets))
    return Cost(count * (EXPONENTIAL + 4), moves), texts(values)


def _two(values: Tensor) -> tuple[int, int]:
    if len(values.shape) != 2:
        raise CannotModel(f"jagged values of shape {values.shape}, not 2-d")
    return values.shape[0], values.shape[1]


def _known_samples(offsets: Any) -> int:
    count = _samples(offsets)
    if count is None:
        raise CannotModel("the number of samples is not in the capture")
    return count
