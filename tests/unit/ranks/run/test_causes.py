"""Why ranks arrive late: the causes are those that a run is built with, and cost what they do."""

import pytest

from fastprof.ranks.run.causes import UNKNOWN
from unit.ranks.run.built_runs import HOST, LOADING, Rank, exchange, ranks, run_of, send

N_STEPS, USUAL, TRANSFER = 12, 300_000, 50_000


def built(late, n=4, step=lambda rank, number: rank.work(USUAL, shape="[8,8]")):
    """Steps of equal work; `late(rank, number)` adds to that of rank 2."""
    everyone = ranks(n)
    for number in range(N_STEPS):
        for i, rank in enumerate(everyone):
            rank.step()
            step(rank, number)
            if i == 2:
                late(rank, number)
        exchange(everyone, transfer=TRANSFER)
    return run_of([rank.step() for rank in everyone])


def only_cause(run):
    (row,) = run.findings
    return row


def assert_found(run, name, each, steps=N_STEPS, first_is_late=True):
    """One finding: rank 2, and what its `each` ns in some steps cost."""
    row = only_cause(run)
    assert (row.rank, row.name) == (2, name)
    assert row.waited == pytest.approx(3 * each * steps / N_STEPS, rel=0.05)
    # The capture cuts the first piece: it is not replayed.
    replayed = steps - first_is_late
    assert row.costs == pytest.approx(each * replayed / N_STEPS, rel=0.05)
    assert row.times == steps
    return row


def test_a_balanced_run_has_no_finding():
    run = built(lambda rank, number: None)
    assert run.findings == []
    assert run.lines()[0].startswith("no rank holds the others up: no cause of waits costs 1 %")


def test_small_differences_are_no_finding():
    run = built(lambda rank, number: rank.work(2_000 + number))
    assert run.findings == []


def test_data_loading():
    run = built(lambda rank, number: rank.work(200_000, kind=LOADING))
    assert_found(run, "data loading", 200_000)
    assert "More loader workers there, or even shards" in "\n".join(run.lines())


def test_data_loading_in_some_steps():
    def some(rank, number):
        if number in (4, 7):
            rank.work(900_000, kind=LOADING)

    assert_found(built(some), "data loading", 900_000, 2, first_is_late=False)


def test_a_slower_host_tells_its_layer():
    run = built(lambda rank, number: rank.work(200_000, kind=HOST, layer="head", line="a.py:3"))
    assert assert_found(run, "host-bound", 200_000).where == "head a.py:3"


def test_a_slower_gpu():
    """The same kernels of the same shapes take longer."""
    run = built(
        lambda rank, number: None,
        step=lambda rank, number: rank.work(
            450_000 if rank.path == "rank2.json" else USUAL, "addmm", shape="[8,8]", layer="mlp"
        ),
    )
    assert assert_found(run, "slower GPU", 150_000).where == "mlp addmm [8,8]"


def test_other_shapes_are_uneven_work():
    run = built(
        lambda rank, number: None,
        step=lambda rank, number: (
            rank.work(500_000, "addmm", shape="[16,8]")
            if rank.path == "rank2.json"
            else rank.work(USUAL, "addmm", shape="[8,8]")
        ),
    )
    assert assert_found(run, "uneven work", 200_000).where == "addmm [16,8]"


def test_more_calls_are_uneven_work():
    run = built(lambda rank, number: rank.work(USUAL, shape="[8,8]"))
    assert_found(run, "uneven work", USUAL)


def slower_experts(times):
    """A run in which rank 2 takes times[0] more for its experts, and times[1] for other work."""

    def step(rank, number):
        experts, rest = times if rank.path == "rank2.json" else (0, 0)
        rank.work(USUAL + experts, "moe_forward", layer="layers.3.moe", shape="[64,8]")
        rank.work(USUAL + rest, "addmm", shape="[8,8]")

    return built(lambda rank, number: None, step=step)


def test_fused_experts_that_take_longer_have_more_rows():
    run = slower_experts((200_000, 0))
    assert assert_found(run, "uneven work", 200_000).where == "layers.3.moe moe_forward [64,8]"


def test_experts_on_a_slower_gpu_take_longer_as_other_work_does():
    run = slower_experts((100_000, 100_000))
    assert_found(run, "slower GPU", 200_000)


def test_copies():
    run = built(lambda rank, number: rank.work(100_000, "Memcpy HtoD", kind=1))
    assert assert_found(run, "copies", 100_000).where == "Memcpy HtoD"


def test_two_ranks_with_causes_of_their_own():
    everyone = ranks(4)
    for number in range(N_STEPS):
        for rank in everyone:
            rank.step().work(USUAL)
        everyone[number % 2].work(400_000, kind=(LOADING, HOST)[number % 2])
        exchange(everyone, transfer=TRANSFER)
    run = run_of([rank.step() for rank in everyone])
    assert {(row.rank, row.name) for row in run.findings} == {
        (0, "data loading"), (1, "host-bound"),
    }  # fmt: skip


def test_a_wait_in_another_group_is_followed_to_its_root():
    """Rank 3 is late for rank 2, and both are late for ranks 0 and 1: rank 3 is the cause."""
    everyone = ranks(4)
    for _ in range(N_STEPS):
        for rank in everyone:
            rank.step().work(USUAL)
        everyone[3].work(250_000, kind=LOADING)
        for pair in ((0, 1), (2, 3)):
            some = [everyone[i] for i in pair]
            exchange(some, group=f"{1 + pair[0]} tp", members=pair, transfer=10_000)
        for rank in everyone:
            rank.work(20_000)
        exchange(everyone, members=(0, 1, 2, 3), transfer=TRANSFER)
    run = run_of([rank.step() for rank in everyone])
    row = only_cause(run)
    assert (row.rank, row.name) == (3, "data loading")
    assert row.waited == pytest.approx(3 * 250_000, rel=0.05)
    assert row.costs == pytest.approx(250_000 * (N_STEPS - 1) / N_STEPS, rel=0.05)


def test_what_precedes_the_recording_is_no_finding_of_several_steps():
    everyone = ranks(4)
    everyone[2].now = 700_000  # its capture begins later
    for _ in range(N_STEPS):
        for rank in everyone:
            rank.step().work(USUAL)
        exchange(everyone, transfer=TRANSFER)
    run = run_of([rank.step() for rank in everyone])
    assert run.findings == []
    assert run.causes.n_rows <= 2


def test_ranks_without_a_file():
    everyone = ranks(2)
    for number in range(N_STEPS):
        for rank in everyone:
            rank.step().work(USUAL)
        exchange(everyone, members=(0, 1, 2), transfer=TRANSFER + 400_000 * (number % 2))
    run = run_of([rank.step() for rank in everyone])
    row = only_cause(run)
    assert (row.rank, row.name) == (UNKNOWN, "rank without a file")
    assert row.waited == pytest.approx(2 * 200_000, rel=0.05)
    assert run.lines()[0].startswith("a rank without a file holds the others up")
    assert "missing: rank 2; waits for them are unknown" in run.lines()


def pipeline(slow=0):
    """Two stages of two ranks; rank 0 loads data for longer."""
    everyone = ranks(4)
    for _ in range(N_STEPS):
        for rank in everyone:
            rank.step()
        everyone[0].work(slow, kind=LOADING)
        for source, target in ((0, 2), (1, 3)):
            everyone[source].work(USUAL, "stage0")
            send(everyone[source], everyone[target], (source, target))
            everyone[target].work(USUAL, "stage1")
        exchange(everyone, members=(0, 1, 2, 3), transfer=TRANSFER)
    return run_of([rank.step() for rank in everyone])


def test_the_schedule_of_a_pipeline_is_no_finding():
    run = pipeline()
    assert run.findings == []
    assert {row.name for row in run.cause_rows} == {"pipeline schedule"}


def test_a_late_rank_of_a_pipeline_is_told_from_its_schedule():
    run = pipeline(200_000)
    row = only_cause(run)
    assert (run.number(row.rank), row.name) == (0, "data loading")
    assert row.costs == pytest.approx(200_000, rel=0.1)


def test_a_queue_on_the_stream_has_the_cause_of_the_call_before():
    """Rank 1 is late for a call whose transfer is still under way when the next one is ready."""
    everyone = ranks(3)
    for _ in range(N_STEPS):
        for rank in everyone:
            rank.step().work(USUAL)
        everyone[1].work(300_000, kind=LOADING)
        exchange(everyone, transfer=TRANSFER, blocks=False)
        for rank in everyone:
            rank.work(10_000)
            rank.wait(len(rank.calls) - 1)
    row = only_cause(run_of([rank.step() for rank in everyone]))
    assert (row.rank, row.name) == (1, "data loading")


def test_a_late_start_happens_once():
    """Before the steps that count; later the rank is like the others."""
    everyone = ranks(4)
    for number in range(N_STEPS):
        for i, rank in enumerate(everyone):
            rank.step().work(USUAL)
            if (i, number) == (1, 0):
                rank.work(2_000_000, kind=HOST)
        exchange(everyone, transfer=TRANSFER)
    files = [rank.step() for rank in everyone]
    run = run_of(files)
    for record in run.records:
        record.steps.is_counted[0] = False
    row = next(row for row in run.cause_rows if row.name == "late start")
    assert (row.rank, row.times) == (1, 1)
    assert row.waited * run.n_steps == pytest.approx(3 * 2_000_000, rel=0.05)
    assert any(line.endswith("rank 1: late start; others wait 6 ms, once") for line in run.lines())


def test_a_rank_that_is_alone_has_no_cause():
    rank = Rank()
    exchange([rank.step().work(USUAL)])
    assert run_of([rank.step()]).cause_rows == []
