"""The cells of a trace: kernels of equal configuration, call paths and cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np

from fastprof._system.threads import computed_once
from fastprof.model.arrays import Int32
from fastprof.model.columns import Ints
from fastprof.model.trace import Trace
from fastprof.profile import gpu_work
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.cells import bits, numbered, sums
from fastprof.profile.lookups import Lookups


def partition(lookups: Lookups) -> tuple[Int32, Int32]:
    """The cell of each kernel, and the first kernel of each cell.

    The costs come last: another thread may compute them.
    """
    return numbered(_factors(lookups), len(lookups.trace.kernels))


def _factors(lookups: Lookups) -> Iterator[Int32]:
    trace = lookups.trace
    kernels, in_engine = trace.kernels, lookups.attribution.in_engine
    yield kernels.config
    paths = Lookups(trace, lookups.attribution, lookups.lines)  # its arrays are released here
    paths.tree_without_user_ranges = lookups.tree_without_user_ranges
    yield paths.own_paths.place
    yield paths.meaning_paths.place
    yield paths.direction
    del paths
    flags = [kernels.launch >= 0, lookups.frame >= 0, kernels.duration >= 0]
    flags += [] if in_engine is None else [in_engine]
    if any(gpu_work.launches_graph(name) for name in trace.strings):
        flags += [gpu_work.of_graphs(trace)[0]]
    yield bits(*flags)
    yield lookups.costs.cell
    yield bits(*lookups.known, lookups.calls.backward)


def lookups_of_cells(lookups: Lookups, of_kernel: Int32, first: Int32) -> Lookups:
    """Lookups of a trace with one kernel for each cell: its first, with the numbers of all.

    Only for columns of `cells.OF_CELLS` and `cells.SUMS`, and for coverage.
    """
    trace, attribution = lookups.trace, lookups.attribution
    kernels = trace.kernels
    arrays = {
        each.name: getattr(kernels, each.name)[first]
        for each in fields(kernels)
        if isinstance(getattr(kernels, each.name), np.ndarray)
    }
    time = sums(kernels.duration, of_kernel, first)
    in_engine, replay = attribution.in_engine, attribution.replay_of_kernel
    found = _LookupsOfCells(
        lookups,
        of_kernel,
        first,
        replace(trace, kernels=replace(kernels, **{**arrays, "duration": time})),
        replace(
            attribution,
            frame_of_kernel=attribution.frame_of_kernel[first],
            launch_frame_of_kernel=attribution.launch_frame_of_kernel[first],
            replay_of_kernel=None if replay is None else replay[first],
            in_engine=None if in_engine is None else in_engine[first],
        ),
    )
    found.tree_without_user_ranges = lookups.tree_without_user_ranges
    found.__dict__["costs"] = lookups.costs.at(first)
    return found


class _LookupsOfCells(Lookups):
    """Lookups of cells, whose FLOPs and bytes are sums."""

    def __init__(
        self,
        whole: Lookups,
        of_kernel: Int32,
        first: Int32,
        trace: Trace,
        attribution: Attribution,
    ) -> None:
        super().__init__(trace, attribution, whole.lines)
        self._whole, self._of_kernel, self._first = whole, of_kernel, first

    @computed_once
    def flops(self) -> Ints:
        """The sum over the kernels of each cell; -1 if unknown."""
        return Ints(sums(self._whole.flops.values, self._of_kernel, self._first))

    @computed_once
    def bytes(self) -> Ints:
        """As `flops`."""
        return Ints(sums(self._whole.bytes.values, self._of_kernel, self._first))
