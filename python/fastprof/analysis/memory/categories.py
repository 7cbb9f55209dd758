"""Categories of blocks: parameters, gradients, activations, ..., from the phases of a trace."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.memory.allocation_columns import AllocationColumns
from fastprof.analysis.memory.blocks import Blocks
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Values
from fastprof.profile import phases

_NAMES: Final = [
    *("parameters", "inputs", "activations", "gradients", "optimizer state", "kept", "temporary"),
    "unknown",
]
_PARAMETERS, _INPUTS, _ACTIVATIONS, _GRADIENTS, _STATE, _KEPT, _TEMPORARY, _UNKNOWN = range(8)
# Operators that copy data to a device.
_MOVES: Final = frozenset({"to", "_to_copy", "copy_", "cuda", "pin_memory"})


def categories(blocks: Blocks, columns: AllocationColumns, has_steps: bool) -> Values:
    """[recorded blocks] The category, by the phases of allocation and free.

    - optimizer state: allocated by the optimizer, live in a later forward or backward pass
    - gradients: allocated in a backward pass, live in a later forward pass or optimizer step
    - inputs: allocated in a forward pass by an operator that copies, outside of layers
    - activations: allocated in a forward pass, live in a later backward pass of the step
    - kept: the same, live at the end of the capture or two steps later
    - parameters: allocated before the first step and never freed
    - temporary: freed in the same pass
    - unknown: allocated outside of operators, or not freed and none of the above

    has_steps : whether the steps of the trace are known
    """
    own = blocks.is_recorded
    begin, end = blocks.begin[own], blocks.end[own]
    is_live = blocks.is_live_at_end[own]
    phase = texts(columns, "phase")
    forward, backward = _in(phase, (phases.FORWARD,)), _in(phase, (phases.BACKWARD,))
    recompute = _in(phase, (phases.RECOMPUTE,))
    optimizer = _in(phase, (phases.OPTIMIZER, phases.ZERO_GRAD))
    step = numbers(columns, "step")
    last = int(step.max(initial=-1))
    freed = np.append(step, last)[end]  # live blocks: the last step
    later = (step[begin] >= 0) & (freed >= step[begin] + np.where(is_live, 1, 2)) & has_steps
    first = np.flatnonzero(step >= 0)[:1]
    is_early = (step[begin] < 0) & (begin < first.max(initial=0)) & has_steps
    in_backward = _between(begin, end, backward)
    outlives_backward = _between(begin, end, forward | optimizer)
    outlives_optimizer = _between(begin, end, forward | backward)
    found = np.full(len(begin), _UNKNOWN, np.int32)

    def assign(where: Bools, category: int) -> None:
        found[where & (found == _UNKNOWN)] = category

    assign(optimizer[begin] & (outlives_optimizer | is_live), _STATE)
    assign(optimizer[begin], _TEMPORARY)
    assign(backward[begin] & (outlives_backward | is_live), _GRADIENTS)
    assign(backward[begin], _TEMPORARY)
    assign(recompute[begin] & in_backward, _ACTIVATIONS)
    assign(recompute[begin] & ~is_live, _TEMPORARY)
    assign(forward[begin] & is_early & is_live, _PARAMETERS)
    assign(forward[begin] & later, _KEPT)
    assign(forward[begin] & _are_inputs(columns)[begin], _INPUTS)
    assign(forward[begin] & in_backward, _ACTIVATIONS)
    assign(forward[begin] & ~is_live, _TEMPORARY)
    return Values(found, _NAMES)


def _in(phase: Values, names: Collection[str]) -> Bools:
    return phase.fits(lambda name: name in names)


def _between(begin: Int64, end: Int64, wanted: Bools) -> Bools:
    """Whether a wanted event lies between the allocation and the free of each block."""
    places = np.append(np.flatnonzero(wanted), len(wanted) + 1)
    return np.asarray(places[np.searchsorted(places, begin, "right")] < end)


def _are_inputs(columns: AllocationColumns) -> Bools:
    inside = texts(columns, "layer").fits(bool)
    return np.asarray(_in(texts(columns, "op"), _MOVES) & ~inside)
