"""The tables of a run, and files that are not those of one."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fastprof.api.ranks import Ranks, RanksError
from fastprof.ranks.run.record import RecordedFile
from fastprof.ranks.work import Failure
from unit.ranks.run.built_runs import LOADING, Rank, exchange, file_of, ranks, run_of, steps_of

WORKS = [[300_000, 500_000, 400_000]] * 4


@pytest.fixture(scope="module")
def run():
    return run_of(steps_of(ranks(3, world_size=4), WORKS, transfer=50_000))


def test_a_row_per_rank(run):
    rows = list(run.ranks.rows())
    assert [row["rank"] for row in rows] == [0, 1, 2]
    assert [row["file"] for row in rows] == ["rank0.json", "rank1.json", "rank2.json"]
    assert [row["steps"] for row in rows] == [4] * 3
    assert [row["step_ns"] for row in rows] == [1_100_000] * 3
    assert [row["wait_ns"] for row in rows] == [400_000, 0, 200_000]
    assert [row["last"] for row in rows] == [0, 8, 0]
    assert [row["waited_for_ns"] for row in rows] == [0, 600_000, 0]


def test_what_is_waited_for_is_what_others_wait(run):
    assert run.ranks["waited_for_ns"].sum() == run.ranks["wait_ns"].sum()
    waiting = run.waiting()
    assert waiting["wait_ns"].sum() == run.ranks["wait_ns"].sum() * run.n_steps
    assert set(waiting["waits_for"].tolist()) == {1}
    assert (np.diff(waiting["wait_ns"]) <= 0).all()


def test_a_row_per_step_whose_parts_add_up(run):
    rows = list(run.steps().rows())
    assert len(rows) == 12
    for row in rows:
        parts = ("compute_ns", "copies_ns", "idle_ns", "transfer_ns", "wait_ns")
        assert sum(row[name] for name in parts) == row["step_ns"]
    assert [row["start_ns"] for row in rows[:4]] == [0, 1_100_000, 2_200_000, 3_300_000]
    assert [(row["step"], row["number"]) for row in rows[:4]] == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_a_row_per_collective_in_order_of_its_first_arrival(run):
    rows = list(run.calls().rows())
    assert [row["first_ns"] for row in rows[:2]] == [300_000, 850_000]
    assert {(row["collective"], row["bytes"], row["ranks"]) for row in rows} == {
        ("all_reduce", 4096, 3)
    }
    assert {(row["late_ns"], row["last_rank"], row["transfer_ns"]) for row in rows} == {
        (200_000, 1, 50_000)
    }


def test_json_has_no_value_that_json_lacks(run):
    facts = run.facts()
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    for other in (Ranks([]), run_of(ranks(1)), run_of(steps_of(ranks(1), [[1000]] * 2))):
        json.dumps(other.facts(), allow_nan=False)


def test_files_are_in_order_of_rank():
    """Recorded ranks, whatever the names."""
    everyone = [Rank(f"host{9 - i}.json", rank=i, world_size=3) for i in range(3)]
    run = run_of(reversed(steps_of(everyone, WORKS)))
    assert (run.numbers, run.rule) == ([0, 1, 2], "recorded")
    assert [record.path for record in run.records] == ["host9.json", "host8.json", "host7.json"]


def test_ranks_of_one_file_have_no_recorded_number():
    both = steps_of(ranks(2, rank=0, world_size=2, n_places=2), [row[:2] for row in WORKS])
    files = [file_of(rank) for rank in both]
    records = [replace(file.ranks[0], place=i) for i, file in enumerate(files)]
    run = Ranks([RecordedFile(files[0].source, records)])
    assert run.numbers == [0, 1]


def test_a_missing_rank_is_named():
    everyone = steps_of([Rank(f"rank{i}.json", rank=i, world_size=4) for i in (0, 1, 3)], WORKS)
    run = run_of(everyone)
    assert run.missing == [2]
    assert run.unreadable == []
    failed = Ranks([*map(file_of, everyone), Failure("rank2.json", "rank2.json: is damaged")])
    assert (failed.missing, failed.unreadable) == ([2], [2])
    assert repr(failed) == "<fastprof.Ranks of 3 ranks, 1 files failed>"
    assert len(failed) == 3


def test_without_a_recorded_number_of_ranks_none_is_missing():
    assert run_of(steps_of(ranks(3), WORKS)).missing == []


def test_files_without_ranks_are_listed():
    everyone = steps_of(ranks(3), WORKS)
    files = [file_of(rank) for rank in everyone]
    run = Ranks([*files, replace(files[0], ranks=[])])
    assert run.empty == ["rank0.json"]


def test_a_rank_in_two_files_is_an_error():
    everyone = [Rank(f"{name}.json", rank=1, world_size=2) for name in "ab"]
    with pytest.raises(RanksError, match=r"a\.json, b\.json: both are of rank 1; give one file a"):
        run_of(steps_of(everyone, [row[:2] for row in WORKS]))


def test_runs_of_different_size_are_an_error():
    everyone = [Rank(f"{i}.json", rank=i, world_size=2 + 2 * i) for i in range(2)]
    with pytest.raises(RanksError, match=r"0\.json is of a run of 2 ranks, 1\.json of one of 4"):
        run_of(steps_of(everyone, [row[:2] for row in WORKS]))


def test_ranks_that_share_no_collective_are_an_error():
    one, other = ranks(2)
    for i, rank in enumerate((one, other)):
        for number in range(4):
            exchange([rank.work(1000)], seq=1000 * i + number, members=(0, 1))
    with pytest.raises(RanksError, match="no collective of one rank matches one of another"):
        run_of([one, other])


def recordings(**signature):
    """Ranks 0 and 1 of one recording, 2 and 3 of another."""
    everyone = ranks(4)
    for pair, first in ((everyone[:2], 0), (everyone[2:], 1000)):
        for number in range(4):
            exchange([rank.work(10_000) for rank in pair], seq=first + number, **signature)
    return everyone


def test_ranks_of_two_recordings_are_an_error():
    with pytest.raises(RanksError, match=r"rank0\.json, rank2\.json: both are of the group 0 def"):
        run_of(recordings(members=(0, 1, 2, 3)))


def test_groups_that_share_no_rank_are_no_error():
    """As two replicas of tensor parallel inference."""
    everyone = ranks(4)
    for pair in ((0, 1), (2, 3)):
        for _ in range(4):
            some = [everyone[i].work(10_000) for i in pair]
            exchange(some, group=f"{1 + pair[0]} tp", members=pair)
    run = run_of(everyone)
    assert run.waits.is_shared.all()


def test_recordings_that_another_group_joins_are_no_error():
    """A group whose numbers never coincide, of ranks that share other collectives."""
    everyone = recordings(group="1 rare", members=(0, 1, 2, 3))
    exchange(everyone, members=(0, 1, 2, 3))
    assert len(run_of(everyone)) == 4


def test_a_clock_of_another_name_is_an_error():
    with pytest.raises(RanksError, match="expected clock estimated or recorded, found 'none'"):
        Ranks([], clock="none")


def test_no_ranks_have_empty_tables():
    run = Ranks([])
    for table in (run.ranks, run.groups, run.causes, run.waiting(), run.steps(), run.calls(),
                  run.stages(), run.unmatched()):  # fmt: skip
        assert table.n_rows == 0
    assert run.tables() == []
    assert (run.findings, run.missing, run.n_steps, len(run)) == ([], [], 0, 0)
    assert run.what_if("no-stragglers").n_rows == 2


def test_means_are_over_counted_steps():
    everyone = steps_of(ranks(2), [[900_000, 900_000], *[[100_000, 100_000]] * 3])
    for _ in range(2):
        exchange([rank.work(1000) for rank in everyone])
    run = run_of(everyone)
    for record in run.records:
        record.steps.is_counted[0] = False
    assert run.n_steps == 3
    assert run.ranks["compute_ns"].tolist() == [200_000] * 2
    assert run.replay.n_steps == 3


def test_steps_in_which_nothing_runs_have_no_means():
    everyone = steps_of(ranks(2), [[1000, 2000]] * 2)
    files = [file_of(rank) for rank in everyone]
    none = {name: np.empty(0, np.int64) for name in ("number", "start", "end")}
    for i, file in enumerate(files):
        steps = replace(file.ranks[0].steps, is_counted=np.empty(0, bool), **none)
        files[i] = replace(file, ranks=[replace(file.ranks[0], steps=steps)])
    run = Ranks(files)
    assert np.isnan(run.step_ns)
    assert run.lines()[0] == "no step of a rank has GPU work"
    assert run.findings == []


def test_what_shares_work_shares_its_cost():
    """Slower kernels and more of them cost what both do together."""
    everyone = ranks(4)
    for _ in range(12):
        for i, rank in enumerate(everyone):
            rank.step().work(300_000 + 150_000 * (i == 2), "addmm", shape="[8,8]")
            if i == 2:
                rank.work(250_000, "gather")
        exchange(everyone)
    run = run_of([rank.step() for rank in everyone])
    costs = {row.name: row.costs for row in run.findings}
    assert set(costs) == {"slower GPU", "uneven work"}
    assert sum(costs.values()) == pytest.approx(400_000 * 11 / 12, rel=0.02)
    assert costs["uneven work"] / costs["slower GPU"] == pytest.approx(250 / 150, rel=0.02)


def test_the_costliest_finding_is_the_first():
    everyone = ranks(4)
    for _ in range(12):
        for i, rank in enumerate(everyone):
            rank.step().work(300_000).work(100_000 * (i == 1) + 1, kind=LOADING)
        exchange(everyone)
        for i, rank in enumerate(everyone):
            rank.work(200_000).work(300_000 * (i == 3) + 1, kind=LOADING)
        exchange(everyone)
    run = run_of([rank.step() for rank in everyone])
    assert [run.number(row.rank) for row in run.findings] == [3, 1]
    assert run.causes["rank"].tolist()[:2] == [3, 1]
