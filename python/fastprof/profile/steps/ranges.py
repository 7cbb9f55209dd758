"""Steps marked by ranges, `ProfilerStep#N` or the user's own, and their labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import floor
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._core._take import distinct, take
from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.errors import StepsError
from fastprof.model.arrays import Bools, Int32, Int64, rows_by, unique
from fastprof.model.markers import Meaning
from fastprof.model.metadata import ProfilerSteps
from fastprof.model.numbers import without_numbers
from fastprof.model.trace import Trace, UserRanges
from fastprof.profile.instances import RangeInstances
from fastprof.profile.steps.kernel_steps import step_of_launches
from fastprof.profile.steps.marked import profiler_step

ENOUGH: Final = 0.9  # share of the GPU time that ranges must launch to be taken for steps
_MOST_TRIED: Final = 4
_BATCH: Final = regex(r"\brun_training_batch\Z")

Rows = npt.NDArray[np.intp]


class Marked(NamedTuple):
    """Steps and the label of each."""

    steps: ProfilerSteps
    labels: list[str]


class RepeatedRanges(NamedTuple):
    """Ranges whose label, numbers folded, repeats, and the share of the GPU time they launch."""

    label: str
    marked: Marked
    share: float


def described(marked: Marked) -> str:
    """The steps in a line: `6 steps (ProfilerStep#5 to #10)`."""
    n, texts = len(marked.labels), [shown(label) for label in marked.labels]
    first, last = texts[0], texts[-1]
    stem = re.match(r"\D*", first)
    if first != last and stem and stem[0].endswith("#") and last.startswith(stem[0]):
        last = last[stem.end() - 1 :]
    n_processes = len(unique(marked.steps.pid))
    where = f" in {n_processes} processes" if n_processes > 1 else ""
    span = first if first == last else f"{first} to {last}"
    return f"{n} step{'s' if n > 1 else ''}{where} ({span})"


def matching(trace: Trace, meanings: list[Meaning], pattern: re.Pattern[str]) -> Marked:
    """The outermost user ranges whose label the pattern is found in."""
    ranges = _on_launching_threads(trace)
    used, place = distinct(ranges.label, len(meanings))
    fits = np.array([pattern.search(meanings[number].name) is not None for number in used], bool)
    return _of_user(trace, ranges, meanings, np.flatnonzero(fits[place]))


def matching_instances(trace: Trace, instances: RangeInstances, pattern: re.Pattern[str]) -> Marked:
    """The outermost ranges of any kind, on threads that launch work, that the pattern is found in.

    The pattern is searched in the name, without shapes.
    """
    meanings, own = instances.meanings, slice(instances.n_own)
    fits = np.array([pattern.search(meaning.name) is not None for meaning in meanings], bool)
    rows = np.flatnonzero(fits[instances.label[own]])
    tid, pid = instances.tid[rows], instances.pid[rows]
    threads = np.flatnonzero(launching_threads(trace))
    processes = trace.processes[trace.process_of_thread[threads]]
    known = set(zip(trace.threads[threads].tolist(), processes.tolist(), strict=True))
    threads_of_rows = zip(tid.tolist(), pid.tolist(), strict=True)
    launches = np.array([thread in known for thread in threads_of_rows], bool)
    rows = rows[launches]
    return _marked(
        meanings, instances.start[rows], instances.end[rows], pid[launches], instances.label[rows]
    )


def texts(trace: Trace, meanings: list[Meaning]) -> list[str]:
    """The distinct labels of the user ranges, in order of appearance."""
    used, _ = distinct(_on_launching_threads(trace).label, len(meanings))
    return [meanings[number].name for number in used]


def outermost_texts(trace: Trace, meanings: list[Meaning]) -> list[str]:
    """The distinct labels of the outermost user ranges of each thread, in order of appearance."""
    ranges = _on_launching_threads(trace)
    outer = is_outermost(ranges.start, ranges.end, ranges.thread)
    used, _ = distinct(np.ascontiguousarray(ranges.label[outer]), len(meanings))
    return [meanings[number].name for number in used]


def repeated(trace: Trace, meanings: list[Meaning], weight: Int64) -> RepeatedRanges | None:
    """The outermost user ranges with a repeated label that launch the largest share of GPU time.

    Ranges `ProfilerStep#N` are ignored. The batches of Lightning, which its epochs contain, are
    tried first, then the labels with the longest host time.

    weight : [kernels] GPU time, 0 for kernels to ignore
    """
    ranges = _on_launching_threads(trace)
    used, place = distinct(ranges.label, len(meanings))
    folded: dict[str, int] = {}
    ids = [_id(meanings[number].name, folded) for number in used]
    label = np.array([*ids, -1], np.int32)[place]
    counts = np.bincount(label[label >= 0], minlength=len(folded))
    rows = np.flatnonzero(label >= 0)
    rows = rows[counts[label[rows]] > 1]
    candidates = [rows[label[rows] == i] for i, text in enumerate(folded) if _BATCH.search(text)]
    rows = rows[is_outermost(ranges.start[rows], ranges.end[rows], ranges.thread[rows])]
    length = np.minimum(ranges.end[rows], ranges.start[-1:].max(initial=0)) - ranges.start[rows]
    longest = np.argsort(-np.bincount(label[rows], length, minlength=len(folded)), kind="stable")
    candidates += [rows[label[rows] == number] for number in longest[:_MOST_TRIED].tolist()]
    texts, best = list(folded), None
    for own in candidates:
        if len(own) < 2:
            continue
        marked = _of_user(trace, ranges, meanings, own)
        inside = take(step_of_launches(trace, marked.steps), trace.kernels.launch) >= 0
        share = float(weight[inside].sum() / max(weight.sum(), 1))
        if best is None or share > best.share:
            best = RepeatedRanges(texts[label[own[0]]], marked, share)
        if share >= ENOUGH:
            break
    return best


def launching_threads(trace: Trace) -> Bools:
    """[threads] Whether each thread launches work."""
    used, _ = distinct(trace.launches.thread, len(trace.threads))
    launches = np.zeros(len(trace.threads), bool)
    launches[[number for number in used if number >= 0]] = True
    return launches


def kernels_by_process(trace: Trace, wanted: Bools) -> Iterator[tuple[int, Int64]]:
    """The pid of each process, and the rows of its kernels among the wanted ones.

    wanted : [kernels]
    """
    rows = np.flatnonzero(wanted & (trace.kernels.process >= 0))
    for process, of_process in rows_by(trace.kernels.process[rows]):
        yield int(trace.processes[process]), rows[of_process]


def _on_launching_threads(trace: Trace) -> UserRanges:
    """The user ranges of threads that launch work."""
    ranges = trace.user_ranges
    rows = np.flatnonzero(launching_threads(trace)[ranges.thread])
    return UserRanges(ranges.start[rows], ranges.end[rows], ranges.thread[rows], ranges.label[rows])


def _id(label: str, ids: dict[str, int]) -> int:
    if profiler_step(label) is not None:
        return -1
    return ids.setdefault(without_numbers(label), len(ids))


def is_outermost(start: Int64, end: Int64, group: Int32 | Int64) -> Bools:
    """Whether each range starts after all earlier ranges of its group have ended.

    start, end : in order of start
    group : the thread or process of each
    """
    out = np.ones(len(start), bool)
    for each in unique(group):
        rows = np.flatnonzero(group == each)
        ends = np.maximum.accumulate(end[rows])
        out[rows[1:]] = start[rows[1:]] >= ends[:-1]
    return out


def _of_user(trace: Trace, ranges: UserRanges, meanings: list[Meaning], rows: Rows) -> Marked:
    """Some user ranges as steps."""
    pid = take(trace.processes, take(trace.process_of_thread, ranges.thread[rows]))
    return _marked(
        meanings, ranges.start[rows], ranges.end[rows], pid.astype(np.int64), ranges.label[rows]
    )


def _marked(meanings: list[Meaning], start: Int64, end: Int64, pid: Int64, label: Int32) -> Marked:
    """Ranges, in order of start, as steps, without those that overlap an earlier one of their
    process."""
    keep = is_outermost(start, end, pid)
    pid, names = pid[keep], [meanings[number].name for number in label[keep].tolist()]
    number = np.zeros(len(pid), np.int64)
    for each in unique(pid):
        own = np.flatnonzero(pid == each)
        number[own] = numbers([names[row] for row in own.tolist()])
    return Marked(ProfilerSteps(number, start[keep], end[keep], pid), names)


_LONGEST_SHOWN: Final = 60


def compiled(pattern: str) -> re.Pattern[str]:
    """The regular expression of a source of steps.

    Raises
    ------
    StepsError
        It is invalid.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise StepsError(f"invalid regular expression {pattern!r}: {error}") from None


_NUMBER: Final = regex(r"\d{1,18}")


def numbers(labels: Sequence[str]) -> list[int]:
    """A number per step: the last in its label that is distinct in each; else 1, 2, ..."""
    results = [_NUMBER.findall(label) for label in labels]
    if len({len(members) for members in results}) == 1:
        for column in reversed(list(zip(*results, strict=True))):
            if len(set(column)) == len(labels):
                return [int(text) for text in column]
    return list(range(1, len(labels) + 1))


def shown(label: str) -> str:
    """The label, shortened to fit a message."""
    return label if len(label) <= _LONGEST_SHOWN else label[: _LONGEST_SHOWN - 3] + "..."


def percent(share: float) -> str:
    """A share of 1 in per cent, rounded down: a share below a limit is shown below it."""
    return f"{floor(share * 1000) / 10:g} %"


def nearest(pattern: str, labels: Sequence[str]) -> str:
    """The labels most like a pattern, for a message; the first ones if none is similar."""
    from difflib import get_close_matches

    by_lower = {label.lower(): label for label in reversed(labels)}
    close = get_close_matches(pattern.lower(), by_lower, n=3, cutoff=0.4)
    names = [by_lower[text] for text in close] or list(by_lower.values())[-3:]
    return ", ".join(repr(shown(name)) for name in names)
