"""The critical path of each step: what the length of the step consists of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof.analysis.grouping import Floats64
from fastprof.analysis.host_states import State
from fastprof.analysis.idle_causes import CAUSES
from fastprof.analysis.replay.graph import WORK
from fastprof.analysis.replay.model import Model, rounded
from fastprof.analysis.replay.runs import Replayed, Weights
from fastprof.model.arrays import Int32, Int64, UInt8

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
    ns : int64 [pieces]
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


class _Piece(NamedTuple):
    ns: Int64
    resource: Int64
    form: Int64
    kernel: Int32


def _pieces(model: Model, weights: Weights, parts: np.ndarray) -> Iterator[npt.NDArray[Any]]:
    """The columns of `Path`: the time of each part in pieces."""
    is_work = model.graph.kind[parts["node"]] == WORK
    pieces = [*_of_work(model, parts[is_work]), *_of_host(model, weights, parts[~is_work])]
    for column, dtype in zip(zip(*pieces, strict=True), _TYPES, strict=True):
        yield np.concatenate(column).astype(dtype)


_TYPES: Final = (np.int64, np.uint8, np.uint8, np.int32)


def _of_work(model: Model, parts: np.ndarray) -> Iterator[_Piece]:
    """Its own time, what it waits for without a record, and the lag of its edge."""
    kernel = model.graph.kernel[parts["node"]]
    own = take(model.kernel_class, kernel, 0).astype(np.int64)
    waits = np.full(len(own), WAITS)
    yield _Piece(parts["own"], own, np.full(len(own), KERNELS), kernel)
    # A copy waits until the host has the memory ready, a collective for other ranks.
    yield _Piece(parts["before"], np.where(own == _GPU, _UNEXPLAINED, own), waits, kernel)
    yield _Piece(parts["lag"], np.where(parts["slot"] == 0, _LATENCY, own), waits, kernel)


def _of_host(model: Model, weights: Weights, parts: np.ndarray) -> Iterator[_Piece]:
    """Calls and the time before them: in each state, and the host's own."""
    node, kernel = parts["node"], model.launches[parts["node"]]
    form = np.full(len(node), HOST)
    host = np.full(len(node), _HOST)
    for name, spent in (("own", model.host_time.own), ("before", model.host_time.before)):
        rest = parts[name].copy()
        in_states = rounded(spent.of_nodes(node, weights.left))
        for state in range(len(OF_STATES)):
            ns = np.minimum(in_states[:, state], rest)
            rest -= ns
            yield _Piece(ns, host + 1 + state, form, kernel)
        yield _Piece(rest, host, form, kernel)
    yield _Piece(parts["lag"], host, form, kernel)
