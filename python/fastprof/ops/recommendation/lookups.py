"""Lookups in fbgemm's embedding tables, and the optimizers fused into their backward pass.

Source: fbgemm_gpu/codegen/training/backward/embedding_backward_split_host_template.cpp,
.../pt2/embedding_split_host_pt2_autograd_template.cpp, .../pt2/*_cuda_wrapper_template.cpp and
fbgemm_gpu/codegen/inference/embedding_forward_quantized_host.cpp in pytorch/FBGEMM.
"""

from __future__ import annotations

from typing import Any, Final

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.parameters import Tensors
from fastprof.ops.recommendation.names import fbgemm
from fastprof.ops.recommendation.tables import MEAN, NO_POOLING, Size, Tables, tables
from fastprof.ops.registry import generated, op, operators
from fastprof.ops.tensor import elements, tensor_bytes
from fastprof.ops.traffic import fresh, moved, texts

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


def _names(optimizer: str) -> tuple[str, ...]:
    found = []
    for kind in ("split", "ssd"):
        for about in _APPROXIMATE:
            name = f"{kind}_embedding_codegen_lookup_{about}{optimizer}_function"
            found += [name + _SPLIT, f"{name}_pt2{_PT2}", f"{name}_pt2{_FLAT_PT2}"]
    return fbgemm(*found)


def _register(optimizer: str, update: int) -> None:
    @op(None, aten=_names(optimizer))
    def _(
        indices: Tensor,
        offsets: Tensor,
        ends: Tensor,
        total: Size = None,
        widest: Size = None,
        pooling: int | Unknown | None = None,
        device_weights: Tensor | None = None,
        unified_weights: Tensor | None = None,
        lists: Tensors = (),
        per_sample: Tensor | None = None,
        momentum: Any = None,
        other: Any = None,
        *,
        result: Tensor | Unknown = UNKNOWN,
        direction: str,
    ) -> tuple[Cost, str]:
        """Rows of several embedding tables picked by indices, summed bag by bag: [bags, widths].

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
        """
        del other
        if direction == "bprop" and optimizer == "none":
            raise CannotModel("the gradient goes to a separate optimizer")
        weights = lists or tuple(w for w in (device_weights, unified_weights) if w is not None)
        if not weights:
            raise CannotModel("the tables are not in the capture")
        found = tables(
            weights,
            _features(ends),
            (total, widest),
            indices,
            offsets,
            pooling,
            momentum,
            result,
        )
        if lists and found.weights.dtype is None:
            raise CannotModel("the type of the tables is not in the capture")
        params = texts(found.weights, indices, found.output)
        if direction == "fprop":
            return lookup(found, pooling, (indices, offsets), per_sample), params
        return gradient(found, pooling, (indices, offsets), per_sample, momentum, update), params


for _optimizer, _update in OPTIMIZERS.items():
    _register(_optimizer, _update)


def _features(ends: Tensor) -> int | None:
    if len(ends.shape) != 1:
        raise CannotModel(f"ends of features have shape {ends.shape}, not 1-d")
    return max(ends.shape[0] - 1, 1)


def lookup(
    found: Tables, pooling: Any, places: tuple[Tensor, ...], per_sample: Tensor | None
) -> Cost:
    """Forward work: picked rows are read and summed."""
    flops = 0
    if pooling != NO_POOLING:
        flops = found.picked * (1 if per_sample is None else 2)
        flops += elements(found.output.shape) if pooling == MEAN else 0
    read = add_known(moved(*places, per_sample), found.element_bytes(found.picked))
    known = found.exact and isinstance(pooling, int)
    return Cost(flops, add_known(read, tensor_bytes(found.output)), known)


def gradient(
    found: Tables,
    pooling: Any,
    places: tuple[Tensor, ...],
    per_sample: Tensor | None,
    momentum: Any,
    update: int,
) -> Cost:
    """Backward work: the output's gradient is summed by row, and rows are updated."""
    weighted = per_sample is not None or pooling == MEAN
    flops = found.picked * (2 if weighted else 1) + found.touched * update
    rows = found.element_bytes(found.touched)
    read = add_known(moved(*places, per_sample), tensor_bytes(found.output))
    state: int | None = 0
    if isinstance(momentum, Tensor) and elements(found.weights.shape):
        of_state = tensor_bytes(momentum)
        share = found.touched / elements(found.weights.shape)
        state = None if of_state is None else 2 * round(of_state * min(share, 1))
    return Cost(flops, add_known(read, rows, rows, state), exact=False)


@operators("""
    (device_weights, other, ends, total, widest, other, _, indices, offsets, pooling,
        per_sample, other, ...): fbgemm::dense_embedding_codegen_lookup_function
        fbgemm::dense_embedding_codegen_lookup_function_pt2
        fb::dense_embedding_codegen_lookup_function
        fb::dense_embedding_codegen_lookup_function_pt2
    (device_weights, unified_weights, other, other, other, ends, total, widest, indices,
        offsets, pooling, other**): fbgemm::split_embedding_codegen_forward
        fb::split_embedding_codegen_forward
    (other, device_weights, unified_weights, other, other, other, ends, total, widest, other,
        indices, offsets, pooling, other**): fbgemm::split_embedding_codegen_forward
        fb::split_embedding_codegen_forward
    (device_weights, unified_weights, other, other, other, widest, indices, offsets, other**):
        fbgemm::split_embedding_codegen_forward fb::split_embedding_codegen_forward
    (other, device_weights, unified_weights, other, other, other, widest, other, indices,
        offsets, other**): fbgemm::split_embedding_codegen_forward
        fb::split_embedding_codegen_forward
""")
def plain_lookup(
    indices: Tensor,
    offsets: Tensor,
    device_weights: Tensor,
    unified_weights: Tensor | None = None,
    ends: Tensor | None = None,
    total: Size = None,
    widest: Size = None,
    pooling: int | Unknown | None = None,
    per_sample: Tensor | None = None,
    other: Any = None,
    *,
    result: Tensor | Unknown = UNKNOWN,
    direction: str,
) -> tuple[Cost, str]:
    """Rows of embedding tables picked by indices and summed; their gradient is a dense tensor.

    FLOPs: as a lookup with an optimizer; backward one addition for each element of each picked row.
    Bytes: as a lookup with an optimizer; backward the output's gradient, indices and offsets read,
        the tables' gradient written, and each touched row of it read and written.

    Includes the operators inside a lookup, `*_embedding_*codegen_forward_*`.
    """
    if isinstance(other, tuple) and other and isinstance(other[0], Tensor):
        weight = other[0]
        if per_sample is None and weight.shape == indices.shape and weight.dtype != indices.dtype:
            per_sample = weight
    weights = (device_weights,) if unified_weights is None else (device_weights, unified_weights)
    features = None if ends is None else _features(ends)
    found = tables(weights, features, (total, widest), indices, offsets, pooling, None, result)
    how = NO_POOLING if ends is None else pooling
    params = texts(found.weights, indices, found.output)
    if direction == "fprop":
        return lookup(found, how, (indices, offsets), per_sample), params
    rows = found.element_bytes(found.touched)
    read = add_known(moved(indices, offsets, per_sample), tensor_bytes(found.output))
    written = tensor_bytes(fresh(found.weights))
    return Cost(found.picked, add_known(read, written, rows, rows), exact=False), params


generated(
    r"(fbgemm|fb)::(split|ssd|dense)_embedding\w*_codegen_forward_\w+",
    "fbgemm::split_embedding_codegen_forward",
)


@operators("""
    (device_weights, unified_weights, other, other, other, ends, total, _, _, _, _, _, indices,
        offsets, pooling, per_sample, ...):
        fbgemm::int_nbit_split_embedding_codegen_lookup_function
        fbgemm::int_nbit_split_embedding_uvm_caching_codegen_lookup_function
        fb::int_nbit_split_embedding_codegen_lookup_function
        fb::int_nbit_split_embedding_uvm_caching_codegen_lookup_function
""")
def quantised_lookup(
    indices: Tensor,
    offsets: Tensor,
    ends: Tensor,
    total: Size = None,
    pooling: int | Unknown | None = None,
    device_weights: Tensor | None = None,
    unified_weights: Tensor | None = None,
    per_sample: Tensor | None = None,
    other: Any = None,
    *,
    result: Tensor | Unknown = UNKNOWN,
) -> tuple[Cost, str]:
    """Rows of embedding tables of 2 to 16 bits per element picked by indices and summed.

    FLOPs: 3 for each element of each picked row: scale, bias, sum; one more with per-sample
        weights.
    Bytes: unknown; the bits per element of each table are a tensor value.
    """
    del device_weights, unified_weights, other
    features = _features(ends) or 1
    shape = result.shape if isinstance(result, Tensor) and len(result.shape) == 2 else None
    known = total if isinstance(total, int) else (shape[1] if shape else None)
    if known is None:
        raise CannotModel("the widths of the tables are not in the capture")
    picked = elements(indices.shape) * known // features
    flops = picked * (3 if per_sample is None else 4)
    same = features == 1 and pooling != NO_POOLING
    return Cost(flops, None, same), texts(indices, offsets)
