"""Ranges that ended on another thread. They belong to a process, not to a call path."""

from __future__ import annotations

import numpy as np

from fastprof._core import _nest
from fastprof._core._take import take
from fastprof.model.arrays import rows_by
from fastprof.model.columns import Values
from fastprof.model.trace import Trace, label_text


def open_at_launch(trace: Trace) -> Values:
    """[kernels] The phases of the process that were open at the launch, outermost first.

    Phases may overlap in any way.
    """
    phases, launches = trace.phases, trace.launches
    if not len(phases):
        return Values(np.zeros(len(trace.kernels), np.int32), [()])
    ids: dict[tuple[str, ...], int] = {(): 0}
    of_launch = np.zeros(len(launches), np.int32)
    process_of_phase = take(trace.process_of_thread, phases.thread)
    threads_known = launches.thread.min(initial=0) >= 0
    is_one = threads_known and len(trace.processes) == 1
    process_of_call = take(trace.process_of_thread, launches.thread)
    calls_of = {} if is_one else dict(rows_by(process_of_call))
    calls_of.pop(-1, None)
    for process, rows in rows_by(process_of_phase):
        # A slice makes views; rows, copies.
        calls = slice(None) if is_one else calls_of.get(process, np.empty(0, np.int64))
        tree = _nest.Tree(phases.start[rows], phases.end[rows])
        node, parent, label = tree.nodes(phases.label[rows], launches.start[calls])
        chains: list[tuple[str, ...]] = []
        for above, number in zip(parent.tolist(), label.tolist(), strict=True):
            name = label_text(trace.labels[number])
            chains.append((*(chains[above] if above >= 0 else ()), name))
        of_node = np.array([ids.setdefault(chain, len(ids)) for chain in chains], np.int32)
        of_launch[calls] = take(of_node, node, 0)
    return Values(take(of_launch, trace.kernels.launch, 0), list(ids))
