"""Rows over process groups, and the stages of pipelines."""

import numpy as np
import pytest

from unit.ranks.run.built_runs import exchange, ranks, run_of, send, steps_of


def both_groups():
    """Tensor parallel pairs exchange twice a step, all ranks once."""
    everyone = ranks(4)
    for _ in range(5):
        for rank in everyone:
            rank.step()
        for _ in range(2):
            for pair in ((0, 1), (2, 3)):
                some = [everyone[i].work(100_000 + 20_000 * (i % 2)) for i in pair]
                exchange(some, group=f"{1 + pair[0]} tp", members=pair, n_ranks=2, transfer=10_000)
        exchange(everyone, members=(0, 1, 2, 3), n_ranks=4, size=8000, transfer=40_000)
    return run_of([rank.step() for rank in everyone])


def rows_of(run):
    return {row["group"]: row for row in run.groups.rows()}


def test_groups_of_one_description_and_size_are_a_row():
    rows = rows_of(both_groups())
    assert set(rows) == {"tp: all_reduce", "default_pg: all_reduce"}
    tensor, data = rows["tp: all_reduce"], rows["default_pg: all_reduce"]
    assert (tensor["groups"], tensor["size"], tensor["known"], tensor["calls"]) == (2, 2, 2, 2)
    assert (data["groups"], data["size"], data["known"], data["calls"]) == (1, 4, 4, 1)
    assert (tensor["bytes"], data["bytes"]) == (2 * 4096, 8000)
    assert (tensor["transfer_ns"], data["transfer_ns"]) == (20_000, 40_000)
    assert (tensor["wait_ns"], data["wait_ns"]) == (20_000, 0)


def test_waits_of_groups_add_up_to_those_of_ranks():
    run = both_groups()
    assert run.groups["wait_ns"].sum() == pytest.approx(run.ranks["wait_ns"].mean())
    assert run.groups["exposed_ns"].sum() == pytest.approx(run.ranks["transfer_ns"].mean())


def test_bus_bytes_by_the_transfer_without_waits():
    """An all-reduce of n ranks moves 2 (n - 1) / n of its bytes."""
    rows = rows_of(both_groups())
    assert rows["default_pg: all_reduce"]["bus_bytes_per_s"] == pytest.approx(
        8000 * 2 * 3 / 4 / 40e-6
    )


def test_unknown_sizes_are_unknown():
    run = run_of(steps_of(ranks(2), [[1000, 2000]] * 3, size=-1, n_ranks=2))
    (row,) = run.groups.rows()
    assert row["bytes"] is None and row["bus_bytes_per_s"] is None


def test_kinds_are_listed_by_their_number():
    one, other = ranks(2)
    for kind in ("broadcast", *["all_gather"] * 3, *["all_reduce"] * 2, "reduce_scatter"):
        exchange([one.work(1000), other.work(1000)], kind=kind)
    (row,) = run_of([one, other]).groups.rows()
    assert row["group"].startswith("default_pg: all_gather, all_reduce, ")
    assert row["group"].endswith(", ...")


def test_a_group_without_all_files_has_known_ranks():
    run = run_of(steps_of(ranks(2), [[1000, 2000]] * 3, members=(0, 1, 2, 3), n_ranks=4))
    (row,) = run.groups.rows()
    assert (row["size"], row["known"]) == (4, 2)


def pipeline(n_steps=4):
    everyone = ranks(4)
    for _ in range(n_steps):
        for rank in everyone:
            rank.step()
        for source, target in ((0, 2), (1, 3)):
            everyone[source].work(100_000)
            send(everyone[source], everyone[target], (source, target), transfer=20_000)
            everyone[target].work(200_000)
        exchange(everyone, members=(0, 1, 2, 3), transfer=50_000)
    return run_of([rank.step() for rank in everyone])


def test_stages_wait_for_messages():
    first, second = pipeline().stages().rows()
    assert (first["ranks"], second["ranks"]) == ("0, 1", "2, 3")
    assert (first["bubble_ns"], second["bubble_ns"]) == (0, 120_000)
    assert second["step_ns"] == 370_000
    assert second["bubble_share"] == pytest.approx(120 / 370)


def test_messages_are_a_row():
    rows = rows_of(pipeline())
    row = rows["messages: send_recv"]
    assert (row["groups"], row["size"]) == (2, 2)
    assert row["transfer_ns"] == pytest.approx(20_000)


def test_without_messages_there_are_no_stages():
    assert run_of(steps_of(ranks(2), [[1000, 2000]] * 3)).stages().n_rows == 0


def test_waits_are_by_rank_step_group_and_the_rank_waited_for():
    run = both_groups()
    rows = list(run.waiting().rows())
    assert {(row["rank"], row["waits_for"], row["group"]) for row in rows} == {
        (0, 1, "tp: all_reduce"), (2, 3, "tp: all_reduce"),
    }  # fmt: skip
    assert {row["step"] for row in rows} == set(range(5))
    assert {(row["calls"], row["wait_ns"]) for row in rows} == {(2, 40_000)}


def test_a_wait_for_a_rank_without_a_file_names_none():
    (rank,) = ranks(1)
    for slow in (0, 70_000, 0):
        rank.step()
        exchange([rank.work(1000)], members=(0, 1), transfer=50_000 + slow)
    (row,) = run_of([rank.step()]).waiting().rows()
    assert (row["waits_for"], row["wait_ns"], row["step"]) == (None, 70_000, 1)


def test_calls_outside_steps_do_not_count():
    one, other = ranks(2)
    exchange([one.work(1000), other.work(1000)])
    for _ in range(2):
        exchange([one.step().work(1000), other.step().work(1000)])
    run = run_of([one.step(), other.step()])
    (row,) = run.groups.rows()
    assert row["calls"] == 1
    assert np.count_nonzero(run.calls_in_steps) == 4
