"""The critical path by grouping keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.cells import cells_of
from fastprof.analysis.grouping import Floats64, group
from fastprof.analysis.key_names import check_keys
from fastprof.analysis.keys import key_of
from fastprof.analysis.replay.model import Model, rounded
from fastprof.analysis.replay.path import HOST, KERNELS, RESOURCES, WAITS, Path, path_of
from fastprof.analysis.replay.runs import Weights
from fastprof.model.columns import Ints, Values
from fastprof.model.table import Cells, Floats

_ROWS: Final = ("op", "layer", "line")
_MOST: Final = 200


def path_rows(model: Model, path: Path) -> list[dict[str, Any]]:
    """The critical path by resource, operator, layer and line, for JSON; the largest first.

    They add up to the step: the smallest ones are joined without operator, layer and line.
    """
    cells = cells_of(model.whole, _ROWS)
    keys = [key_of(cells, name) for name in _ROWS]
    groups = group(keys, len(cells))
    of_piece = take(take(groups.ids, cells.of_kernel), path.kernel)
    place = (of_piece.astype(np.int64) + 1) * len(RESOURCES) + path.resource
    sums = np.bincount(place, path.ns, (groups.n + 1) * len(RESOURCES)) / max(path.n_steps, 1)
    small = np.argsort(-sums, kind="stable")[_MOST:]
    np.add.at(sums, small % len(RESOURCES), np.where(small < len(RESOURCES), 0, sums[small]))
    sums[small[small >= len(RESOURCES)]] = 0
    found = []
    for each in np.argsort(-sums, kind="stable").tolist():
        if sums[each] <= 0:
            break
        one, resource = divmod(each, len(RESOURCES))
        row = None if not one else int(groups.first[one - 1])
        values = [None if row is None else key.at(row) for key in keys]
        named = dict(zip(_ROWS, values, strict=True))
        found.append({"resource": RESOURCES[resource], **named, "ns": round(sums[each])})
    return found


def path_by(model: Model, weights: Weights, names: Sequence[str]) -> dict[str, Cells]:
    """The keys and the columns `OF_PATH`, the largest part of the path first.

    Raises
    ------
    ReportError
        A key is unknown; the message names the nearest.
    """
    check_keys(tuple(names))
    replayed = model.run(weights)
    slack = model.slack(replayed)[model.graph.node_of_kernel]
    path = path_of(model, replayed)
    cells = cells_of(model.whole, names)
    keys = [key_of(cells, name) for name in names]
    groups = group(keys, len(cells))
    of_kernel = take(groups.ids, cells.of_kernel)
    ids = np.array([key.ids[groups.first] for key in keys], np.int32)
    # Time that leads to no kernel has no key: the last row, unless kernels have none either.
    without = int(np.argmax(np.append((ids < 0).all(axis=0), True)))
    place, n = take(of_kernel, path.kernel), max(groups.n, without + 1)
    place = np.where(place < 0, without, place)
    per_step = 1 / max(path.n_steps, 1)
    parts = [
        np.bincount(place[path.form == form], path.ns[path.form == form], n) * per_step
        for form in (KERNELS, HOST, WAITS)
    ]
    total = np.sum(parts, axis=0)
    if not total[without]:
        n = groups.n
    gpu = np.bincount(of_kernel, _gpu_ns(model, weights), groups.n + 1) / max(model.n_counted, 1)
    least = np.full(groups.n + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, of_kernel, np.where(slack < 0, np.iinfo(np.int64).max, slack))
    least = np.where(least == np.iinfo(np.int64).max, -1, least)
    order = np.argsort(-total[:n], kind="stable")
    columns: dict[str, Cells] = {
        name: Values(np.append(own, np.int32(-1))[order], key.values)
        for name, own, key in zip(names, ids, keys, strict=True)
    }
    whole = {"path_ns": total, "kernels_ns": parts[0], "host_ns": parts[1], "waits_ns": parts[2]}
    whole |= {"gpu_ns": gpu, "slack_ns": least}
    columns |= {key: Ints(rounded(each[order])) for key, each in whole.items()}
    columns["path_share"] = Floats(total[order] / max(float(total.sum()), 1.0))
    return columns


def _gpu_ns(model: Model, weights: Weights) -> Floats64:
    """[kernels] The time of each within the counted steps, ns; with changes, its share of it."""
    nodes = model.graph.node_of_kernel
    before = model.graph.duration[nodes]
    now = weights.duration[nodes] + np.where(model.kernel_class == 1, model.base.before[nodes], 0)
    return model.counted_ns * (now / np.maximum(before, 1))
