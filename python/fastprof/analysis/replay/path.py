"""The critical path of each step: what the length of the step consists of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.grouping import Floats64
from fastprof.analysis.replay.graph import RETURN, WORK
from fastprof.analysis.replay.host_changes import without_sync
from fastprof.analysis.replay.model import Model, Replayed, Weights
from fastprof.model.arrays import Int32, Int64, UInt8

__all__ = ["RESOURCES", "Path", "path_of"]

RESOURCES: Final = (
    "GPU", "communication", "copies", "host", "sync", "data loading", "alloc/load",
    "launch latency", "unexplained",
)  # fmt: skip
_GPU, _COMM, _COPY, _HOST, _SYNC, _LOADING, _ALLOC, _LATENCY, _UNEXPLAINED = range(len(RESOURCES))
KERNELS, HOST, WAITS = range(3)
_LITTLE: Final = 0.02  # of the path


@dataclass(frozen=True, eq=False)
class Path:
    """The critical paths of the counted steps, in pieces.

    Parameters
    ----------
    ns : int64 [pieces]
    resource : uint8 [pieces], index into RESOURCES
    form : uint8 [pieces], KERNELS, HOST or WAITS
    kernel : int32 [pieces], the kernel, or one of the launch that the host time leads to; -1
    n_steps : the steps
    sync_share : of the host time after waits for the GPU, the share that the step saves without
        these waits; the rest is the host's
    """

    ns: Int64
    resource: UInt8
    form: UInt8
    kernel: Int32
    n_steps: int
    sync_share: float = 1.0

    def binds(self) -> tuple[str, float]:
        """The resource with most of the path, and its share."""
        sums = self._sums()
        most = int(sums.argmax())
        return RESOURCES[most], float(sums[most] / max(sums.sum(), 1))

    def by_resource(self) -> dict[str, float]:
        """ns a step."""
        sums = self._sums() / max(self.n_steps, 1)
        return dict(zip(RESOURCES, sums.tolist(), strict=True))

    def _sums(self) -> Floats64:
        sums = np.bincount(self.resource, self.ns, len(RESOURCES)).astype(np.float64)
        rest = sums[_SYNC] * (1 - self.sync_share)
        sums[_SYNC] -= rest
        sums[_HOST] += rest
        return sums


def path_of(model: Model, weights: Weights, replayed: Replayed, most: int | None = None) -> Path:
    """The critical paths of the counted steps. Replays: the times of `replayed` become invalid.

    most : the number of steps, evenly spaced; None for all
    """
    rows = np.flatnonzero(model.is_counted)
    if most is not None and len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
    parts = model.paths(weights, replayed, rows)
    loading = model.loading if weights.has_loading else np.zeros(len(model.graph), np.int64)
    found = Path(*_pieces(model, parts, loading[parts["node"]]), n_steps=len(rows))
    after_waits = found.by_resource()["sync"]
    if after_waits <= max(_LITTLE * sum(found.by_resource().values()), 0.0):
        return found
    wall = model.mean(replayed.wall)
    saved = wall - model.mean(model.run(without_sync(model, weights)[0]).wall)
    return replace(found, sync_share=min(max(saved / after_waits, 0.0), 1.0))


def _pieces(model: Model, parts: np.ndarray, loading: Int64) -> tuple[Int64, UInt8, UInt8, Int32]:
    """The time of each part in pieces: its own, before it, and the lag of its edge."""
    graph, node = model.graph, parts["node"]
    is_work = graph.kind[node] == WORK
    kernel = model.launches[node]
    of_work = take(model.kernel_class, np.where(is_work, graph.kernel[node], -1), 0)
    of_host = _host_resource(model, parts)
    own = np.where(is_work, of_work, of_host)
    before = np.where(is_work, np.where(of_work == _COMM, _COMM, _UNEXPLAINED), of_host)
    lag = np.where(is_work, np.where(parts["slot"] == 0, _LATENCY, of_work), of_host)
    loading = np.minimum(np.where(is_work, 0, loading), parts["before"])
    forms = np.where(is_work, KERNELS, HOST), np.where(is_work, WAITS, HOST)
    n = len(parts)
    return (
        np.concatenate([parts["own"], parts["before"] - loading, loading, parts["lag"]]),
        np.concatenate([own, before, np.full(n, _LOADING), lag]).astype(np.uint8),
        np.concatenate([forms[0], forms[1], np.full(n, HOST), forms[1]]).astype(np.uint8),
        np.tile(kernel, 4),
    )


def _host_resource(model: Model, parts: np.ndarray) -> UInt8:
    """What host time of each part is: after a wait for the GPU and until the next work, sync."""
    graph, node = model.graph, parts["node"]
    # Parts are in reverse order of time.
    mark = np.where(graph.kind[node] == WORK, 1, 0)
    mark[(graph.kind[node] == RETURN) & (parts["slot"] == 1)] = 2
    n = len(parts)
    place = np.where(mark > 0, np.arange(n), n)
    before = np.minimum.accumulate(place[::-1])[::-1]
    follows_wait = np.append(mark, 0)[before] == 2
    found = np.where(follows_wait, _SYNC, _HOST)
    return np.where(model.allocates[graph.call[node]], _ALLOC, found).astype(np.uint8)
