"""Shifts of one sequence of calls against another."""

import random

import numpy as np
import pytest

from fastprof.ranks.run.align import (
    NOWHERE,
    CallSequence,
    KnownClocks,
    aligned,
    best_fit,
    clustered,
    from_line,
)


def sequence(rank, ends, same=None, seq=None):
    ends = np.array(ends, np.int64)
    n = len(ends)
    return CallSequence(
        rank,
        np.arange(n),
        np.array([0] * n if same is None else same, np.int32),
        ends - 10_000,
        ends,
        np.array([-1] * n if seq is None else seq, np.int32),
    )


def unlike(n, seed=1):
    """Ends whose intervals differ."""
    rng = random.Random(seed)
    return np.cumsum([rng.randint(500_000, 1_500_000) for _ in range(n)])


ENDS = unlike(40)


def test_clocks_that_agree_tell_the_shift():
    fit = best_fit(sequence(0, ENDS), sequence(1, ENDS[5:] + 300))
    assert (fit.shift, fit.is_close) == (5, True)
    assert fit.apart == 300


@pytest.mark.parametrize("offset", [-3_000_000_000, 3_000_000_000])
@pytest.mark.parametrize("first", [0, 1, 7])
def test_the_least_spread_tells_it_on_clocks_apart(offset, first):
    fit = best_fit(sequence(0, ENDS), sequence(1, ENDS[first:] + offset))
    assert (fit.shift, fit.is_close, fit.is_only) == (first, True, False)
    assert best_fit(sequence(1, ENDS[first:] + offset), sequence(0, ENDS)).shift == -first


def test_a_drift_is_no_spread():
    drifted = ENDS + (ENDS * 50e-6).astype(np.int64) + 10**9
    fit = best_fit(sequence(0, ENDS), sequence(1, drifted))
    assert (fit.shift, fit.is_close) == (0, True)
    assert fit.spread < 10


def test_kinds_tell_the_shift_of_equal_steps():
    ends = np.arange(1, 21) * 1_000_000
    same = [0] * 10 + [1] + [0] * 9
    fit = best_fit(sequence(0, ends, same), sequence(1, ends[3:] + 10**10, same[3:]))
    assert (fit.shift, fit.is_only) == (3, True)


def test_equal_steps_on_clocks_apart_are_not_clear():
    ends = np.arange(1, 21) * 1_000_000
    fit = best_fit(sequence(0, ends), sequence(1, ends[3:] + 10**10))
    assert not fit.is_close and not fit.is_only


def test_sequences_without_a_common_kind_do_not_fit():
    fit = best_fit(sequence(0, ENDS), sequence(1, ENDS, [1] * 40))
    assert fit.spread == np.inf and not fit.is_close


def test_an_overlap_of_less_than_half_is_no_fit_on_clocks_apart():
    other = np.concatenate([ENDS[-9:], ENDS[-1] + unlike(31, 2)]) + 10**10
    fit = best_fit(sequence(0, ENDS), sequence(1, other))
    assert not fit.is_close


def test_numbers_place_calls_whatever_their_times():
    one, other = (sequence(i, unlike(5, i), seq=range(i, i + 5)) for i in range(2))
    places, reasons = aligned([one, other], True, KnownClocks(2))
    assert [place.tolist() for place in places] == [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]
    assert reasons == ["", ""]


def test_of_calls_with_one_number_those_of_most_ranks_count():
    several = [sequence(i, ENDS[:3], [0, 7 if i == 1 else 0, 0], range(3)) for i in range(3)]
    places, reasons = aligned(several, True, KnownClocks(3))
    assert places[1].tolist() == [0, NOWHERE, 2]
    assert [bool(reason) for reason in reasons] == [False, True, False]


def test_a_call_of_another_kind_has_no_place():
    same = [0] * 40
    same[20] = 5
    places, reasons = aligned([sequence(0, ENDS), sequence(1, ENDS, same)], False, KnownClocks(2))
    assert np.flatnonzero(places[1] == NOWHERE).tolist() == [20]
    assert reasons == ["", "their kinds or sizes differ from those of the other ranks"]


def test_clocks_that_long_sequences_tell_place_short_ones():
    clocks = KnownClocks(2)
    aligned([sequence(0, ENDS), sequence(1, ENDS + 10**10)], False, clocks)
    assert clocks.offset(1, 0) == -(10**10)
    short = np.array([5_000_000, 6_000_000, 7_000_000])
    places, reasons = aligned([sequence(0, short), sequence(1, short[1:] + 10**10)], False, clocks)
    assert places[1].tolist() == [1, 2]
    assert reasons == ["", ""]


def test_known_clocks_chain():
    clocks = KnownClocks(4)
    clocks.join(1, 0, 100)
    clocks.join(3, 2, 7)
    assert clocks.offset(3, 0) is None
    clocks.join(2, 1, 10)
    assert (clocks.offset(3, 0), clocks.offset(0, 3)) == (117, -117)
    clocks.join(3, 0, 5)  # known already: the first one stays
    assert clocks.offset(3, 0) == 117


def test_clusters_are_ranks_whose_calls_end_together():
    ends = [unlike(30, seed) for seed in (1, 2)]
    several = [sequence(rank, ends[rank % 2] + 10 * rank) for rank in range(6)]
    result = [[one.rank for one in some] for some in clustered(several, 3)]
    assert sorted(result) == [[0, 2, 4], [1, 3, 5]]


def test_a_cluster_has_no_more_ranks_than_the_group():
    several = [sequence(rank, ENDS + 10 * rank) for rank in range(5)]
    assert [len(some) for some in clustered(several, 2)] == [2, 2, 1]
    assert [len(some) for some in clustered(several, -1)] == [5]


def test_a_line_leaves_no_drift_but_steps():
    time = np.arange(0, 10**9, 10**7)
    assert np.abs(from_line(time, 5_000 + time // 20_000)).max() <= 1
    # 1 % is no drift of a clock.
    assert np.abs(from_line(time, time // 100)).max() > 10**6
    assert from_line(time[:1], np.array([7])).tolist() == [0]
