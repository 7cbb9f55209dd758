"""The columns class, compute_type, helper and call: the kind of each kernel and of its call."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof import ops
from fastprof._core._take import ranks, take
from fastprof.model.columns import Ints, SharedValues, Values
from fastprof.model.trace import Activity
from fastprof.profile.calls import CallsOfKernels
from fastprof.profile.costs import Costs
from fastprof.profile.gpu_work import is_graph

_NUMBER: Final = {name: i for i, name in enumerate(ops.compute_types.COMPUTE_TYPES)}


def classes(names: Values, kinds: SharedValues | None = None) -> Values:
    """The class of every kernel by its name (`ops.classify`); of other work, its kind.

    kinds : kernel, graph, memcpy or memset, in the rows of `names`; None if all are kernels
    """
    numbers: dict[str, int] = {}
    of_name = [numbers.setdefault(_class(name), len(numbers)) for name in names.values]
    other = numbers.setdefault("other", len(numbers))
    shared = names.shared()
    ids = take(np.array(of_name, np.int32), shared.id_of_row, other)
    if kinds is None:
        return Values(take(ids, shared.rows, other), list(numbers))
    for number, kind in enumerate(kinds.values):
        if number != Activity.KERNEL and np.any(kinds.id_of_row == number):
            ids[kinds.id_of_row == number] = numbers.setdefault(kind, len(numbers))
    return SharedValues(shared.rows, ids, list(numbers))


def _class(name: str) -> str:
    return "graph" if is_graph(name) else ops.classify(name).kind


def compute_types_of(names: Values, costs: Costs) -> Values:
    """The type of every kernel's arithmetic; unknown if neither name nor tensors determine it."""
    by_name = [ops.compute_types.name_types(name) for name in (*names.values, "")]
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
    return Ints(ranks(calls.instance, int(calls.instance.max(initial=-1)) + 1))
