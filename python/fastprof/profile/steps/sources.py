"""Choose what marks the steps of a trace: ranges, repeated kernels, or what the user names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

import numpy as np

from fastprof._core._pools import pairs
from fastprof.errors import StepsError
from fastprof.model.arrays import Int32, Int64, unique
from fastprof.model.columns import Values
from fastprof.model.metadata import ProfilerSteps
from fastprof.model.numbers import quantity
from fastprof.model.trace import NEVER, NO_TIME, Trace
from fastprof.profile import gpu_work
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.costs import Costs
from fastprof.profile.instances import RangeInstances
from fastprof.profile.serving.names import has_iterations
from fastprof.profile.steps import marks, ranges, repetition
from fastprof.profile.steps import marks as anchors
from fastprof.profile.steps import ranges as labels
from fastprof.profile.steps import window as startup
from fastprof.profile.steps.iterations import find_iterations
from fastprof.profile.steps.kernel_steps import (
    StepsOfKernels,
    one_step,
    part_step,
    steps_of_kernels,
)
from fastprof.profile.steps.losses import with_losses
from fastprof.profile.steps.window import Window, inside, span, within

FORMS: Final = (
    "ProfilerStep, range, range:REGEX, DataLoader, Optimizer.step, graph, repetition, iteration, "
    "anchor:REGEX, anchor:REGEX>5ms or none"
)
_SEVERAL: Final = 4  # names in a line
_REST: Final = "the rest"


class StepInputs(Protocol):
    """The part of Lookups that steps need."""

    trace: Trace
    attribution: Attribution

    @property
    def window(self) -> Window | None: ...
    @property
    def startup(self) -> startup.Startup | None: ...
    @property
    def direction(self) -> Int32: ...
    @property
    def meaning_paths(self) -> Any: ...
    @property
    def names(self) -> tuple[Values, Values]: ...
    @property
    def costs(self) -> Costs: ...

    def layer(self, paths: Any) -> Values: ...


class _Part:
    """The kernels of a trace, of which only the launches and ranges in a window are known."""

    window: Window | None = None
    startup: startup.Startup | None = None

    def __init__(self, kernels: StepInputs, window: Window) -> None:
        self._kernels = kernels
        self.trace, self.attribution = within(kernels.trace, window), kernels.attribution

    @property
    def direction(self) -> Int32:
        return self._kernels.direction

    @property
    def meaning_paths(self) -> Any:
        return self._kernels.meaning_paths

    @property
    def names(self) -> tuple[Values, Values]:
        return self._kernels.names

    @property
    def costs(self) -> Costs:
        return self._kernels.costs

    def layer(self, paths: Any) -> Values:
        return self._kernels.layer(paths)


def find(
    kernels: StepInputs, source: str | None, read: Callable[[], RangeInstances] | None
) -> StepsOfKernels:
    """The steps by one source, in the window that the user asks for.

    source : None: the first that applies; without a window, to what follows the start-up
    read : reads all ranges of the trace, for `range:REGEX` that matches none of the user's own

    Raises
    ------
    StepsError
        The source is unknown, or the trace has no steps of this source.
    """
    steps = _within_window(kernels, source, read)
    return with_losses(kernels.trace, steps, kernels.window)


def _within_window(
    kernels: StepInputs, source: str | None, read: Callable[[], RangeInstances] | None
) -> StepsOfKernels:
    """The steps by one source, in the window that the user asks for."""
    window = kernels.window
    if window is None or not window.text:
        return _whole(kernels, source, read)
    is_inside = inside(kernels.trace, window)
    first, last = span(kernels.trace)
    left_out = f"part {window.text} of the capture of {quantity(last - first, 'ns')}"
    steps = _whole(kernels, source, read)
    outside = np.bincount(steps.of_kernel[~is_inside] + 1, minlength=len(steps) + 1)[1:]
    is_counted = steps.is_counted & (outside == 0) & (steps.gpu_end != NO_TIME)
    if steps.unit == "step" and is_counted.any():
        return replace(steps, is_counted=is_counted, left_out=left_out)
    part = part_step(kernels.trace, is_inside, window.begin, "part", f"one step, {window.text}")
    return replace(part, left_out=left_out)


def _whole(
    kernels: StepInputs, source: str | None, read: Callable[[], RangeInstances] | None
) -> StepsOfKernels:
    """The steps of the capture by one source; None: the first source that applies."""
    return _automatic(kernels) if source is None else _by_source(kernels, source, read)


def _by_source(
    kernels: StepInputs, source: str, read: Callable[[], RangeInstances] | None
) -> StepsOfKernels:
    if source in _FINDERS:
        result = _FINDERS[source](kernels)
        if isinstance(result, str):
            raise StepsError(f"{kernels.trace.name}: no steps by {source!r}: {result}")
        return result
    form, _, pattern = source.partition(":")
    if form == "range" and pattern:
        return _by_range(kernels, pattern, read)
    if form == "anchor" and pattern:
        return anchors.find(kernels.trace, kernels.names, lambda: kernels.costs.op, pattern)
    close = labels.nearest(source, [*_FINDERS, "range:", "anchor:"])
    raise StepsError(f"unknown source of steps {source!r}: expected {FORMS}; similar: {close}")


def _automatic(kernels: StepInputs) -> StepsOfKernels:
    """The steps of the first source that applies; else what follows the start-up, as one step."""
    engine = _by_iterations(kernels)
    # Ranges ProfilerStep#N may be around several iterations, or each around one.
    if isinstance(engine, StepsOfKernels) and len(engine) >= len(kernels.trace.about.steps):
        return engine
    result = _by_profiler(kernels)
    # A single step is no period; the capture may contain several unmarked ones.
    if isinstance(result, StepsOfKernels) and len(result) > 1:
        return result
    reasons = list[str]()
    begun = kernels.startup
    if begun is None:
        return _repeating(kernels, reasons) or one_step(kernels.trace, "; ".join(reasons))
    steady = Window(begun.until, NEVER)
    part = _Part(kernels, steady)
    rest = _rest(part)
    steps = _repeating(part, reasons) or part_step(
        kernels.trace, inside(kernels.trace, steady), steady.begin, "steady", f"one step, {rest}"
    )
    return replace(steps, left_out=_left_out(kernels.trace, steps, begun, rest))


def _repeating(kernels: StepInputs, reasons: list[str]) -> StepsOfKernels | None:
    """Steps by what repeats; adds why there are none to `reasons`."""
    for find_by in (_by_repeated_range, _by_marks, _by_repetition):
        result = find_by(kernels)
        if isinstance(result, StepsOfKernels) and len(result) > 1:
            return result
        if isinstance(result, str) and find_by is not _by_marks:
            reasons.append(result)
    return None


def startup_of(kernels: StepInputs) -> startup.Startup | None:
    """The start-up; None if ranges `ProfilerStep#N` or an engine mark steps, or in a window."""
    trace, meanings = kernels.trace, kernels.attribution.meanings
    if not len(trace.kernels) or kernels.window is not None or len(trace.about.steps) > 1:
        return None
    if has_iterations(meanings):
        return None
    return startup.find(trace, meanings, kernels.names[1], _launched_time(trace))


def _rest(kernels: StepInputs) -> str:
    """The outermost ranges of a part, in a few words."""
    texts = ranges.outermost_texts(kernels.trace, kernels.attribution.meanings)
    if not 0 < len(texts) < _SEVERAL:
        return _REST
    return ", ".join(map(labels.shown, texts))


def _left_out(trace: Trace, steps: StepsOfKernels, begun: startup.Startup, rest: str) -> str:
    """The line that names the start-up."""
    first, last = span(trace)
    begin = int((steps.gpu_end - np.maximum(steps.gpu_length, 0))[steps.gpu_end != NO_TIME].min())
    names = ", ".join(begun.names[:_SEVERAL]) + (", ..." if len(begun.names) > _SEVERAL else "")
    then = steps.description
    if steps.source == "steady":
        then = rest
    elif steps.source == "repetition" and rest != _REST:
        then = f"{len(unique(steps.number))} repetitions in {rest}"
    return (
        f"capture of {quantity(last - first, 'ns')}: start-up {quantity(begin - first, 'ns')} "
        f"({names}) is left out, then {then}; --trim : for all of it"
    )


def _by_marks(kernels: StepInputs) -> StepsOfKernels | str:
    """Steps by the first source of `_MARKS` that divides the capture without doubt."""
    for source in _MARKS:
        marked = _marks(kernels, source)
        if isinstance(marked, marks.MarkedSteps) and len(marked.steps) > 1 and not marked.doubt:
            return _by_mark(kernels, source, marked.steps)
    return "nothing marks steps"


def _by_profiler(kernels: StepInputs) -> StepsOfKernels | str:
    trace, steps = kernels.trace, kernels.trace.about.steps
    if not len(steps):
        return (
            "expected ranges ProfilerStep#N, found none; call step() of torch.profiler's schedule"
        )
    next_start = np.append(steps.start[1:], NEVER)
    # An unclosed step ends where the next one of its process begins.
    unclosed = (steps.end == NEVER) & (np.append(steps.pid[1:], -1) == steps.pid)
    steps = ProfilerSteps(
        steps.number, steps.start, np.where(unclosed, next_start, steps.end), steps.pid
    )
    texts = [f"ProfilerStep#{number}" for number in steps.number.tolist()]
    description = ranges.described(ranges.Marked(steps, texts))
    return steps_of_kernels(trace, steps, "ProfilerStep", description)


def _by_iterations(kernels: StepInputs) -> StepsOfKernels | str:
    trace, meanings = kernels.trace, kernels.attribution.meanings
    marked = find_iterations(trace, meanings) if has_iterations(meanings) else None
    if marked is None:
        return (
            "expected ranges of a serving engine such as execute_context_1(888)_generation_0(0) "
            "or step[DECODE bs=32], found none"
        )
    are_closed = bool((marked.closed != NEVER).all())
    steps = steps_of_kernels(
        trace, marked.steps, "iteration", marked.description,
        ends_known=False, starts_known=True, may_be_cut=-1,
        are_closed=are_closed, are_alike=len(set(marked.stages)) == 1,
    )  # fmt: skip
    return replace(steps, labels=tuple(marked.labels))


def _by_repeated_range(kernels: StepInputs) -> StepsOfKernels | str:
    trace = kernels.trace
    repeated_ranges = ranges.repeated(trace, kernels.attribution.meanings, _launched_time(trace))
    if repeated_ranges is None:
        return "no range repeats"
    name = f"range {labels.shown(repeated_ranges.label)}"
    if repeated_ranges.share < ranges.ENOUGH:
        share, least = labels.percent(repeated_ranges.share), labels.percent(ranges.ENOUGH)
        return f"{name!r} repeats but launches {share} of the GPU time, expected {least}"
    return steps_of_kernels(
        trace, repeated_ranges.marked.steps, name, ranges.described(repeated_ranges.marked)
    )


def _by_range(
    kernels: StepInputs, pattern: str, read: Callable[[], RangeInstances] | None
) -> StepsOfKernels:
    trace, meanings = kernels.trace, kernels.attribution.meanings
    wanted = labels.compiled(pattern)
    marked = ranges.matching(trace, meanings, wanted)
    if not marked.labels and read and any(wanted.search(meaning.name) for meaning in meanings):
        marked = ranges.matching_instances(trace, read(), wanted)
    if not marked.labels:
        known = ranges.texts(trace, meanings) or [meaning.name for meaning in meanings]
        raise StepsError(
            f"{trace.name}: no range on a thread that launches kernels matches {pattern!r}; "
            + (f"nearest: {labels.nearest(pattern, known)}" if known else "the trace has no ranges")
        )
    return steps_of_kernels(trace, marked.steps, f"range:{pattern}", ranges.described(marked))


def _by_repetition(kernels: StepInputs) -> StepsOfKernels | str:
    trace = kernels.trace
    group, is_kernel = _groups(kernels), ~gpu_work.are_copies(trace)
    result = repetition.find(trace, group, is_kernel)
    if result.steps is None:
        # Where all layers run equal kernels, few of a grid tell how often a step repeats.
        of_grids = repetition.find(trace, pairs(group, trace.kernels.config)[0], is_kernel)
        result = result if of_grids.steps is None else of_grids
    if result.steps is None:
        return (
            f"{labels.percent(result.share)} of the GPU time repeats in equal steps, expected "
            f"{labels.percent(repetition.ENOUGH)}; range:REGEX or anchor:REGEX defines steps"
        )
    share = f"{labels.percent(result.share)} of the GPU time repeats"
    n_processes = len(unique(result.steps.pid))
    where = f" in {n_processes} processes" if n_processes > 1 else ""
    return steps_of_kernels(
        trace, result.steps, "repetition",
        f"{len(result.steps)} steps{where} found by repetition: {share}",
        ends_known=False, confidence=result.share,
    )  # fmt: skip


def _marks(kernels: StepInputs, source: str) -> marks.MarkedSteps | str:
    trace, weight = kernels.trace, _launched_time(kernels.trace)
    if source == "graph":
        return marks.by_graph(trace, weight)
    find_by = marks.by_loader if source == "DataLoader" else marks.by_optimizer
    return find_by(trace, kernels.attribution.meanings, weight)


def _by_requested_mark(kernels: StepInputs, source: str) -> StepsOfKernels | str:
    result = _marks(kernels, source)
    return result if isinstance(result, str) else _by_mark(kernels, source, result.steps)


def _by_mark(kernels: StepInputs, source: str, steps: ProfilerSteps) -> StepsOfKernels:
    n_processes, n = len(unique(steps.pid)), len(steps)
    where = f" in {n_processes} processes" if n_processes > 1 else ""
    return steps_of_kernels(
        kernels.trace, steps, source,
        f"{n} step{'s' if n > 1 else ''}{where}, {_MARKS[source]}",
        ends_known=False, starts_known=source == "DataLoader",
        may_be_cut=0 if source == "Optimizer.step" else -1,
    )  # fmt: skip


# By source: how a mark divides the capture.
_MARKS: Final = {
    "DataLoader": "each from a fetch of the DataLoader",
    "Optimizer.step": "each to the end of an Optimizer.step",
    "graph": "each from a launch of the same CUDA graph",
}


def _groups(kernels: StepInputs) -> Int32:
    """[kernels] The group of each: equal direction, operator, parameters, layer and kernel name."""
    costs, (_, names) = kernels.costs, kernels.names
    group = kernels.direction
    for column in (costs.op, costs.params, kernels.layer(kernels.meaning_paths), names):
        group, _ = pairs(group, column.ids)
    return group


def _launched_time(trace: Trace) -> Int64:
    """[kernels] GPU time of kernels whose launch is recorded; 0 for others and for copies."""
    time = np.maximum(trace.kernels.duration, 0)
    time[(trace.kernels.launch < 0) | gpu_work.are_copies(trace)] = 0
    return time


_FINDERS: Final[dict[str, Callable[[StepInputs], StepsOfKernels | str]]] = {
    "ProfilerStep": _by_profiler,
    "iteration": _by_iterations,
    "range": _by_repeated_range,
    "repetition": _by_repetition,
    **{source: partial(_by_requested_mark, source=source) for source in _MARKS},
    "none": lambda kernels: one_step(kernels.trace, "requested"),
}
