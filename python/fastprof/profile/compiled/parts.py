"""The parts of a generated kernel: what share of its work each source line and operator has.

A node weighs the bytes that it would move if it ran alone: its tensors, read and written once, by
the formula of its operator. In a kernel with a product, a node weighs its FLOPs: products are bound
by arithmetic, and the rest of the kernel adds little to them. Views weigh nothing. Nodes without
known tensors count alike if all are so, as do the stacks of a kernel whose nodes are not recorded.

The shares of a kernel sum to 1. They are estimates: a fused kernel keeps most values in registers,
and no recorder sees how long each takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Call, Tensor
from fastprof.model.compiled import CompiledGraph, GraphKernel, Node
from fastprof.ops import tensors_of, work
from fastprof.ops.cost import Cost
from fastprof.ops.tensor import byte_count, elements

_PRODUCTS: Final = frozenset(
    {
        *("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "addbmm", "addmv", "mv", "dot"),
        *("_scaled_mm", "_grouped_mm", "_scaled_grouped_mm", "_int_mm", "mixed_mm", "einsum"),
        *("convolution", "convolution_backward", "_convolution"),
        *("flex_attention", "flex_attention_backward", "scaled_dot_product_attention"),
    }
)
# Views and results of several; they move nothing.
_FREE: Final = frozenset(
    {
        *("getitem", "view", "reshape", "_unsafe_view", "permute", "transpose", "t", "expand"),
        *("squeeze", "unsqueeze", "slice", "select", "split", "split_with_sizes", "unbind"),
        *("as_strided", "alias", "detach", "diagonal", "unfold", "_reshape_alias", "lift_fresh"),
    }
)


class Share(NamedTuple):
    """A part of a kernel.

    Parameters
    ----------
    frames, layers : see `model.compiled.Node`
    op : the operator of the program; "" for that of the kernel
    weight : its share of the work, 0 to 1
    """

    frames: tuple[str, ...]
    layers: tuple[str, ...]
    op: str
    weight: float


def shares_of(graph: CompiledGraph, kernel: GraphKernel) -> tuple[Share, ...]:
    """The parts of a kernel, the largest first; none if its nodes and stacks are unknown."""
    nodes = [graph.nodes[name] for name in kernel.nodes if name in graph.nodes]
    is_operator = "::" in kernel.name
    if nodes:
        weights = _weights(nodes)
        shares = [
            Share(node.frames, node.layers, "" if is_operator else _op(node), weight)
            for node, weight in zip(nodes, weights, strict=True)
        ]
    else:
        shares = [Share(stack, (), "", 1.0) for stack in kernel.stacks]
    return merged(shares)


def merged(shares: Iterable[Share]) -> tuple[Share, ...]:
    """Shares that agree in all but their weight as one, the largest first; they sum to 1."""
    sums: dict[tuple[tuple[str, ...], tuple[str, ...], str], float] = {}
    for frames, layers, op, weight in shares:
        key = frames, layers, op
        sums[key] = sums.get(key, 0.0) + weight
    total = sum(sums.values())
    result = [Share(*key, weight / total) for key, weight in sums.items() if weight > 0]
    return tuple(sorted(result, key=lambda share: -share.weight))


def _op(node: Node) -> str:
    return node.op or node.call.op


def _weights(nodes: Sequence[Node]) -> list[float]:
    """The weights of the nodes of a kernel; 1 for each if none has any."""
    costs = [_cost(node.call) for node in nodes]
    if any(node.call.op in _PRODUCTS for node in nodes):
        weights = [float(cost.flops or 0) for cost in costs]
    else:
        weights = [float(cost.bytes or 0) for cost in costs]
    return weights if any(weights) else [1.0] * len(nodes)


def _cost(call: Call) -> Cost:
    """FLOPs and bytes of a node by itself; without a formula, its tensors once, and no FLOPs."""
    if call.op in _FREE:
        return Cost(0, 0)
    answer = work(call, "fprop")
    cost = Cost(None, None) if answer is None else answer.cost
    if cost.bytes is None:
        tensors = [*tensors_of(call), *([] if call.result is None else [call.result])]
        cost = Cost(cost.flops, _bytes(tensors))
    if cost.flops is None and call.result is not None:
        cost = Cost(elements(call.result.shape), cost.bytes)
    return cost


def _bytes(tensors: Iterable[Tensor]) -> int:
    counts = [byte_count(elements(tensor.shape), tensor.dtype) for tensor in tensors]
    return sum(count for count in counts if count is not None)
