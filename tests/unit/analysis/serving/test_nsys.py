"""Iterations as TensorRT-LLM's NVTX ranges mark them: in a domain, with registered texts."""

import pytest

from support.exports import Export

US = 1000


@pytest.fixture
def engine():
    """Three iterations of 8 requests: 100 us of GPU work of 1000 us each, on the executor's thread.

    The executor fetches requests for 400 us and schedules for 200 us before each.
    """
    export = Export().gpu(name="NVIDIA H100 80GB HBM3")
    export.mark(0, "TensorRT-LLM", 1, domain=3, event="NvtxDomainCreate")
    for step in range(3):
        at = step * 1000 * US
        export.push_pop(at, at + 400 * US, "_fetch_new_requests", 1, 3, registered=True)
        export.push_pop(at + 400 * US, at + 600 * US, "_schedule", 1, 3, registered=True)
        name = f"[Executor] _forward_step {step + 1}: 0 ctx reqs, 8 gen reqs"
        export.push_pop(at + 610 * US, at + 700 * US, name, 1, 3, registered=True)
        export.launch(at + 620 * US, at + 630 * US, corr=step + 1, tid=1)
        export.kernel(at + 640 * US, at + 740 * US, corr=step + 1)
        export.push_pop(at + 750 * US, at + 900 * US, "_handle_responses", 1, 3, registered=True)
    return export


def test_iterations_of_a_domain_are_steps(engine, opened):
    profile = opened(engine)
    steps = profile.find_steps()
    assert steps.description == "3 iterations of the engine (3 decode)"
    assert steps.number.tolist() == [1, 2, 3]
    assert profile.contents.program.name == "TensorRT-LLM"


def test_its_stages_and_idle_time(engine, opened):
    profile = opened(engine)
    (row,) = profile.serving().rows()
    assert (row["stage"], row["requests"], row["tokens"]) == ("decode", 8, 8)
    assert (row["wall_ns"], row["busy_ns"]) == (1000 * US, 100 * US)
    assert row["tokens_per_s"] == pytest.approx(8000)
    result = {row["cause"]: row["ns"] / US for row in profile.serving(idle=True).rows()}
    assert result["waiting for requests"] == pytest.approx(400)
    assert result["scheduler"] == pytest.approx(200)
    assert result["detokenizer"] == pytest.approx(150)
    assert sum(result.values()) == pytest.approx(900)


def test_processes_that_compute_the_same_tokens_count_once(engine, opened):
    for step in range(3):  # a second rank
        at = step * 1000 * US
        name = f"[Executor] _forward_step {step + 1}: 0 ctx reqs, 8 gen reqs"
        engine.push_pop(at + 610 * US, at + 700 * US, name, 2, 3, pid=200)
        engine.launch(at + 620 * US, at + 630 * US, corr=step + 1, tid=2, pid=200)
        engine.kernel(at + 640 * US, at + 740 * US, corr=step + 1, pid=200, deviceId=1)
    (row,) = opened(engine).serving().rows()
    assert row["tokens_per_s"] == pytest.approx(8000)
