"""The capture that each graph launch replays, of all that are indexed, and messages on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof.model.trace import Activity, Trace
from fastprof.profile.captured_graphs.fits import (
    FILL,
    MIN_RATE,
    Fit,
    Replays,
    Sequences,
    fit,
    most_alike,
)

Captures = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Around:
    """Numbers in the names of the user's ranges around a capture or a graph launch.

    Parameters
    ----------
    numbers : all numbers in the names
    size : batch size in sequences or tokens, from the range names of vLLM and SGLang: the size a
        graph is captured for (`capture_32_FULL`) or the size a launch processes (`execute_30_...`,
        `execute_context_0(0)_generation_30(30)`, `step[DECODE bs=30]`). None for other names
    """

    numbers: frozenset[str] = frozenset()
    size: int | None = None


def choose(
    kind: npt.NDArray[np.int64],
    done: npt.NDArray[np.int64],
    fits: list[dict[int, Fit]],
    around_launch: list[Around],
    around_capture: list[Around],
    work_of_capture: list[bytes],
) -> tuple[Captures, npt.NDArray[np.bool_]]:
    """Choose the best capture for each graph launch.

    Criteria in order: the match rate; the batch size and numbers in range names; among captures of
    the same work, the successor of the previous launch's capture (layers of a model may have a
    graph each).

    Parameters
    ----------
    kind : int64 [launches], the distinct kernel sequence of each launch, in order of time
    done : int64 [launches], how many captures ended before each launch
    fits : by distinct sequence, the matching captures
    work_of_capture : equal for captures of the same operators with the same arguments

    Returns
    -------
    int64 [launches]
        The capture, -1 for none.
    bool [launches]
        True if several captures of different work match equally well. Such launches get none.
    """
    best: dict[tuple[int, int], _Best] = {}
    results = []
    for number, n, around in zip(kind.tolist(), done.tolist(), around_launch, strict=True):
        if (number, n) not in best:
            known = {capture: fit for capture, fit in fits[number].items() if capture < n}
            best[number, n] = _Best(known, around_capture, work_of_capture)
        results.append(best[number, n].of(around))
    options, ambiguous = (
        [captures for captures, _ in results],
        np.array([flag for _, flag in results], bool),
    )
    capture = np.full(len(kind), -1, np.int64)
    usable = [
        launch for launch, option in enumerate(options) if len(option) and not ambiguous[launch]
    ]
    capture[usable] = _with_most_successors([options[launch] for launch in usable])
    return capture, ambiguous


class _Best:
    """The captures with the best match rate for one kernel sequence, ascending."""

    def __init__(
        self, fits: dict[int, Fit], around_capture: list[Around], work_of_capture: list[bytes]
    ) -> None:
        rate = max((fit.rate for fit in fits.values()), default=0.0)
        self._captures = sorted(capture for capture, fit in fits.items() if fit.rate == rate)
        self._around = [around_capture[capture] for capture in self._captures]
        self._have_sizes = all(around.size is not None for around in self._around)
        self._numbers = frozenset[str]().union(*(around.numbers for around in self._around))
        self._work = work_of_capture
        self._known: dict[Around, tuple[Captures, bool]] = {}

    def of(self, launch: Around) -> tuple[Captures, bool]:
        """The candidates for a launch with these range names, and whether their work differs."""
        by_size = launch.size is not None and self._have_sizes
        key = Around(size=launch.size) if by_size else Around(launch.numbers & self._numbers)
        if key not in self._known:
            left = self._by_size(launch.size or 0) if by_size else self._by_numbers(key.numbers)
            ambiguous = len({self._work[capture] for capture in left}) > 1
            self._known[key] = np.array(left, np.int64), ambiguous
        return self._known[key]

    def _by_size(self, wanted: int) -> list[int]:
        """Candidates of the next larger captured size, to which a batch is padded."""
        sizes = [around.size or 0 for around in self._around]
        enough = min((size for size in sizes if size >= wanted), default=-1)
        return [capture for capture, size in zip(self._captures, sizes, strict=True)
                if size == enough]  # fmt: skip

    def _by_numbers(self, numbers: frozenset[str]) -> list[int]:
        shared = [len(numbers & around.numbers) for around in self._around]
        most = max(shared, default=0)
        return [capture for capture, n in zip(self._captures, shared, strict=True) if n == most]


def _with_most_successors(options: list[Captures]) -> Captures:
    """One capture per launch, with as many captures as possible that directly follow the capture of
    the previous launch."""
    total = np.zeros(0, np.int64)  # successors so far, by option of the previous launch
    came_from: list[npt.NDArray[np.int32]] = []
    before = np.zeros(0, np.int64)
    for here in options:
        most = int(np.argmax(total)) if len(total) else -1
        come = np.full(len(here), most, np.int32)
        sums = np.full(len(here), total[most] if len(total) else 0)
        if len(before):
            place = np.minimum(np.searchsorted(before, here - 1), len(before) - 1)
            follows = (before[place] == here - 1) & (total[place] + 1 > sums)
            come[follows] = place[follows]
            sums[follows] = total[place][follows] + 1
        came_from.append(come)
        before, total = here, sums
    chosen = np.empty(len(options), np.int64)
    at = int(np.argmax(total)) if len(total) else -1
    for launch in range(len(options) - 1, -1, -1):
        chosen[launch] = options[launch][at]
        at = int(came_from[launch][at])
    return chosen


class Catalogue:
    """Captures with the same work are compared once, such as the graphs of a model's layers."""

    def __init__(self, captures: Sequences) -> None:
        self._captures = captures
        alike: defaultdict[bytes, list[int]] = defaultdict(list)
        for number in range(len(captures)):
            here = captures.of(number)
            alike[captures.key[here].tobytes() + captures.grid[here].tobytes()].append(number)
        self._alike = list(alike.values())
        self._with_keys: defaultdict[bytes, list[int]] = defaultdict(list)
        lengths = []
        for i, (first, *_) in enumerate(self._alike):
            key = captures.key[captures.of(first)]
            kernels = key[(key < 0) | (key > FILL)]
            for text in {key.tobytes(), kernels.tobytes()}:
                self._with_keys[text].append(i)
            lengths.append((len(key), len(kernels)))
        self._lengths = np.array(lengths, np.int64).reshape(-1, 2)

    def good_fits(self, replays: Replays, launch: int) -> dict[int, Fit]:
        """The captures that match a graph launch: exact matches of all names in order, if any,
        otherwise those above the minimum rate."""
        here = replays.of(launch)
        key = replays.key[here][np.argsort(replays.start[here], kind="stable")]
        exact = self._compare(replays, launch, self._with_keys.get(key.tobytes(), []))
        return exact or self._compare(replays, launch, self._of_length(len(key)))

    def _of_length(self, n: int) -> list[int]:
        longer, shorter = np.maximum(self._lengths, n), np.minimum(self._lengths, n)
        near = np.any(shorter >= MIN_RATE * longer, axis=1)
        return [i for i, fits in enumerate(near.tolist()) if fits]

    def _compare(self, replays: Replays, launch: int, kinds: list[int]) -> dict[int, Fit]:
        result = {}
        for alike in (self._alike[i] for i in kinds):
            each = fit(replays, launch, self._captures, alike[0])
            if each.is_good:
                result.update(dict.fromkeys(alike, each))
        return result


_MAX_FILES = 3  # per line
_RECORD = (
    "record the start of the program, where it captures its graphs, with torch.profiler and "
    "record_shapes=True"
)


def outcome(
    files: Sequence[str],
    launches: int,
    kernels: int,
    replayed: int,
    matched: int,
    captures: int,
    rate: float | None,
    by_name: bool,
) -> str:
    """The attributes of `GraphCapture` as a sentence."""
    more = f" and {len(files) - _MAX_FILES} more" if len(files) > _MAX_FILES else ""
    where = f"in {', '.join(files[:_MAX_FILES])}{more}" if files else "in the same file"
    text = (
        f"{matched} of {_counted(kernels, 'kernel')} of {_counted(launches, 'graph launch')} take "
        f"their call from {_counted(captures, 'capture')} {where}"
    )
    if rate is None:
        return text
    how = "name and order" if by_name else "order and number, without names"
    return f"{text}, match rate {_percent(rate)} by {how}"


def unmatched(name: str, launches: int, replayed: int, ambiguous: int) -> list[str]:
    """Warnings about graph launches without a capture."""
    result = []
    none, of = launches - replayed - ambiguous, _counted(launches, "graph launch")
    if none:
        result.append(
            f"{name}: no capture matches {none} of {of} to at least {_percent(MIN_RATE)} "
            "(names, order, size); their kernels keep the ranges around the launch; "
            f"{_RECORD}"
        )
    if ambiguous:
        result.append(
            f"{name}: several captures with different operators or shapes match {ambiguous} of "
            f"{of} equally well; their kernels keep the ranges around the launch; give only the "
            "capture of that batch size"
        )
    return result


def no_replay(trace: Trace) -> str:
    """Why a capture cannot be used: the trace has no replay."""
    if (trace.kernels.configs.kind == Activity.GRAPH).any():
        text = "found graphs that were traced as a whole; record with --cuda-graph-trace=node"
    elif trace.kernels.origin is not None and (trace.kernels.origin >= 0).any():
        text = "found that the trace itself records their capture; omit the capture file"
    else:
        text = "found none; give the trace with the graph launches, then its capture"
    return f"{trace.name}: expected kernels launched by cudaGraphLaunch or hipGraphLaunch, {text}"


def no_capture(names: Sequence[str]) -> str:
    """The files contain no capture."""
    return (
        f"{', '.join(names)}: expected the capture of a CUDA or HIP graph (API calls between "
        f"StreamBeginCapture and StreamEndCapture), found none; {_RECORD}"
    )


def no_fit(
    trace: Trace,
    replays: Replays,
    distinct: Sequence[int],
    offered: Sequence[tuple[str, Sequences]],
) -> str:
    """No capture matches.

    distinct : graph launches
    offered : name and captures of each file
    """
    (rate, ran, put, by_name), file = max(
        (most_alike(replays, launch, sequences, capture), file)
        for launch in distinct
        for file, (_, sequences) in enumerate(offered)
        for capture in range(len(sequences))
    )
    if by_name:
        how, text = "by name, order and grid", f"at most {_percent(rate)} with equal names"
    else:
        how, text = "in number (the capture records no names)", "other numbers"
        if ran == put:
            text = "kernels of several streams, whose order is not recorded"
    return (
        f"{offered[file][0]}: expected captures of the graphs that {trace.name} launches: that at "
        f"least {_percent(MIN_RATE)} of the kernels of one agree {how}; found {text}, "
        f"{_counted(ran, 'kernel')} in the launch and {_counted(put, 'call')} in the capture; give "
        "the capture of the same graph (model, version, batch size)"
    )


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 'es' if what.endswith('h') else 's'}"


def _percent(share: float) -> str:
    # Rounded down: less than all is never shown as 100 %.
    return f"{int(share * 1000) / 10:.1f} %"
