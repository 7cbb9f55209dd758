"""Choose what marks the steps of a trace: ranges, repeated kernels, or what the user names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

import numpy as np

from fastprof._core._pools import pairs
from fastprof.errors import StepsError
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Values
from fastprof.model.metadata import Steps
from fastprof.model.trace import NEVER, Trace
from fastprof.profile import gpu_work
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.costs import Costs
from fastprof.profile.instances import RangeInstances
from fastprof.profile.steps import anchors, labels, marks, ranges, repetition
from fastprof.profile.steps.of_kernels import StepsOfKernels, one_step, steps_of_kernels

FORMS: Final = (
    "ProfilerStep, range, range:REGEX, DataLoader, Optimizer.step, graph, repetition, "
    "anchor:REGEX, anchor:REGEX>5ms or none"
)


class Kernels(Protocol):
    """The part of Lookups that steps need."""

    trace: Trace
    attribution: Attribution

    @property
    def direction(self) -> Int32: ...
    @property
    def meaning_paths(self) -> Any: ...
    @property
    def names(self) -> tuple[Values, Values]: ...
    @property
    def costs(self) -> Costs: ...

    def layer(self, paths: Any) -> Values: ...


def find(
    kernels: Kernels, source: str | None, read: Callable[[], RangeInstances] | None
) -> StepsOfKernels:
    """The steps by one source; None: the first source that applies.

    read : reads all ranges of the trace, for `range:REGEX` that matches none of the user's own

    Raises
    ------
    StepsError
        The source is unknown, or the trace has no steps of this source.
    """
    if source is None:
        return _automatic(kernels)
    if source in _FINDERS:
        found = _FINDERS[source](kernels)
        if isinstance(found, str):
            raise StepsError(f"{kernels.trace.name}: no steps by {source!r}: {found}")
        return found
    form, _, pattern = source.partition(":")
    if form == "range" and pattern:
        return _by_range(kernels, pattern, read)
    if form == "anchor" and pattern:
        return anchors.find(kernels.trace, kernels.names, lambda: kernels.costs.op, pattern)
    close = labels.nearest(source, [*_FINDERS, "range:", "anchor:"])
    raise StepsError(f"unknown source of steps {source!r}: expected {FORMS}; similar: {close}")


def _automatic(kernels: Kernels) -> StepsOfKernels:
    reasons = []
    for find_by in (_by_profiler, _by_repeated_range, _by_marks, _by_repetition):
        found = find_by(kernels)
        # A single step is no period; the capture may contain several unmarked ones.
        if isinstance(found, StepsOfKernels) and len(found) > 1:
            return found
        if isinstance(found, str) and find_by in (_by_repeated_range, _by_repetition):
            reasons.append(found)
    return one_step(kernels.trace, "; ".join(reasons))


def _by_marks(kernels: Kernels) -> StepsOfKernels | str:
    """Steps by the first source of `_MARKS` that divides the capture without doubt."""
    for source in _MARKS:
        marked = _marks(kernels, source)
        if isinstance(marked, marks.Found) and len(marked.steps) > 1 and not marked.doubt:
            return _by_mark(kernels, source, marked.steps)
    return "nothing marks steps"


def _by_profiler(kernels: Kernels) -> StepsOfKernels | str:
    trace, steps = kernels.trace, kernels.trace.about.steps
    if not len(steps):
        return (
            "expected ranges ProfilerStep#N, found none; call step() of torch.profiler's schedule"
        )
    next_start = np.append(steps.start[1:], NEVER)
    # An unclosed step ends where the next one of its process begins.
    unclosed = (steps.end == NEVER) & (np.append(steps.pid[1:], -1) == steps.pid)
    steps = Steps(steps.number, steps.start, np.where(unclosed, next_start, steps.end), steps.pid)
    texts = [f"ProfilerStep#{number}" for number in steps.number.tolist()]
    description = ranges.described(ranges.Marked(steps, texts))
    return steps_of_kernels(trace, steps, "ProfilerStep", description)


def _by_repeated_range(kernels: Kernels) -> StepsOfKernels | str:
    trace = kernels.trace
    found = ranges.repeated(trace, kernels.attribution.meanings, _launched_time(trace))
    if found is None:
        return "no range repeats"
    name = f"range {labels.shown(found.label)}"
    if found.share < ranges.ENOUGH:
        share, least = labels.percent(found.share), labels.percent(ranges.ENOUGH)
        return f"{name!r} repeats but launches {share} of the GPU time, expected {least}"
    return steps_of_kernels(trace, found.marked.steps, name, ranges.described(found.marked))


def _by_range(
    kernels: Kernels, pattern: str, read: Callable[[], RangeInstances] | None
) -> StepsOfKernels:
    trace, meanings = kernels.trace, kernels.attribution.meanings
    wanted = labels.compiled(pattern)
    marked = ranges.matching(trace, meanings, wanted)
    if not marked.labels and read and any(wanted.search(each.name) for each in meanings):
        marked = ranges.matching_instances(trace, read(), wanted)
    if not marked.labels:
        known = ranges.texts(trace, meanings) or [each.name for each in meanings]
        raise StepsError(
            f"{trace.name}: no range on a thread that launches kernels matches {pattern!r}; "
            + (f"nearest: {labels.nearest(pattern, known)}" if known else "the trace has no ranges")
        )
    return steps_of_kernels(trace, marked.steps, f"range:{pattern}", ranges.described(marked))


def _by_repetition(kernels: Kernels) -> StepsOfKernels | str:
    trace = kernels.trace
    group, is_kernel = _groups(kernels), ~gpu_work.are_copies(trace)
    found = repetition.find(trace, group, is_kernel)
    if found.steps is None:
        return (
            f"{labels.percent(found.share)} of the GPU time repeats in equal steps, expected "
            f"{labels.percent(repetition.ENOUGH)}; range:REGEX or anchor:REGEX defines steps"
        )
    share = f"{labels.percent(found.share)} of the GPU time repeats"
    n_processes = len(np.unique(found.steps.pid))
    where = f" in {n_processes} processes" if n_processes > 1 else ""
    return steps_of_kernels(
        trace, found.steps, "repetition",
        f"{len(found.steps)} steps{where} found by repetition: {share}",
        ends_known=False, confidence=found.share,
    )  # fmt: skip


def _marks(kernels: Kernels, source: str) -> marks.Found | str:
    trace, weight = kernels.trace, _launched_time(kernels.trace)
    if source == "graph":
        return marks.by_graph(trace, weight)
    find_by = marks.by_loader if source == "DataLoader" else marks.by_optimizer
    return find_by(trace, kernels.attribution.meanings, weight)


def _by_requested_mark(kernels: Kernels, source: str) -> StepsOfKernels | str:
    found = _marks(kernels, source)
    return found if isinstance(found, str) else _by_mark(kernels, source, found.steps)


def _by_mark(kernels: Kernels, source: str, steps: Steps) -> StepsOfKernels:
    n_processes, n = len(np.unique(steps.pid)), len(steps)
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


def _groups(kernels: Kernels) -> Int32:
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


_FINDERS: Final[dict[str, Callable[[Kernels], StepsOfKernels | str]]] = {
    "ProfilerStep": _by_profiler,
    "range": _by_repeated_range,
    "repetition": _by_repetition,
    **{source: partial(_by_requested_mark, source=source) for source in _MARKS},
    "none": lambda kernels: one_step(kernels.trace, "requested"),
}
