"""The joined replay of all ranks."""

import random

import numpy as np
import pytest

from fastprof.ranks.run.graph import CHAIN, HOST, MEMBER, WAIT, RunChange
from fastprof.ranks.run.replay import RunReplay
from unit.ranks.run.built_runs import HOST as HOST_BOUND
from unit.ranks.run.built_runs import Rank, exchange, ranks, run_of, send, steps_of

RNG = random.Random(7)
WORKS = [[RNG.randint(200_000, 900_000) for _ in range(4)] for _ in range(8)]


def lengths(run):
    """[ranks, steps] As recorded, on the clock of the run."""
    return np.array([times.end - times.start for times in run.step_times])


def assert_as_recorded(run, share=0.01):
    replayed, recorded = run.replay.recorded, lengths(run)
    assert replayed.shape == recorded.shape
    assert (np.abs(replayed - recorded) <= share * recorded).all()


def test_unchanged_each_step_of_each_rank_is_as_recorded():
    run = run_of(steps_of(ranks(4), WORKS))
    assert run.replay.recorded.tolist() == lengths(run).tolist()


def test_unchanged_on_clocks_apart():
    everyone = [Rank(f"rank{i}.json", offset=i * 800_000_000, ppm=20 * i - 30) for i in range(4)]
    run = run_of(steps_of(everyone, WORKS))
    assert_as_recorded(run)
    assert run.clocks.offset.any()


def test_unchanged_with_recorded_clocks_that_do_not_fit():
    """Ends of collectives before arrivals: edges against the order are left out; no crash."""
    everyone = [Rank(f"rank{i}.json", offset=i * 30_000_000) for i in range(4)]
    run = run_of(steps_of(everyone, WORKS), "recorded")
    assert (run.replay.recorded >= 0).all()
    assert np.isfinite(run.what_if("no-stragglers")["step_ns"]).all()


def test_unchanged_with_transfers_that_work_hides():
    everyone = ranks(3)
    for row in WORKS:
        for rank, ns in zip(everyone, row[:3], strict=True):
            rank.step().work(ns)
        exchange(everyone, transfer=300_000, blocks=False)
        for rank in everyone:
            rank.work(100_000)
            rank.wait(len(rank.calls) - 1)
    assert_as_recorded(run_of([rank.step() for rank in everyone]))


def test_unchanged_with_messages():
    one, other = ranks(2)
    for row in WORKS:
        one.step().work(row[0])
        send(one, other.step(), (0, 1))
        other.work(row[1])
        send(other, one, (1, 0))
    assert_as_recorded(run_of([one.step(), other.step()]))


def test_a_faster_rank_that_others_wait_for_shortens_their_steps():
    run = run_of(steps_of(ranks(2), [[100_000, 500_000]] * 4, calls=1, transfer=50_000))
    half = [None, run.peers.time(1) // 2]
    assert run.replay.run(RunChange("", half)).tolist() == [[300_000] * 4] * 2


def test_a_faster_rank_that_nobody_waits_for_changes_nothing():
    run = run_of(steps_of(ranks(2), [[100_000, 500_000]] * 4, calls=1))
    assert run.replay.run(RunChange("", [run.peers.time(0) * 0, None])).tolist() == (
        run.replay.recorded.tolist()
    )


def test_steps_of_the_middle_are_replayed_where_there_are_many():
    run = run_of(steps_of(ranks(4), WORKS))
    n = sum(len(record.chain) for record in run.records)
    replay = RunReplay(run.records, run.waits, run.step_numbers, most=n // 2)
    assert replay.numbers.tolist() == [2, 3, 4, 5]
    assert replay.recorded.tolist() == lengths(run)[:, 2:6].tolist()


def test_at_least_one_step_is_replayed():
    run = run_of(steps_of(ranks(4), WORKS))
    replay = RunReplay(run.records, run.waits, run.step_numbers, most=1)
    assert replay.n_steps == 1


def test_the_critical_path_follows_the_last_rank():
    run = run_of(steps_of(ranks(3), [[100_000, 500_000, 200_000]] * 3, calls=1, transfer=50_000))
    path = run.replay.path()
    assert set(path.rank[path.kind == CHAIN].tolist()) == {1}
    assert path.ns[path.kind == CHAIN].sum() == 3 * 500_000
    assert path.ns[path.kind == MEMBER].sum() == 3 * 50_000
    assert set(path.kind.tolist()) <= {CHAIN, MEMBER, WAIT}


def test_the_critical_path_changes_with_the_run():
    run = run_of(steps_of(ranks(3), [[100_000, 500_000, 200_000]] * 3, calls=1))
    change = RunChange("", [None, run.peers.time(1) // 5, None])
    path = run.replay.path(change)
    assert set(path.rank[path.kind == CHAIN].tolist()) >= {2}


def test_no_ranks_have_no_steps():
    replay = run_of([]).replay
    assert (replay.n_steps, replay.recorded.shape, len(replay.path().ns)) == (0, (0, 0), 0)
    assert np.isnan(replay.mean(replay.recorded))


@pytest.mark.parametrize("transfer", [0, 0.25, 3])
def test_transfers_scale(transfer):
    run = run_of(steps_of(ranks(2), [[100_000, 100_000]] * 3, calls=1, transfer=80_000))
    replayed = run.replay.run(RunChange("", [None, None], transfer))
    assert replayed.tolist() == [[100_000 + round(80_000 * transfer)] * 3] * 2


LATE = 150_000  # ns after the begin of a step, the host launches the work after the exchange


def launched(late=LATE, idle=0, n_steps=3):
    """Steps of 100 us, an exchange of 200 us, and 100 us that the host launches after `late`.

    It launches that of rank 1 `idle` later than the exchange ends.
    """
    everyone = ranks(2)
    for _ in range(n_steps):
        begin = everyone[0].now
        for rank in everyone:
            rank.step().launch(begin).work(100_000)
        exchange(everyone, transfer=200_000)
        for rank, gap in zip(everyone, (0, idle), strict=True):
            if gap:
                rank.work(gap, kind=HOST_BOUND).launch(rank.now)
            else:
                rank.launch(begin + late)
            rank.work(100_000 + idle - gap)
    return run_of([rank.step() for rank in everyone])


@pytest.mark.parametrize("idle", [0, 50_000])
def test_unchanged_with_launches(idle):
    run = launched(idle=idle)
    assert run.replay.recorded.tolist() == lengths(run).tolist()


@pytest.mark.parametrize("late", [50_000, 150_000, 250_000])
def test_work_that_waits_less_is_held_up_by_its_launch(late):
    run = launched(late=late, n_steps=1)
    (step,) = set(run.replay.run(RunChange("", [None, None], 0)).ravel().tolist())
    assert step == max(100_000, late) + 100_000


def test_a_faster_host_launches_earlier():
    run = launched(idle=50_000, n_steps=1)
    assert set(run.replay.recorded.ravel().tolist()) == {450_000}
    own = run.records[1].host_time()
    ahead = np.where(own > 0, own - 50_000, own)
    # The work of rank 1 then follows the exchange, as that of rank 0 does.
    steps = run.replay.run(RunChange("", [None, None], host=[None, ahead]))
    assert steps.tolist() == [[450_000], [400_000]]


def test_work_that_holds_up_its_own_end_counts_after_its_launch():
    """The piece is launched late, and its work takes half the time."""
    run = launched(idle=50_000, n_steps=1)
    half = run.peers.time(1) // 2
    (step,) = run.replay.run(RunChange("", [None, half]))[1].tolist()
    # 100 us of rank 0, the exchange, 50 us until the launch, 50 us of work.
    assert step == 100_000 + 200_000 + 50_000 + 50_000


def test_the_critical_path_goes_over_the_host():
    run = launched(idle=50_000, n_steps=1)
    path = run.replay.path()
    columns = (path.kind.tolist(), path.rank.tolist(), path.ns.tolist())
    parts = {(kind, rank): ns for kind, rank, ns in zip(*columns, strict=True)}
    assert sum(parts.values()) == 450_000
    assert parts[HOST, 1] == 350_000 or parts[CHAIN, 0] == 250_000  # both ranks end together
