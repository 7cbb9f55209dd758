"""The columns class, compute_type, helper and call: the kind of each kernel and of its call."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof import ops
from fastprof.model.columns import Ints, Values
from fastprof.model.trace import Activity
from fastprof.profile.calls import CallsOfKernels
from fastprof.profile.costs import Costs
from fastprof.profile.gpu_work import is_graph

_NUMBER: Final = {name: i for i, name in enumerate(ops.compute_types.COMPUTE_TYPES)}


def classes(names: Values, kinds: Values | None = None) -> Values:
    """The class of every kernel by its name (`ops.classify`); of other work, its kind.

    kinds : kernel, graph, memcpy or memset; None if all are kernels
    """
    numbers: dict[str, int] = {}
    of_name = [numbers.setdefault(_class(name), len(numbers)) for name in names.values]
    other = numbers.setdefault("other", len(numbers))
    ids = np.array([*of_name, other], np.int32)[names.ids]
    for number, kind in enumerate(kinds.values if kinds else ()):
        if kinds and number != Activity.KERNEL and np.any(kinds.ids == number):
            ids[kinds.ids == number] = numbers.setdefault(kind, len(numbers))
    return Values(ids, list(numbers))


def _class(name: str) -> str:
    return "graph" if is_graph(name) else ops.classify(name).kind


def compute_types_of(names: Values, costs: Costs) -> Values:
    """The type of every kernel's arithmetic; unknown if neither name nor tensors determine it."""
    by_name = [ops.compute_types.of_name(name) for name in (*names.values, "")]
    table = np.array(
        [[-1 if each is None else _NUMBER[each] for each in row] for row in by_name], np.int32
    )
    return costs.compute_types(table, ops.compute_types.COMPUTE_TYPES)


def helpers(names: Values, costs: Costs) -> Ints:
    """1 for kernels that have no share of their call's cost, such as casts; unknown without a call.

    If the cost is unknown, the kernel's name decides: it only supports a product.
    """
    auxiliary = [ops.classify(name).auxiliary for name in names.values]
    return costs.helper(np.array([*auxiliary, False]))


def call_numbers(calls: CallsOfKernels) -> Ints:
    """The number of each kernel's call, from 0; unknown without a call."""
    instance = calls.instance
    used = np.zeros(int(instance.max(initial=-1)) + 2, bool)  # the last for -1
    used[instance] = True
    used[-1] = False
    distinct = np.flatnonzero(used)
    number = np.empty(len(used), np.int32)
    number[distinct] = np.arange(len(distinct), dtype=np.int32)
    number[-1] = -1
    return Ints(number[instance])
