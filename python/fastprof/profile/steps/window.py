"""A part of a capture, the only part in which steps are looked for; the start-up of a program.

Start-up is what runs before the work that the capture is about. It is told conservatively: ranges
must be named so, or uploads must be nearly all that the GPU does before the first product. Where
nothing but start-up is recorded, there is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

import numpy as np

from fastprof import ops
from fastprof._core._groups import sum_where
from fastprof._core._take import distinct, take
from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.errors import StepsError
from fastprof.model.arrays import Bools, Int64, rows_by
from fastprof.model.columns import Values
from fastprof.model.markers import Meaning
from fastprof.model.metadata import ProfilerSteps
from fastprof.model.numbers import nanoseconds, quantity
from fastprof.model.trace import COPY_KINDS, NEVER, NO_TIME, Trace, UserRanges
from fastprof.profile.steps import ranges as labels
from fastprof.profile.steps.ranges import is_outermost, launching_threads

_EXPECTED: Final = "expected A:B with times such as 1.5s:4s or 200ms:, or the name of a range"


class Window(NamedTuple):
    """A part of a capture.

    Parameters
    ----------
    begin, end : ns on the clock of the trace; work is in the window that was launched in it
    text : the part in words, "" for all of the capture
    """

    begin: int
    end: int
    text: str = ""

    def contains(self, time: Int64) -> Bools:
        """Whether each time is in the window."""
        return (time >= self.begin) & (time < self.end)

    def encloses(self, start: Int64, end: Int64) -> Bools:
        """Whether each range is in the window; those that were never closed may be."""
        result: Bools = self.contains(start) & ((end <= self.end) | (end == NEVER))
        return result


def window_of(trace: Trace, meanings: Sequence[Meaning], text: str) -> Window:
    """The window that a user asks for.

    text : `A:B`, times since the first GPU work, of which each may be missing; or the name or glob
        pattern of ranges: from the first start to the last end of those that match

    Raises
    ------
    StepsError
        No range matches, or the times are in the wrong order or after the capture.
    """
    parts = [part.strip() for part in text.split(":")]
    times = [nanoseconds(part) for part in parts]
    is_time = [time is not None or not part for time, part in zip(times, parts, strict=True)]
    if len(parts) != 2 or not all(is_time):
        return _of_ranges(trace, meanings, text)
    first, last = span(trace)
    begin, end = (None if time is None else first + time for time in times)
    if begin is None and end is None:
        return Window(int(NO_TIME), NEVER)
    window = Window(
        int(NO_TIME) if begin is None else begin,
        NEVER if end is None else end,
        text.replace(" ", ""),
    )
    if window.begin >= window.end:
        raise StepsError(f"{trace.name}: {text!r} ends before it begins: {_EXPECTED}")
    if window.begin >= last or window.end <= first:
        raise StepsError(
            f"{trace.name}: {text!r} has no work: the capture takes {quantity(last - first, 'ns')}"
        )
    return window


def _of_ranges(trace: Trace, meanings: Sequence[Meaning], text: str) -> Window:
    own = trace.user_ranges
    used, place = np.unique(own.label, return_inverse=True)
    names = [meanings[number].name for number in used.tolist()]
    fits = np.array([name == text or fnmatchcase(name, text) for name in names], bool)
    if not fits.any():
        known = (
            f"; nearest: {labels.nearest(text, names)}" if names else "; the trace has no ranges"
        )
        raise StepsError(f"{trace.name}: no range matches {text!r}: {_EXPECTED}{known}")
    rows = np.flatnonzero(fits[place])
    begin, end = int(own.start[rows].min()), int(own.end[rows].max())
    return Window(begin, end, labels.shown(text))


def span(trace: Trace) -> tuple[int, int]:
    """The start of the first and the end of the last GPU work, ns; 0, 0 without any."""
    kernels = trace.kernels
    known = kernels.start != NO_TIME
    if not known.any():
        return 0, 0
    rows: slice | Bools = slice(None) if known.all() else known
    end = kernels.start[rows] + np.maximum(kernels.duration[rows], 0)
    return int(kernels.start[rows].min()), int(end.max())


def inside(trace: Trace, window: Window) -> Bools:
    """[kernels] Whether each was launched in the window; without a launch, started in it."""
    kernels = trace.kernels
    launched = take(trace.launches.start, kernels.launch, NO_TIME)
    return window.contains(np.where(kernels.launch < 0, kernels.start, launched))


def within(trace: Trace, window: Window) -> Trace:
    """A trace with the launches, ranges and marks in the window, and all of its GPU work."""
    kernels, launches, about = trace.kernels, trace.launches, trace.about
    first, last = (
        int(each) for each in np.searchsorted(launches.start, [window.begin, window.end])
    )
    is_inside = (kernels.launch >= first) & (kernels.launch < last)
    cut = trace.truncated - first
    steps = about.steps
    keep = window.encloses(steps.start, steps.end)
    return replace(
        trace,
        kernels=replace(
            kernels, launch=np.where(is_inside, kernels.launch - first, -1).astype(np.int32)
        ),
        launches=replace(
            launches,
            start=launches.start[first:last],
            thread=launches.thread[first:last],
            name=launches.name[first:last],
        ),
        about=replace(
            about,
            steps=ProfilerSteps(
                steps.number[keep], steps.start[keep], steps.end[keep], steps.pid[keep]
            ),
        ),
        truncated=cut[(cut >= 0) & (cut < last - first)],
        user_ranges=_ranges_within(trace.user_ranges, window),
        step_marks=_ranges_within(trace.step_marks, window),
    )


def _ranges_within(ranges: UserRanges, window: Window) -> UserRanges:
    rows = np.flatnonzero(window.encloses(ranges.start, ranges.end))
    return UserRanges(ranges.start[rows], ranges.end[rows], ranges.thread[rows], ranges.label[rows])


_SHARE: Final = 0.01  # of the capture: a shorter start-up is not worth a word
_WRAPS: Final = 0.9  # share of the GPU time that a range around the whole program launches
_LEVELS: Final = 4  # of ranges around the whole program
_BETWEEN: Final = 0.01  # share of the GPU time that other ranges between those of start-up launch
_REST: Final = 0.01  # share of the GPU time, without copies, that must follow
_LEAST: Final = 10  # kernels that must follow
_UPLOADS: Final = 0.5  # share of the GPU time before the first product that uploads take
_LATER: Final = 0.25  # copies from the host that may follow, of those before the first product
_LONG: Final = 0.05  # of the capture: uploads of a model, not of a batch
_MANY: Final = 16  # copies: a batch has fewer, a model more
_PRODUCTS: Final = ("gemm", "convolution", "attention")

_NAMES: Final = regex(
    r"(?:.*[^a-z])?(?:"
    r"init|initiali[sz]e|initiali[sz]ing|initiali[sz]ation|set[ _-]?up|start[ _-]?up|build|building"
    r"|(?:load|create|make|construct|prepare)[ _-]?(?:\w+[ _-])?(?:model|weights|checkpoint|params)"
    r"|model[ _-]?(?:load|loading|creation|construction|build)"
    r"|(?:\w*[ _-])?warm(?:ing)?[ _-]?up|compile|compiling|compilation|auto[ _-]?tun(?:e|ing)"
    r"|(?:cuda[ _-]?|hip[ _-]?)?graphs?[ _-]?capture|capture[ _-](?:\w+[ _-])?graphs?"
    r"|dummy[ _-]?run|profile[ _-]?run"
    r")(?![a-z]).*",
    re.I | re.S,
)
_CAMEL: Final = regex(r"(?<=[a-z])(?=[A-Z])")


class Startup(NamedTuple):
    """The start-up.

    Parameters
    ----------
    until : ns on the clock of the trace; work launched earlier is start-up
    names : what it consists of: names of ranges, `uploads`
    """

    until: int
    names: tuple[str, ...]


def find(trace: Trace, meanings: Sequence[Meaning], names: Values, weight: Int64) -> Startup | None:
    """The start-up of a capture; None if there is none, or nothing else.

    meanings : [labels]
    names : [kernels] short names
    weight : [kernels] GPU time, 0 for copies and for kernels without a launch
    """
    named, uploads = _by_name(trace, meanings, weight), _by_uploads(trace, names)
    until = max((startup.until for startup in (*named, *uploads)), default=None)
    if until is None:
        return None
    # Uploads within the named ranges are part of these.
    results = [*named, *(upload for upload in uploads if upload.until == until)]
    parts = tuple(dict.fromkeys(name for startup in results for name in startup.names))
    launched = take(trace.launches.start, trace.kernels.launch, NO_TIME)
    rest = (weight > 0) & (launched >= until)
    first, last = span(trace)
    begin = int(trace.kernels.start[rest].min(initial=NEVER))
    if (
        np.count_nonzero(rest) < _LEAST
        or weight[rest].sum() < _REST * weight.sum()
        or begin - first < _SHARE * (last - first)
    ):
        return None
    return Startup(until, parts)


class _Work(NamedTuple):
    """The work that a process launches.

    Parameters
    ----------
    start : int64 [launches], ascending
    before : int64 [1 + launches], the GPU time launched before each, cumulative
    """

    start: Int64
    before: Int64

    @property
    def total(self) -> int:
        """All GPU time."""
        return int(self.before[-1])

    def within(self, ranges: UserRanges) -> Int64:
        """[ranges] The GPU time that is launched within each."""
        start, end = (np.searchsorted(self.start, time) for time in (ranges.start, ranges.end))
        times: Int64 = self.before[end] - self.before[start]
        return times


def _by_name(trace: Trace, meanings: Sequence[Meaning], weight: Int64) -> list[Startup]:
    """The start-up of each process by the names of its outermost ranges."""
    ranges = trace.user_ranges
    used, _ = distinct(ranges.label, len(meanings))
    if not any(_is_startup(meanings[number].name) for number in used):
        return []
    rows = np.flatnonzero(launching_threads(trace)[ranges.thread])
    of_process = dict(rows_by(trace.process_of_thread[ranges.thread[rows]]))
    of_process.pop(-1, None)
    result = []
    for process, own in sorted(of_process.items()):
        work = _launched(trace, weight, process)
        startup = None if work is None else _named(meanings, _part(ranges, rows[own]), work)
        if startup is not None:
            result.append(startup)
    return result


def _part(ranges: UserRanges, rows: Int64) -> UserRanges:
    return UserRanges(ranges.start[rows], ranges.end[rows], ranges.thread[rows], ranges.label[rows])


def _launched(trace: Trace, weight: Int64, process: int) -> _Work | None:
    """The work that a process launches; None if it launches none."""
    kernels, launches = trace.kernels, trace.launches
    own = kernels.process == process
    if not (own & (kernels.launch >= 0)).any():
        return None
    of_launch = sum_where(kernels.launch, weight, own.view(np.uint8), len(launches.start))
    # Of a damaged file, beyond 64 bits.
    total = np.minimum(np.cumsum(of_launch, dtype=np.float64), 2.0**62)
    return _Work(launches.start, np.concatenate([[0], total]).astype(np.int64))


def _named(meanings: Sequence[Meaning], ranges: UserRanges, work: _Work) -> Startup | None:
    """The longest sequence of first ranges that are named as start-up, or launch next to nothing.

    ranges, work : of one process
    """
    ranges = _outermost(ranges, work)
    if not len(ranges):
        return None
    used, place = np.unique(ranges.label, return_inverse=True)
    is_named = np.array([_is_startup(meanings[number].name) for number in used.tolist()], bool)
    fits = is_named[place]
    others = ~fits & (work.within(ranges) > _BETWEEN * work.total)
    first = int(others.argmax()) if others.any() else len(fits)
    if not fits[:first].any():
        return None
    last = int(np.flatnonzero(fits[:first])[-1])
    if np.isin(place[: last + 1][fits[: last + 1]], place[last + 1 :]).any():
        return None  # a part of every step
    texts = [labels.shown(meanings[number].name) for number in ranges.label[: last + 1].tolist()]
    return Startup(int(ranges.end[last]), tuple(dict.fromkeys(texts)))


def _is_startup(name: str) -> bool:
    return _NAMES.fullmatch(_CAMEL.sub("_", name)) is not None


def _outermost(ranges: UserRanges, work: _Work) -> UserRanges:
    """The outermost ranges, within those that are around nearly all of the work."""
    for _ in range(_LEVELS):
        process = np.zeros(len(ranges), np.int32)
        outer = np.flatnonzero(is_outermost(ranges.start, ranges.end, process))
        user_ranges = _part(ranges, outer)
        wraps = np.flatnonzero(work.within(user_ranges) >= _WRAPS * max(work.total, 1))
        if not len(wraps):
            return user_ranges
        start, end = user_ranges.start[wraps[0]], user_ranges.end[wraps[0]]
        inner = (ranges.start >= start) & (ranges.end <= end)
        inner[outer[wraps[0]]] = False
        if not inner.any():
            return user_ranges
        ranges = _part(ranges, np.flatnonzero(inner))
    return user_ranges


def _by_uploads(trace: Trace, names: Values) -> list[Startup]:
    """The copies of a model to the GPU before the first product."""
    kernels, configs = trace.kernels, trace.kernels.configs
    if configs.copy_kind is None or not len(kernels):
        return []
    duration = np.maximum(kernels.duration, 0)
    is_upload: Bools = (configs.copy_kind == COPY_KINDS.index("HtoD"))[kernels.config]
    is_product = names.fits(lambda name: ops.classify(name).kind in _PRODUCTS) & ~is_upload
    if not is_product.any() or not is_upload.any():
        return []
    first, last = span(trace)
    until = int(kernels.start[is_product].min())
    is_before = kernels.start < until
    before, uploads = duration[is_before].sum(), duration[is_before & is_upload].sum()
    later = duration[~is_before & is_upload].sum()
    if np.count_nonzero(is_before & is_upload) < _MANY:
        return []
    if uploads < max(_UPLOADS * before, _LONG * (last - first)) or later > _LATER * uploads:
        return []
    launched = take(trace.launches.start, kernels.launch, NO_TIME)[is_before & is_upload]
    return [Startup(int(launched.max()) + 1, ("uploads",))] if (launched != NO_TIME).all() else []
