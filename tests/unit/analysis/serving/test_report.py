"""`serving`: stages, tokens per second, time between tokens, idle time by work of the host."""

import numpy as np
import pytest

import fastprof
from support.engine_files import US, Part, engine_trace
from support.kineto_files import KinetoFile

BEFORE, INSIDE = "before", "inside"


def report(trace, tmp_path, **options):
    return fastprof.open(trace.write(tmp_path / "one.json")).serving(**options)


def idle(trace, tmp_path):
    table = report(trace, tmp_path, idle=True)
    return {(row["place"], row["cause"]): row["ns"] / US for row in table.rows()}


def test_stages_have_tokens_and_times(tmp_path):
    table = report(engine_trace(), tmp_path)
    rows = {row["stage"]: row for row in table.rows()}
    assert list(rows) == ["prefill", "decode", "mixed"]
    decode = rows["decode"]
    assert (decode["iterations"], decode["tokens"]) == (3, pytest.approx(7 / 3))
    # From the end of one iteration's work to that of the next: before + 10 + work + 6.
    walls = np.array([156, 196, 156])
    assert decode["wall_ns"] == pytest.approx(walls.mean() * US)
    assert decode["tokens_per_s"] == pytest.approx(7 / walls.sum() * 1e6)
    assert decode["token_ns"] == pytest.approx(walls.sum() / 7 * US)
    assert decode["attention_ns"] == pytest.approx(3 * 10 / 7 * US)
    assert decode["weights_ns"] == pytest.approx(3 * 30 / 7 * US)
    assert decode["sampling_ns"] == pytest.approx(3 * 5 / 7 * US)
    assert decode["busy_ns"] == pytest.approx(45 * US)
    parts = decode["busy_ns"] + decode["between_ns"] + decode["idle_ns"]
    assert parts == pytest.approx(decode["wall_ns"])
    mixed = rows["mixed"]
    assert (mixed["requests"], mixed["tokens"], mixed["wall_ns"]) == (3, 102, 256 * US)
    assert mixed["communication_ns"] == 0


def test_a_stage_that_begins_with_the_capture_has_a_note(tmp_path):
    table = report(engine_trace(), tmp_path)
    prefill = next(table.rows())
    assert (prefill["stage"], prefill["wall_ns"]) == ("prefill", 215 * US)
    assert table.notes[0].startswith("prefill: the capture begins or ends with its only iteration")


def test_the_time_between_tokens_counts_prefill_in_between(tmp_path):
    table = report(engine_trace(), tmp_path)
    # Two requests wait 196, 256 and 156 us; the third one has no token before the last iteration.
    assert table.facts["between_tokens"] == {
        "tokens": 6, "p50_ns": 196 * US, "p90_ns": 256 * US, "p99_ns": 256 * US,
    }  # fmt: skip
    assert "time between tokens: p50 196 us" in table.text()


def test_one_iteration_has_no_time_between_tokens(tmp_path):
    table = report(engine_trace([Part("step[DECODE bs=2]", 100)]), tmp_path)
    assert table.facts["between_tokens"]["p50_ns"] is None
    assert "time between tokens: unknown" in table.text()


def test_the_engine_is_told_by_its_ranges(tmp_path):
    assert report(engine_trace(), tmp_path).facts["engine"] == "vLLM"


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("schedule: allocate_slots", "scheduler"),
        ("scheduler.recv_requests", "waiting for requests"),
        ("llm_engine step: process_outputs", "detokenizer"),
        ("gpu_model_runner: bookkeep", "sampling on the host"),
        ("gpu_model_runner: preprocess", "preparing inputs"),
    ],
)
def test_idle_time_before_iterations_has_the_work_of_the_host(tmp_path, name, work):
    result = idle(engine_trace(scheduler=name), tmp_path)
    # The range takes 3/4 of the 100, 140, 100 and 100 us before the iterations that count, which
    # the GPU spends without work.
    if name.startswith("gpu_model_runner: bookkeep"):
        assert result[BEFORE, work] > 82.5  # launching the kernel that samples counts too
    else:
        assert result[BEFORE, work] == pytest.approx(82.5)
    assert all(place == BEFORE for place, _ in result)


def test_idle_times_add_up(tmp_path):
    table = report(engine_trace(), tmp_path)
    rows = [row for row in table.rows() if row["stage"] != "prefill"]
    total = sum(row["iterations"] * (row["between_ns"] + row["idle_ns"]) for row in rows)
    assert report(engine_trace(), tmp_path, idle=True).total["ns"] == pytest.approx(total / 4)


def test_work_that_waits_on_the_gpu_is_not_due_to_the_host(tmp_path):
    trace = KinetoFile()
    for start, corr in ((0, 1), (1000, 3)):
        trace.annotation(start * US, (start + 900) * US, "step[DECODE bs=1]")
        trace.annotation((start + 5) * US, (start + 800) * US, "schedule: late")
        for place in (0, 1):
            trace.launch((start + 1 + place) * US, (start + 2 + place) * US, corr + place)
            begin = start + 10 + place * 500
            trace.kernel(begin * US, (begin + 10) * US, corr + place)
    result = idle(trace, tmp_path)
    assert result[INSIDE, "dependency"] == pytest.approx(490)
    assert (INSIDE, "scheduler") not in result


def test_the_share_of_the_memory_roof_needs_costs(tmp_path):
    table = report(engine_trace(), tmp_path)
    assert all(row["memory_share"] is None for row in table.rows())
    trace = KinetoFile().annotation(0, 100 * US, "step[DECODE bs=1]")
    dims, types = [[1, 4096], [4096, 4096]], ["c10::BFloat16"] * 2
    trace.op(1 * US, 9 * US, "aten::mm", dims=dims, types=types)
    trace.launch(2 * US, 3 * US, 1).kernel(10 * US, 60 * US, 1, "nvjet_tst")
    (row,) = report(trace, tmp_path, bandwidth=1000).rows()
    moved = 2 * (4096 * 4096 + 2 * 4096)
    assert row["memory_share"] == pytest.approx(moved / 60e6)  # 1000 GB/s, 60 us
    assert row["cost_share"] == 1


def test_drafts_and_open_stages_have_notes(tmp_path):
    parts = [Part("execute_context_0(0)_generation_2(6)", 10)] * 3
    assert any("drafts" in note for note in report(engine_trace(parts), tmp_path).notes)
    parts = [Part("execute_new_0_cached_2", 10)] * 3
    table = report(engine_trace(parts), tmp_path)
    assert any("may contain prompts" in note for note in table.notes)
    assert next(table.rows())["token_ns"] is None
    assert "its tokens are not recorded" in table.text()


def test_ranks_in_one_file_do_not_add_up(tmp_path):
    trace, other = engine_trace(), engine_trace()
    for event in other.events:
        event["pid"] = {100: 200, 0: 1}[event["pid"]]
        event["args"] |= {"device": 1} if "device" in event["args"] else {}
        event["args"]["correlation"] = event["args"].get("correlation", 0) + 5000
    trace.events += other.events
    one = {row["stage"]: row for row in report(engine_trace(), tmp_path).rows()}
    both = {row["stage"]: row for row in report(trace, tmp_path).rows()}
    for stage, row in one.items():
        assert both[stage]["tokens_per_s"] == pytest.approx(row["tokens_per_s"])


def test_other_traces_say_that_nothing_is_recorded(tmp_path):
    trace = KinetoFile().annotation(0, 90, "forward").launch(10, 20, 1).kernel(30, 40, 1)
    table = report(trace, tmp_path)
    assert table.n_rows == 0
    assert "no iterations of a serving engine" in table.text()
