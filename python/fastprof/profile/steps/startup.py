"""The start-up of a program: what runs before the work that the capture is about.

Conservative: ranges must be named so, or uploads must be nearly all that the GPU does before the
first product. Where nothing but start-up is recorded, there is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from fastprof import ops
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Values
from fastprof.model.markers import Meaning
from fastprof.model.trace import COPY_KINDS, NEVER, NO_TIME, Trace, UserRanges
from fastprof.profile.steps import labels
from fastprof.profile.steps.ranges import is_outermost, launching_threads
from fastprof.profile.steps.window import span

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
    until = max((each.until for each in (*named, *uploads)), default=None)
    if until is None:
        return None
    # Uploads within the named ranges are part of these.
    found = [*named, *(each for each in uploads if each.until == until)]
    parts = tuple(dict.fromkeys(name for each in found for name in each.names))
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


def _by_name(trace: Trace, meanings: Sequence[Meaning], weight: Int64) -> list[Startup]:
    """The start-up of each process by the names of its outermost ranges."""
    launching = launching_threads(trace)
    ranges = trace.user_ranges
    found = []
    for process in range(len(trace.processes)):
        threads = (trace.process_of_thread == process) & launching
        rows = np.flatnonzero(threads[ranges.thread])
        of_process = _named(trace, meanings, _part(ranges, rows), _launched(trace, process, weight))
        if of_process is not None:
            found.append(of_process)
    return found


def _part(ranges: UserRanges, rows: Int64) -> UserRanges:
    return UserRanges(ranges.start[rows], ranges.end[rows], ranges.thread[rows], ranges.label[rows])


def _launched(trace: Trace, process: int, weight: Int64) -> Int64:
    """[1 + launches] The GPU time that a process launches before each launch, cumulative."""
    kernels = trace.kernels
    own = np.flatnonzero((kernels.process == process) & (kernels.launch >= 0))
    of_launch = np.bincount(kernels.launch[own], weight[own], len(trace.launches))
    return np.concatenate([[0], np.cumsum(of_launch)]).astype(np.int64)


def _named(
    trace: Trace, meanings: Sequence[Meaning], ranges: UserRanges, before: Int64
) -> Startup | None:
    """The longest sequence of first ranges that are named as start-up, or launch next to nothing.

    ranges : of one process
    before : see `_launched`
    """
    ranges, total = _outermost(trace, ranges, before), int(before[-1])
    if not len(ranges):
        return None
    used, place = np.unique(ranges.label, return_inverse=True)
    is_named = np.array([_is_startup(meanings[each].name) for each in used.tolist()], bool)
    fits = is_named[place]
    others = ~fits & (_weights(trace, ranges, before) > _BETWEEN * total)
    first = int(others.argmax()) if others.any() else len(fits)
    if not fits[:first].any():
        return None
    last = int(np.flatnonzero(fits[:first])[-1])
    if np.isin(place[: last + 1][fits[: last + 1]], place[last + 1 :]).any():
        return None  # a part of every step
    texts = [labels.shown(meanings[each].name) for each in ranges.label[: last + 1].tolist()]
    return Startup(int(ranges.end[last]), tuple(dict.fromkeys(texts)))


def _is_startup(name: str) -> bool:
    return _NAMES.fullmatch(_CAMEL.sub("_", name)) is not None


def _outermost(trace: Trace, ranges: UserRanges, before: Int64) -> UserRanges:
    """The outermost ranges, within those that are around nearly all of the work."""
    for _ in range(_LEVELS):
        process = np.zeros(len(ranges), np.int32)
        outer = np.flatnonzero(is_outermost(ranges.start, ranges.end, process))
        found = _part(ranges, outer)
        share = _weights(trace, found, before)
        wraps = np.flatnonzero(share >= _WRAPS * max(int(before[-1]), 1))
        if not len(wraps):
            return found
        start, end = found.start[wraps[0]], found.end[wraps[0]]
        inner = (ranges.start >= start) & (ranges.end <= end)
        inner[outer[wraps[0]]] = False
        if not inner.any():
            return found
        ranges = _part(ranges, np.flatnonzero(inner))
    return found


def _weights(trace: Trace, ranges: UserRanges, before: Int64) -> Int64:
    """[ranges] The GPU time that is launched within each."""
    start, end = (np.searchsorted(trace.launches.start, x) for x in (ranges.start, ranges.end))
    found: Int64 = before[end] - before[start]
    return found


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
