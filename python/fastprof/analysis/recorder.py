"""The recorder's own time: how much shorter a step, and its waits for the host, are without it.

The steps before the recording, where `fastprof run` or `fastprof.capture` measured them, say so.
Else torch.profiler's part is estimated from the events in the trace; see docs/replay.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.analysis.grouping import Floats64, numbers, texts
from fastprof.analysis.host.events import grouped
from fastprof.analysis.host.states import State, host_states, loader_ranges
from fastprof.analysis.idle.causes import CAUSES, Cause
from fastprof.analysis.idle.gaps import WindowGaps, gaps_of_steps
from fastprof.analysis.steps.windows import step_means, windows_of
from fastprof.model.arrays import Bools, Int32, Int64, unique
from fastprof.model.markers import Kind, Meaning
from fastprof.model.metadata import Unrecorded
from fastprof.model.numbers import quantity
from fastprof.model.trace import NO_TIME
from fastprof.profile.data import ProfileData, kept
from fastprof.profile.steps.kernel_steps import StepsOfKernels

# A host that is earlier hides the latency of a launch too.
_HOST: Final = (Cause.LAUNCH_BOUND, Cause.HOST_BOUND, Cause.LATENCY)
_STRETCHED: Final = (*_HOST, Cause.OTHER_THREAD)  # and data loading, see `stretches_loading`
_PROFILER_STEPS: Final = "ProfilerStep"
# ns per event, the least: `python -m bench.recorder_cost`, torch 2.13, Python 3.11, AMD EPYC.
_OPERATOR: Final = 300
_SHAPES: Final = 200  # more for an operator with record_shapes
_STACK: Final = 250  # more for an operator with with_stack
_ANNOTATION: Final = 400
_FUNCTION: Final = 150  # of Python, and built-in ones
_MOST: Final = 3.0  # times as much where caches are cold, or the host is slower
_FUNCTIONS: Final = (Kind.FRAME, Kind.HIDDEN)
_MODULE: Final = "nn.Module: "  # a call of a module, among the functions


class RecorderTime(NamedTuple):
    """The recorder's part of the time that GPUs wait for the host, ns per step and GPU.

    Parameters
    ----------
    least, most : by cause, at most the time of the cause
    is_measured : whether unrecorded steps were measured; else it is an estimate
    left : the share of each of these causes that remains, if it was measured
    """

    least: Mapping[str, float]
    most: Mapping[str, float]
    is_measured: bool
    left: Mapping[str, float] = {}


def unrecorded_step(profile: ProfileData, steps: StepsOfKernels) -> Unrecorded | None:
    """The steps before the recording; None if unknown.

    Also None where the host cannot tell: steps are other ones than those that were recorded, or
    ended sooner than the GPU could do their work, since the host ran ahead of it.
    """
    unrecorded, means = profile.about.unrecorded, step_means(profile, steps)
    if unrecorded is None or means is None or steps.source != _PROFILER_STEPS:
        return None
    return unrecorded if unrecorded.median_ns >= means.busy else None


def stretches_loading(profile: ProfileData) -> bool:
    """Whether the recorder slows down data loading: not where worker processes load batches."""
    ranges = profile.ranges
    loaders = unique(ranges.label[loader_ranges(profile)]).tolist()
    return bool(loaders) and not any(_WORKERS in ranges.meanings[i].label for i in loaders)


_WORKERS: Final = "MultiProcessing"  # in the name of the iterator of torch's DataLoader


def left_without_recorder(profile: ProfileData, steps: StepsOfKernels) -> dict[str, float]:
    """The share of idle time that remains without the recorder, by cause.

    {} where no unrecorded steps were measured, or where they were not shorter. Reads the file again
    on first use.
    """
    time = recorder_time(profile, steps)
    if time is None or not time.is_measured:
        return {}
    return dict(time.left)


def recorder_lines(
    profile: ProfileData, steps: StepsOfKernels, has_idle: bool = True
) -> Iterator[str]:
    """What the recorder does to the host times, a line for each thing that is known.

    has_idle : whether recorded idle times are beside these lines
    """
    unrecorded, means = unrecorded_step(profile, steps), step_means(profile, steps)
    if unrecorded is not None and means is not None:
        before = "step" if unrecorded.steps == 1 else f"{unrecorded.steps} steps"
        yield (
            f"recorded {quantity(means.median, 'ns')}, without the recorder "
            f"{quantity(unrecorded.median_ns, 'ns')} a step (medians, of {before} before it on "
            "the host)"
        )
        if has_idle and unrecorded.median_ns < means.median:
            idle = quantity(round(unrecorded.median_ns - means.busy), "ns")
            yield f"idle times are as recorded; without the recorder, the GPU is idle {idle} a step"
    if has_stacks(profile):
        yield ("recorded with call stacks (with_stack): host times are inflated, GPU times are not")


def has_stacks(profile: ProfileData) -> bool:
    """Whether torch.profiler recorded call stacks; traces of 2021 and 2022 do not name options."""
    settings = profile.about.settings
    if profile.about.format != "kineto":
        return False
    if "with_stack" in settings or "record_shapes" in settings:
        return bool(settings.get("with_stack"))
    return bool((texts(profile, "line").ids >= 0).any())


def recorder_time(profile: ProfileData, steps: StepsOfKernels) -> RecorderTime | None:
    """The recorder's part of the idle time that the host causes, kept; None if unknown.

    Reads the file again on first use.
    """
    return kept(profile, _recorder_time, steps)


def without_recorder(profile: ProfileData, steps: StepsOfKernels, idle: Mapping[str, float]) -> str:
    """What remains of idle time without the recorder, for the evidence of a finding, or "".

    idle : ns per step and GPU by cause
    """
    time = recorder_time(profile, steps)
    total = sum(idle.values())
    if time is None or not total:
        return ""
    least, most = (
        total - sum(part.get(cause, 0.0) for cause in idle) for part in (time.most, time.least)
    )
    if time.is_measured:
        return f"without the recorder {quantity(round(least), 'ns')}"
    if total - least < _NOTEWORTHY * total:  # it matters little
        return ""
    return (
        f"without the recorder {quantity(round(least), 'ns')} to {quantity(round(most), 'ns')} "
        "(estimate)"
    )


_NOTEWORTHY: Final = 0.03  # of the idle time


def _recorder_time(profile: ProfileData, steps: StepsOfKernels) -> RecorderTime | None:
    measured = unrecorded_step(profile, steps)
    inside = gaps_of_steps(profile, steps)
    windows = windows_of(profile, steps)
    counted = windows.is_counted
    n = max(int(np.count_nonzero(counted)), 1)
    if measured is not None:
        causes = list(_STRETCHED) + [Cause.DATA_LOADING] * stretches_loading(profile)
        recorded = float(np.median(windows.wall[counted]))
        return _measured(measured, recorded, inside.totals(counted) / n, causes)
    if profile.about.format != "kineto":
        return None
    least, most = _of_gaps(profile, inside, counted[inside.window])
    return RecorderTime(_by_cause(least / n), _by_cause(most / n), False)


def _measured(
    unrecorded: Unrecorded, recorded: float, idle: Floats64, causes: Sequence[int]
) -> RecorderTime:
    """What recorded steps take longer, the same share of each cause of waiting for the host.

    Between medians: a single slow step among few is not the recorder's.

    idle : float64 [causes], ns per step and GPU
    causes : those that the recorder stretches
    """
    sums: Floats64 = np.zeros(len(Cause))
    sums[causes] = idle[causes]
    longer = min(max(recorded - unrecorded.median_ns, 0.0) / max(float(sums.sum()), 1.0), 1.0)
    parts = _by_cause(sums * longer)
    left = dict.fromkeys(parts, 1 - longer)
    return RecorderTime(parts, parts, True, left)


def _of_gaps(profile: ProfileData, inside: WindowGaps, counted: Bools) -> tuple[Floats64, Floats64]:
    """What counted gaps are longer by, the least and the most, [causes], ns.

    A gap ends with a late launch. Its thread loses the cost of its events since the late launch
    before, or since it last waited for the GPU.
    """
    gaps, parts = inside.gaps, inside.causes.parts
    ranges, api = profile.ranges, profile.api
    thread = take(api.thread, take(api.of_kernel, gaps.after))
    launch = take(numbers(profile, "launch_start"), gaps.after)
    launch = np.where(launch == NO_TIME, gaps.start, np.minimum(launch, gaps.end))
    since = _since(gaps.start, launch, thread)
    for state in (State.SYNC, State.BLOCKING_COPY):
        _, waited = kept(profile, host_states).events[state].last(thread, launch)
        since = np.maximum(since, np.minimum(waited, launch))
    cost = _costs(ranges.meanings, profile)[ranges.label]
    spent = _spent(ranges.thread, ranges.start, cost, (thread, since, launch))
    own = np.flatnonzero(np.isin(parts.cause, _HOST) & counted[parts.gap])
    cause, gap, ns = parts.cause[own], parts.gap[own], parts.ns[own]
    share = spent / np.maximum(np.bincount(gap, ns, len(spent)), 1.0)
    least, most = (np.minimum(share[gap] * times, 1.0) * ns for times in (1.0, _MOST))
    low = np.bincount(cause, least, len(Cause)).astype(np.float64)
    high = np.bincount(cause, most, len(Cause)).astype(np.float64)
    return low, high


def _since(start: Int64, launch: Int64, thread: Int32) -> Int64:
    """[gaps] The late launch before of the same thread, at most the start of the gap."""
    order = np.lexsort((launch, thread))
    before, is_same = launch[order[:-1]], thread[order[1:]] == thread[order[:-1]]
    result: Int64 = start.copy()
    rows = order[1:][is_same]
    result[rows] = np.minimum(result[rows], before[is_same])
    return result


def _costs(meanings: list[Meaning], profile: ProfileData) -> Int64:
    """[meanings] ns per event."""
    operator = _OPERATOR
    operator += _SHAPES if profile.about.settings.get("record_shapes") else 0
    operator += _STACK if has_stacks(profile) else 0
    costs = [operator if meaning.kind == Kind.TORCH else _other(meaning) for meaning in meanings]
    return np.array(costs, np.int64)


def _other(meaning: Meaning) -> int:
    """ns of a range that is no operator: a call of a function or of a module, or an annotation."""
    is_call = meaning.kind in _FUNCTIONS or meaning.label.startswith(_MODULE)
    return _FUNCTION if is_call else _ANNOTATION


def _spent(
    thread: Int32, start: Int64, cost: Int64, windows: tuple[Int32, Int64, Int64]
) -> Floats64:
    """[windows] The cost of the events of a thread that start in each window.

    thread, start, cost : [events], in order of start
    windows : thread, begin and end, end exclusive
    """
    own = grouped(thread, start, start)
    sums = np.concatenate([[0], np.cumsum(cost[own.order])])
    of_thread, begin, end = windows
    first, last = own.first(of_thread, begin), own.first(of_thread, end)
    spent: Floats64 = (sums[last] - sums[first]).astype(np.float64)
    return spent


def _by_cause(ns: Floats64) -> dict[str, float]:
    return {CAUSES[i]: float(ns[i]) for i in np.flatnonzero(ns).tolist()}
