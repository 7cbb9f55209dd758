"""Permutation of rows by expert, and its inverse.

Sources: transformer_engine/pytorch/permutation.py in NVIDIA/TransformerEngine;
megatron/core/fusions/fused_indices_converter.py in NVIDIA/Megatron-LM.
"""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements
from fastprof.ops.traffic import moved, texts

Answer = tuple[Cost, str]
Size = int | Unknown | None


@operators("""
    (x, routes, rows, ...): aten::_moe_permute_index_map
    (x, routes, rows, weights, ...): aten::_moe_permute_mask_map
""")
def permuted(
    x: Tensor,
    routes: Tensor,
    rows: Size = None,
    weights: Tensor | None = None,
    *,
    direction: str,
) -> Answer:
    """Rows of x[tokens, d] copied to each of their experts, in the experts' order.

    FLOPs: 0; backward one addition for each element copied.
    Bytes: routes and each copied row read and written; backward the copies' gradients read, that of
        x written.

    The number of output rows is an argument. If it is not recorded, it follows from routes by index
    [tokens, top k]; it is unknown for a mask [tokens, experts].
    """
    del weights
    count = rows if isinstance(rows, int) and rows > 0 else None
    if count is None and routes.dtype not in ("bool", "uint8"):
        count = elements(routes.shape)
    if len(x.shape) != 2:
        raise CannotModel(f"rows have shape {x.shape}, not 2-d")
    copies = None if count is None else byte_count(count * x.shape[1], x.dtype)
    if direction == "bprop":
        flops = None if count is None else count * x.shape[1]
        return Cost(flops, add_known(moved(routes, x), copies)), texts(x, routes)
    return Cost(0, add_known(moved(routes), copies, copies)), texts(x, routes)


@operators("""
    (x, other, weights): aten::_moe_unpermute_index_map
    (x, other, weights, ...): aten::_moe_unpermute_mask_map
""")
def unpermuted(
    x: Tensor, other: Tensor | None = None, weights: Tensor | None = None, *, direction: str
) -> Answer:
    """Rows x[copies, d] of the experts summed by token, with weights [tokens, top k].

    FLOPs: 2 per element with weights, else 1; backward the same.
    Bytes: rows, map and weights read, a row per token written; backward the tokens' gradient read,
        the rows' written, the rows read for the gradient of the weights.

    If no weights determine the number of tokens, the number of rows written is assumed to equal
    that read: an estimate.
    """
    if len(x.shape) != 2:
        raise CannotModel(f"rows have shape {x.shape}, not 2-d")
    tokens = weights.shape[0] if weights is not None and weights.shape else None
    result = byte_count((x.shape[0] if tokens is None else tokens) * x.shape[1], x.dtype)
    flops = elements(x.shape) * (1 if weights is None else 2)
    tensors = (x,) if direction == "fprop" or weights is None else (x, x)
    moves = add_known(moved(*tensors, other, weights), result)
    return Cost(flops, moves, exact=tokens is not None), texts(x, weights)


@operators("(x, other, third, ...): aten::_moe_chunk_sort")
def chunks_sorted(
    x: Tensor, other: Tensor | None = None, third: Tensor | None = None, *, direction: str
) -> Answer:
    """Chunks of rows x[rows, d] in another order.

    FLOPs: 0.
    Bytes: rows, sizes and order of the chunks read, the rows written; backward the same of their
        gradient.
    """
    del direction
    return Cost(0, moved(x, x, other, third)), texts(x)
