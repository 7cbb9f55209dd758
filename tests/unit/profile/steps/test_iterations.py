"""Steps that a serving engine marks."""

import pytest

import fastprof
from fastprof.errors import StepsError
from support.engine_files import US, Part, engine_trace
from support.kineto_files import KinetoFile


def steps(trace, tmp_path, source=None):
    return fastprof.open(trace.write(tmp_path / "one.json")).find_steps(source)


def test_an_iteration_lasts_to_the_next_one(tmp_path):
    result = steps(engine_trace(), tmp_path)
    assert result.source == "iteration"
    assert result.description == "5 iterations of the engine (1 prefill, 3 decode, 1 mixed)"
    assert result.of_kernel.tolist() == [step for step in range(5) for _ in range(3)]
    assert (result.gpu_length[1:] / US).tolist() == [156, 196, 256, 156]
    assert result.labels[0] == "execute_context_2(600)_generation_0(0)"


def test_one_iteration_is_a_step(tmp_path):
    result = steps(engine_trace([Part("step[DECODE bs=2]", 100)]), tmp_path)
    assert (result.source, len(result)) == ("iteration", 1)
    # From the start of its range on the host to the end of its GPU work.
    assert result.gpu_length.tolist() == [(10 + 10 + 30 + 5) * US]


def test_iterations_of_different_work_are_neither_cut_nor_warm_ups(tmp_path):
    parts = [Part("step[DECODE bs=1]", 10), Part("step[EXTEND bs=1 toks=9]", 10, 5000, 5000)]
    result = steps(engine_trace([*parts, parts[0], parts[0]]), tmp_path)
    assert result.is_counted.tolist() == [False, True, True, True]
    assert result.notes == ("means exclude step 1: the GPU work before it is not recorded",)


def test_iterations_without_requests_are_none(tmp_path):
    parts = [
        Part("step[DECODE bs=1]", 10),
        Part("step[IDLE bs=0]", 10),
        Part("step[DECODE bs=2]", 9),
    ]
    result = steps(engine_trace(parts), tmp_path)
    assert result.labels == ("step[DECODE bs=1]", "step[DECODE bs=2]")


def test_iterations_count_within_a_profiler_step(tmp_path):
    trace = engine_trace().annotation(0, 3000 * US, "ProfilerStep#3")
    assert steps(trace, tmp_path).source == "iteration"
    assert len(steps(trace, tmp_path, "ProfilerStep")) == 1


def test_more_profiler_steps_than_iterations_are_the_steps(tmp_path):
    trace = KinetoFile()
    for step in range(3):
        trace.annotation(step * 100, step * 100 + 90, f"ProfilerStep#{step}")
        trace.launch(step * 100 + 10, step * 100 + 20, step + 1)
        trace.kernel(step * 100 + 30, step * 100 + 40, step + 1)
    trace.annotation(205, 280, "step[DECODE bs=2]")
    assert steps(trace, tmp_path).source == "ProfilerStep"


def test_other_traces_have_no_iterations(tmp_path):
    trace = KinetoFile().annotation(0, 90, "forward").launch(10, 20, 1).kernel(30, 40, 1)
    with pytest.raises(StepsError, match=r"or step\[DECODE bs=32\], found none"):
        steps(trace, tmp_path, "iteration")
