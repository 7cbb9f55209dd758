"""Sequences of calls of several ranks, shifted so that the calls of one exchange coincide."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Many
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import NamedTuple
from fastprof.model.arrays import Bools, Int32, Int64

NOWHERE: Final = np.iinfo(np.int64).min  # the place of a call without an instance
_OTHERS: Final = "their kinds or sizes differ from those of the other ranks"
_SAMPLE: Final = 256  # calls compared for one shift
_MOST_SHIFTS: Final = 4096
_ALIKE: Final = 0.95  # of the calls of a shift have the same signature
_LEAST_SHARE: Final = 0.5  # of the shorter sequence overlaps
_CLOSE: Final = 0.25  # of the time between calls: ends that differ less belong together
_CLOSE_NS: Final = 20_000
_SAME_CLOCK_NS: Final = 500_000  # clocks as recorded that differ less may be one
_FEW: Final = 12
_FEWEST: Final = 4  # calls whose ends can tell a shift
_CLEARLY: Final = 0.5  # of the next spread


class CallSequence(NamedTuple):
    """Calls of a rank in one group, in order of start.

    Parameters
    ----------
    rank : index of the rank
    rows : int64 [calls], rows of RunCalls
    same : int32 [calls], equal for calls that may be one exchange
    start, end : int64 [calls], ns on the clock of the rank
    seq : int32 [calls], the recorded number, -1 if unknown
    """

    rank: int
    rows: Int64
    same: Int32
    start: Int64
    end: Int64
    seq: Int32


class AlignedShift(NamedTuple):
    """A shift of one sequence against another.

    Parameters
    ----------
    shift : call i of the sequence is call i + shift of the other
    spread : ns, median distance of the differences of ends from a line; inf if nothing fits
    interval : ns, median time between the ends of successive calls
    overlap : the calls that coincide
    is_only : no other shift has the same signatures
    apart : ns, median difference of the ends
    is_clear : no other shift has nearly so small a spread
    """

    shift: int
    spread: float
    interval: float
    overlap: int
    is_only: bool
    apart: float = np.inf
    is_clear: bool = True

    @property
    def is_close(self) -> bool:
        """Whether calls end together so clearly that they are the same ones."""
        return self.is_clear and self.spread <= max(_CLOSE * self.interval, _CLOSE_NS)


class KnownClocks:
    """Differences of clocks, from calls that were matched so far."""

    def __init__(self, n_ranks: int) -> None:
        self._part = list(range(n_ranks))
        self._offset = [0] * n_ranks  # to the clock of the part

    def offset(self, rank: int, base: int) -> int | None:
        """What is added to times of a rank for those of another; None if it is not known."""
        if self._part[rank] != self._part[base]:
            return None
        return self._offset[rank] - self._offset[base]

    def join(self, rank: int, base: int, offset: int) -> None:
        """Keep an offset of two ranks."""
        part, other = self._part[rank], self._part[base]
        if part == other:
            return
        move = self._offset[base] + offset - self._offset[rank]
        for i, own in enumerate(self._part):
            if own == part:
                self._part[i] = other
                self._offset[i] += move


def aligned(
    sequences: Many[CallSequence], has_numbers: bool, clocks: KnownClocks
) -> tuple[list[Int64], list[str]]:
    """The place of each call in the group, and per sequence why calls have none, "" if all have.

    Calls of equal place are one instance.

    clocks : what is known of the ranks; learns
    """
    if has_numbers:
        return _numbered(sequences)
    longest = max(range(len(sequences)), key=lambda i: (len(sequences[i].rows), -i))
    base = sequences[longest]
    places, reasons = [], []
    for i, sequence in enumerate(sequences):
        n = len(sequence.rows)
        if i == longest:
            places.append(np.arange(n, dtype=np.int64))
            reasons.append("")
            continue
        known = clocks.offset(sequence.rank, base.rank)
        moved = sequence if known is None else sequence._replace(end=sequence.end + known)
        fit = best_fit(base, moved, known is not None)
        if fit.is_close and known is None:
            clocks.join(sequence.rank, base.rank, _offset(base, sequence, fit.shift))
        if not np.isfinite(fit.spread) or not (fit.is_close or fit.is_only):
            places.append(np.full(n, NOWHERE))
            reasons.append(
                "their kinds and sizes fit those of the other ranks nowhere"
                if not np.isfinite(fit.spread)
                else "several shifts against the other ranks fit equally"
            )
            continue
        place = np.arange(n, dtype=np.int64) + fit.shift
        differs = _differs(base, sequence, fit.shift)
        place[differs] = NOWHERE
        places.append(place)
        reasons.append(_OTHERS if differs.any() else "")
    return places, reasons


def _numbered(sequences: Many[CallSequence]) -> tuple[list[Int64], list[str]]:
    """By the recorded numbers; of calls with one number, those of the most frequent signature.

    Calls of a rank with one number, as those of a coalescing manager, match in order.
    """
    repeats = [_earlier(sequence.seq) for sequence in sequences]
    n_repeats = max((int(earlier.max(initial=0)) for earlier in repeats), default=0) + 1
    numbers = [
        sequence.seq.astype(np.int64) * n_repeats + earlier
        for sequence, earlier in zip(sequences, repeats, strict=True)
    ]
    seq = np.concatenate(numbers)
    same = np.concatenate([sequence.same for sequence in sequences])
    order = np.lexsort((same, seq))
    key = np.stack([seq[order], same[order]])
    first = np.flatnonzero(np.append(True, (key[:, 1:] != key[:, :-1]).any(axis=0)))
    count = np.diff(np.append(first, len(seq)))
    number, signature = key[0, first], key[1, first]
    by_count = np.lexsort((-count, number))
    is_best = np.append(True, np.diff(number[by_count]) > 0)
    usual = dict(zip(number[by_count][is_best].tolist(), signature[by_count][is_best].tolist(),
                     strict=True))  # fmt: skip
    places, reasons = [], []
    for sequence, own in zip(sequences, numbers, strict=True):
        wanted = np.array([usual[number] for number in own.tolist()], np.int32)
        fits = wanted == sequence.same
        places.append(np.where(fits, own, NOWHERE))
        reasons.append("" if fits.all() else _OTHERS)
    return places, reasons


def _earlier(seq: Int32) -> Int64:
    """[calls] How many calls before each have its number."""
    order = np.argsort(seq, kind="stable")
    result = np.empty(len(seq), np.int64)
    result[order] = np.arange(len(seq)) - np.searchsorted(seq[order], seq[order])
    return result


def _offset(base: CallSequence, sequence: CallSequence, shift: int) -> int:
    low, high = max(0, shift), min(len(base.rows), len(sequence.rows) + shift)
    apart = base.end[low:high] - sequence.end[low - shift : high - shift]
    return int(np.median(apart))


def _differs(base: CallSequence, sequence: CallSequence, shift: int) -> Bools:
    """Whether a call meets one of another signature."""
    at = np.arange(len(sequence.rows)) + shift
    inside = (at >= 0) & (at < len(base.rows))
    result: Bools = np.zeros(len(at), bool)
    result[inside] = base.same[at[inside]] != sequence.same[inside]
    return result


def best_fit(
    base: CallSequence, sequence: CallSequence, is_same_clock: bool = False
) -> AlignedShift:
    """The shift with which signatures agree and calls end together.

    is_same_clock : whether the times are known to be of one clock

    Clocks that agree tell it at once. Else it is the one with the least spread: steps of equal
    length repeat, but not to the microsecond.
    """
    by_clock = _fit(base, sequence, _by_clock(base, sequence))
    is_near = by_clock.apart <= max(_CLOSE * by_clock.interval, _CLOSE_NS)
    if by_clock.is_close and is_near and (is_same_clock or by_clock.apart <= _SAME_CLOCK_NS):
        return by_clock
    fits = [_fit(base, sequence, shift) for shift in _shifts(base, sequence)]
    fits = [fit for fit in fits if np.isfinite(fit.spread)]
    if not fits:
        return by_clock
    fits.sort(key=lambda fit: (fit.spread, -fit.overlap))
    best = fits[0]
    is_clear = len(fits) == 1 or best.spread < _CLEARLY * fits[1].spread
    return best._replace(is_only=len(fits) == 1, is_clear=is_clear)


def _by_clock(base: CallSequence, sequence: CallSequence) -> int:
    """The shift by the recorded times."""
    middle = len(sequence.rows) // 2
    place = int(np.searchsorted(base.end, sequence.end[middle]))
    near = [i for i in (place - 1, place) if 0 <= i < len(base.rows)]
    if not near:
        return -middle
    nearest = min(near, key=lambda i: abs(int(base.end[i]) - int(sequence.end[middle])))
    return nearest - middle


def _shifts(base: CallSequence, sequence: CallSequence) -> list[int]:
    """Shifts that bring the rarest signature of a sequence upon one of its own."""
    n, m = len(base.rows), len(sequence.rows)
    least = min(max(_FEWEST, int(_LEAST_SHARE * min(n, m))), n, m)
    values, counts = np.unique(sequence.same, return_counts=True)
    in_base = np.array([np.count_nonzero(base.same == value) for value in values.tolist()])
    shared = np.flatnonzero(in_base)
    if not len(shared):
        return []
    rare = values[shared[np.argmin((counts * in_base)[shared])]]
    own, other = np.flatnonzero(sequence.same == rare), np.flatnonzero(base.same == rare)
    found: set[int] = set()
    for place in own[[0, len(own) // 2, -1]].tolist():
        found.update((other - place).tolist())
    overlaps = {shift: min(n, m + shift) - max(0, shift) for shift in found}
    result = sorted(
        (shift for shift in found if overlaps[shift] >= least), key=lambda shift: -overlaps[shift]
    )
    return result[:_MOST_SHIFTS]


def _fit(base: CallSequence, sequence: CallSequence, shift: int) -> AlignedShift:
    low, high = max(0, shift), min(len(base.rows), len(sequence.rows) + shift)
    n = high - low
    interval = _interval(base, sequence)
    if n <= 0:
        return AlignedShift(shift, np.inf, interval, 0, False)
    rows = np.unique(np.linspace(low, high - 1, min(n, _SAMPLE)).astype(np.int64))
    alike = base.same[rows] == sequence.same[rows - shift]
    if alike.mean() < _ALIKE:
        return AlignedShift(shift, np.inf, interval, n, False)
    rows = rows[alike]
    apart = base.end[rows] - sequence.end[rows - shift]
    left = np.abs(from_line(base.end[rows], apart))
    # Few calls fit a line by chance: all of them must.
    spread = float(np.median(left) if len(left) > _FEW else left.max())
    return AlignedShift(shift, spread, interval, n, False, float(np.median(np.abs(apart))))


def _interval(base: CallSequence, sequence: CallSequence) -> float:
    """The median time between the ends of calls; inf of a single call."""
    ends = base.end if len(base.end) > 1 else sequence.end
    return float(np.median(np.abs(np.diff(ends)))) if len(ends) > 1 else np.inf


def from_line(time: Int64, apart: Int64) -> npt.NDArray[np.float64]:
    """Differences of clocks less their offset and drift: a line through medians of both halves."""
    x = (time - time[0]).astype(np.float64)
    y = (apart - apart[0]).astype(np.float64)
    half = len(x) // 2
    if half >= 2:
        left, right = slice(None, half), slice(half, None)
        run = np.median(x[right]) - np.median(x[left])
        slope = (np.median(y[right]) - np.median(y[left])) / run if run > 0 else 0.0
        # Clocks drift by some parts per million; a step that takes longer is no drift.
        if abs(slope) < _MOST_DRIFT:
            y = y - slope * x
    result: npt.NDArray[np.float64] = y - np.median(y)
    return result


_MOST_DRIFT: Final = 2e-4


def clustered(sequences: list[CallSequence], size: int) -> Iterator[list[CallSequence]]:
    """Groups of ranks whose calls end together, for groups that no record names.

    size : number of ranks of a group, -1 if unknown
    """
    rest = sorted(sequences, key=lambda sequence: -len(sequence.rows))
    while rest:
        leader, rest = rest[0], rest[1:]
        fits = [best_fit(leader, sequence) for sequence in rest]
        close = [i for i, fit in enumerate(fits) if fit.is_close or fit.is_only]
        close.sort(key=lambda i: fits[i].spread)
        if size > 0:
            close = close[: size - 1]
        chosen = set(close)
        yield sorted([leader, *(rest[i] for i in close)], key=lambda sequence: sequence.rank)
        rest = [sequence for i, sequence in enumerate(rest) if i not in chosen]
