"""FLOPs and bytes of embedding lookups and their gradients."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import SQUARE_ROOT
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.dtypes import is_integer
from fastprof.ops.parameters import Flag, Int
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements, flat, fresh, moved, texts


# torch.nn.functional takes (input, weight), torch and ATen (weight, indices): distinguished by
# type.
@operators("""
    Rows of weight[vocabulary, d] picked by indices[...]: output [..., d].
    FLOPs: 0 in both directions; backward adds only for repeated indices, which are not recorded.
    Bytes: the indices, and each picked row read and written; backward the gradient of each picked
    row read, and the row of the weight's gradient read and written.

    Zeroing the rest of a dense gradient is not counted. Formulas of PyProf.
    (indices, weight, ...): torch.embedding
    (weight, indices, ...): embedding
""")
def embedding(weight: Tensor, indices: Tensor, *, direction: str) -> Answer:
    if is_integer(weight.dtype) and not is_integer(indices.dtype):
        indices, weight = weight, indices
    rows = _rows(weight, elements(indices.shape))
    read = indices if direction == "fprop" else rows
    return Cost(0, moved(read, rows, rows)), texts(indices, weight)


@operators("""
    Gradient [..., d] of picked rows added to the rows of the weight's gradient.
    FLOPs: 0, as the backward of embedding.
    Bytes: each row of the gradient read, and its target row read and written; unknown for a sparse
    gradient, which may be a view, and if that flag is not recorded.
    (gradient, indices, ...): aten::embedding_dense_backward
    (gradient, indices, _, _, _, sparse): aten::embedding_backward
""")
def embedding_gradient(gradient: Tensor, indices: Tensor, sparse: Flag = False) -> Answer:
    if gradient.shape[:-1] != indices.shape or not gradient.shape:
        raise CannotModel(f"{gradient.shape} is not a gradient of rows picked by {indices.shape}")
    rows = fresh(gradient)
    moves = None if sparse is not False else moved(gradient, rows, rows)
    return Cost(0, moves), texts(gradient, indices)


_SUM, _MEAN, _MAX = range(3)
_MODES: Final = {"sum": _SUM, "mean": _MEAN, "max": _MAX}


@operators("""
    Rows of weight[vocabulary, d] picked by indices, summed bag by bag: output [bags, d].

    Bags are the rows of indices[bags, n], or start at the offsets in indices[n].

    FLOPs: d for each index (2 d with per-sample weights), and bags d divisions for a mean. Backward
    d for each index of a mean, 3 d with per-sample weights, else 0.
    Bytes: indices, offsets, weights and picked rows read, the output written; backward its gradient
    read, and for each index a row of the weight's gradient read and written.

    torch ranges do not record the mode: a sum is assumed, and the cost is an estimate. Data saved
    for backward (bag of each index, sizes) is not counted.
    (indices, weight, offsets, max_norm=_, norm_type=_, scale_grad_by_freq=_, mode=reduction,
        sparse=_, per_sample_weights=weights, include_last_offset=last, ...):
        torch.embedding_bag
    (weight, indices, offsets, _, mode, _, weights, last, _): embedding_bag _embedding_bag
        _embedding_bag_forward_only
""")
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor | None = None,
    mode: Int | None = None,
    weights: Tensor | None = None,
    last: Flag = False,
    reduction: str = "mean",
    *,
    direction: str,
) -> Answer:
    if is_integer(weight.dtype) and not is_integer(indices.dtype):
        indices, weight = weight, indices
    how = _MODES.get(reduction) if mode is None else mode
    if how is None or len(indices.shape) not in (1, 2):
        raise CannotModel(f"cannot reduce bags of {indices.shape} by {reduction!r}")
    known = not isinstance(how, Unknown) and not isinstance(last, Unknown)
    count = elements(indices.shape)
    rows = _rows(weight, count)
    width = weight.shape[1]
    bags = _bags(indices, offsets, last is True)
    output = fresh(weight, (bags, width))
    read = (indices, offsets, weights)
    if direction == "fprop":
        flops = count * width * (1 if weights is None else 2) + bags * width * (how == _MEAN)
        return Cost(flops, moved(*read, rows, output), known), texts(indices, weight)
    flops = count * width * ((how == _MEAN) if weights is None else 3)
    of_weights = () if weights is None else (rows, weights)
    return Cost(flops, moved(*read, output, rows, rows, *of_weights), known), texts(indices, weight)


def _bags(indices: Tensor, offsets: Tensor | None, last: bool) -> int:
    if len(indices.shape) == 2:
        return indices.shape[0]
    if offsets is None or len(offsets.shape) != 1:
        raise CannotModel("bags without offsets")
    return max(offsets.shape[0] - last, 0)


@operators("""
    Gradient [bags, d] added to the rows of the weight's gradient that each bag picked.
    FLOPs: d for each index of a mean or with per-sample weights, else 0 as for embedding.
    Bytes: gradient, indices and weights read, and for each index a row read and written; unknown
    for a sparse gradient, and if that flag is not recorded.

    torch ranges do not record the mode: a sum is assumed, and the cost is an estimate.
    (gradient, indices, _o, _b, _s, _m, _, _, mode, sparse, weights, _):
        aten::_embedding_bag_backward
    (gradient, indices, _b, _s, _m, _, _, mode, weights, _): aten::_embedding_bag_dense_backward
""")
def embedding_bag_backward(
    gradient: Tensor,
    indices: Tensor,
    _b: Tensor,
    _s: Tensor,
    _m: Tensor,
    mode: Int = _SUM,
    sparse: Flag = False,
    weights: Tensor | None = None,
) -> Answer:
    rows = _rows(gradient, elements(indices.shape))
    scaled = weights is not None or mode == _MEAN  # the backward of a mean divides
    flops = elements(indices.shape) * gradient.shape[1] * scaled
    moves = None if sparse is not False else moved(gradient, indices, weights, rows, rows)
    return Cost(flops, moves, not isinstance(mode, Unknown)), texts(gradient, indices)


@operators("""
    Dot product of each picked row and the gradient [bags, d] of its bag.
    FLOPs: 2 d for each index.
    Bytes: gradient, indices and picked rows read, one number for each index written.
    (gradient, weight, indices, _o, _b, _, _): aten::_embedding_bag_per_sample_weights_backward
""")
def embedding_bag_per_sample_weights_backward(
    gradient: Tensor, weight: Tensor, indices: Tensor, _o: Tensor, _b: Tensor
) -> Answer:
    count = elements(indices.shape)
    moves = moved(gradient, indices, _rows(weight, count), fresh(weight, (count,)))
    return Cost(2 * count * weight.shape[1], moves), texts(gradient, indices)


@operators("""
    Rows of weight[vocabulary, d] picked by indices scaled down to a maximum norm, in place.
    FLOPs: for each index the norm, 2 d and a root, and d multiplications.
    Bytes: indices read, picked rows read and written.

    An **estimate**, an upper bound: repeated rows are processed once, and only rows above the limit
    are scaled.
    (weight, indices, ...): embedding_renorm_ _no_grad_embedding_renorm_ aten::embedding_renorm
""")
def embedding_renorm(weight: Tensor, indices: Tensor) -> Answer:
    count = elements(indices.shape)
    rows = _rows(weight, count)
    flops = count * (3 * weight.shape[1] + SQUARE_ROOT)
    return Cost(flops, moved(indices, rows, rows), exact=False), texts(indices, weight)


@operators("""
    Each index of indices[..] as a row of zeros with a one: int64 [.., classes].
    FLOPs: 0.
    Bytes: indices read, the output written; unknown if the number of classes is determined by the
    largest index or not recorded.
    (indices, num_classes=classes): torch.one_hot
    (indices, classes): aten::one_hot
""")
def one_hot(indices: Tensor, classes: Int = -1) -> Answer:
    count = None
    if not isinstance(classes, Unknown) and classes >= 0:
        count = elements(indices.shape) * classes
    return Cost(0, moved(indices, flat(count, "int64"))), texts(indices)


def _rows(weight: Tensor, count: int) -> Tensor:
    # Picked rows.
    if len(weight.shape) != 2:
        raise CannotModel(f"weight has shape {weight.shape}, not 2-d")
    return fresh(weight, (count, weight.shape[1]))
