"""Launches of graphs to the capture that each of them replays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastprof.profile.captured_graphs.fits import Fit

Captures = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Around:
    """What the names of the user's own ranges around a capture or a launch of a graph tell.

    Parameters
    ----------
    numbers : all numbers in them
    size : how many sequences or tokens the graph is captured for (`capture_32_FULL`), or how many a
        launch of it works on (`execute_30_...`, `execute_context_0(0)_generation_30(30)`,
        `step[DECODE bs=30]`), as vLLM and SGLang name them; None where they do not
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
    """Choose the capture that fits best: by the share that agrees; if that is equal, by size and
    numbers in names; of those that do the same work, the one behind the capture of the launch
    before, as the layers of a model are that have a graph each.

    Parameters
    ----------
    kind : int64 [launches], which distinct sequence of kernels each launch ran, in order of time
    done : int64 [launches], how many captures were over before each launch: the first ones
    fits : of each distinct sequence, the captures that fit it
    work_of_capture : equal for captures of the same operators with the same arguments

    Returns
    -------
    int64 [launches]
        The capture, -1 for none.
    bool [launches]
        For which captures of other work fit as well as the best: these get none.
    """
    best: dict[tuple[int, int], _Best] = {}
    found = []
    for number, n, around in zip(kind.tolist(), done.tolist(), around_launch, strict=True):
        if (number, n) not in best:
            known = {capture: fit for capture, fit in fits[number].items() if capture < n}
            best[number, n] = _Best(known, around_capture, work_of_capture)
        found.append(best[number, n].of(around))
    options, torn = [captures for captures, _ in found], np.array([each for _, each in found], bool)
    capture = np.full(len(kind), -1, np.int64)
    usable = [launch for launch, each in enumerate(options) if len(each) and not torn[launch]]
    capture[usable] = _in_a_row([options[launch] for launch in usable])
    return capture, torn


class _Best:
    """The captures that fit one sequence of kernels best, ascending, and how to tell them apart."""

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
        """Those that a launch in such ranges may replay, and whether they do different work."""
        by_size = launch.size is not None and self._have_sizes
        key = Around(size=launch.size) if by_size else Around(launch.numbers & self._numbers)
        if key not in self._known:
            left = self._by_size(launch.size or 0) if by_size else self._by_numbers(key.numbers)
            torn = len({self._work[capture] for capture in left}) > 1
            self._known[key] = np.array(left, np.int64), torn
        return self._known[key]

    def _by_size(self, wanted: int) -> list[int]:
        """A batch is padded to the next size of which there is a graph."""
        sizes = [around.size or 0 for around in self._around]
        enough = min((size for size in sizes if size >= wanted), default=-1)
        return [capture for capture, size in zip(self._captures, sizes, strict=True)
                if size == enough]  # fmt: skip

    def _by_numbers(self, numbers: frozenset[str]) -> list[int]:
        shared = [len(numbers & around.numbers) for around in self._around]
        most = max(shared, default=0)
        return [capture for capture, n in zip(self._captures, shared, strict=True) if n == most]


def _in_a_row(options: list[Captures]) -> Captures:
    """One of the captures that each launch may replay: so that as many as can be follow the capture
    of the launch before."""
    total = np.zeros(0, np.int64)  # of each option of the launch before, how many follow up to it
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
