"""FLOPs and bytes of embedding lookups and their gradients."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import SQUARE_ROOT
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.parameters import Flag, Int
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements, is_integer, tensor_bytes, tensor_text


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
    if direction == "fprop":
        moved = add_known(tensor_bytes(indices), rows, rows)
    else:
        moved = add_known(rows, rows, rows)
    return Cost(0, moved), _text(indices, weight)


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
    rows = byte_count(elements(gradient.shape), gradient.dtype)
    moved = None if sparse is not False else add_known(tensor_bytes(gradient), rows, rows)
    return Cost(0, moved), _text(gradient, indices)


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
    output = byte_count(bags * width, weight.dtype)
    extra = [tensor_bytes(tensor) for tensor in (indices, offsets, weights) if tensor is not None]
    if direction == "fprop":
        flops = count * width * (1 if weights is None else 2) + bags * width * (how == _MEAN)
        return Cost(flops, add_known(*extra, rows, output), known), _text(indices, weight)
    flops = count * width * (_scaled(how) if weights is None else 3)
    of_weights = () if weights is None else (rows, tensor_bytes(weights))
    moved = add_known(*extra, output, rows, rows, *of_weights)
    return Cost(flops, moved, known), _text(indices, weight)


def _scaled(how: Int) -> int:
    # The backward of a mean divides.
    return 1 if how == _MEAN else 0


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
    scaled = 1 if weights is not None else _scaled(mode)
    flops = elements(indices.shape) * gradient.shape[1] * scaled
    extra = [tensor_bytes(tensor) for tensor in (gradient, indices, weights) if tensor is not None]
    moved = None if sparse is not False else add_known(*extra, rows, rows)
    known = not isinstance(mode, Unknown)
    return Cost(flops, moved, known), _text(gradient, indices)


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
    rows = _rows(weight, count)
    written = byte_count(count, weight.dtype)
    moved = add_known(tensor_bytes(gradient), tensor_bytes(indices), rows, written)
    return Cost(2 * count * weight.shape[1], moved), _text(gradient, indices)


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
    moved = add_known(tensor_bytes(indices), rows, rows)
    return Cost(flops, moved, exact=False), _text(indices, weight)


@operators("""
    Each index of indices[..] as a row of zeros with a one: int64 [.., classes].
    FLOPs: 0.
    Bytes: indices read, the output written; unknown if the number of classes is determined by the
    largest index or not recorded.
    (indices, num_classes=classes): torch.one_hot
    (indices, classes): aten::one_hot
""")
def one_hot(indices: Tensor, classes: Int = -1) -> Answer:
    written = None
    if not isinstance(classes, Unknown) and classes >= 0:
        written = byte_count(elements(indices.shape) * classes, "int64")
    return Cost(0, add_known(tensor_bytes(indices), written)), tensor_text(indices)


def _rows(weight: Tensor, count: int) -> int | None:
    # Bytes of picked rows.
    if len(weight.shape) != 2:
        raise CannotModel(f"weight has shape {weight.shape}, not 2-d")
    return byte_count(count * weight.shape[1], weight.dtype)


def _text(first: Tensor, second: Tensor) -> str:
    return f"{tensor_text(first)};{tensor_text(second)}"
