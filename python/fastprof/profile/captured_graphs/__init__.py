"""Attribute kernels of replayed CUDA and HIP graphs to the API calls of the graph's capture.

A replay has kernels and a single API call that launches them all. A capture has an API call per
kernel, with operators, shapes and source lines around it, but no kernels. Both list the same work
in the same order. `align` compares names, order and number, finds the capture that each graph
launch replays, and gives its kernels the frames of the captured calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof.errors import BadInputError
from fastprof.model.arrays import Int32, Int64, unique
from fastprof.model.trace import Recording, Trace
from fastprof.profile.callpath.attribution import Attributed, Attribution
from fastprof.profile.captured_graphs import choose as messages
from fastprof.profile.captured_graphs.choose import Catalogue, choose, outcome
from fastprof.profile.captured_graphs.fits import (
    Fit,
    Keys,
    Replays,
    Sequences,
    captures_of,
    give_sizes,
    replays_of,
)
from fastprof.profile.captured_graphs.operators import Operators, append_capture

__all__ = ["GraphCapture", "align", "outcome", "use_captures"]


@dataclass(frozen=True)
class GraphCapture:
    """How many kernels of replayed graphs were attributed to the API calls of a capture.

    Attributes
    ----------
    files : names of the capture files; empty if the trace itself contains the captures
    launches, kernels : number of graph launches with kernels in the trace, and of their kernels
    replayed, matched : number of these launches with a matching capture, and of their kernels that
        match a call of the capture
    captures : number of distinct captures that are replayed
    rate : float or None
        Over the launches with a matching capture, the share of matching work on both sides, 0 to 1.
        None if there are none.
    by_name : True if kernel names and their order were compared. CUDA captures do not record names;
        then number and kind of the calls and the operators around them were compared.
    """

    files: tuple[str, ...]
    launches: int
    kernels: int
    replayed: int
    matched: int
    captures: int
    rate: float | None
    by_name: bool

    def __str__(self) -> str:
        return outcome(**vars(self))


def use_captures(recording: Recording, capture_files: Iterable[Recording]) -> None:
    """Replace the captures of a recording by those of other files, in place.

    Of the files, those with the best match for any graph launch are appended to the recording.

    capture_files : read one at a time; only the best are kept in memory

    Raises
    ------
    BadInputError
        The recording has no graph replay, no file has a capture, or no capture matches a replay.
    """
    keys = Keys()
    replays = replays_of(recording, keys)
    if not len(replays):
        raise BadInputError(messages.no_replay(recording))
    first, _ = _distinct(replays)
    # By distinct launch: the rate of the best match, and the files that reach it.
    best: dict[int, tuple[float, list[Recording]]] = {launch: (0.0, []) for launch in first}
    offered: list[tuple[str, Sequences]] = []
    for file in capture_files:
        captures = captures_of(file, keys)
        catalogue = Catalogue(captures)
        offered.append((file.name, captures))
        for launch in first:
            fits = catalogue.good_fits(replays, launch).values()
            best_rate, files = best[launch]
            rate = max((fit.rate for fit in fits), default=0.0)
            if rate > best_rate:
                best[launch] = rate, [file]
            elif rate == best_rate > 0:
                files.append(file)
    if not any(len(captures) for _, captures in offered):
        raise BadInputError(messages.no_capture([name for name, _ in offered]))
    used = {id(file): file for _, files in best.values() for file in files}
    if not used:
        raise BadInputError(messages.no_fit(recording, replays, first, offered))
    recording.captured = None
    for file in used.values():
        append_capture(recording, file)
        recording.warnings += file.warnings


def align(attributed: Attributed, from_files: bool) -> tuple[Attribution, GraphCapture | None]:
    """Attribute kernels of replayed graphs to the API calls of their capture.

    Sizes and warnings of the trace change in place.

    from_files : whether the captures are from `use_captures`

    Returns
    -------
    The attribution with the frames of the captures, and a summary. The summary is None if the trace
    has no capture or no replay that needs one.

    Raises
    ------
    BadInputError
        The captures are from other files and no graph launch matches exactly one of them.
    """
    trace, attribution, frame_of_launch = attributed
    keys = Keys()
    captures = captures_of(trace, keys)
    replays = replays_of(trace, keys) if len(captures) else None
    if replays is None or not len(replays) or trace.captured is None:
        return attribution, None
    operators = Operators(attribution)
    launch = trace.captured.launch[captures.row]
    frame = take(frame_of_launch, np.ascontiguousarray(launch))
    label = operators.label(frame)
    first, kind = _distinct(replays)
    catalogue = Catalogue(captures)
    fits = [
        _agreeing(
            trace, replays, one, captures, catalogue.good_fits(replays, one), label, operators
        )
        for one in first
    ]
    work = operators.work(label)
    capture, ambiguous = choose(
        kind,
        _done_before(trace, replays, captures),
        fits,
        [operators.around(at) for at in take(frame_of_launch, replays.launch).tolist()],
        [
            operators.around_capture(int(frame[captures.begin[i]]), trace.captured.file_of(i))
            for i in range(len(captures))
        ],
        [work[captures.of(i)].tobytes() for i in range(len(captures))],
    )
    fit_of_launch = [
        fits[number][chosen] if chosen >= 0 else None
        for number, chosen in zip(kind.tolist(), capture.tolist(), strict=True)
    ]
    attribution = _with_frames(trace, attribution, replays, captures, frame, capture, fit_of_launch)
    used = [each for each in fit_of_launch if each is not None]
    matched = sum(each.matched for each in used)
    total = sum(each.of for each in used)
    chosen = unique(capture[capture >= 0]).tolist()
    result = GraphCapture(
        files=tuple(dict.fromkeys(filter(None, map(trace.captured.file_of, chosen)))),
        launches=len(replays),
        kernels=len(replays.row),
        replayed=len(used),
        matched=sum(int(np.sum(each.place >= 0)) for each in used),
        captures=len(chosen),
        rate=matched / total if total else None,
        by_name=all(each.by_name for each in used),
    )
    problems = messages.unmatched(
        trace.name, result.launches, result.replayed, int(ambiguous.sum())
    )
    if from_files and not used:
        raise BadInputError(problems[0])
    trace.warnings += problems
    return attribution, result


def _distinct(replays: Replays) -> tuple[list[int], Int64]:
    """The first launch of each distinct sequence of kernels, and the sequence of each launch."""
    ids: dict[bytes, int] = {}
    first: list[int] = []
    kind = np.empty(len(replays), np.int64)
    for launch in range(len(replays)):
        here = replays.of(launch)
        content = replays.key[here].tobytes() + replays.grid[here].tobytes()
        kind[launch] = number = ids.setdefault(content, len(ids))
        if number == len(first):
            first.append(launch)
    return first, kind


def _agreeing(
    trace: Trace, replays: Replays, launch: int, captures: Sequences, fits: dict[int, Fit],
    label: Int32, operators: Operators,
) -> dict[int, Fit]:  # fmt: skip
    """The captures that match a graph launch.

    Captures without kernel names match only if their operators can launch the kernels.

    label : of the innermost operator around each item of `captures`
    """
    config = trace.kernels.config[replays.row[replays.of(launch)]]
    name = trace.kernels.configs.name[config]
    known: dict[bytes, Fit] = {}
    for number, fit in fits.items():
        if not fit.by_name:
            labels = label[captures.of(number)][fit.place]
            key = labels.tobytes()
            if key not in known:
                differ = operators.disagree(labels, name, trace.strings)
                known[key] = replace(fit, matched=fit.matched - differ)
            fits[number] = known[key]
    return {number: fit for number, fit in fits.items() if fit.is_good}


def _done_before(trace: Trace, replays: Replays, captures: Sequences) -> Int64:
    """How many captures ended before each graph launch; all of them if from other files."""
    if trace.captured is None or trace.appended.threads:
        return np.full(len(replays), len(captures))
    start = trace.launches.start
    ends = start[trace.captured.launch[captures.row]]
    last = np.maximum.accumulate(np.maximum.reduceat(ends, captures.begin[:-1]))
    return np.searchsorted(last, start[replays.launch])


def _with_frames(
    trace: Trace,
    attribution: Attribution,
    replays: Replays,
    captures: Sequences,
    frame: Int32,
    capture: Int64,
    fits: list[Fit | None],
) -> Attribution:
    """The attribution with the frames and graph launches of replayed kernels.

    Kernels without grid and block get those of the captured call.

    frame : of each item of `captures`
    capture, fits : of each graph launch
    """
    rows, items = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for launch, fit in enumerate(fits):
        if fit is not None:
            has = fit.place >= 0
            rows.append(replays.row[replays.of(launch)][has])
            items.append(fit.place[has] + captures.begin[capture[launch]])
    row, item = np.concatenate(rows), np.concatenate(items)
    give_sizes(trace, row, captures.row[item])
    inside = frame[item] >= 0
    row, item = row[inside], item[inside]
    frame_of_kernel = attribution.frame_of_kernel.copy()
    frame_of_kernel[row] = frame[item]
    replay = attribution.replay_of_kernel
    replay = np.full(len(trace.kernels), -1, np.int32) if replay is None else replay.copy()
    replay[row] = trace.kernels.launch[row]
    return replace(attribution, frame_of_kernel=frame_of_kernel, replay_of_kernel=replay)
