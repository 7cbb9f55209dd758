"""GPU work of graph launches and of captures, in the order of the graph.

Grid and block of replayed kernels from the API calls of the capture.

ROCm records no sizes for replayed kernels, but records them for captured calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof._system.regex import regex
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import Activity, Configs, Trace
from fastprof.profile.gpu_work import short_name

# Keys of items: an id of the kernel name, or one of these.
UNNAMED, COPY, FILL = -1, 0, 1

GRAPH_LAUNCH = regex(r"(?:cuda|cu|hip)Graph\w*Launch")
# ROCm copies and fills with kernels of these names.
_ROCM = ((COPY, "__amd_rocclr_copy"), (FILL, "__amd_rocclr_fill"))


class Keys:
    """Ids of kernel names, shared by all traces."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {"[copy]": COPY, "[fill]": FILL}

    def of(self, names: Sequence[str | None]) -> tuple[Int32, Int32]:
        """Ids of names and of their short forms; UNNAMED for None and at the end."""
        found = [(UNNAMED, UNNAMED) if name is None else self._of(name) for name in names]
        full, short = np.array([*found, (UNNAMED, UNNAMED)], np.int32).T.copy()
        return full, short

    def _of(self, name: str) -> tuple[int, int]:
        for key, start in _ROCM:
            if name.startswith(start):
                return key, key
        plain = name.removesuffix(".kd").strip()
        ids = self._ids
        return (
            ids.setdefault(plain, len(ids)),
            ids.setdefault(f"short {short_name(plain)}", len(ids)),
        )


@dataclass()
class Sequences:
    """The work of several graphs, concatenated.

    Attributes
    ----------
    begin : int64 [graphs + 1], index of the first item of each graph
    row : int64 [items], row of Trace.kernels or Trace.captured
    key, short : int32 [items], see `Keys`
    grid : int32 [items, 3], -1 if unknown
    """

    begin: Int64
    row: Int64
    key: Int32
    short: Int32
    grid: Int32

    def __len__(self) -> int:
        return len(self.begin) - 1

    def of(self, number: int) -> slice:
        """The items of a graph."""
        return slice(int(self.begin[number]), int(self.begin[number + 1]))


@dataclass()
class Replays(Sequences):
    """The work of each graph launch.

    Items are ordered by graph node, or by stream and start if nodes have no ids. So each launch of
    a graph gives the same sequence.

    Attributes
    ----------
    launch : int32 [launches of graphs], row of Trace.launches
    start : int64 [items], ns
    stream : int32 [items]
    has_nodes : bool [launches of graphs], whether all items have a node id
    """

    launch: Int32
    start: Int64
    stream: Int32
    has_nodes: npt.NDArray[np.bool_]


def replays_of(trace: Trace, keys: Keys) -> Replays:
    """Graph launches with kernels in the trace and without recorded node creation."""
    kernels, configs = trace.kernels, trace.kernels.configs
    launches_graph = np.array(
        [bool(name and GRAPH_LAUNCH.match(name)) for name in trace.strings] + [False]
    )[trace.launches.name]
    of_graph = np.append(launches_graph, False)[kernels.launch]
    if kernels.origin is not None:
        of_graph &= kernels.origin < 0
    config = np.ascontiguousarray(kernels.config)
    rows = np.flatnonzero(of_graph & (take(configs.kind, config) != Activity.GRAPH))
    launch, start = kernels.launch[rows], kernels.start[rows]
    of_row = config[rows]
    stream, node = configs.stream[of_row], configs.graph_node[of_row]
    order = np.lexsort((start, np.where(node >= 0, node, stream), launch))
    rows, launch, start, stream = rows[order], launch[order], start[order], stream[order]
    of_row, node = of_row[order], node[order]
    used, begin = np.unique(launch, return_index=True)
    begin = np.append(begin, len(rows))
    full, short = (_keys(ids, configs.kind, configs.name) for ids in keys.of(trace.strings))
    return Replays(
        begin=begin,
        row=rows,
        key=full[of_row],
        short=short[of_row],
        grid=configs.grid[of_row],
        launch=used,
        start=start,
        stream=stream,
        has_nodes=np.array([np.all(node[a:b] >= 0) for a, b in pairwise(begin.tolist())], bool),
    )


def captures_of(trace: Trace, keys: Keys) -> Sequences:
    """The captured graphs of a trace."""
    captured = trace.captured
    if captured is None:
        none = np.empty(0, np.int32)
        return Sequences(
            np.zeros(1, np.int64), none.astype(np.int64), none, none, none.reshape(0, 3)
        )
    row = np.argsort(captured.graph, kind="stable")
    begin = np.searchsorted(captured.graph[row], np.arange(captured.graph.max(initial=-1) + 2))
    full, short = (_keys(ids, captured.kind, captured.name)[row] for ids in keys.of(trace.strings))
    return Sequences(begin, row, full, short, captured.grid[row])


def _keys(of_name: Int32, kind: Int32, name: Int32) -> Int32:
    return np.where(
        kind == Activity.MEMCPY, COPY, np.where(kind == Activity.MEMSET, FILL, of_name[name])
    ).astype(np.int32)


Rows = npt.NDArray[np.int64]


def give_sizes(trace: Trace, row: Rows, captured: Rows) -> None:
    """Set grid and block of kernels without sizes, in place.

    row, captured : rows of Trace.kernels, and their rows of Trace.captured
    """
    kernels, calls = trace.kernels, trace.captured
    if calls is None:
        return
    configs = kernels.configs
    unknown = np.all(configs.grid[kernels.config[row]] < 0, axis=1)
    unknown &= np.all(calls.grid[captured] >= 0, axis=1)
    row, captured = row[unknown], captured[unknown]
    if not len(row):
        return
    grid, block = calls.grid[captured], calls.block[captured]
    kind, first = alike([kernels.config[row], grid, block])
    like = kernels.config[row[first]]
    changed = {"grid": grid[first], "block": block[first]}
    columns: dict[str, Any] = {each.name: getattr(configs, each.name) for each in fields(Configs)}
    for name, column in columns.items():
        if column is not None:
            columns[name] = np.concatenate([column, changed.get(name, column[like])])
    kernels.config = kernels.config.copy()
    kernels.config[row] = kind + np.int32(len(configs))
    kernels.configs = Configs(**columns)
