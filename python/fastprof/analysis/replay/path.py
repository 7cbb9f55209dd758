"""The critical path of each step: what the length of the step consists of, also by keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof.analysis.cells import cells_of
from fastprof.analysis.grouping import Floats64, group
from fastprof.analysis.host.states import State
from fastprof.analysis.idle.causes import CAUSES
from fastprof.analysis.key_names import check_keys
from fastprof.analysis.keys import key_of
from fastprof.analysis.replay.graph import WORK
from fastprof.analysis.replay.model import Model, rounded
from fastprof.analysis.replay.runs import Replayed, Weights
from fastprof.model.arrays import Int32, Int64, UInt8
from fastprof.model.columns import Ints, Values
from fastprof.model.table import ColumnData, Floats

OF_STATES: Final = CAUSES[: len(State)]
RESOURCES: Final = (
    "GPU", "communication", "copies", "host", *OF_STATES, "launch latency", "unexplained",
)  # fmt: skip
_GPU, _COMM, _COPY, _HOST = range(4)  # the first three as `Model.kernel_class`
_LATENCY, _UNEXPLAINED = len(RESOURCES) - 2, len(RESOURCES) - 1
KERNELS, HOST, WAITS = range(3)


@dataclass(frozen=True, eq=False)
class Path:
    """The critical paths of the counted steps, in pieces.

    Parameters
    ----------
    ns : int64 [pieces], not 0
    resource : uint8 [pieces], index into RESOURCES
    form : uint8 [pieces], KERNELS, HOST or WAITS
    kernel : int32 [pieces], the kernel, or one of the launch that the host time leads to; -1
    n_steps : the steps
    """

    ns: Int64
    resource: UInt8
    form: UInt8
    kernel: Int32
    n_steps: int

    def binds(self) -> tuple[str, float]:
        """The resource with most of the path, and its share."""
        sums = self._sums()
        most = int(sums.argmax())
        return RESOURCES[most], float(sums[most] / max(sums.sum(), 1))

    def host_share(self) -> float:
        """The share of the host: its own time and states, and the latency of launches."""
        sums = self._sums()
        return float(sums[_HOST:_UNEXPLAINED].sum() / max(sums.sum(), 1))

    def by_resource(self) -> dict[str, float]:
        """ns a step."""
        sums = self._sums() / max(self.n_steps, 1)
        return dict(zip(RESOURCES, sums.tolist(), strict=True))

    def _sums(self) -> Floats64:
        return np.bincount(self.resource, self.ns, len(RESOURCES)).astype(np.float64)


def path_of(model: Model, replayed: Replayed, most: int | None = None) -> Path:
    """The critical paths of the counted steps.

    most : the number of steps, evenly spaced; None for all
    """
    rows = np.flatnonzero(model.is_counted)
    if most is not None and len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
    parts = model.paths(replayed, rows)
    ns, resource, form, kernel = _pieces(model, replayed.weights, parts)
    return Path(ns, resource, form, kernel, len(rows))


def _pieces(model: Model, weights: Weights, parts: np.ndarray) -> Iterator[npt.NDArray[Any]]:
    """The columns of `Path`: the time of each part in pieces."""
    is_work = model.graph.kind[parts["node"]] == WORK
    pieces = [*_of_work(model, parts[is_work]), *_of_host(model, weights, parts[~is_work])]
    for column in zip(*pieces, strict=True):
        yield np.concatenate(column)


_Piece = tuple[Int64, UInt8, UInt8, Int32]


def _piece(ns: Int64, resource: UInt8 | int, form: int, kernel: Int32) -> _Piece:
    """The fields of `Path`, of the rows with time.

    ns, kernel : [rows]
    resource : [rows], or one for all
    """
    rows = np.flatnonzero(ns)
    of_rows = resource[rows] if isinstance(resource, np.ndarray) else np.full(len(rows), resource)
    form_of_rows = np.full(len(rows), form, np.uint8)
    return ns[rows], of_rows.astype(np.uint8), form_of_rows, kernel[rows]


def _of_work(model: Model, parts: np.ndarray) -> Iterator[_Piece]:
    """Its own time, what it waits for without a record, and the lag of its edge."""
    kernel = model.graph.kernel[parts["node"]]
    own = take(model.kernel_class, kernel, 0).astype(np.uint8)
    yield _piece(parts["own"], own, KERNELS, kernel)
    # A copy waits until the host has the memory ready, a collective for other ranks; without calls
    # of the host, any work may wait for it.
    is_explained = (own != _GPU) & (len(model.whole.api) > 0)
    unexplained = np.where(is_explained, own, np.uint8(_UNEXPLAINED))
    yield _piece(parts["before"], unexplained, WAITS, kernel)
    latency = np.where(parts["slot"] == 0, np.uint8(_LATENCY), own)
    yield _piece(parts["lag"], latency, WAITS, kernel)


def _of_host(model: Model, weights: Weights, parts: np.ndarray) -> Iterator[_Piece]:
    """Calls and the time before them: in each state, and the host's own."""
    node, kernel = parts["node"], model.launches[parts["node"]]
    for name, spent in (("own", model.host_time.own), ("before", model.host_time.before)):
        rest = parts[name].copy()
        for state, in_state in enumerate(spent.time_of_nodes(node, weights.left)):
            ns = np.minimum(rounded(in_state), rest)
            rest -= ns
            yield _piece(ns, _HOST + 1 + state, HOST, kernel)
        yield _piece(rest, _HOST, HOST, kernel)
    yield _piece(parts["lag"], _HOST, HOST, kernel)


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
    # Few of all pairs of a group and a resource have time; those without a group come first.
    place = (of_piece.astype(np.int64) + 1) * len(RESOURCES) + path.resource
    places = np.unique(np.concatenate([np.arange(len(RESOURCES)), place]))
    sums = np.bincount(np.searchsorted(places, place), path.ns, len(places)) / max(path.n_steps, 1)
    order = np.argsort(-sums, kind="stable")
    absent = (groups.n + 1) * len(RESOURCES) - len(places)  # as many zeros, before what is less
    small = order[np.arange(len(order)) + absent * (sums[order] < 0) >= _MOST]
    joined = small[small >= len(RESOURCES)]
    np.add.at(sums, places[joined] % len(RESOURCES), sums[joined])
    sums[joined] = 0
    result = []
    for each in np.argsort(-sums, kind="stable")[: _MOST + len(RESOURCES)].tolist():
        if sums[each] <= 0:
            break
        one, resource = divmod(int(places[each]), len(RESOURCES))
        row = None if not one else int(groups.first[one - 1])
        values = [None if row is None else key.at(row) for key in keys]
        named = dict(zip(_ROWS, values, strict=True))
        result.append({"resource": RESOURCES[resource], **named, "ns": round(sums[each])})
    return result


def path_by(model: Model, weights: Weights, names: Sequence[str]) -> dict[str, ColumnData]:
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
    gpu = np.bincount(of_kernel, gpu_ns(model, weights), groups.n + 1) / max(model.n_counted, 1)
    least = np.full(groups.n + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, of_kernel, np.where(slack < 0, np.iinfo(np.int64).max, slack))
    least = np.where(least == np.iinfo(np.int64).max, -1, least)
    order = np.argsort(-total[:n], kind="stable")
    columns: dict[str, ColumnData] = {
        name: Values(np.append(own, np.int32(-1))[order], key.values)
        for name, own, key in zip(names, ids, keys, strict=True)
    }
    whole = {"path_ns": total, "kernels_ns": parts[0], "host_ns": parts[1], "waits_ns": parts[2]}
    whole |= {"gpu_ns": gpu, "slack_ns": least}
    columns |= {key: Ints(rounded(each[order])) for key, each in whole.items()}
    columns["path_share"] = Floats(total[order] / max(float(total.sum()), 1.0))
    return columns


def gpu_ns(model: Model, weights: Weights) -> Floats64:
    """[kernels] The time of each within the counted steps, ns; with changes, its share of it."""
    nodes = model.graph.node_of_kernel
    before = model.graph.duration[nodes]
    now = weights.duration[nodes] + np.where(model.kernel_class == 1, model.base.before[nodes], 0)
    return model.counted_ns * (now / np.maximum(before, 1))
