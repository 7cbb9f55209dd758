"""Steps marked by ranges: `ProfilerStep#N`, or the user's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from fastprof._core._take import distinct, take
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.markers import Meaning
from fastprof.model.metadata import Steps
from fastprof.model.numbers import without_numbers
from fastprof.model.trace import Trace
from fastprof.profile.steps import labels
from fastprof.profile.steps.marked import profiler_step
from fastprof.profile.steps.of_kernels import of_launches

ENOUGH: Final = 0.9  # share of the GPU time that ranges must launch to be taken for steps
_MOST_TRIED: Final = 4


class Marked(NamedTuple):
    """Steps and the label of each."""

    steps: Steps
    labels: list[str]


class Repeated(NamedTuple):
    """Ranges whose label, numbers folded, repeats, and the share of the GPU time they launch."""

    label: str
    marked: Marked
    share: float


def described(marked: Marked) -> str:
    """The steps in a line: `6 steps (ProfilerStep#5 to #10)`."""
    n, texts = len(marked.labels), [labels.shown(label) for label in marked.labels]
    first, last = texts[0], texts[-1]
    stem = re.match(r"\D*", first)
    if first != last and stem and stem[0].endswith("#") and last.startswith(stem[0]):
        last = last[stem.end() - 1 :]
    n_processes = len(np.unique(marked.steps.pid))
    where = f" in {n_processes} processes" if n_processes > 1 else ""
    span = first if first == last else f"{first} to {last}"
    return f"{n} step{'s' if n > 1 else ''}{where} ({span})"


def matching(trace: Trace, meanings: list[Meaning], pattern: re.Pattern[str]) -> Marked:
    """The outermost user ranges whose label the pattern is found in."""
    used, place = distinct(trace.user_ranges.label, len(meanings))
    fits = np.array([pattern.search(meanings[each].label) is not None for each in used], bool)
    return _marked(trace, meanings, np.flatnonzero(fits[place]))


def texts(trace: Trace, meanings: list[Meaning]) -> list[str]:
    """The distinct labels of the user ranges, in order of appearance."""
    used, _ = distinct(trace.user_ranges.label, len(meanings))
    return [meanings[each].label for each in used]


def repeated(trace: Trace, meanings: list[Meaning], weight: Int64) -> Repeated | None:
    """The outermost user ranges with a repeated label that launch the largest share of GPU time.

    Ranges `ProfilerStep#N` are ignored. Only the labels with the longest host time are tried.

    weight : [kernels] GPU time, 0 for kernels to ignore
    """
    ranges = trace.user_ranges
    used, place = distinct(ranges.label, len(meanings))
    folded: dict[str, int] = {}
    ids = [_id(meanings[each].label, folded) for each in used]
    label = np.array([*ids, -1], np.int32)[place]
    counts = np.bincount(label[label >= 0], minlength=len(folded))
    rows = np.flatnonzero(label >= 0)
    rows = rows[counts[label[rows]] > 1]
    rows = rows[_is_outermost(ranges.start[rows], ranges.end[rows], ranges.thread[rows])]
    length = np.minimum(ranges.end[rows], ranges.start[-1:].max(initial=0)) - ranges.start[rows]
    longest = np.argsort(-np.bincount(label[rows], length, minlength=len(folded)), kind="stable")
    texts, best = list(folded), None
    for each in longest[:_MOST_TRIED].tolist():
        own = rows[label[rows] == each]
        if len(own) < 2:
            continue
        marked = _marked(trace, meanings, own)
        inside = take(of_launches(trace, marked.steps), trace.kernels.launch) >= 0
        share = float(weight[inside].sum() / max(weight.sum(), 1))
        if best is None or share > best.share:
            best = Repeated(texts[each], marked, share)
        if share >= ENOUGH:
            break
    return best


def _id(label: str, ids: dict[str, int]) -> int:
    if profiler_step(label) is not None:
        return -1
    return ids.setdefault(without_numbers(label), len(ids))


def _is_outermost(start: Int64, end: Int64, group: Int32) -> Bools:
    """Whether each range starts after all earlier ranges of its group have ended.

    start, end : in order of start
    group : the thread or process of each
    """
    out = np.ones(len(start), bool)
    for each in np.unique(group):
        rows = np.flatnonzero(group == each)
        ends = np.maximum.accumulate(end[rows])
        out[rows[1:]] = start[rows[1:]] >= ends[:-1]
    return out


def _marked(trace: Trace, meanings: list[Meaning], rows: Sequence[int] | Int64) -> Marked:
    """Some user ranges as steps, without those that overlap an earlier one of their process."""
    ranges = trace.user_ranges
    process = take(trace.process_of_thread, ranges.thread[rows])
    keep = _is_outermost(ranges.start[rows], ranges.end[rows], process)
    rows, process = np.asarray(rows)[keep], process[keep]
    names = [meanings[each].label for each in ranges.label[rows].tolist()]
    number = np.zeros(len(rows), np.int64)
    for each in np.unique(process):
        own = np.flatnonzero(process == each)
        number[own] = labels.numbers([names[row] for row in own.tolist()])
    pid = take(trace.processes, process).astype(np.int64)
    return Marked(Steps(number, ranges.start[rows], ranges.end[rows], pid), names)
