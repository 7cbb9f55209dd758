"""Ranks that run one program, and equal positions in it."""

import numpy as np

from fastprof.ranks.run.peers import PeerMeasure
from unit.ranks.run.built_runs import LOADING, Rank, exchange, ranks, run_of, send, steps_of

WORKS = [[100_000, 110_000, 90_000, 100_000]] * 4


def pipeline(n_steps=5):
    """Stages of two ranks: 0 and 1 send to 2 and 3."""
    everyone = ranks(4)
    for _ in range(n_steps):
        for rank in everyone:
            rank.step()
        for source, target in ((0, 2), (1, 3)):
            everyone[source].work(100_000)
            send(everyone[source], everyone[target], (source, target))
            everyone[target].work(200_000)
        exchange(everyone, members=(0, 1, 2, 3))
    return [rank.step() for rank in everyone]


def test_ranks_of_equal_calls_are_of_one_class():
    run = run_of(steps_of(ranks(4), WORKS))
    assert run.peers.of_rank.tolist() == [0, 0, 0, 0]
    assert run.peers.shift.tolist() == [0, 0, 0, 0]
    assert run.peers.ranks(0) == [0, 1, 2, 3]


def test_stages_of_a_pipeline_are_classes():
    peers = run_of(pipeline()).peers
    assert peers.of_rank.tolist() == [0, 0, 1, 1]


def test_a_capture_that_begins_later_is_shifted():
    everyone = steps_of(ranks(3), [row[:3] for row in WORKS])
    cut = Rank("rank1.json")
    cut.now = everyone[1].calls[2][0] - 50_000
    for i, (start, end, signature, seq) in enumerate(everyone[1].calls[2:]):
        if i % 2 == 0:
            cut.step()
        cut.work(start - cut.now)
        cut.wait(cut.arrive(end, signature, seq))
    everyone[1] = cut.step()
    peers = run_of(everyone).peers
    assert peers.of_rank.tolist() == [0, 0, 0]
    assert peers.shift.tolist() == [0, 2, 0]


def test_a_rank_with_other_collectives_is_no_peer():
    everyone = ranks(3)
    for _ in range(4):
        for rank in everyone:
            rank.step().work(50_000)
        exchange(everyone, members=(0, 1, 2))
        exchange([everyone[2].work(1000)], kind="broadcast", group="9 own", members=(2,))
    peers = run_of([rank.step() for rank in everyone]).peers
    assert peers.of_rank.tolist() == [0, 0, 1]


def stages(orders):
    """Ranks of equal calls that go forward and backward in some orders."""
    everyone = ranks(len(orders))
    for _ in range(3):
        for rank in everyone:
            rank.step()
        for directions in zip(*orders, strict=True):
            for rank, direction in zip(everyone, directions, strict=True):
                for part in direction.split("+"):
                    rank.work(50_000, direction=part)
            exchange(everyone)
    return run_of([rank.step() for rank in everyone]).peers.of_rank.tolist()


def test_stages_that_go_forward_and_backward_in_another_order_are_no_peers():
    one, other = ["fwd", "fwd", "bwd", "bwd"], ["fwd", "bwd", "fwd", "bwd"]
    assert stages([one, one, other, other]) == [0, 0, 1, 1]


def test_mixed_work_agrees_with_any():
    assert stages([["fwd", "bwd"], ["fwd+bwd", "bwd"], ["fwd", "bwd"]]) == [0, 0, 0]


def test_the_time_of_each_piece():
    (rank,) = ranks(1)
    rank.work(10).work(5, kind=LOADING)
    exchange([rank], transfer=100)
    rank.work(7)
    peers = run_of([rank]).peers
    assert peers.time(0).tolist() == [15, 0, 7]  # before the arrival, the wait, after it
    assert peers.time(0, PeerMeasure(kinds=(LOADING,))).tolist() == [5, 0, 0]
    assert peers.positions(0).tolist() == [0, 1, 1]


def test_times_of_positions_leave_out_what_the_capture_cuts():
    everyone = steps_of(ranks(2), [[100, 200]] * 3, calls=1, transfer=10)
    ranks_, time, first = run_of(everyone).peers.position_times(0)
    assert (ranks_, first) == ([0, 1], 0)
    assert np.isnan(time[:, 0]).all() and np.isnan(time[:, -1]).all()
    assert time[:, 1:-1].tolist() == [[100, 100], [200, 200]]


def test_a_rank_without_collectives_is_of_its_own():
    everyone = steps_of(ranks(2), [[100, 200]] * 3)
    alone = Rank("rank2.json").step().work(1000).step()
    assert run_of([*everyone, alone]).peers.of_rank.tolist() == [0, 0, 1]
