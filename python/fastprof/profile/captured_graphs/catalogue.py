"""All captures of graphs, indexed to find those that a graph launch replays."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from fastprof.profile.captured_graphs.fits import MIN_RATE, Fit, fit
from fastprof.profile.captured_graphs.sequences import FILL, Replays, Sequences


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
