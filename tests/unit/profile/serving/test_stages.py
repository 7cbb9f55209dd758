"""The columns `stage`, `batch`, `tokens` and `requests` of kernels."""

import fastprof
from support.engine_files import engine_trace
from support.kineto_files import KinetoFile

NAMES = ("stage", "batch", "tokens", "requests")


def values(trace, tmp_path, names=NAMES):
    profile = fastprof.open(trace.write(tmp_path / "one.json"))
    return list(zip(*(profile.column(name).array().tolist() for name in names), strict=True))


def test_kernels_have_the_stage_of_their_iteration(tmp_path):
    result = values(engine_trace(), tmp_path)
    assert result[:4] == [
        ("prefill", "2 prefill of 600 tokens", 600, 2),
        ("prefill", "2 prefill of 600 tokens", 600, 2),
        ("sampling", None, None, None),  # launched after the range of the iteration
        ("decode", "2 decode", 2, 2),
    ]
    assert result[9] == ("mixed", "1 prefill of 100 tokens + 2 decode", 102, 3)


def test_a_stage_that_names_leave_open_is_marked(tmp_path):
    trace = KinetoFile().annotation(0, 100, "execute_new_0_cached_2")
    trace.launch(10, 20, 1).kernel(30, 40, 1, "gemm")
    trace.launch(110, 120, 2).kernel(130, 140, 2, "_gumbel_sample_kernel")
    assert values(trace, tmp_path) == [
        ("~decode", "2 decode", None, 2),
        ("~sampling", None, None, None),
    ]


def test_a_kernel_alone_tells_nothing_in_other_programs(tmp_path):
    trace = KinetoFile().launch(10, 20, 1).kernel(30, 40, 1, "_gumbel_sample_kernel")
    assert values(trace, tmp_path) == [(None, None, None, None)]


def test_the_innermost_function_of_the_engine_counts(tmp_path):
    trace = KinetoFile().annotation(0, 100, "step[DECODE bs=2]")
    trace.python(5, 50, "/a/sglang/srt/layers/sampler.py(83): forward")
    trace.launch(10, 20, 1).kernel(30, 40, 1, "gemm")
    trace.launch(60, 70, 2).kernel(80, 90, 2, "gemm")
    assert values(trace, tmp_path, ("stage", "tokens")) == [("sampling", 2), ("decode", 2)]


def test_of_nested_ranges_one_that_tells_tokens_counts(tmp_path):
    trace = KinetoFile().annotation(0, 100, "execute_context_1(7)_generation_0(0)")
    trace.annotation(1, 99, "step[EXTEND bs=1]")
    trace.launch(10, 20, 1).kernel(30, 40, 1, "gemm")
    assert values(trace, tmp_path) == [("prefill", "1 prefill of 7 tokens", 7, 1)]


def test_reports_group_by_stage(tmp_path):
    profile = fastprof.open(engine_trace().write(tmp_path / "one.json"))
    table = profile.summary(by=["stage", "tokens"])
    assert {(row["stage"], row["tokens"]): row["kernels"] for row in table.rows()} == {
        ("prefill", 600): 2, ("decode", 2): 4, ("decode", 3): 2, ("mixed", 102): 2,
        ("sampling", None): 5,
    }  # fmt: skip
    only = profile.summary(by="stage", where={"stage": "decode"})
    assert [row["stage"] for row in only.rows()] == ["decode"]


def test_copies_of_many_tensors_are_no_optimizer_in_an_engine(tmp_path):
    def phases(name):
        trace = KinetoFile().annotation(0, 100, name).op(5, 50, "aten::_foreach_copy_")
        return values(trace.launch(10, 20, 1).kernel(30, 40, 1), tmp_path, ("phase",))

    assert phases("train step") == [("optimizer",)]
    assert phases("step[DECODE bs=2]") == [("forward",)]


LOOP = "/x/site-packages/transformers/generation/utils.py(2790): _sample"


def generated(*inside):
    """A loop of generate; `inside` it one after another, each with a kernel."""
    trace = KinetoFile().python(0, 10_000, LOOP)
    for place, names in enumerate(inside):
        begin = 100 * (place + 1)
        for depth, name in enumerate(names):
            trace.python(begin + depth, begin + 90 - depth, name)
        trace.launch(begin + 20, begin + 30, place + 1)
        trace.kernel(begin + 40, begin + 50, place + 1, "gemm")
    return trace


def test_the_loop_of_generate_has_a_prefill_inside(tmp_path):
    prefill = "/x/site-packages/transformers/generation/utils.py(3600): _prefill"
    model = "nn.Module: LlamaForCausalLM_0"
    trace = generated((prefill, model), (model,), ())
    assert values(trace, tmp_path, ("stage",)) == [("prefill",), ("decode",), ("sampling",)]


def test_the_loop_of_earlier_versions_computes_prompts_too(tmp_path):
    trace = generated(("nn.Module: LlamaForCausalLM_0",), ())
    assert values(trace, tmp_path, ("stage",)) == [(None,), (None,)]
