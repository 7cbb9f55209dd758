"""Jagged sparse features before their lookup: permutations, offsets, buckets, bounds checks.

A feature has a number of indices for each sample ("lengths", [features, samples]); all indices lie
end to end. Source: fbgemm_gpu/src/sparse_ops/sparse_ops_cpu.cpp and
fbgemm_gpu/codegen/embedding_bounds_check_host.cpp in pytorch/FBGEMM.
"""

from __future__ import annotations

from typing import Any, Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.parameters import Tensors
from fastprof.ops.recommendation.names import fbgemm
from fastprof.ops.registry import op
from fastprof.ops.tensor import byte_count, elements
from fastprof.ops.traffic import moved, texts

__all__ = [
    "bounds_check",
    "bucketize",
    "cumulative_sum",
    "expanded_permutation",
    "permuted_features",
    "ranges",
    "reordered",
    "segment_sum",
    "selected_features",
    "selected_rows",
]

Size = int | Unknown | None

_PERMUTE: Final = "(permute, lengths, values, weights, total, ...)"


@op(
    None,
    aten=fbgemm(
        *(
            name + _PERMUTE
            for name in (
                "permute_1D_sparse_data",
                "permute_2D_sparse_data",
                "permute_2D_sparse_preallocated_out",
                "permute_sparse_data",
            )
        ),
        "permute_2D_sparse_data_input1D(permute, lengths, values, _, weights, total)",
        "permute_sparse_features(permute, lengths, values, weights)",
    ),
)
def permuted_features(
    permute: Tensor,
    lengths: Tensor,
    values: Tensor,
    weights: Tensor | None = None,
    total: Size = None,
) -> tuple[Cost, str]:
    """Features [t, samples] in another order, some perhaps more than once or not at all: [p, ..].

    FLOPs: one addition for each length read and each written: offsets are sums of lengths.
    Bytes: permutation, lengths and values (weights too) read, those of the result written.

    How many values the result has is an argument, which few captures hold. Where there are as many
    features as before they are taken to be the same; else the number is an estimate, p / t of it.
    """
    if not lengths.shape:
        raise CannotModel("lengths without dimensions")
    features, kept = lengths.shape[0], elements(permute.shape)
    # A flat list of lengths is of as many features as are told apart: one a length.
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
        byte_count(length_count, lengths.dtype), *(byte_count(count, each.dtype) for each in lists)
    )
    flops = elements(lengths.shape) + length_count
    return Cost(flops, add_known(read, written), exact), texts(permute, lengths, values)


@op(
    None,
    aten=fbgemm(
        "asynchronous_complete_cumsum",
        "asynchronous_inclusive_cumsum",
        "asynchronous_exclusive_cumsum",
        "asynchronous_batched_complete_cumsum",
        "asynchronous_batched_inclusive_cumsum",
        "asynchronous_batched_exclusive_cumsum",
    ),
)
def cumulative_sum(x: Tensor) -> tuple[Cost, str]:
    """Sums of x up to each element, by row.

    FLOPs: one addition for each element.
    Bytes: x read, as much written (a complete sum has one more element a row, not counted).
    """
    return Cost(elements(x.shape), moved(x, x)), texts(x)


@op(None, aten=fbgemm("bounds_check_indices(rows, indices, offsets, ...)"))
def bounds_check(rows: Tensor, indices: Tensor, offsets: Tensor) -> tuple[Cost, str]:
    """Whether each index lies within its table.

    FLOPs: two comparisons for each index, one for each offset.
    Bytes: rows of the tables, indices and offsets read; what is out of bounds is rare.
    """
    flops = 2 * elements(indices.shape) + elements(offsets.shape)
    return Cost(flops, moved(rows, indices, offsets)), texts(indices, offsets)


_BLOCKS: Final = "(lengths, indices, positions, sequence, other, buckets, weights, ...)"


@op(
    None,
    aten=fbgemm(
        "block_bucketize_sparse_features" + _BLOCKS,
        "block_bucketize_sparse_features_inference" + _BLOCKS,
        "bucketize_sparse_features(lengths, indices, positions, buckets, weights)",
    ),
)
def bucketize(
    lengths: Tensor,
    indices: Tensor,
    positions: bool | Unknown = False,
    sequence: bool | Unknown = False,
    buckets: Size = None,
    weights: Tensor | None = None,
    other: Any = None,
) -> tuple[Cost, str]:
    """Indices sorted by the rank (bucket) that has their row, in lists for each rank.

    FLOPs: two divisions for each index, one addition for each length of the result.
    Bytes: lengths and indices (weights too) read, and written: lengths once for each bucket,
        positions and the way back where they are asked for.

    Unknown where the number of buckets is not in the capture; an estimate where it is not known
    what is asked for.
    """
    del other
    if not isinstance(buckets, int):
        raise CannotModel("the number of buckets is not in the capture")
    count = elements(indices.shape)
    flags = sum(flag is True for flag in (positions, sequence))
    exact = not isinstance(positions, Unknown) and not isinstance(sequence, Unknown)
    lists = moved(indices, weights)
    beside = None if lists is None else byte_count(flags * count, indices.dtype)
    read = add_known(moved(lengths), lists)
    new_lengths = moved(*[lengths] * buckets)
    cost = Cost(
        2 * count + elements(lengths.shape) * buckets,
        add_known(read, new_lengths, lists, beside),
        exact,
    )
    return cost, texts(lengths, indices)


@op(
    None,
    aten=fbgemm("offsets_range(offsets, count)", "offsets_range(offsets, like)"),
)
def ranges(offsets: Tensor, count: Size = None, like: Tensor | None = None) -> tuple[Cost, str]:
    """0, 1, 2, ... within each segment, end to end.

    FLOPs: one addition for each element.
    Bytes: offsets read, as many numbers of their type written as there are elements.
    """
    if like is not None:
        count = elements(like.shape)
    if not isinstance(count, int):
        return Cost(None, None), texts(offsets)
    return Cost(count, add_known(moved(offsets), byte_count(count, offsets.dtype))), texts(offsets)


@op(None, aten=fbgemm("expand_into_jagged_permute(permute, before, after, count)"))
def expanded_permutation(
    permute: Tensor, before: Tensor, after: Tensor, count: Size = None
) -> tuple[Cost, str]:
    """A permutation of segments as one of their elements.

    FLOPs: one addition for each element.
    Bytes: permutation and both offsets read, an index for each element written; unknown where the
        number of elements is not in the capture.
    """
    known = count if isinstance(count, int) else None
    written = None if known is None else byte_count(known, permute.dtype)
    return Cost(known, add_known(moved(permute, before, after), written)), texts(permute)


@op(
    None,
    aten=fbgemm(
        "invert_permute(x)",
        "recat_embedding_grad_output(x, ...)",
        "recat_embedding_grad_output_mixed_D(x, ...)",
        "recat_embedding_grad_output_mixed_D_batch(x, ...)",
        "reorder_batched_ad_lengths(x, ...)",
    ),
)
def reordered(x: Tensor) -> tuple[Cost, str]:
    """The elements of x in another order.

    FLOPs: 0.
    Bytes: x read, as much written.
    """
    return Cost(0, moved(x, x)), texts(x)


@op(None, aten=fbgemm("segment_sum_csr(_, ends, x)"))
def segment_sum(x: Tensor, ends: Tensor) -> tuple[Cost, str]:
    """Sums of x over segments, whose ends are given.

    FLOPs: one addition for each element.
    Bytes: x and ends read, one number a segment written.
    """
    written = byte_count(max(elements(ends.shape) - 1, 0), x.dtype)
    return Cost(elements(x.shape), add_known(moved(x, ends), written)), texts(x, ends)


@op(
    None,
    aten=fbgemm(
        "keyed_jagged_index_select_dim1(values, lengths, offsets, indices, samples, weights,"
        " total)",
        "jagged_index_select(values, lengths, indices, ...)",
    ),
)
def selected_features(
    values: Tensor,
    lengths: Tensor,
    indices: Tensor,
    offsets: Tensor | None = None,
    samples: Size = None,
    weights: Tensor | None = None,
    total: Size = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """The segments of some samples, picked by indices from values [n, ..].

    FLOPs: forward one addition for each length; backward one for each element picked.
    Bytes: lengths, indices, offsets and picked values (weights too) read, as many values written;
        backward their gradient read, and added to that of the values.

    How many values are picked is an argument, which few captures hold; else an estimate: the share
    of the samples that is picked, each taken to be as long as the average.
    """
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


@op(
    None,
    aten=fbgemm(
        "index_select_dim0(x, indices, ...)",
        "group_index_select_dim0(tables*, lists*)",
        "batched_unary_embeddings(x, other, other, indices)",
    ),
)
def selected_rows(
    x: Tensor | None = None,
    indices: Tensor | None = None,
    tables: Tensors = (),
    lists: Tensors = (),
    other: Any = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """Rows of x picked by indices, or of several tensors by as many lists.

    FLOPs: 0; backward one addition for each element picked.
    Bytes: indices and picked rows read, as much written; backward the gradient of the picked rows
        read, and the rows that it goes to read and written.
    """
    del other
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
    text = ";".join(texts(*(each for each in pair if each is not None)) for pair in pairs)
    return Cost(picked if direction == "bprop" else 0, add_known(*moves)), text
