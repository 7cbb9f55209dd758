"""Virtual speed-ups: what a step saves if a part of its work is faster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.columns import texts
from fastprof.analysis.keys import key_of
from fastprof.analysis.replay.host_changes import (
    alloc_scaled,
    host_scaled,
    without_loading,
    without_sync,
)
from fastprof.analysis.replay.model import Model, Weights, rounded
from fastprof.analysis.replay.path import KERNELS, Path
from fastprof.model.arrays import Int32
from fastprof.model.columns import Ints, Values
from fastprof.model.numbers import without_index
from fastprof.model.table import Cells, Floats
from fastprof.model.table import texts as text_column

__all__ = ["speedups"]

_KEYS: Final = ("op", "layer", "line")
_TOP: Final = 6  # of each key
_FACTORS: Final = (0.9, 0.5, 0.0)
_CLASSES: Final = ("GPU", "communication", "copies")  # as `Model.kernel_class`


class _Row(NamedTuple):
    key: str
    value: str
    ns: float
    path_ns: float
    walls: tuple[float, ...]


def speedups(model: Model, path: Path, base: float) -> dict[str, Cells]:
    """The columns `OF_SPEEDUPS`: resources first, then the operators, layers and lines with the
    most GPU time.

    base : mean length of a step of the replay without changes, ns
    """
    rows = [*_resources(model, path), *_groups(model, path)]
    saved = [[base - wall for wall in row.walls] for row in rows]
    return {
        "key": text_column([row.key for row in rows]),
        "value": text_column([row.value for row in rows]),
        "gpu_ns": _whole([row.ns for row in rows]),
        "path_ns": _whole([row.path_ns for row in rows]),
        **{
            f"saved_{percent}_ns": _whole([each[i] for each in saved])
            for i, percent in enumerate((10, 50, 100))
        },
    }


def _whole(values: list[float]) -> Cells:
    found = np.array(values, np.float64)
    if np.isnan(found).any():
        return Floats(found)
    return Ints(rounded(found), none=np.iinfo(np.int64).min)


def _resources(model: Model, path: Path) -> Iterator[_Row]:
    """Rows of what a step waits for."""
    on_path, nan = path.by_resource(), float("nan")

    def wall(weights: Weights) -> float:
        return model.mean(model.run(weights).wall)

    for code, name in enumerate(_CLASSES):
        group = np.where(model.kernel_class == code, 0, -1).astype(np.int32)
        ns = _sums(model, group, 1)[0]
        if ns:
            yield _Row("resource", name, ns, on_path[name], _walls(model, group, 1, 0))
    for name, scaled in (("host", host_scaled), ("alloc/load", alloc_scaled)):
        if on_path[name]:
            walls = tuple(wall(scaled(model, model.base, factor)[0]) for factor in _FACTORS)
            yield _Row("resource", name, nan, on_path[name], walls)
    for name, change in (("sync", without_sync), ("data loading", without_loading)):
        if on_path[name]:
            all_of_it = wall(change(model, model.base)[0])
            yield _Row("resource", name, nan, on_path[name], (nan, nan, all_of_it))


def _groups(model: Model, path: Path) -> Iterator[_Row]:
    of_kernels = path.form == KERNELS
    kernels, ns = path.kernel[of_kernels], path.ns[of_kernels]
    for name in _KEYS:
        key = _key(model, name)
        of_kernel = take(key.ids, model.cells.of_kernel)
        n = len(key.values)
        sums = _sums(model, of_kernel, n)
        on_path = np.bincount(take(of_kernel, kernels) + 1, ns, n + 1)[1:] / max(path.n_steps, 1)
        for each in np.argsort(-sums, kind="stable")[:_TOP].tolist():
            if sums[each] > 0:
                walls = _walls(model, of_kernel, n, each)
                yield _Row(name, str(key.values[each]), sums[each], on_path[each], walls)


def _key(model: Model, name: str) -> Values:
    """[cells] The values of a key; indices of layers are folded."""
    if name != "layer":
        return key_of(model.cells, name)
    return texts(model.cells, name).mapped(
        lambda names: ":".join(map(without_index, names)) or None
    )


def _sums(model: Model, group: Int32, n: int) -> Any:
    """[groups] GPU time a step."""
    nodes = model.graph.node_of_kernel
    counted = np.append(_is_counted(model), False)[model.steps.of_kernel]
    ns = np.where(counted, model.graph.duration[nodes], 0)
    return np.bincount(group + 1, ns, n + 1)[1:] / max(int(model.is_counted.sum()), 1)


def _is_counted(model: Model) -> Any:
    found = np.zeros(len(model.steps), bool)
    found[model.rows[model.is_counted]] = True
    return found


def _walls(model: Model, group: Int32, n: int, wanted: int) -> tuple[float, ...]:
    """The mean length of a step for each factor of a group's kernels."""
    of_node = np.full(len(model.graph), -1, np.int32)
    of_node[model.graph.node_of_kernel] = group
    found = []
    for factor in _FACTORS:
        factors = np.ones(n)
        factors[wanted] = factor
        found.append(model.mean(model.run(model.base, of_node, factors).wall))
    return tuple(found)
