"""Offsets and drifts of clocks, from the ends of collectives."""

import random

import numpy as np
import pytest

from fastprof.ranks.run.clocks import hosts_of, medians
from unit.ranks.run.built_runs import BASE, Rank, exchange, ranks, run_of, steps_of

OFFSETS = [0, 0, 2_300_000_000, -1_900_000_000, 0]
PPM = [0, 0, 50, -50, 0]
STEPS, WORK = 40, 5_000_000


def end_jitter(rng):
    """ns between the ends of a collective, as kernels have."""
    return [abs(round(rng.gauss(0, 200))) for _ in OFFSETS]


def works(rng):
    return [[WORK + rng.randint(0, 500_000) for _ in OFFSETS] for _ in range(STEPS)]


def apart(offsets=OFFSETS, ppm=PPM, seed=1, **options):
    """Ranks on clocks of their own."""
    rng = random.Random(seed)
    result = [
        Rank(f"rank{i}.json", offset=offset, ppm=drift)
        for i, (offset, drift) in enumerate(zip(offsets, ppm, strict=True))
    ]
    for row in works(rng):
        for rank, ns in zip(result, row, strict=True):
            rank.step().work(ns)
        exchange(result, late=end_jitter(rng), **options)
    return [rank.step() for rank in result]


def errors(run, found):
    """How far the clocks of the ranks are from true time at the begin and the end, ns."""
    true = np.array([0, found[0].now])
    result = []
    for i, rank in enumerate(found):
        recorded = rank._clock(true.tolist())
        result.append(run.clocks.moved(recorded, np.full(2, i, np.int32)) - BASE - true)
    return np.abs(np.array(result) - np.median(result)).max()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("numbered", [True, False])
def test_offsets_of_seconds_and_drifts_are_found_within_microseconds(seed, numbered):
    options = {} if numbered else {"seq": -1}
    result = apart(seed=seed, **options)
    run = run_of(result)
    assert errors(run, result) < 3_000
    assert run.clocks.drift * 1e6 == pytest.approx([0, 0, -50, 50, 0], abs=5)
    assert run.clocks.residual.max() < 500


def test_ranks_whose_clocks_agree_have_none():
    run = run_of(apart())
    assert run.clocks.offset[[0, 1, 4]].tolist() == [0, 0, 0]
    assert run.clocks.drift[[0, 1, 4]].tolist() == [0, 0, 0]
    assert run.clocks.host.tolist() == [0, 0, 2, 3, 0]


def test_one_host_is_zero():
    run = run_of(apart([0] * 5, [0] * 5))
    assert run.clocks.offset.tolist() == [0] * 5
    assert run.clocks.drift.tolist() == [0] * 5
    assert set(run.clocks.host.tolist()) == {0}
    assert "clocks agree: collectives end on all ranks within " in run.lines()[3]


def test_recorded_clocks_stay():
    result = apart()
    run = run_of(result, "recorded")
    assert run.clocks.offset.tolist() == [0] * 5
    times = np.array([BASE, BASE + 5])
    assert run.clocks.moved(times, np.array([2, 3], np.int32)).tolist() == times.tolist()
    assert "clocks: as recorded, not aligned" in run.lines()


def test_an_offset_without_a_drift_has_none():
    run = run_of(apart(ppm=[0] * 5))
    assert run.clocks.drift.tolist() == [0] * 5
    assert run.clocks.offset[2:4] == pytest.approx([-2_300_000_000, 1_900_000_000], abs=1_000)


def test_clocks_spread_along_groups():
    """Ranks 0 and 3 share no group; 1 and 2 are between them."""
    rng = random.Random(5)
    result = [Rank(f"rank{i}.json", offset=i * 700_000_000) for i in range(4)]
    for _ in range(30):
        for pair in ((0, 1), (1, 2), (2, 3)):
            some = [result[i].work(WORK + rng.randint(0, 10**6)) for i in pair]
            exchange(some, group=f"1 {pair[0]}", members=pair)
    run = run_of(result)
    offset = run.clocks.offset - run.clocks.offset[0]
    assert offset == pytest.approx([0, -0.7e9, -1.4e9, -2.1e9], abs=1_000)


def test_a_rank_that_shares_nothing_is_unknown():
    result = ranks(3)
    steps_of(result[:2], [[1000, 2000]] * 4)
    result[2].work(5000)
    run = run_of(result)
    assert run.clocks.is_known.tolist() == [True, True, False]
    assert np.isnan(run.clocks.residual[2])
    assert run.clocks.offset[2] == 0


def records(*fields, n_gpus=8):
    return [
        Rank(path, device=device, world_size=size, n_gpus=n_gpus).work(1).record()
        for path, device, size in fields
    ]


def test_hosts_are_told_by_files_names_and_numbers_of_gpus():
    both = records(("a.json", 0, 2), ("b.json", 1, 2))
    assert hosts_of(both).tolist() == [0, 0]
    # More ranks than GPUs, or two on one GPU: unknown.
    assert hosts_of(records(("a.json", 0, 16), ("b.json", 1, 16))).tolist() == [0, 1]
    assert hosts_of(records(("a.json", 0, 2), ("b.json", 0, 2))).tolist() == [0, 1]
    assert hosts_of(records(("a.json", 0, 2), ("a.json", 0, 2))).tolist() == [0, 0]
    names = ("node1_11.171.pt.trace.json", "node2_12.172.pt.trace.json",
             "node1_13.173.pt.trace.json")  # fmt: skip
    assert hosts_of(records(*((name, 0, 3) for name in names))).tolist() == [0, 1, 0]


def test_ranks_of_one_host_get_one_clock_though_their_ends_differ():
    """Ends that are late on one rank by a constant are no clock."""
    result = [Rank(f"rank{i}.json", device=i, world_size=2, n_gpus=8) for i in range(2)]
    rng = random.Random(1)
    for _ in range(20):
        works_ = [rank.work(WORK + rng.randint(0, 10**5)) for rank in result]
        exchange(works_, late=[0, 100_000])
    run = run_of(result)
    assert run.clocks.offset.tolist() == [0, 0]
    assert run.clocks.residual.max() == pytest.approx(50_000, rel=0.1)


def test_medians_of_groups():
    group = np.array([2, 0, 0, 2, 2, 0], np.int32)
    values = np.array([9.0, 1, 3, 7, 8, 100])
    result = medians(group, values, 4)
    assert result[[0, 2]].tolist() == [3, 8]
    assert np.isnan(result[[1, 3]]).all()
    assert medians(np.array([0, 0]), np.array([1.0, 2]), 1).tolist() == [1.5]
