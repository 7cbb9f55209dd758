"""The columns `stage`, `batch`, `tokens` and `requests` of kernels."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, Protocol

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.model.arrays import Int32
from fastprof.model.columns import SharedValues, Values, unknown
from fastprof.model.markers import Kind, Meaning
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.serving.names import (
    DECODE,
    GENERATE,
    INEXACT,
    PREFILL,
    SAMPLING,
    Iteration,
    is_of_engine,
    iteration_of,
    stage_of_function,
    stage_of_kernel,
    stage_of_range,
)

COLUMNS: Final = ("stage", "batch", "tokens", "requests")
_FUNCTIONS: Final = frozenset({Kind.FRAME, Kind.HIDDEN, Kind.LAYER})


class StageInputs(Protocol):
    """The part of Lookups that the columns use."""

    attribution: Attribution

    @property
    def launch_ranges(self) -> Values: ...
    @property
    def meaning_paths(self) -> Any: ...
    @property
    def names(self) -> tuple[SharedValues, SharedValues]: ...

    def folds(
        self,
        adds: Callable[[Meaning], Hashable | None],
        paths: Any,
        start: Any,
        fold: Callable[[Any, Any], Any],
    ) -> SharedValues: ...


class _Within(NamedTuple):
    """The innermost iteration of a chain of ranges, and the stage of a range inside it."""

    iteration: Iteration | None = None
    stage: str | None = None


def column_of_stages(lookups: StageInputs, name: str) -> Values:
    """A column of COLUMNS, [kernels]: of the iteration around the launch.

    The stage is that of the innermost range or function of the engine that tells one. Where none
    does, in the trace of an engine, the kernel's name may: such stages begin with INEXACT, as those
    of iterations whose name leaves it open.
    """
    inside = lookups.launch_ranges.mapped(_within)
    if name == "stage":
        return _stages(lookups, inside)
    fields: dict[str, Callable[[Iteration], Any]] = {
        "batch": lambda iteration: iteration.batch,
        "tokens": lambda iteration: iteration.tokens if iteration.tokens >= 0 else None,
        "requests": lambda iteration: iteration.requests if iteration.requests >= 0 else None,
    }
    field = fields[name]
    return inside.mapped(lambda of: None if of.iteration is None else field(of.iteration))


def _within(ranges: tuple[str, ...]) -> _Within:
    """What a chain of the user's ranges tells, outermost first.

    Ranges of one iteration may be nested, such as those of an engine and of a tool around it: the
    first one that tells its tokens counts.
    """
    iteration, stage = None, None
    for name in ranges:
        own = iteration_of(name)
        if own is not None:
            if iteration is None or (iteration.tokens < 0 <= own.tokens) or _turns(iteration, own):
                iteration = own
            continue
        stage = stage_of_range(name, iteration is not None) or stage
    return _Within(iteration, stage)


def _turns(outer: Iteration, own: Iteration) -> bool:
    """Whether an inner iteration is another part of the work: a draft within a decode."""
    return own.stage not in ("", outer.stage) and outer.stage != ""


def _stages(lookups: StageInputs, inside: Values) -> Values:
    of_functions = lookups.folds(_told, lookups.meaning_paths, None, _of_function)
    has_prefill = PREFILL in of_functions.values
    of_functions = of_functions.mapped(lambda stage: _in_generate(stage, has_prefill))
    long_names, _ = lookups.names
    is_engine = any(of.iteration or of.stage for of in inside.values) or any(
        value is not None for value in of_functions.values
    )
    is_engine = is_engine or any(map(is_of_engine, long_names.values))
    if not is_engine:
        return unknown(len(long_names))
    suggested = long_names.mapped(stage_of_kernel)
    columns = (inside, of_functions, suggested)
    ids, first = alike([np.ascontiguousarray(column.ids) for column in columns])
    texts = [_stage(*(column.at(row) for column in columns)) for row in first.tolist()]
    return _distinct(ids, texts)


def _told(meaning: Meaning) -> str | None:
    """The stage that a function tells, _IN_LAYER for a layer; None for nothing."""
    if meaning.kind == Kind.LAYER:
        return _IN_LAYER
    return (stage_of_function(meaning.label) or None) if meaning.kind in _FUNCTIONS else None


def _of_function(around: str | None, own: str) -> str | None:
    if own == _IN_LAYER:
        return _IN_LAYER if around == GENERATE else around
    return own


def _in_generate(stage: str | None, has_prefill: bool) -> str | None:
    """The stage of work in the loop of `generate`: layers decode, what is outside of them samples.

    Versions before `_prefill` compute prompts there too: their stages are unknown.
    """
    if stage in _GENERATED:
        return _GENERATED[stage] if has_prefill else None
    return stage


_IN_LAYER: Final = "layer of generate"
_GENERATED: Final = {GENERATE: SAMPLING, _IN_LAYER: DECODE}


def _stage(inside: _Within | None, function: str | None, kernel: str | None) -> str | None:
    within = inside or _Within()
    if within.stage or function:
        return within.stage or function
    if within.iteration is not None and within.iteration.stage:
        mark = "" if within.iteration.is_sure else INEXACT
        return mark + within.iteration.stage
    return INEXACT + kernel if kernel else None


def _distinct(ids: Int32, texts: list[str | None]) -> Values:
    """Texts of ids as values that differ."""
    values = list(dict.fromkeys(text for text in texts if text is not None))
    place = [-1 if text is None else values.index(text) for text in texts]
    return Values(take(np.array(place, np.int32), ids), values)
