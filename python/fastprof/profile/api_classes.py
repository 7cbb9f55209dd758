"""The class of an API call, by its name; kind, compute type, helper and call of each kernel."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof import ops
from fastprof._core._take import ranks, take
from fastprof._system.regex import regex
from fastprof.model.columns import Ints, SharedValues, Values
from fastprof.model.trace import Activity
from fastprof.profile.calls import CallsOfKernels
from fastprof.profile.costs import Costs
from fastprof.profile.gpu_work import is_graph

LAUNCH, SYNC, ALLOC, LOAD = "launch", "sync", "alloc", "load"
CREATE, COPY_CALL, OTHER = "create", "copy", "other"

# The first match decides. Names are without `cuda`, `cu` or `hip` and without a version.
_CLASSES: Final = (
    (SYNC, regex(r"\w*Synchronize")),
    (COPY_CALL, regex(r"Memcpy\w*Async|Memset|MemPrefetchAsync")),
    (SYNC, regex(r"Memcpy")),
    (
        LOAD,
        regex(
            r"(?:Module|Library)(?:Load|Unload)|GraphInstantiate|Link(?:Create|Add|Complete)"
            r"|(?:nv|hip)rtc\w*(?:Compile|Link)"
        ),
    ),
    (
        CREATE,
        regex(
            r"(?:Stream|Event|Ctx|GreenCtx|MemPool|Multicast)(?:Create|Destroy)"
            r"|DevicePrimaryCtx(?:Retain|Release|Reset)|DeviceReset|Init\Z|SetDevice\Z"
            r"|(?:Device|Ctx)(?:EnablePeerAccess|SetLimit)"
        ),
    ),
    (
        ALLOC,
        regex(
            r"(?:Ext|Host)?Malloc|Free|Host(?:Alloc|Free|Register|Unregister)"
            r"|Mem(?:Alloc|Free|Host(?:Alloc|Register|Unregister)|Create|Map|Unmap|Release)"
            r"|Mem(?:PoolTrimTo|Address(?:Reserve|Free))|Ipc(?:Open|Close)MemHandle"
        ),
    ),
    (LAUNCH, regex(r"\w*Launch")),
)
_AFFIXES: Final = regex(r"\A(?:cuda|cu|hip)(?=[A-Z])|(?:_v\d+|_ptsz|_ptds|_spt)+\Z")


def class_of(name: str) -> str:
    """launch, sync, alloc, load, create, copy or other.

    - sync: blocks the thread until the GPU is done (`*Synchronize`), and copies without `Async`.
      `*StreamWait*` only orders streams: other.
    - alloc: allocates, frees, maps or registers memory. load: loads, links or compiles code,
      instantiates graphs. create: creates or destroys streams, events or contexts.
    - copy: asynchronous copies and memsets. launch: kernels, graphs and host functions.
    """
    base = _AFFIXES.sub("", name)
    return next((kind for kind, pattern in _CLASSES if pattern.match(base)), OTHER)


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
        [[-1 if text is None else _NUMBER[text] for text in row] for row in by_name], np.int32
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
