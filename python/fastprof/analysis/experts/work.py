"""The work of experts in a capture: kernels by layer and part, and the rows of shares."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final, cast

import numpy as np

from fastprof._core import _path
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple, dataclass
from fastprof.analysis.experts.names import (
    EXCHANGE,
    OTHER,
    PRODUCTS,
    ROUTING,
    WHOLE,
    expert_of,
    part_of_kernel,
    part_of_operator,
)
from fastprof.analysis.grouping import numbers, texts
from fastprof.analysis.keys import key_of
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.call import Call, Tensor
from fastprof.model.columns import Values
from fastprof.model.markers import Meaning
from fastprof.ops import registry
from fastprof.profile.data import ProfileData
from fastprof.profile.steps.kernel_steps import StepsOfKernels

NOWHERE: Final = "(no layer)"


class Sizes(NamedTuple):
    """Sizes of a call, None where it does not tell: tokens, experts, experts of each token."""

    tokens: int | None
    experts: int | None
    chosen: int | None


class Shares(NamedTuple):
    """The rows of each share in a step: of experts, or of ranks.

    rows : of each share
    received : rows that this rank receives of all; None for experts
    """

    rows: tuple[int, ...]
    received: int | None


@dataclass(frozen=True, eq=False)
class ExpertWork:
    """The work of experts.

    Parameters
    ----------
    part : int32 [kernels], PRODUCTS to OTHER; -1: no work of experts
    layer : [kernels], the layer of experts
    is_exact : bool [kernels], whether an operator or a layer tells, not only the kernel's name
    expert : [kernels], the expert, where it is a layer by itself
    calls : the sizes of the calls of operators of each layer, and how many there are
    exchanges : the split sizes of each layer
    """

    part: Int32
    layer: Values
    is_exact: Bools
    expert: Values
    calls: dict[str, list[tuple[Sizes, int]]]
    exchanges: dict[str, list[Shares]]


def expert_work(profile: ProfileData, rows: Bools | None = None) -> ExpertWork | None:
    """The work of experts; None if a capture has none that names or layers tell.

    rows : the work that counts, bool [kernels]; None for all
    """
    layers = key_of(profile, "layer")
    pairs = layers.mapped(lambda text: expert_of(str(text)))
    by_name = texts(profile, "name").mapped(part_of_kernel)
    own, range_ = _of_operators(profile)
    of_operator = take(own, range_) if len(range_) else np.full(len(profile), -1, np.int32)
    is_product = key_of(profile, "kind").fits(lambda kind: kind == "gemm")
    named = np.array([*map(int, by_name.values), -1], np.int32)[by_name.ids]
    in_layer = pairs.ids >= 0
    inside = np.where(is_product, PRODUCTS, OTHER).astype(np.int32)
    part = np.where(in_layer, inside, np.int32(-1))
    part = np.where(of_operator == WHOLE, inside, np.where(of_operator >= 0, of_operator, part))
    part = np.where(named >= 0, named, part)
    if not (part >= 0).any():
        return None
    is_exact = in_layer | (of_operator >= 0)
    collective = key_of(profile, "collective").fits(lambda name: name == "all_to_all")
    part = np.where(collective, np.int32(EXCHANGE), part)
    is_exact |= collective
    if rows is not None:
        part = np.where(rows, part, np.int32(-1))
    outer = layers.mapped(_layer_of)
    calls, exchanges = _calls(profile), _exchanges(profile)
    return ExpertWork(part, outer, is_exact, pairs.mapped(lambda pair: pair[1]), calls, exchanges)


def _layer_of(layer: Any) -> str:
    """The layer of experts that a layer is of."""
    pair = expert_of(str(layer))
    return str(layer) if pair is None else pair[0]


def _operator(meaning: Meaning) -> int:
    part = None if meaning.call is None else part_of_operator(meaning.name)
    return -1 if part is None else part


def _of_operators(profile: ProfileData) -> tuple[Int32, Int32]:
    """[ranges] The part of the innermost operator of experts around each, and the range of each
    kernel; a part is that of the operator, of WHOLE only if no other is inside."""
    ranges = profile.ranges
    parts = np.array([*map(_operator, ranges.meanings), -1], np.int32)
    own = parts[ranges.label]
    if not (own >= 0).any():
        return np.empty(0, np.int32), np.empty(0, np.int32)
    return _path.innermost(ranges.parent, own), ranges.of_kernel


def _calls(profile: ProfileData) -> dict[str, list[tuple[Sizes, int]]]:
    """The sizes of the outermost operators of experts, and how many there are, by layer."""
    ranges, layers = profile.ranges, _layers_of_ranges(profile)
    parts = np.array([*map(_operator, ranges.meanings), -1], np.int32)
    own = parts[ranges.label]
    rows = np.flatnonzero(own >= 0)
    around = _path.innermost(ranges.parent, own)
    rows = rows[take(around, take(ranges.parent, rows.astype(np.int32))) < 0]
    kind, first = alike([ranges.label[rows], layers.ids[rows]])
    counts = np.bincount(kind, minlength=len(first)).tolist()
    result: dict[str, list[tuple[Sizes, int]]] = defaultdict(list)
    for row, count in zip(rows[first].tolist(), counts, strict=True):
        meaning = ranges.meanings[int(ranges.label[row])]
        sizes = None if meaning.call is None else sizes_of(meaning.call)
        part = part_of_operator(meaning.name)
        if sizes is not None and (
            part in (PRODUCTS, WHOLE) or (part == ROUTING and sizes.chosen is not None)
        ):
            result[layers.at(row) or NOWHERE].append((sizes, count))
    return dict(result)


def _layers_of_ranges(profile: ProfileData) -> Values:
    """[ranges] The layer of experts around each."""
    column = cast(Values, profile.source.range_columns.column("layer"))
    return column.mapped(lambda names: _layer_of(":".join(names)) if names else None)


def sizes_of(call: Call) -> Sizes:
    """The sizes of a call of an operator of experts, as its formula names its arguments.

    Without a formula: the first matrix has a row for each token, and a second one with as many
    rows the scores of the experts.
    """
    named = dict(registry.arguments(call))
    tensors = [arg.value for arg in call.args if isinstance(arg.value, Tensor)]
    matrices = [tensor for tensor in tensors if len(tensor.shape) == 2]
    x, weight = named.get("x"), named.get("w1") or named.get("weight")
    x = x if isinstance(x, Tensor) else next(iter(matrices), None)
    tokens = None if x is None or len(x.shape) < 2 else int(np.prod(x.shape[:-1]))
    scores, ids = named.get("scores"), named.get("ids")
    if scores is None and weight is None and len(matrices) > 1 and x is not None:
        scores = matrices[1] if matrices[1].shape[0] == tokens else None
    if isinstance(scores, Tensor) and x is scores:
        tokens = scores.shape[0]
    experts = named.get("experts")
    if isinstance(scores, Tensor):
        experts = scores.shape[-1]
    elif isinstance(weight, Tensor) and len(weight.shape) == 3:
        experts = weight.shape[0]
    elif not isinstance(experts, int):
        stacks = [tensor.shape[0] for tensor in tensors if len(tensor.shape) == 3]
        experts = stacks[0] if stacks else None
    chosen = ids.shape[-1] if isinstance(ids, Tensor) and ids.shape else named.get("k")
    return Sizes(tokens, experts, chosen if isinstance(chosen, int) else None)


def _exchanges(profile: ProfileData) -> dict[str, list[Shares]]:
    """The rows that all-to-alls send to each rank, and receive, by layer.

    Dispatches come before what brings results back, which has the rows the other way round: of two
    successive ones with swapped rows, the first counts.
    """
    ranges, layers = profile.ranges, _layers_of_ranges(profile)
    has = [meaning.collective is not None and bool(meaning.collective.given_rows)
           for meaning in ranges.meanings]  # fmt: skip
    rows = np.flatnonzero(np.array([*has, False], bool)[ranges.label])
    result: dict[str, list[Shares]] = defaultdict(list)
    before: tuple[Any, Any] = (None, None)
    for row in rows.tolist():
        record = ranges.meanings[int(ranges.label[row])].collective
        if record is None:
            continue
        own = record.given_rows, record.got_rows
        if own == before[::-1]:
            before = (None, None)
            continue
        before = own
        received = sum(record.got_rows) if record.got_rows else None
        result[layers.at(row) or NOWHERE].append(Shares(record.given_rows, received))
    return dict(result)


def rows_of_experts(
    profile: ProfileData, work: ExpertWork, steps: StepsOfKernels
) -> dict[str, list[Shares]]:
    """The mean rows of a product of each expert that is a layer by itself, by layer and step.

    Experts without rows have no products: those of numbers up to the largest count as 0.
    """
    of_calls = profile.source.range_columns.calls(_rows_of)
    rows = Values(take(of_calls.ids, profile.ranges.of_kernel), of_calls.values)
    chosen = np.flatnonzero((work.part == PRODUCTS) & (work.expert.ids >= 0) & (rows.ids >= 0))
    ids = [work.layer.ids[chosen], steps.of_kernel[chosen], work.expert.ids[chosen]]
    group, first = alike([np.ascontiguousarray(each) for each in ids])
    values = np.array([*rows.values, 0], np.float64)[rows.ids[chosen]]
    means = np.bincount(group, values, len(first)) / np.bincount(
        group, minlength=max(len(first), 1)
    )
    by_step: dict[tuple[str, int], list[int]] = defaultdict(list)
    experts: dict[str, set[str]] = defaultdict(set)
    for kernel, mean in zip(chosen[first].tolist(), means.tolist(), strict=True):
        layer = work.layer.at(kernel)
        by_step[layer, int(steps.of_kernel[kernel])].append(round(mean))
        experts[layer].add(work.expert.at(kernel))
    result: dict[str, list[Shares]] = defaultdict(list)
    for (layer, _), own in by_step.items():
        result[layer].append(Shares((*own, *([0] * (_count(experts[layer]) - len(own)))), None))
    return dict(result)


def _rows_of(meaning: Meaning) -> int | None:
    """The rows of the left operand of a product; None for other calls."""
    named = registry.arguments(meaning.call) if meaning.call is not None else {}
    for name in ("x", "left", "mat1"):
        if isinstance(tensor := named.get(name), Tensor) and len(tensor.shape) >= 2:
            return int(np.prod(tensor.shape[:-1]))
    return None


def _count(names: set[str]) -> int:
    """The experts of a layer: numbers count from 0."""
    if all(name.isdigit() for name in names):
        return max(map(int, names)) + 1
    return len(names)


def times_of_parts(profile: ProfileData, work: ExpertWork) -> dict[str, Int64]:
    """GPU time of each part in ns, by layer: int64 [PRODUCTS to OTHER]."""
    duration = np.maximum(numbers(profile, "sil"), 0)
    result: dict[str, Int64] = {}
    rows = np.flatnonzero(work.part >= 0)
    place = work.layer.ids[rows].astype(np.int64)
    n = len(work.layer.values) + 1
    sums = np.bincount(
        np.where(place < 0, n - 1, place) * 4 + work.part[rows], duration[rows], n * 4
    ).reshape(n, 4)
    for name, times in zip([*work.layer.values, NOWHERE], sums, strict=True):
        if times.any():
            result[str(name)] = times.astype(np.int64)
    return result
