"""What a run would take with a change: known from how it is built."""

import pytest

from fastprof.ranks.run.result import RanksError
from unit.ranks.run.built_runs import LOADING, Rank, exchange, ranks, run_of, steps_of

N_STEPS, TRANSFER = 21, 50_000
SLOW = [300_000, 320_000, 310_000, 900_000]


@pytest.fixture(scope="module")
def run():
    """Rank 3 is slow in each step but the first, whose begin the capture cuts."""
    return run_of(built())


def built():
    works = [[300_000] * 4, *[SLOW] * (N_STEPS - 1)]
    return steps_of(ranks(4), works, calls=1, transfer=TRANSFER)


def step(run, change):
    rows = run.what_if(change)
    return rows["step_ns"][1], rows["saved_ns"][1]


def mean(others):
    """The mean step: the first takes 350 us."""
    return (350_000 + (N_STEPS - 1) * others) / N_STEPS


def test_a_rank_like_the_median_one(run):
    # Of 300, 310, 320 and 900 us, the lower median is 310: rank 1 is the last one then.
    assert step(run, "median:3")[0] == pytest.approx(mean(370_000))
    assert step(run, "median:0") == pytest.approx((mean(950_000), 0))


def test_no_stragglers(run):
    assert step(run, "no-stragglers")[0] == pytest.approx(mean(360_000))


def test_equal_work_is_the_mean(run):
    assert step(run, "equal-work")[0] == pytest.approx(mean(sum(SLOW) / 4 + TRANSFER))


@pytest.mark.parametrize("factor", [0, 0.5, 1, 2])
def test_transfers_take_a_part_of_their_time(run, factor):
    assert step(run, f"communication:{factor}")[0] == pytest.approx(
        mean(950_000) + (factor - 1) * TRANSFER
    )


def loading():
    """Rank 1 waits 400 us for data in each step, rank 0 100 us."""
    everyone = ranks(2)
    for _ in range(5):
        everyone[0].step().work(100_000, kind=LOADING).work(200_000)
        everyone[1].step().work(400_000, kind=LOADING).work(200_000)
        exchange(everyone, transfer=TRANSFER)
    return run_of([rank.step() for rank in everyone])


def test_no_data_loading():
    run = loading()
    assert step(run, "no-data-loading") == pytest.approx((250_000, 400_000))
    assert step(run, "no-data-loading:1") == pytest.approx((350_000, 300_000))
    assert step(run, "no-data-loading:0") == pytest.approx((650_000, 0))


def test_changes_are_alone_and_in_the_order_given(run):
    table = run.what_if(["communication:0", "median:3", "communication:0"])
    assert table["change"].tolist() == [
        "as recorded", "communication:0", "median:3", "communication:0",
    ]  # fmt: skip
    assert table["step_ns"][1] == table["step_ns"][3]
    assert (table["step_ns"] + table["saved_ns"]).tolist() == pytest.approx(
        [table["step_ns"][0]] * 4
    )
    assert table["saved_share"][2] == pytest.approx(table["saved_ns"][2] / table["step_ns"][0])


def test_one_rank_has_no_median():
    run = run_of(steps_of([Rank()], [[100_000]] * 3))
    for change in ("median:0", "no-stragglers", "equal-work"):
        assert step(run, change) == pytest.approx((300_000, 0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("median:9", r"'median:9': expected a rank of the run \(0, 1, 2, 3\), found '9'"),
        ("median", "'median': expected a rank of the run"),
        ("median:", "expected a rank of the run"),
        ("median:-1", "expected a rank of the run"),
        ("median:x", "expected a rank of the run"),
        ("median:²", "'median:²': expected a rank of the run"),
        ("median:" + "9" * 5000, "expected a rank of the run"),
        ("no-data-loading:4", "expected a rank of the run"),
        ("communication", "expected the part of their time that transfers take, from 0 to 100"),
        ("communication:fast", "as in communication:0.5 for twice as fast; found 'fast'"),
        ("communication:-0.1", "from 0 to 100"),
        ("communication:nan", "from 0 to 100"),
        ("communication:inf", "from 0 to 100"),
        ("communication:101", "from 0 to 100"),
        ("no-straglers", "unknown change 'no-straglers'; valid: median:RANK, no-data-loading, "),
        ("no-stragglers:1", "unknown change 'no-stragglers:1'"),
        ("equal-work:1", "unknown change 'equal-work:1'"),
        ("", "unknown change ''"),
    ],
)
def test_errors_name_what_is_valid(run, change, message):
    with pytest.raises(RanksError, match=message):
        run.what_if(change)


def test_many_ranks_are_cut_in_the_error():
    run = run_of(steps_of(ranks(12), [[1000] * 12] * 2))
    with pytest.raises(RanksError, match=r"\(0, 1, 2, 3, 4, 5, 6, 7, \.\.\.\)"):
        run.what_if("median:12")
