"""The capture that each graph launch replays.

All captures of graphs, indexed to find those that a graph launch replays.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof.profile.captured_graphs.fits import MIN_RATE, Fit, fit
from fastprof.profile.captured_graphs.sequences import FILL, Replays, Sequences

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
    found = []
    for number, n, around in zip(kind.tolist(), done.tolist(), around_launch, strict=True):
        if (number, n) not in best:
            known = {capture: fit for capture, fit in fits[number].items() if capture < n}
            best[number, n] = _Best(known, around_capture, work_of_capture)
        found.append(best[number, n].of(around))
    options, ambiguous = (
        [captures for captures, _ in found],
        np.array([each for _, each in found], bool),
    )
    capture = np.full(len(kind), -1, np.int64)
    usable = [launch for launch, each in enumerate(options) if len(each) and not ambiguous[launch]]
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
            for each in {key.tobytes(), kernels.tobytes()}:
                self._with_keys[each].append(i)
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
        found = {}
        for alike in (self._alike[i] for i in kinds):
            each = fit(replays, launch, self._captures, alike[0])
            if each.is_good:
                found.update(dict.fromkeys(alike, each))
        return found
