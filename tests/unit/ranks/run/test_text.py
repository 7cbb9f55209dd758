"""The first screen of a run in words."""

import pytest

from unit.ranks.run.built_runs import LOADING, Rank, exchange, ranks, run_of, send, steps_of

BALANCED = [[300_000, 300_000, 300_000]] * 12
LATE = [[300_000, 600_000, 300_000]] * 12


def screen(run):
    return "\n".join(run.lines())


def test_a_straggler():
    run = run_of(steps_of(ranks(3, gpu="H100"), LATE, transfer=50_000))
    assert run.lines()[0] == (
        "rank 1 holds the others up: slower GPU (mm) costs 575 us of a step of 1.3 ms; without "
        "stragglers a step would take 725 us"
    )
    text = screen(run)
    for line in (
        "3 ranks in 3 files, H100; all 24 collectives are matched",
        "clocks agree: collectives end on all ranks within 0 ns (median)",
        "step: 1.3 ms, mean of 12 steps and 3 ranks (marks)",
        "mean of the ranks, a step: compute 800 us, exposed transfer 100 us, waits for ranks "
        "400 us",
        "imbalance: ranks wait 400 us a step on average, 1.2 ms together: 0.9 of 3 GPUs",
        "  1. rank 1: slower GPU, mm; others wait 1.2 ms a step, the step would be 575 us shorter."
        " Equal kernels take longer there: compare clocks, power and temperature of that GPU",
    ):
        assert line in text.splitlines()


def test_the_mean_is_of_what_is_replayed():
    """What the first line says of a step is its table."""
    run = run_of(steps_of(ranks(3), LATE))
    table = run.what_if("no-stragglers")
    assert table["saved_ns"][1] == pytest.approx(575_000)
    assert run.step_ns - table["saved_ns"][1] == pytest.approx(725_000)


def test_a_balanced_run():
    run = run_of(steps_of(ranks(3), BALANCED))
    assert run.lines()[0] == (
        "no rank holds the others up: no cause of waits costs 1 % of a step of 700 us"
    )
    assert "what holds the others up" not in screen(run)
    assert "imbalance" not in screen(run)
    assert [title for title, _ in run.tables()] == ["groups, a step and rank", "ranks, a step"]


def test_one_rank():
    run = run_of(steps_of([Rank("rank5.json")], [[100_000]] * 3))
    assert run.lines()[0] == (
        "one rank, 5: nobody can tell whom it waits for; give the files of all ranks. A step takes "
        "300 us"
    )
    assert "1 rank in 1 file; 0 of 6 collectives are matched" in run.lines()
    assert "step: 300 us, mean of 3 steps and 1 rank (marks)" in run.lines()
    assert "clocks: unknown, ranks have no collective in common" in run.lines()


def test_no_rank():
    assert run_of([]).lines() == ["no rank with GPU work"]


def test_clocks_that_are_moved():
    everyone = ranks(3)
    everyone[2].offset = 2_000_000_000
    text = screen(run_of(steps_of(everyone, BALANCED, members=(0, 1, 2))))
    assert (
        "clocks of 1 rank are moved, that of rank 2 the most: by -2 s; then collectives end "
        "within 0 ns (median)"
    ) in text


def test_missing_ranks_are_named_and_cut():
    everyone = [Rank(f"rank{i}.json", rank=i, world_size=64) for i in range(3)]
    text = screen(run_of(steps_of(everyone, LATE)))
    assert "missing: ranks 3, 4, 5, 6, 7, 8, 9, 10, ... (61); waits for them are unknown" in text
    assert "GPUs at least: ranks are missing" in text


def test_ranks_without_collectives_are_named():
    everyone = steps_of(ranks(3), BALANCED)
    silent = [Rank(f"rank{i}.json").work(1000) for i in (3, 4)]
    lines = run_of([*everyone, *silent]).lines()
    assert lines[-1] == "no collectives are recorded of ranks 3, 4"
    assert run_of([*everyone, silent[0]]).lines()[-1] == "no collectives are recorded of rank 3"


def test_calls_that_match_none_are_counted():
    everyone = ranks(3)
    for i in range(6):
        here = [rank.work(100_000) for rank in everyone]
        for some in (here[:2], here[2:]):
            kind = "all_gather" if (i, len(some)) == (2, 1) else "all_reduce"
            exchange(some, kind=kind, members=(0, 1, 2))
    assert "not matched: 1 calls of rank 2; see --table unmatched" in run_of(everyone).lines()


def test_warnings_of_files():
    everyone = ranks(3, warnings=["rank.json: is cut off", "another"])
    run = run_of(steps_of(everyone, BALANCED))
    assert run.lines()[-1] == "6 warnings of ranks 0, 1, 2; the first: rank.json: is cut off"


def test_hidden_transfers():
    one, other = ranks(2)
    for _ in range(4):
        one.step().work(100_000)
        other.step().work(100_000)
        exchange([one, other], transfer=300_000, blocks=False)
        for rank in (one, other):
            rank.work(200_000)
            rank.wait(len(rank.calls) - 1)
    assert "; 200 us of transfers are hidden" in screen(run_of([one.step(), other.step()]))


def test_at_most_three_findings_are_told():
    everyone = ranks(6)
    for number in range(12):
        for rank in everyone:
            rank.step().work(300_000)
        everyone[number % 5].work(500_000 + 10_000 * (number % 5), kind=LOADING)
        exchange(everyone)
    run = run_of([rank.step() for rank in everyone])
    assert len(run.findings) == 5
    numbers = [line.split(".")[0].strip() for line in run.lines() if line.startswith("  ")]
    assert numbers == ["1", "2", "3"]


def test_a_pipeline_has_a_table_of_stages():
    one, other = ranks(2)
    for _ in range(4):
        send(one.step().work(100_000), other.step(), (0, 1))
        other.work(100_000)
        exchange([one, other])
    titles = [title for title, _ in run_of([one.step(), other.step()]).tables()]
    assert titles[-1] == "stages of the pipeline"
