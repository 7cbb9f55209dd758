"""Steps between the marks of torch and CUDA, or from each launch of one kernel or operator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.errors import StepsError
from fastprof.model.arrays import Bools, Int64, rows_by
from fastprof.model.columns import Values
from fastprof.model.markers import Meaning
from fastprof.model.metadata import ProfilerSteps
from fastprof.model.trace import NEVER, Trace
from fastprof.profile import gpu_work
from fastprof.profile.steps import ranges as labels
from fastprof.profile.steps.kernel_steps import StepsOfKernels, step_of_launches, steps_of_kernels
from fastprof.profile.steps.marked import is_loader, is_optimizer
from fastprof.profile.steps.ranges import is_outermost, kernels_by_process, launching_threads
from fastprof.profile.steps.repetition import consecutive

ENOUGH: Final = 0.9  # share of the GPU time that the steps must launch
_ENOUGH_IN_GRAPHS: Final = 0.5  # share of the GPU time that the graph must replay


class MarkedSteps(NamedTuple):
    """Steps, and why they may be no steps of the program; "" if they are."""

    steps: ProfilerSteps
    doubt: str = ""


def by_loader(trace: Trace, meanings: list[Meaning], weight: Int64) -> MarkedSteps | str:
    """Steps that begin where a batch is fetched; the reason if there are none.

    weight : [kernels] GPU time, 0 for kernels to ignore
    """
    ranges, results = trace.step_marks, []
    for process, rows in _marks(trace, meanings, is_loader):
        results.append((int(trace.processes[process]), ranges.start[rows], NEVER))
    return _between(trace, results, weight) or "no ranges enumerate(DataLoader)#..."


def by_optimizer(trace: Trace, meanings: list[Meaning], weight: Int64) -> MarkedSteps | str:
    """Steps that end with the step of an optimizer; of several, the least frequent, then last."""
    ranges, results = trace.step_marks, []
    earliest = np.full(len(trace.processes) + 1, NEVER)  # launch; the last of no process
    np.minimum.at(
        earliest, take(trace.process_of_thread, trace.launches.thread), trace.launches.start
    )
    for process, rows in _marks(trace, meanings, is_optimizer):
        label = ranges.label[rows]
        used, last, count = np.unique(label[::-1], return_index=True, return_counts=True)
        wanted = used[np.lexsort((last, count))[0]]
        end = ranges.end[rows[label == wanted]]
        first = min(int(earliest[process]), int(end[0]))
        pid = int(trace.processes[process])
        results.append((pid, np.append(first, end[:-1]), int(end[-1])))
    return _between(trace, results, weight) or "no ranges Optimizer.step#..."


def by_graph(trace: Trace, weight: Int64) -> MarkedSteps | str:
    """Steps that begin where the CUDA graph with the most GPU time is launched."""
    kernels, results, replayed = trace.kernels, [], 0
    of_graphs = np.logical_or(*gpu_work.in_graphs(trace)) & (kernels.launch >= 0)
    for pid, rows in kernels_by_process(trace, of_graphs):
        launch, place = np.unique(kernels.launch[rows], return_inverse=True)
        graph = _graphs(trace, rows, place)
        time = np.bincount(graph[place], weight[rows])
        time[np.bincount(graph) < 2] = -1  # launched once
        if time.max(initial=-1) < 0:
            continue
        best = int(time.argmax())
        replayed += int(time[best])
        results.append((pid, trace.launches.start[launch[graph == best]], NEVER))
    steps = _between(trace, results, weight)
    if steps is None:
        return "no CUDA graph is launched twice"
    if replayed < _ENOUGH_IN_GRAPHS * weight.sum():
        share, least = (labels.percent(x) for x in (replayed / weight.sum(), _ENOUGH_IN_GRAPHS))
        return steps._replace(doubt=f"the graph takes {share} of the GPU time, expected {least}")
    return steps


def _graphs(trace: Trace, rows: Int64, place: Int64) -> Int64:
    """[launches] A number per graph: its id, if recorded, and the names of its kernels.

    rows : kernels of graphs
    place : [rows] the launch of each
    """
    configs, config = trace.kernels.configs, trace.kernels.config[rows]
    keys = (
        np.bincount(place),
        np.bincount(place, configs.name[config]),
        np.bincount(place, configs.graph_id[config]),
    )
    _, graph = np.unique(np.stack(keys), axis=1, return_inverse=True)
    return np.asarray(graph, np.int64).ravel()


def _marks(
    trace: Trace, meanings: list[Meaning], wanted: Callable[[Meaning], bool]
) -> Iterator[tuple[int, Int64]]:
    """The outermost ranges of each process with such a name, on threads that launch work.

    The process is an index into `trace.processes`.
    """
    ranges = trace.step_marks
    fits = np.array([*map(wanted, meanings)], bool)
    rows = np.flatnonzero(fits[ranges.label] & launching_threads(trace)[ranges.thread])
    process = take(trace.process_of_thread, ranges.thread[rows])
    rows = rows[is_outermost(ranges.start[rows], ranges.end[rows], process)]
    process = take(trace.process_of_thread, ranges.thread[rows])
    for number, of_process in rows_by(process):
        if number >= 0:
            yield number, rows[of_process]


def _between(
    trace: Trace, found: list[tuple[int, Int64, int]], weight: Int64
) -> MarkedSteps | None:
    """Steps from each start to the next, without those after the last launch.

    found : process, starts, and the end of the last step, NEVER if unknown
    """
    if not found:
        return None
    steps = consecutive([(pid, starts) for pid, starts, _ in found], [last for *_, last in found])
    launched = np.bincount(step_of_launches(trace, steps) + 1, minlength=len(steps) + 1)[1:]
    keep = np.ones(len(steps), bool)
    for _, own in rows_by(steps.pid):
        keep[own[1 + np.flatnonzero(launched[own]).max(initial=-1) :]] = False
    steps = ProfilerSteps(steps.number[keep], steps.start[keep], steps.end[keep], steps.pid[keep])
    if not len(steps):
        return None
    inside = take(step_of_launches(trace, steps), trace.kernels.launch) >= 0
    share = float(weight[inside].sum() / max(weight.sum(), 1))
    if share >= ENOUGH:
        return MarkedSteps(steps)
    least = labels.percent(ENOUGH)
    return MarkedSteps(
        steps, f"they launch {labels.percent(share)} of the GPU time, expected {least}"
    )


_LONGER: Final = regex(r"(.+)>\s*(\d+(?:\.\d*)?)\s*(ns|us|ms|s)")
_NS: Final = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


def find(
    trace: Trace, names: tuple[Values, Values], op: Callable[[], Values], pattern: str
) -> StepsOfKernels:
    """Steps that begin where a kernel is launched whose name, or else operator, matches.

    Successive launches of matching kernels begin one step.

    names : [kernels] long and short names
    op : computes the operator of each kernel
    pattern : regular expression, optionally with `>5ms`: only kernels that take longer

    Raises
    ------
    StepsError
        The expression is invalid, or no launched kernel matches.
    """
    longer = _LONGER.fullmatch(pattern)
    text = longer[1] if longer else pattern
    wanted = labels.compiled(text)
    matches = _matching(names[0], wanted)
    if not matches.any():
        matches = _matching(op(), wanted)
    if not matches.any():
        known = [*names[1].values, *op().values]
        raise StepsError(
            f"{trace.name}: no kernel or operator matches {text!r}; "
            + (f"nearest: {labels.nearest(text, known)}" if known else "the trace has no kernels")
        )
    if longer:
        limit = float(longer[2]) * _NS[longer[3]]
        longest = int(trace.kernels.duration[matches].max())
        matches &= trace.kernels.duration > limit
        if not matches.any():
            raise StepsError(
                f"{trace.name}: no kernel that matches {text!r} takes over {longer[2]} "
                f"{longer[3]}; the longest takes {longest} ns"
            )
    return _steps(trace, matches, pattern)


def _matching(column: Values, pattern: re.Pattern[str]) -> Bools:
    """[kernels] Whether the pattern is found in each value."""
    return column.fits(lambda value: pattern.search(value) is not None)


def _steps(trace: Trace, matches: Bools, pattern: str) -> StepsOfKernels:
    launch_start = take(trace.launches.start, trace.kernels.launch)
    known = trace.kernels.launch >= 0
    results = []
    for pid, rows in kernels_by_process(trace, known):
        rows = rows[np.argsort(launch_start[rows], kind="stable")]
        begins = matches[rows] & ~np.append(False, matches[rows[:-1]])
        if begins.any():
            results.append((pid, launch_start[rows[begins]]))
    if not results:
        raise StepsError(
            f"{trace.name}: the launches of the kernels that match {pattern!r} are not recorded"
        )
    steps = consecutive(results)
    n_processes = len(results)
    where = f" in {n_processes} processes" if n_processes > 1 else ""
    description = f"{len(steps)} steps{where}, each from a launch of {labels.shown(pattern)!r}"
    return steps_of_kernels(
        trace, steps, f"anchor:{pattern}", description, ends_known=False, may_be_cut=-1
    )
