"""Attention from separate products and softmax, which writes the scores to memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from fastprof.analysis.advice.calls import (
    CallFinding,
    CallGroup,
    CallGroups,
    CallOperand,
    by_time,
    operands,
    sizes,
    spread,
)
from fastprof.analysis.advice.registry import call_rule
from fastprof.analysis.roofline.ideal import PRACTICAL, PRODUCTS
from fastprof.profile.program import SERVING, WITH_OPERATORS

_MATMUL: Final = frozenset({"bmm", "matmul", "__matmul__", "__rmatmul__", "baddbmm", "einsum"})
_SOFTMAX: Final = frozenset({"softmax", "_softmax", "_safe_softmax"})
# Work on the scores that a fused kernel does too: scale, mask, dropout, casts, copies.
_ON_SCORES: Final = frozenset({"elementwise", "copy", "random", "index", "memcpy"})
_WEIGHTS: Final = "mean"  # over heads: the attention weights that nn.MultiheadAttention returns
# Of a fused backward pass, relative to the products of separate ones: it computes the scores again,
# five products in place of four; it moves the matrices of the forward pass and their gradients.
_BACKWARD: Final = 1.25
_GRADIENTS: Final = 2.0
_FUSED: Final = "One fused kernel would save {saving}."
_SAME: Final = 0.02  # relative difference of numbers of calls


@call_rule("unfused-attention", least=0.03, programs=WITH_OPERATORS, needs=("shapes",))
def unfused_attention(calls: CallGroups) -> list[CallFinding]:
    """Product, softmax, product with chained shapes in one layer.

    A fused kernel is assumed to do the FLOPs of the products at the practical peak, and to move
    queries, keys, values and results once; it writes no scores. Its backward pass computes the
    scores again, and moves the gradients too (FlashAttention, arXiv:2205.14135; FlashAttention-2,
    arXiv:2307.08691). Without peaks, products keep their time.
    """
    forward = [group for group in calls.groups if group.dir != "bprop"]
    backward = [group for group in calls.groups if group.dir == "bprop"]
    result, seen = [], set[int]()
    for softmax in forward:
        is_new = softmax.op in _SOFTMAX and softmax.first not in seen
        if is_new and (chain := _chain(softmax, forward)):
            seen |= {member.first for member in chain}
            result.append(_finding(softmax, chain, _gradients(softmax, chain, backward)))
    result += [_math_backend(group) for group in calls.groups if _uses_math_backend(group)]
    if calls.program.kind == SERVING:
        return [replace(finding, remedy=_OF_ENGINES) for finding in result]
    return result


_OF_ENGINES: Final = ("another backend of the engine for attention",)


def _uses_math_backend(group: CallGroup) -> bool:
    """Whether torch's own attention ran as separate products and softmax."""
    kinds = {part.kind for part in group.parts}
    is_attention = "scaled_dot_product" in (group.op or "")
    return is_attention and {"gemm", "softmax"} <= kinds and group.ideal_ns < group.ns


def _math_backend(group: CallGroup) -> CallFinding:
    return CallFinding(
        f"The operator {group.op} runs separate products and softmax: its math backend",
        [group],
        spread(group.parts, group.ns - group.ideal_ns),
        {"gpu_ns": group.ns, "one fused kernel_ns": group.ideal_ns},
        (
            "with torch.nn.attention.sdpa_kernel([SDPBackend.FLASH_ATTENTION, "
            "SDPBackend.EFFICIENT_ATTENTION]): its warnings name what prevents these backends",
            "16-bit types, and a head size that is a multiple of 8",
        ),
        "high" if group.ideal_ns else "medium",
        "the operator's kernels are those of its math backend",
        effect=_FUSED,
    )


def _chain(softmax: CallGroup, groups: Iterable[CallGroup]) -> list[CallGroup]:
    """The softmax, the products around it and other work on the scores; [] if not attention.

    A softmax of the same scores in another phase, such as a recomputation, belongs to it.
    """
    scores = _scores(softmax)
    if scores is None:
        return []
    rows, columns = scores.shape[-2:]
    near = [call_group for call_group in groups if _is_near(call_group, softmax)]
    equal = [group for group in near if (group.op, group.shape) == (softmax.op, softmax.shape)]
    n_calls = sum(group.calls for group in equal)
    products: list[CallGroup] = []
    for name, size in (("M", columns), ("K", columns)):
        fitting = [
            group
            for group in near
            if group.op in _MATMUL
            and group.kind in PRODUCTS
            and (given := sizes(group.shape)).get(name) == size
            and given.get("N") == rows
            and given.get("B", 1) * rows * columns == scores.elements
        ]
        if not fitting or abs(sum(group.calls for group in fitting) - n_calls) > _SAME * n_calls:
            return []
        products += fitting
    if len({id(call_group) for call_group in products}) < len(products):
        return []
    return [*equal, *products, *_others(scores, products, near)]


def _others(
    scores: CallOperand, products: list[CallGroup], near: Iterable[CallGroup]
) -> Iterator[CallGroup]:
    """Other work of the products, and work on the scores."""
    shapes = {(call_group.op, call_group.shape) for call_group in products}
    for group in near:
        is_other = group not in products and group.op not in _SOFTMAX
        if is_other and ((group.op, group.shape) in shapes or _is_on(scores, group)):
            yield group


def _gradients(
    softmax: CallGroup, chain: list[CallGroup], backward: Iterable[CallGroup]
) -> list[CallGroup]:
    """The backward pass of attention; [] if it has no softmax of these scores.

    Each product has two gradients, products of the same sizes in another order.
    """
    near = [group for group in backward if _is_near(group, softmax)]
    equal = [group for group in near if group.op in _SOFTMAX and group.shape == softmax.shape]
    scores = _scores(softmax)
    if scores is None or not equal:
        return []
    wanted = {(group.op, *_any_order(group)) for group in chain if group.op in _MATMUL}
    products = [
        group
        for group in near
        if group.kind in PRODUCTS and (group.op, *_any_order(group)) in wanted
    ]
    return [*equal, *products, *_others(scores, products, near)]


def _any_order(product: CallGroup) -> tuple[int, ...]:
    """The batch of a product, and its sizes in ascending order."""
    given = sizes(product.shape)
    return (given.get("B", 1), *sorted(given.get(name, 0) for name in "MNK"))


def _scores(softmax: CallGroup) -> CallOperand | None:
    """The scores [..., queries, keys]; None if they are no matrices."""
    tensors = operands(softmax.shape)
    if not tensors or len(tensors[0].shape) < 3 or min(tensors[0].shape[-2:]) < 2:
        return None
    return tensors[0]


def _is_near(one: CallGroup, other: CallGroup) -> bool:
    """Whether calls are on one GPU and in one layer, or in layers with the same parent."""
    depth = max(min(len(one.layer), len(other.layer)) - 1, 0)
    layers = one.layer == other.layer or (depth > 0 and one.layer[:depth] == other.layer[:depth])
    return one.device is other.device and layers


def _is_on(scores: CallOperand, group: CallGroup) -> bool:
    """Whether a call works on the scores."""
    tensors = operands(group.shape)
    if not tensors or tensors[0].elements != scores.elements:
        return False
    is_same = tensors[0].shape[-2:] == scores.shape[-2:]
    return is_same and (group.kind in _ON_SCORES or group.op == _WEIGHTS)


def _finding(
    softmax: CallGroup, forward: list[CallGroup], backward: list[CallGroup]
) -> CallFinding:
    members = forward + backward
    time = sum(member.ns for member in members)
    moved = sum(map(_operand_bytes, _products(forward)))
    target = _fused(forward, 1.0, moved)
    if backward:
        share = _softmax_calls(backward) / max(_softmax_calls(forward), 1e-9)
        target += _fused(backward, _BACKWARD, moved * _GRADIENTS * share)
    products = sum(member.ns for member in members if member.op in _MATMUL)
    of_softmax = sum(member.ns for member in members if member.op in _SOFTMAX)
    remedy = [
        "torch.nn.functional.scaled_dot_product_attention(q, k, v)",
        'of transformers models: attn_implementation="sdpa"',
    ]
    if any(member.op == _WEIGHTS for member in members):
        remedy[1] = "of nn.MultiheadAttention: need_weights=False"
    has_cost = all(product.has_ideal for product in _products(members))
    return CallFinding(
        "Attention runs as separate products and softmax, which write the scores to memory",
        [softmax, *by_time(member for member in members if member is not softmax)],
        spread((part for member in members for part in member.parts), max(time - target, 0.0)),
        {
            "gpu_ns": time,
            "products_ns": products,
            "softmax_ns": of_softmax,
            "one fused kernel_ns": target,
        },
        tuple(remedy),
        "high" if has_cost else "medium",
        "the shapes of products and softmax match"
        + ("" if has_cost else "; peaks or FLOPs are unknown: products keep their time"),
        effect=_FUSED,
    )


def _products(chain: list[CallGroup]) -> list[CallGroup]:
    """The products of a chain, without copies that belong to them."""
    return [group for group in chain if group.op in _MATMUL and group.kind in PRODUCTS]


def _softmax_calls(chain: list[CallGroup]) -> float:
    """Calls of softmax a step."""
    return sum(group.calls for group in chain if group.op in _SOFTMAX)


def _fused(chain: list[CallGroup], factor: float, moved: float) -> float:
    """ns a step of a fused kernel at the practical roof.

    factor : FLOPs of the fused kernel relative to those of the products
    moved : its bytes a step
    """
    products = _products(chain)
    times = [_compute_ns(product) for product in products]
    if None in times:
        return sum(product.ns for product in products)
    bandwidth = (chain[0].device.bandwidth or math.inf) * PRACTICAL[1]
    return max(sum(filter(None, times)) * factor, moved / bandwidth * 1e9)


def _compute_ns(group: CallGroup) -> float | None:
    """ns a step at the practical roof of the arithmetic; None if unknown."""
    total = 0.0
    for part in group.parts:
        if part.kind in PRODUCTS and not part.is_helper:
            uses_cores = part.tc == "1"
            peak = group.device.peak(part.compute_type, uses_cores) if part.compute_type else None
            if not peak or not part.flops:
                return None
            total += part.flops / (peak * (PRACTICAL[0] if uses_cores else 1.0)) * 1e9
    return total


def _operand_bytes(product: CallGroup) -> float:
    """Bytes a step of the matrices that are not the scores, the largest of the three."""
    given = sizes(product.shape)
    m, n, k = (given[name] for name in "MNK")
    matrices = sorted((m * n, m * k, n * k))[:2]
    width = 4 if product.parts[0].compute_type == "fp32" else 2
    return float(product.calls * given.get("B", 1) * sum(matrices) * width)
