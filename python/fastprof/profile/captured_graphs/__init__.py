"""Kernels of replayed graphs take the frames of the calls that were made while it was captured.

A replay has kernels and one API call that launched them all; operators, shapes and lines are those
of the capture, where each kernel has a call of its own and none ran. Both have the same kernels in
the same order: `align` finds which capture each launch of a graph replays, by names, order and
number, and gives its kernels the frames of that capture's calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from fastprof._core._take import take
from fastprof.errors import BadInputError
from fastprof.model.trace import Int32, Int64, Trace
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.captured_graphs import messages
from fastprof.profile.captured_graphs.borrow import borrow
from fastprof.profile.captured_graphs.catalogue import Catalogue
from fastprof.profile.captured_graphs.choose import choose
from fastprof.profile.captured_graphs.fits import Fit
from fastprof.profile.captured_graphs.messages import outcome
from fastprof.profile.captured_graphs.operators import Operators
from fastprof.profile.captured_graphs.sequences import (
    Keys,
    Replays,
    Sequences,
    captures_of,
    replays_of,
)
from fastprof.profile.captured_graphs.sizes import give_sizes

__all__ = ["GraphCapture", "align", "outcome", "take_captures"]


@dataclass(frozen=True)
class GraphCapture:
    """How many kernels of replayed graphs have the calls of their capture.

    Attributes
    ----------
    files : names of the files of these captures; none where they are in the trace itself
    launches, kernels : launches of graphs whose kernels the trace has, and their rows
    replayed, matched : of these, launches whose capture was found, and rows with a call of it
    captures : how many different captures are replayed
    rate : float or None
        Of the launches whose capture was found, the share of the work on both sides that agrees,
        0 to 1; None where there are none.
    by_name : whether names and their order were compared; where a capture does not tell names, as
        those of CUDA do not, number and kind of its calls are, and the operators around these
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


def take_captures(trace: Trace, lenders: Iterable[Trace]) -> None:
    """Put the captures of other files that fit the graphs of a trace best behind its ranges, in the
    place of its own captures.

    lenders : read one by one; those that others fit better than are not kept

    Raises
    ------
    BadInputError
        No file has a capture, the trace has no replay, or no replay follows a capture.
    """
    keys = Keys()
    replays = replays_of(trace, keys)
    if not len(replays):
        raise BadInputError(messages.no_replay(trace))
    first, _ = _distinct(replays)
    # Of each distinct launch, the rate of the best fit, and which files have it.
    best: dict[int, tuple[float, list[Trace]]] = {launch: (0.0, []) for launch in first}
    offered: list[tuple[str, Sequences]] = []
    for lender in lenders:
        captures = captures_of(lender, keys)
        catalogue = Catalogue(captures)
        offered.append((lender.name, captures))
        for launch in first:
            fits = catalogue.good_fits(replays, launch).values()
            rate, files = best[launch]
            own = max((each.rate for each in fits), default=0.0)
            if own > rate:
                best[launch] = own, [lender]
            elif own == rate > 0:
                files.append(lender)
    if not any(len(captures) for _, captures in offered):
        raise BadInputError(messages.no_capture([name for name, _ in offered]))
    used = {id(lender): lender for _, files in best.values() for lender in files}
    if not used:
        raise BadInputError(messages.no_fit(trace, replays, first, offered))
    trace.captured = None
    for lender in used.values():
        borrow(trace, lender)
        trace.warnings += lender.warnings


def align(trace: Trace, found: Attribution, taken: bool) -> GraphCapture | None:
    """Give kernels of replayed graphs the frames of their capture, in `found`.

    taken : whether the captures were taken from other files

    Returns
    -------
    GraphCapture or None
        None where the trace has no capture, or no replay that needs one.

    Raises
    ------
    BadInputError
        Captures were taken, and no launch of a graph replays one capture for sure.
    """
    keys = Keys()
    captures = captures_of(trace, keys)
    replays = replays_of(trace, keys) if len(captures) else None
    if replays is None or not len(replays) or trace.captured is None:
        return None
    operators = Operators(found)
    launch = trace.captured.launch[captures.row]
    frame = take(found.frame_of_launch, np.ascontiguousarray(launch))
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
    capture, torn = choose(
        kind,
        _done_before(trace, replays, captures),
        fits,
        [operators.around(at) for at in take(found.frame_of_launch, replays.launch).tolist()],
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
    _give(trace, found, replays, captures, frame, capture, fit_of_launch)
    used = [each for each in fit_of_launch if each is not None]
    matched = sum(each.matched for each in used)
    of = sum(each.of for each in used)
    chosen = np.unique(capture[capture >= 0]).tolist()
    result = GraphCapture(
        files=tuple(dict.fromkeys(filter(None, map(trace.captured.file_of, chosen)))),
        launches=len(replays),
        kernels=len(replays.row),
        replayed=len(used),
        matched=sum(int(np.sum(each.place >= 0)) for each in used),
        captures=len(chosen),
        rate=matched / of if of else None,
        by_name=all(each.by_name for each in used),
    )
    problems = messages.left_out(trace.name, result.launches, result.replayed, int(torn.sum()))
    if taken and not used:
        raise BadInputError(problems[0])
    trace.warnings += problems
    return result


def _distinct(replays: Replays) -> tuple[list[int], Int64]:
    """One launch of each distinct sequence of kernels, and which sequence each launch ran."""
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
    """The captures that a launch of a graph follows, less those without names whose operators tell
    that the kernels cannot be theirs.

    label : of the innermost operator around each item of `captures`
    """
    config = trace.kernels.config[replays.row[replays.of(launch)]]
    name = trace.kernels.configs.name[config]
    known: dict[bytes, Fit] = {}
    for number, each in fits.items():
        if not each.by_name:
            labels = label[captures.of(number)][each.place]
            key = labels.tobytes()
            if key not in known:
                differ = operators.disagree(labels, name, trace.strings)
                known[key] = replace(each, matched=each.matched - differ)
            fits[number] = known[key]
    return {number: each for number, each in fits.items() if each.is_good}


def _done_before(trace: Trace, replays: Replays, captures: Sequences) -> Int64:
    """How many captures of the same file were over before each launch of a graph; all of others."""
    if trace.captured is None or trace.borrowed.threads:
        return np.full(len(replays), len(captures))
    start = trace.launches.start
    ends = start[trace.captured.launch[captures.row]]
    last = np.maximum.accumulate(np.maximum.reduceat(ends, captures.begin[:-1]))
    return np.searchsorted(last, start[replays.launch])


def _give(
    trace: Trace,
    found: Attribution,
    replays: Replays,
    captures: Sequences,
    frame: Int32,
    capture: Int64,
    fits: list[Fit | None],
) -> None:
    """Set the frames of kernels, which launch of a graph replays their call, and their sizes where
    only the call tells them.

    frame : of each item of `captures`
    capture, fits : of each launch of a graph
    """
    rows, items = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for launch, each in enumerate(fits):
        if each is not None:
            has = each.place >= 0
            rows.append(replays.row[replays.of(launch)][has])
            items.append(each.place[has] + captures.begin[capture[launch]])
    row, item = np.concatenate(rows), np.concatenate(items)
    give_sizes(trace, row, captures.row[item])
    inside = frame[item] >= 0
    row, item = row[inside], item[inside]
    found.frame_of_kernel = found.frame_of_kernel.copy()
    found.frame_of_kernel[row] = frame[item]
    replay = found.replay_of_kernel
    replay = np.full(len(trace.kernels), -1, np.int32) if replay is None else replay.copy()
    replay[row] = trace.kernels.launch[row]
    found.replay_of_kernel = replay
