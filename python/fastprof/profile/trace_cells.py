"""The cells of a trace: kernels of equal configuration, call paths and cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np

from fastprof.model.arrays import Int32
from fastprof.model.columns import Ints
from fastprof.profile import gpu_work
from fastprof.profile.cells import bits, numbered, sums
from fastprof.profile.lookups import Lookups

__all__ = ["lookups_of_cells", "partition"]


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
    yield bits(lookups.flops.values >= 0, lookups.bytes.values >= 0, lookups.calls.backward)


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
    found = Lookups(
        replace(trace, kernels=replace(kernels, **{**arrays, "duration": time})),
        replace(
            attribution,
            frame_of_kernel=attribution.frame_of_kernel[first],
            launch_frame_of_kernel=attribution.launch_frame_of_kernel[first],
            replay_of_kernel=None if replay is None else replay[first],
            in_engine=None if in_engine is None else in_engine[first],
        ),
        lookups.lines,
    )
    found.tree_without_user_ranges = lookups.tree_without_user_ranges
    found.__dict__["costs"] = lookups.costs.at(first)
    found.__dict__["flops"] = Ints(sums(lookups.flops.values, of_kernel, first))
    found.__dict__["bytes"] = Ints(sums(lookups.bytes.values, of_kernel, first))
    return found
