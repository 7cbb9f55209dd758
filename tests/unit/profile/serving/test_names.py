"""What the names of engines' ranges, functions and kernels tell."""

import pytest

from fastprof.ops.libraries.serving.lengths import Lengths, batch_of
from fastprof.profile.serving.names import (
    DECODE,
    DETOKENIZER,
    DRAFT,
    GENERATE,
    KV_TRANSFER,
    MIXED,
    ON_HOST,
    PREFILL,
    PREPARING,
    SAMPLING,
    SCHEDULER,
    VERIFY,
    WAITING,
    host_work_of,
    is_of_engine,
    iteration_of,
    stage_of_function,
    stage_of_kernel,
    stage_of_range,
)


@pytest.mark.parametrize(
    ("name", "stage", "requests", "tokens", "batch"),
    [
        ("execute_context_1(888_788544)_generation_0(0)", PREFILL, 1, 888,
         "1 prefill of 888 tokens"),
        ("execute_context_0(0)_generation_3(3)", DECODE, 3, 3, "3 decode"),
        ("execute_context_2(600)_generation_3(3)", MIXED, 5, 603,
         "2 prefill of 600 tokens + 3 decode"),
        ("execute_context_0(0)_generation_3(12)", VERIFY, 3, 12, "3 verify"),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)", DECODE,
         32, 32, "32 decode"),
        ("execute_new_1_cached_3", MIXED, 4, -1, "1 prefill + 3 decode"),
        ("execute_new_0_cached_3", DECODE, 3, -1, "3 decode"),
        ("step[EXTEND bs=2 toks=900]", PREFILL, 2, 900, "2 prefill of 900 tokens"),
        ("step[EXTEND bs=2]", PREFILL, 2, -1, "2 prefill"),
        ("step[DECODE bs=32]", DECODE, 32, 32, "32 decode"),
        ("step[MIXED bs=5 toks=70]", MIXED, 5, 70, "5 mixed"),
        ("step[TARGET_VERIFY bs=4]", VERIFY, 4, -1, "4 verify"),
        ("step[DRAFT_EXTEND_V2 bs=4]", DRAFT, 4, -1, "4 draft"),
        ("[Executor] _forward_step 7: 2 ctx reqs, 30 gen reqs", MIXED, 32, -1,
         "2 prefill + 30 decode"),
        ("[Executor] _forward_step 7: 2 ctx reqs, 900 ctx tokens, 30 gen reqs", MIXED, 32, 930,
         "2 prefill of 900 tokens + 30 decode"),
        ("[Executor] _forward_step: 0 ctx reqs, 30 gen reqs", DECODE, 30, 30, "30 decode"),
        ("decode[bs=64 tok=64 d=64]", DECODE, 64, 64, "64 decode"),
    ],
)  # fmt: skip
def test_the_name_of_an_iteration_tells_its_batch(name, stage, requests, tokens, batch):
    told = iteration_of(name)
    assert told is not None
    assert (told.stage, told.requests, told.tokens, told.batch) == (stage, requests, tokens, batch)


@pytest.mark.parametrize(
    "name",
    [
        *("forward", "step 3", "step[3]", "execute", "ProfilerStep#3", "step[WARMUP bs=1]"),
        f"step[DECODE bs={10**16}]",
    ],
)
def test_other_names_are_no_iterations(name):
    assert iteration_of(name) is None


def test_an_iteration_without_requests_has_no_stage():
    for name in ("execute_context_0(0)_generation_0(0)", "step[IDLE bs=0]"):
        told = iteration_of(name)
        assert told is not None
        assert told.stage == ""


def test_requests_that_began_before_may_have_prompts_left():
    sure = {name: iteration_of(name).is_sure for name in (
        "execute_new_0_cached_3", "execute_new_1_cached_0", "step[DECODE bs=2]")}  # fmt: skip
    assert list(sure.values()) == [False, True, True]


def test_squares_of_tokens_are_a_lower_bound_of_scores():
    batch = batch_of("execute_context_2(500_170000)_generation_0(0)")
    assert batch is not None
    assert batch.context == Lengths(2, 500, 500, 170000, exact=False)


def test_stages_of_ranges():
    assert stage_of_range("gpu_model_runner: sample", False) == SAMPLING
    assert stage_of_range("_prepare_draft_batch", False) == DRAFT
    assert stage_of_range("_send_disagg_ctx_cache", False) == KV_TRANSFER
    assert stage_of_range("gpu_model_runner: forward", True) is None
    # Other programs have ranges of this name.
    assert [stage_of_range("Sample", inside) for inside in (False, True)] == [None, SAMPLING]


def test_stages_of_functions_and_kernels():
    function = "/opt/sglang/python/sglang/srt/layers/sampler.py(83): forward"
    assert stage_of_function(function) == SAMPLING
    assert stage_of_function("transformers/generation/utils.py(2790): _prefill") == PREFILL
    assert stage_of_function("transformers/generation/utils.py(2790): _sample") == GENERATE
    assert stage_of_function("transformers/generation/utils.py(2790): generate") is None
    assert stage_of_kernel("_gumbel_sample_kernel") == SAMPLING
    assert stage_of_kernel("void upsample_nearest2d_out_frame<float>") is None
    assert is_of_engine("void vllm::rms_norm_kernel<float>")
    assert not is_of_engine("void at::native::elementwise_kernel<4>")


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("schedule: allocate_slots", SCHEDULER),
        ("scheduler.get_next_batch_to_run", SCHEDULER),
        ("scheduler.recv_requests", WAITING),
        ("_fetch_new_requests", WAITING),
        ("llm_engine step: process_outputs", DETOKENIZER),
        ("gpu_model_runner: bookkeep", ON_HOST),
        ("gpu_model_runner: preprocess", PREPARING),
        ("vllm/v1/core/sched/scheduler.py(171): schedule", SCHEDULER),
        ("train.py(3): schedule", None),
        ("forward", None),
    ],
)
def test_work_on_the_host(name, work):
    assert host_work_of(name) == work
