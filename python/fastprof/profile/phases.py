"""The part of a training step that each kernel belongs to: the column `phase`."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Final, Protocol

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.model.columns import SharedValues, Values
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import Trace
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.gpu_work import copy_directions, names
from fastprof.profile.serving.names import has_iterations

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
    """The part of Lookups that `phase_of_kernels` uses."""

    trace: Trace
    attribution: Attribution

    @property
    def own_paths(self) -> Any: ...

    def folds(
        self,
        adds: Callable[[Meaning], Hashable | None],
        paths: Any,
        start: Any,
        fold: Callable[[Any, Any], Any],
    ) -> SharedValues: ...


def phase_of_kernels(lookups: PhaseInputs) -> Values:
    """The phase of every kernel.

    - communication: kernels of NCCL or RCCL.
    - optimizer, zero_grad: inside torch's range `Optimizer.step#...` or `Optimizer.zero_grad#...`,
      or an operator that only optimizers use; outside of backward passes.
    - recompute: a forward pass that a backward pass runs again.
    - data: copies to the GPU, outside of all operators except copy operators.
    - other: no range determines the phase.
    """
    of_chain = _of_chains(lookups)
    number = {name: i for i, name in enumerate(PHASES)} | {_MOVED: PHASES.index(FORWARD)}
    of_row = np.array([number[value] for value in of_chain.values], np.int32)[of_chain.id_of_row]
    phase = take(of_row, of_chain.rows)
    if lookups.attribution.in_engine is not None:
        phase[lookups.attribution.in_engine] = PHASES.index(BACKWARD)
    long_names, _ = names(lookups.trace)
    collective = [_COLLECTIVE.match(name) is not None for name in long_names.values]
    communicates = take(np.array(collective, bool), long_names.id_of_row, False)
    np.copyto(phase, PHASES.index(COMMUNICATION), where=take(communicates, long_names.rows))
    if lookups.trace.kernels.copied is not None:
        directions = copy_directions(lookups.trace)
        to_gpu = np.array([value == "HtoD" for value in directions.values], bool)
        to_gpu = take(take(to_gpu, directions.id_of_row, False), directions.rows)
        may = np.array([value in (_MOVED, OTHER) for value in of_chain.values], bool)
        phase[to_gpu & take(may[of_chain.id_of_row], of_chain.rows)] = PHASES.index(DATA)
    return Values(phase, PHASES)


def phase_of_ranges(lookups: PhaseInputs) -> Values:
    """The phase of every range, as of the kernels launched in it; never communication or data."""
    of_chain = _of_chains(lookups)
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


def _of_chains(lookups: PhaseInputs) -> SharedValues:
    """A phase, or _MOVED, for the chain of labels around each kernel."""
    of_chain = lookups.folds(_told, lookups.own_paths, _Chain(), _within)
    # Engines use operators of optimizers too, to copy many tensors at once.
    is_engine = has_iterations(lookups.attribution.meanings)
    return of_chain.mapped(_phase_in_engine if is_engine else _phase)


class _Chain(NamedTuple):
    """What tells the phase of a chain of labels.

    Parameters
    ----------
    turn : the innermost of backward passes and recomputed forward passes
    step : the outermost of the steps of torch's optimizers
    is_optimizer : whether the outermost call is one that only optimizers use; None without a call
    moves : whether all calls are copy operators
    """

    turn: str | None = None
    step: str | None = None
    is_optimizer: bool | None = None
    moves: bool = True
    is_empty: bool = True


def _told(meaning: Meaning) -> _Chain | None:
    """What a label tells of the phase; None for nothing."""
    if not _has_phase(meaning):
        return None
    turn = RECOMPUTE if meaning.recompute else None
    if turn is None and (meaning.backward or meaning.engine):
        turn = BACKWARD
    step, call = _step_phase(meaning.name), meaning.call
    if call is None:
        return _Chain(turn, step, None, True, False)
    return _Chain(turn, step, _OPTIMIZER.match(call.op) is not None, call.op in _MOVES, False)


def _within(around: _Chain, own: _Chain) -> _Chain:
    return _Chain(
        own.turn or around.turn,
        around.step or own.step,
        own.is_optimizer if around.is_optimizer is None else around.is_optimizer,
        around.moves and own.moves,
        False,
    )


def _phase_in_engine(chain: _Chain) -> str:
    """As `_phase`; what only optimizers use elsewhere is a call like others."""
    return _phase(chain._replace(is_optimizer=None if chain.is_optimizer else chain.is_optimizer))


def _phase(chain: _Chain) -> str:
    if (known := chain.turn or chain.step) is not None:
        return known
    if chain.is_optimizer:
        return OPTIMIZER
    if chain.is_optimizer is not None and chain.moves:
        return _MOVED
    return OTHER if chain.is_empty else FORWARD
