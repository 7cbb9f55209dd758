"""Which calls of which ranks are one collective; what cannot be told is counted, not guessed."""

import random
from pathlib import Path

import numpy as np
from bench.ranks import programs, truth

from support.simulated_ranks import read
from unit.ranks.run.built_runs import NCCL, Rank, exchange, ranks, run_of, send, steps_of

JITTER = random.Random(3)
# Steps that differ by some percent, as those of real runs: only one shift lets calls end together.
UNLIKE = [[JITTER.randint(250_000, 350_000) for _ in range(4)] for _ in range(12)]


def members(run):
    """The ranks of each collective, in order of its end."""
    order, bounds = run.waits.members
    calls = run.instances.calls
    result = [
        (int(run.waits.end[rows].min()), tuple(calls.rank[rows].tolist()))
        for rows in np.split(order, bounds[1:-1])
    ]
    return [of for _, of in sorted(result)]


def lost(run):
    return {(row["rank"], row["calls"]) for row in run.unmatched().rows()}


def without_first(rank: Rank, n: int) -> Rank:
    """The rank as a capture that begins after its first calls."""
    cut = Rank(rank.path, offset=rank.offset, **rank.fields)
    cut.now = 0
    for start, end, signature, seq in rank.calls[n:]:
        cut.work(start - cut.now)
        cut.wait(cut.arrive(end, signature, seq))
    cut.work(1000)
    return cut


def without_last(rank: Rank, n: int) -> Rank:
    cut = Rank(rank.path, offset=rank.offset, **rank.fields)
    for start, end, signature, seq in rank.calls[: len(rank.calls) - n]:
        cut.work(start - cut.now)
        cut.wait(cut.arrive(end, signature, seq))
    return cut


def test_by_the_recorded_number():
    run = run_of(steps_of(ranks(4), UNLIKE))
    assert members(run) == [(0, 1, 2, 3)] * 24
    assert run.unmatched().n_rows == 0


def test_by_number_where_a_capture_begins_or_ends_earlier():
    everyone = steps_of(ranks(4), UNLIKE, members=(0, 1, 2, 3))
    everyone[1] = without_first(everyone[1], 3)
    everyone[2] = without_last(everyone[2], 2)
    run = run_of(everyone)
    assert members(run) == [(0, 2, 3)] * 3 + [(0, 1, 2, 3)] * 19 + [(0, 1, 3)] * 2
    assert run.waits.missing.tolist().count(1) == 5


def test_by_order_where_a_capture_begins_or_ends_earlier():
    everyone = steps_of(ranks(4, world_size=4), UNLIKE, seq=-1)
    everyone[1] = without_first(everyone[1], 3)
    everyone[2] = without_last(everyone[2], 2)
    everyone[3].offset = 1_700_000_000
    run = run_of(everyone)
    assert members(run) == [(0, 2, 3)] * 3 + [(0, 1, 2, 3)] * 19 + [(0, 1, 3)] * 2
    assert run.unmatched().n_rows == 0


def test_by_the_communicator_of_nccl_where_no_group_is_recorded():
    everyone = ranks(4)
    for _ in range(6):
        for i, rank in enumerate(everyone):
            rank.work(200_000 + JITTER.randint(0, 50_000) * (1 + i))
        for pair, name in ((everyone[::2], "0x10"), (everyone[1::2], "0x11")):
            exchange(pair, group=name, seq=-1, n_ranks=2)
    assert sorted(set(members(run_of(everyone)))) == [(0, 2), (1, 3)]


def test_groups_that_no_record_names_are_told_by_when_their_calls_end():
    everyone = ranks(4)
    for _ in range(12):
        for rank in everyone:
            rank.work(JITTER.randint(200_000, 400_000))
        exchange(everyone[:2], group="", seq=-1, n_ranks=2)
        exchange(everyone[2:], group="", seq=-1, n_ranks=2)
    run = run_of(everyone)
    assert sorted(set(members(run))) == [(0, 1), (2, 3)]
    assert len(members(run)) == 24


def test_nested_groups_of_equal_numbers_are_apart():
    everyone = ranks(4)
    for _ in range(3):
        for pair in ((0, 1), (2, 3)):
            some = [everyone[i].work(100_000) for i in pair]
            exchange(some, group=f"{1 + pair[0]} tp", members=pair)
        exchange(everyone, group="0 default_pg", members=(0, 1, 2, 3))
    run = run_of(everyone)
    assert sorted(members(run)) == [(0, 1)] * 3 + [(0, 1, 2, 3)] * 3 + [(2, 3)] * 3
    assert sorted((group.name, group.ranks) for group in run.instances.groups) == [
        ("0 default_pg", (0, 1, 2, 3)), ("1 tp", (0, 1)), ("3 tp", (2, 3)),
    ]  # fmt: skip


def test_messages_match_by_pair():
    everyone = ranks(3)
    for _ in range(8):
        everyone[0].work(JITTER.randint(200_000, 300_000))
        send(everyone[0], everyone[1], (0, 1))
        everyone[1].work(JITTER.randint(200_000, 300_000))
        send(everyone[1], everyone[2], (1, 2))
        send(everyone[0], everyone[2], (0, 2))
    run = run_of(everyone)
    assert {of: members(run).count(of) for of in set(members(run))} == {
        (0, 1): 8, (1, 2): 8, (0, 2): 8,
    }  # fmt: skip
    assert {group.members for group in run.instances.groups} == {(0, 1), (1, 2), (0, 2)}
    assert all(group.is_pair and group.size == 2 for group in run.instances.groups)


def test_messages_to_a_rank_without_a_file_are_of_one_rank():
    one, other = ranks(2)
    for _ in range(4):
        exchange([one.work(100_000), other.work(120_000)])
        send(one, Rank(), (0, 5))
    run = run_of([one, other])
    assert run.missing == [5]
    assert members(run).count((0,)) == 4
    assert run.waits.missing[~run.waits.is_shared].tolist() == [1] * 4


def test_a_call_of_another_kind_with_the_same_number_is_counted():
    everyone = ranks(3)
    for i in range(6):
        here = [rank.work(100_000) for rank in everyone]
        kinds = ("all_reduce", "all_gather") if i == 2 else ("all_reduce", "all_reduce")
        for some, kind in zip((here[:2], here[2:]), kinds, strict=True):
            exchange(some, kind=kind, members=(0, 1, 2))
    run = run_of(everyone)
    assert lost(run) == {(2, 1)}
    (row,) = run.unmatched().rows()
    assert row["reason"] == "their kinds or sizes differ from those of the other ranks"
    assert members(run).count((0, 1, 2)) == 5
    assert any("1 calls of rank 2; see --table unmatched" in line for line in run.lines())


def test_sequences_of_other_kinds_fit_nowhere():
    everyone = steps_of(ranks(3), [row[:3] for row in UNLIKE], seq=-1, n_ranks=3)
    odd = Rank("rank2.json")
    for start, end, signature, _ in everyone[2].calls:
        odd.work(start - odd.now)
        odd.wait(odd.arrive(end, signature._replace(kind="all_gather"), -1))
    run = run_of([*everyone[:2], odd])
    assert set(members(run)) == {(0, 1)}
    assert lost(run) == {(2, 24)}
    (row,) = run.unmatched().rows()
    assert row["reason"] == "their kinds and sizes fit those of the other ranks nowhere"


def test_equal_steps_on_clocks_apart_are_not_guessed():
    """Every shift fits: which calls are one cannot be told."""
    everyone = steps_of(ranks(2), [[100_000, 100_000]] * 10, seq=-1, members=(0, 1))
    everyone[1].offset = 5_000_000_000
    everyone[1] = without_first(everyone[1], 4)
    third = Rank("rank2.json")
    for _ in range(3):
        exchange([everyone[0].work(1000), third.work(1000)], group="1 dp", members=(0, 2))
    run = run_of([*everyone, third])
    assert (1, 16) in lost(run)
    assert {row["reason"] for row in run.unmatched().rows()} == {
        "several shifts against the other ranks fit equally"
    }


def test_sizes_of_all_to_all_differ_by_rank():
    one, other = ranks(2)
    for i in range(4):
        end = max(one.now, other.now) + 50_000
        for rank in (one, other):
            own = NCCL._replace(kind="all_to_all", size=1000 * (1 + i) + (rank is one))
            rank.wait(rank.arrive(end, own))
    run = run_of([one, other])
    assert members(run) == [(0, 1)] * 4
    assert run.unmatched().n_rows == 0


def test_parts_are_ranks_that_share_collectives_directly_or_not():
    everyone = ranks(6)
    for pair in ((0, 1), (1, 2), (3, 5)):
        exchange([everyone[i].work(1000) for i in pair], group=f"1 {pair}", members=pair)
    everyone[4].work(1000)
    assert run_of(everyone).instances.parts().tolist() == [0, 0, 0, 3, 4, 3]


def test_numbers_far_apart_take_no_memory():
    one, other = ranks(2)
    for number in (0, 2_000_000_000, 2_147_483_647):
        exchange([one.work(1000), other.work(2000)], seq=number)
    run = run_of([one, other])
    assert members(run) == [(0, 1)] * 3
    assert len(run.waits.instances) == 3


def test_calls_of_one_number_match_in_order():
    """As the operations of a coalescing manager."""
    one, other = ranks(2)
    for number in range(3):
        for size in (100, 200):
            exchange([one.work(1000), other.work(2000)], seq=number, size=size, members=(0, 1))
    run = run_of([one, other])
    assert members(run) == [(0, 1)] * 6
    assert run.waits.wait[run.instances.calls.rank == 0].tolist() == [1000] * 6


def test_messages_of_nccl_match_by_pair(tmp_path: Path) -> None:
    """NCCL's ranges name the other rank as a rank of the communicator: here of 0, 2, 4, 6."""
    answer = truth.write(tmp_path, programs.pipeline(8), steps=3, seed=3, form="nsys")
    run = read(tmp_path)
    assert int(run.waits.is_shared.sum()) == len(answer.instances)
    pairs = {group.members for group in run.instances.groups if group.is_pair}
    assert pairs == {
        tuple(instance.ranks) for instance in answer.instances if instance.kind == "send_recv"
    }
    assert not run.unmatched().n_rows
