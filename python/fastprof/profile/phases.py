"""The part of a training step that each kernel belongs to: the column `phase`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol

import numpy as np

from fastprof._core._take import take
from fastprof._system.regex import regex
from fastprof.model.columns import SharedValues, Values
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import Trace
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.gpu_work import copy_directions, names

FORWARD, BACKWARD, RECOMPUTE = "forward", "backward", "recompute"
OPTIMIZER, ZERO_GRAD = "optimizer", "zero_grad"
COMMUNICATION, DATA, OTHER = "communication", "data", "other"
PHASES: Final = [
    *(FORWARD, BACKWARD, RECOMPUTE, OPTIMIZER, ZERO_GRAD, COMMUNICATION, DATA, OTHER),
]

STEP: Final = regex(r"Optimizer\.(step|zero_grad)#")
_OPTIMIZER: Final = regex(r"_foreach_|_fused_(?:adam|sgd|adagrad|adamw)|multi_tensor_")
_COLLECTIVE: Final = regex(r"(?:void )?(?:nccl|rccl|msccl)", re.IGNORECASE)
_MOVES: Final = frozenset({"to", "_to_copy", "copy_", "cuda", "pin_memory"})
_MOVED: Final = "moved"  # by copy operators: data if the copy is to the GPU, otherwise forward
_WITHOUT_PHASE: Final = frozenset({Kind.USER, Kind.FRAME, Kind.HIDDEN, Kind.TRACE, Kind.MODULE})


class PhaseInputs(Protocol):
    """The part of Lookups that `of_kernels` uses."""

    trace: Trace
    attribution: Attribution

    @property
    def own_paths(self) -> Any: ...

    def chains(
        self,
        wanted: Callable[[Meaning], bool],
        paths: Any,
        value: Callable[[Sequence[Meaning]], Any],
    ) -> SharedValues: ...


def of_kernels(lookups: PhaseInputs) -> Values:
    """The phase of every kernel.

    - communication: kernels of NCCL or RCCL.
    - optimizer, zero_grad: inside torch's range `Optimizer.step#...` or `Optimizer.zero_grad#...`,
      or an operator that only optimizers use; outside of backward passes.
    - recompute: a forward pass that a backward pass runs again.
    - data: copies to the GPU, outside of all operators except copy operators.
    - other: no range determines the phase.
    """
    of_chain = lookups.chains(_has_phase, lookups.own_paths, _phase)
    number = {name: i for i, name in enumerate(PHASES)} | {_MOVED: PHASES.index(FORWARD)}
    of_row = np.array([number[each] for each in of_chain.values], np.int32)[of_chain.id_of_row]
    phase = take(of_row, of_chain.rows)
    if lookups.attribution.in_engine is not None:
        phase[lookups.attribution.in_engine] = PHASES.index(BACKWARD)
    long_names, _ = names(lookups.trace)
    collective = [_COLLECTIVE.match(name) is not None for name in long_names.values]
    communicates = take(np.array(collective, bool), long_names.id_of_row, False)
    np.copyto(phase, PHASES.index(COMMUNICATION), where=take(communicates, long_names.rows))
    if lookups.trace.kernels.copied is not None:
        directions = copy_directions(lookups.trace)
        to_gpu = np.array([each == "HtoD" for each in directions.values], bool)
        to_gpu = take(take(to_gpu, directions.id_of_row, False), directions.rows)
        may = np.array([each in (_MOVED, OTHER) for each in of_chain.values], bool)
        phase[to_gpu & take(may[of_chain.id_of_row], of_chain.rows)] = PHASES.index(DATA)
    return Values(phase, PHASES)


def of_ranges(lookups: PhaseInputs) -> Values:
    """The phase of every range, as of the kernels launched in it; never communication or data."""
    of_chain = lookups.chains(_has_phase, lookups.own_paths, _phase)
    return of_chain.mapped(lambda name: FORWARD if name == _MOVED else name)


def _has_phase(meaning: Meaning) -> bool:
    turns = meaning.backward or meaning.recompute or meaning.engine
    return turns or meaning.kind not in _WITHOUT_PHASE or STEP.match(meaning.name) is not None


@lru_cache(maxsize=4096)  # a name is in many chains
def _step_phase(name: str) -> str | None:
    """The phase of a range of torch's optimizers; None for other ranges."""
    step = STEP.match(name)
    if step is None:
        return None
    return OPTIMIZER if step[1] == "step" else ZERO_GRAD


def _phase(chain: Sequence[Meaning]) -> str:
    for meaning in reversed(chain):
        if meaning.recompute:
            return RECOMPUTE
        if meaning.backward or meaning.engine:
            return BACKWARD
    for meaning in chain:
        step = _step_phase(meaning.name)
        if step is not None:
            return step
    calls = [meaning.call for meaning in chain if meaning.call is not None]
    if calls and _OPTIMIZER.match(calls[0].op):
        return OPTIMIZER
    if calls and all(call.op in _MOVES for call in calls):
        return _MOVED
    return FORWARD if chain else OTHER
