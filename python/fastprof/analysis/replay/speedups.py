"""Virtual speed-ups: what a step saves if a part of its work is faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.analysis.grouping import Floats64, texts
from fastprof.analysis.host.states import State
from fastprof.analysis.keys import key_of
from fastprof.analysis.replay.changes import (
    Calibrated,
    host_scaled,
    scaled,
    states_scaled,
    waiting,
    without_sync,
)
from fastprof.analysis.replay.model import Model, rounded
from fastprof.analysis.replay.path import KERNELS, OF_STATES, RESOURCES, Path, path_of
from fastprof.analysis.replay.runs import Weights
from fastprof.model.arrays import Bools, Int32
from fastprof.model.columns import Ints, Values
from fastprof.model.numbers import without_index
from fastprof.model.table import ColumnData, Floats, text_column

_KEYS: Final = ("op", "layer", "line")
_TOP: Final = 6  # of each key
_FACTORS: Final = (0.9, 0.5, 0.0)
_CLASSES: Final = ("GPU", "communication", "copies")  # as `Model.kernel_class`


_ALMOST: Final = 0.98  # of its time on the path: a part that saves less has a reason
_STEPS: Final = 8  # whose critical paths are examined for it
_NAN: Final = float("nan")


class _Row(NamedTuple):
    """A part: its time a step, the part of it on the path, and the step for each factor, ns.

    then : what takes most of the path if the part takes no time, "" if it saves all of its time
    then_ns : how much
    """

    key: str
    value: str
    ns: float
    path_ns: float
    walls: tuple[float, float, float]
    then: str = ""
    then_ns: float = _NAN


def speedups(model: Model, path: Path, start: Calibrated) -> dict[str, ColumnData]:
    """The columns `OF_SPEEDUPS`: resources first, then the operators, layers and lines with the
    most GPU time.

    The resources on the path add up to the step. No part saves more than its time on the path: the
    path is there, only shorter, after a change of one part.

    start : the run without changes
    """
    rows = [*_resources(model, path, start), *_without_waits(model, start)]
    rows += _groups(model, path, start)
    saved = [[start.wall - wall for wall in row.walls] for row in rows]
    return {
        "key": text_column([row.key for row in rows]),
        "value": text_column([row.value for row in rows]),
        "gpu_ns": _whole([row.ns for row in rows]),
        "path_ns": _whole([row.path_ns for row in rows]),
        **{
            f"saved_{percent}_ns": _whole([members[i] for members in saved])
            for i, percent in enumerate((10, 50, 100))
        },
        "then": text_column([row.then or None for row in rows]),
        "then_ns": _whole([row.then_ns for row in rows]),
    }


def _whole(values: list[float]) -> ColumnData:
    result = np.array(values, np.float64)
    if np.isnan(result).any():
        return Floats(result)
    return Ints(rounded(result), none=np.iinfo(np.int64).min)


def _resources(model: Model, path: Path, start: Calibrated) -> Iterator[_Row]:
    """Rows of what is on the path."""
    on_path = path.by_resource()
    for code, name in enumerate(_CLASSES):
        group = np.where(model.kernel_class == code, 0, -1).astype(np.int32)
        ns = _sums(model, group, 1)[0]
        if ns:
            walls = _walls(model, start, group, 1, 0)
            row = _Row("resource", name, ns, on_path[name], walls)
            yield _row(model, start, row, _none(model, start, group == 0))
    if on_path["host"]:
        yield _of_host(model, start, "host", on_path["host"], host_scaled)
    for state, name in enumerate(OF_STATES):
        if on_path[name]:
            change = partial(states_scaled, states={State(state)})
            yield _of_host(model, start, name, on_path[name], change)
    for name in RESOURCES[-2:]:
        if on_path[name]:
            yield _Row("resource", name, _NAN, on_path[name], (_NAN, _NAN, _NAN))


def _of_host(
    model: Model,
    start: Calibrated,
    name: str,
    ns: float,
    change: Callable[..., tuple[Weights, int]],
) -> _Row:
    weights = [change(model, start.weights, factor=factor)[0] for factor in _FACTORS]
    first, half, none = (model.mean(model.run(weight).wall) for weight in weights)
    return _row(model, start, _Row("resource", name, _NAN, ns, (first, half, none)), weights[-1])


def _row(model: Model, start: Calibrated, row: _Row, without: Weights) -> _Row:
    """The row with the reason why the part saves less than its time on the path.

    without : the run in which the part takes no time
    """
    saved = start.wall - row.walls[-1]
    if saved >= _ALMOST * row.path_ns:
        return row
    path = path_of(model, model.run(without), _STEPS)
    then, share = path.binds()
    return row._replace(then=then, then_ns=share * row.walls[-1])


def _without_waits(model: Model, start: Calibrated) -> Iterator[_Row]:
    """A row of the waits of the host: they are not on the path, but what it waits for is."""
    waits = _waits(model)
    if waits:
        wall = model.mean(model.run(without_sync(model, start.weights)[0]).wall)
        yield _Row("change", "no-sync", waits, _NAN, (_NAN, _NAN, wall))


def _waits(model: Model) -> float:
    """ns a step in which a thread waits for the GPU; threads that wait at once count once."""
    graph, api = model.graph, model.profile.api
    nodes = waiting(model)
    end = model.recorded[2 * nodes]
    start = api.start[graph.call[nodes]] - graph.origin
    order = np.argsort(start, kind="stable")
    return model.in_counted(start[order], end[order], api.pid[graph.call[nodes[order]]])


def _groups(model: Model, path: Path, start: Calibrated) -> Iterator[_Row]:
    of_kernels = path.form == KERNELS
    kernels, ns = path.kernel[of_kernels], path.ns[of_kernels]
    for name in _KEYS:
        key = _key(model, name)
        of_kernel = take(key.ids, model.cells.of_kernel)
        n = len(key.values)
        sums = _sums(model, of_kernel, n)
        on_path = np.bincount(take(of_kernel, kernels) + 1, ns, n + 1)[1:] / max(path.n_steps, 1)
        for place in np.argsort(-sums, kind="stable")[:_TOP].tolist():
            if sums[place] > 0:
                walls = _walls(model, start, of_kernel, n, place)
                row = _Row(name, str(key.values[place]), sums[place], on_path[place], walls)
                yield _row(model, start, row, _none(model, start, of_kernel == place))


def _key(model: Model, name: str) -> Values:
    """[cells] The values of a key; indices of layers are folded."""
    if name != "layer":
        return key_of(model.cells, name)
    return texts(model.cells, name).mapped(
        lambda names: ":".join(map(without_index, names)) or None
    )


def _sums(model: Model, group: Int32, n: int) -> Floats64:
    """[groups] GPU time a step."""
    sums: Floats64 = np.bincount(group + 1, model.counted_ns, n + 1)[1:] / max(model.n_counted, 1)
    return sums


def _walls(
    model: Model, start: Calibrated, group: Int32, n: int, wanted: int
) -> tuple[float, float, float]:
    """The mean length of a step for each factor of a group's kernels."""
    of_node = np.full(len(model.graph), -1, np.int32)
    of_node[model.graph.node_of_kernel] = group
    results = []
    for factor in _FACTORS:
        factors = np.ones(n)
        factors[wanted] = factor
        results.append(model.mean(model.run(start.weights, of_node, factors).wall))
    first, half, none = results
    return first, half, none


def _none(model: Model, start: Calibrated, kernels: Bools) -> Weights:
    """The run in which some kernels take no time."""
    return scaled(model, start.weights, kernels, 0.0)[0]
