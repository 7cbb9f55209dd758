"""Arrivals, waits and transfers of collectives, and the time of steps in parts."""

import numpy as np
import pytest

from fastprof.ranks.run.waits import PARTS, UNKNOWN
from unit.ranks.run.built_runs import LOADING, Rank, exchange, ranks, run_of, steps_of

WORKS = [[300_000, 500_000, 400_000]] * 4
TRANSFER = 50_000


def parts(run, rank):
    return dict(zip(PARTS, run.step_times[rank].parts.T.tolist(), strict=True))


def test_each_rank_waits_from_its_arrival_for_the_last_one():
    run = run_of(steps_of(ranks(3), WORKS, transfer=TRANSFER))
    waits = run.waits
    by_rank = [waits.wait[waits.instances.calls.rank == rank].tolist() for rank in range(3)]
    assert by_rank == [[200_000] * 8, [0] * 8, [100_000] * 8]
    assert waits.last.tolist() == [1] * 8
    assert waits.transfer.tolist() == [TRANSFER] * 8
    assert waits.is_shared.all() and not waits.missing.any()


def test_parts_add_up_to_the_step_exactly():
    run = run_of(steps_of(ranks(3), WORKS, transfer=TRANSFER))
    for times in run.step_times:
        assert times.parts.sum(axis=1).tolist() == (times.end - times.start).tolist()
    assert parts(run, 0) == {
        "compute": [600_000] * 4, "copies": [0] * 4, "idle": [0] * 4, "transfer": [100_000] * 4,
        "wait": [400_000] * 4,
    }  # fmt: skip
    assert parts(run, 1)["wait"] == [0] * 4


def test_copies_and_idle_time_are_parts():
    one, other = ranks(2)
    for rank in (one, other):
        rank.step().work(100_000).work(20_000, kind=1).work(30_000, kind=LOADING)
    exchange([one, other])
    run = run_of([one.step(), other.step()])
    assert parts(run, 0) == {
        "compute": [100_000], "copies": [20_000], "idle": [30_000], "transfer": [50_000],
        "wait": [0],
    }  # fmt: skip
    assert run.step_times[0].hidden.tolist() == [0]


def test_transfers_during_work_are_hidden():
    one, other = ranks(2)
    for rank in (one, other):
        rank.step().work(100_000)
    exchange([one, other], transfer=300_000, blocks=False)
    for rank in (one, other):
        rank.work(200_000)
        rank.wait(0)
    run = run_of([one.step(), other.step()])
    assert parts(run, 0)["transfer"] == [100_000]
    assert run.step_times[0].hidden.tolist() == [200_000]


def test_a_wait_that_begins_after_the_last_arrival_is_transfer():
    """Rank 1 arrives 100 us later; the work of rank 0 first waits 250 us after its own arrival."""
    one, other = ranks(2)
    one.step().work(100_000)
    other.step().work(200_000)
    exchange([one, other], transfer=300_000, blocks=False)
    one.work(250_000).wait(0)
    other.wait(0)
    run = run_of([one.step(), other.step()])
    assert (parts(run, 0)["wait"], parts(run, 0)["transfer"]) == ([0], [150_000])
    assert parts(run, 1)["transfer"] == [300_000]
    assert run.exposed[0].last.tolist() == [UNKNOWN]


def test_without_the_other_ranks_waits_are_unknown():
    """Of a group of 3, one file: what exceeds the fastest call of the kind is a wait."""
    rank = Rank("rank0.json")
    for slow in (0, 70_000, 0, 0):
        rank.work(100_000)
        exchange([rank], transfer=TRANSFER + slow, members=(0, 1, 2))
    run = run_of([rank])
    assert run.missing == [1, 2]
    assert run.waits.missing.tolist() == [2] * 4
    assert run.waits.unknown_wait.tolist() == [0, 70_000, 0, 0]
    assert run.exposed[0].wait.tolist() == [0, 70_000, 0, 0]
    assert run.exposed[0].last.tolist() == [UNKNOWN] * 4


def test_a_group_of_unknown_size_has_no_missing_ranks():
    rank = Rank("rank0.json")
    exchange([rank.work(1000)], transfer=TRANSFER)
    assert run_of([rank]).waits.missing.tolist() == [0]


@pytest.mark.parametrize("first", [0, 1, 2])
def test_steps_have_one_number_in_all_ranks(first):
    """A rank whose capture begins later has its first step later."""
    everyone = steps_of(ranks(3), WORKS)
    whole = everyone[1]
    cut = Rank("rank1.json")
    for start, end, signature, seq in whole.calls[2 * first :]:
        if len(cut.calls) % 2 == 0:
            cut.now = cut.now or start - WORKS[0][1]
            cut.step()
        cut.work(start - cut.now)
        cut.wait(cut.arrive(end, signature, seq))
    everyone[1] = cut.step()
    run = run_of(everyone)
    assert [numbers.tolist() for numbers in run.step_numbers] == [
        [0, 1, 2, 3], list(range(first, 4)), [0, 1, 2, 3],
    ]  # fmt: skip


def test_a_rank_without_calls_has_its_own_steps():
    everyone = ranks(3)
    steps_of(everyone[:2], [row[:2] for row in WORKS])
    everyone[2].step().work(10_000).step()
    run = run_of(everyone)
    assert [len(numbers) for numbers in run.step_numbers] == [4, 4, 1]
    assert parts(run, 2)["compute"] == [10_000]
    assert any(line == "no collectives are recorded of rank 2" for line in run.lines())


def test_a_run_without_communication_has_no_waits():
    run = run_of([rank.step().work(10_000).step() for rank in ranks(2)])
    assert len(run.waits.instances) == 0
    assert run.findings == []
    assert run.ranks["wait_ns"].tolist() == [0, 0]
    assert np.isnan(run.clocks.residual).all()
