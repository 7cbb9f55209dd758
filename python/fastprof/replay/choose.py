"""Launches of graphs to the capture that each of them replays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastprof.replay.fits import Fit

# What decides, the first before the second before the third: the share of names that agree, numbers
# that the names of ranges around both have in common (a batch size), and that the capture follows
# the one that the launch before replays.
_RATE, _NUMBER, _NEXT = 1e4, 0.1, 0.01
_MOST_NUMBERS = 9


def choose(
    kind: npt.NDArray[np.int64],
    fits: list[dict[int, Fit]],
    numbers_of_launch: list[frozenset[str]],
    numbers_of_capture: list[frozenset[str]],
    work_of_capture: list[bytes],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Choose the capture that fits best.

    Parameters
    ----------
    kind : int64 [launches], which distinct sequence of kernels each launch ran, in order of time
    fits : of each distinct sequence, the captures that fit it
    numbers_of_launch, numbers_of_capture : of each, the numbers in the names of ranges around it
    work_of_capture : equal for captures of the same operators with the same arguments

    Returns
    -------
    int64 [launches]
        The capture, -1 for none.
    bool [launches]
        For which captures of other work fit as well as the best: these get none.
    """
    n, m = len(kind), len(work_of_capture)
    score = np.full((n, m), -np.inf)
    torn = np.zeros(n, bool)
    known: dict[tuple[int, frozenset[str]], tuple[npt.NDArray[np.float64], bool]] = {}
    for launch, number in enumerate(kind.tolist()):
        key = number, numbers_of_launch[launch]
        if key not in known:
            known[key] = _scores(fits[number], key[1], numbers_of_capture, work_of_capture)
        score[launch], torn[launch] = known[key]
    capture = np.full(n, -1, np.int64)
    usable = np.flatnonzero(np.isfinite(score.max(axis=1, initial=-np.inf)) & ~torn)
    capture[usable] = _best_way(score[usable])
    return capture, torn


def _scores(
    fits: dict[int, Fit],
    numbers: frozenset[str],
    numbers_of_capture: list[frozenset[str]],
    work_of_capture: list[bytes],
) -> tuple[npt.NDArray[np.float64], bool]:
    """How well each capture fits a launch, and whether the best ones do other work."""
    score = np.full(len(work_of_capture), -np.inf)
    for capture, fit in fits.items():
        shared = min(len(numbers & numbers_of_capture[capture]), _MOST_NUMBERS)
        score[capture] = _RATE * fit.rate + _NUMBER * shared
    best = np.flatnonzero(score == score.max(initial=-np.inf)) if fits else ()
    return score, len({work_of_capture[capture] for capture in best}) > 1


def _best_way(score: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The capture of each launch with the highest sum, also of those that follow one another."""
    n, m = score.shape
    came_from = np.empty((n, m), np.int64)
    total = np.zeros(m)
    for launch in range(n):
        before = int(np.argmax(total))
        come = np.full(m, total[before])
        came_from[launch] = before
        if launch:
            following = np.append(-np.inf, total[:-1] + _NEXT)
            follows = following > come
            come[follows] = following[follows]
            came_from[launch][follows] = np.flatnonzero(follows) - 1
        total = come + score[launch]
    chosen = np.empty(n, np.int64)
    at = int(np.argmax(total)) if m else -1
    for launch in range(n - 1, -1, -1):
        chosen[launch] = at
        at = int(came_from[launch, at])
    return chosen
