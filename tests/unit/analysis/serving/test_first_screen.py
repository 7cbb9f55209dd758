"""The first screen, advice and page of a serving engine speak of tokens, not of training."""

import re

import pytest

import fastprof
from support.engine_files import H100, US, Part, engine_trace
from support.kineto_files import KinetoFile

TRAINING = re.compile(
    r"autocast|\bAMP\b|GradScaler|DataLoader|num_workers|optimizer|gradient|zero_grad|backward"
    r"|training|batch norm",
    re.I,
)
NAMES = {
    "vLLM": ("execute_context_1(64)_generation_0(0)", "execute_context_0(0)_generation_8(8)"),
    "SGLang": ("step[EXTEND bs=1 toks=64]", "step[DECODE bs=8]"),
    "TensorRT-LLM": (
        "[Executor] _forward_step 1: 1 ctx reqs, 64 ctx tokens, 0 gen reqs",
        "[Executor] _forward_step 2: 0 ctx reqs, 8 gen reqs",
    ),
}


def products(name, *, begin=0):
    """An iteration of fp32 products, elementwise work, a copy and a wait on the host."""
    trace, corr = KinetoFile(deviceProperties=H100), begin
    trace.annotation(begin * US, (begin + 900) * US, name)
    dims, types = [[512, 1024], [1024, 1024]], ["float"] * 2
    for place in range(8):
        at, corr = begin + 100 * place, corr + 1
        trace.op(at * US, (at + 9) * US, "aten::mm", dims=dims, types=types)
        trace.launch((at + 1) * US, (at + 2) * US, corr)
        trace.kernel((at + 20) * US, (at + 80) * US, corr, "ampere_sgemm_128x64_tn")
        corr += 100
        trace.op((at + 10) * US, (at + 19) * US, "aten::mul", dims=[dims[0]] * 2, types=types)
        trace.launch((at + 11) * US, (at + 12) * US, corr)
        trace.kernel((at + 80) * US, (at + 90) * US, corr, "void at::native::vectorized<mul>")
        corr -= 100
    return trace


@pytest.mark.parametrize("engine", NAMES)
def test_advice_is_for_engines(tmp_path, engine):
    trace = products(NAMES[engine][0])
    for step in range(1, 4):
        trace.events += products(NAMES[engine][1], begin=step * 1000).events
    profile = fastprof.open(trace.write(tmp_path / "one.json"), copies=True)
    assert profile.contents.program.name == engine
    for text in (profile.overview().text(), profile.advise().text()):
        assert not TRAINING.search(text), TRAINING.search(text)


@pytest.mark.parametrize("engine", NAMES)
def test_the_screen_has_tokens_and_stages(tmp_path, engine):
    parts = [Part(NAMES[engine][0], 50), *[Part(NAMES[engine][1], 50)] * 3]
    result = fastprof.open(engine_trace(parts).write(tmp_path / "one.json")).overview()
    text = " ".join(result.text().split())
    assert "4 iterations of the engine (1 prefill, 3 decode)" in text
    assert "prefill: 1 iteration of 55 us for 1 request, 64 tokens:" in text
    assert "decode: 3 iterations of 106 us for 8 requests, 8 tokens: 75,472 tokens/s" in text
    assert "time between tokens: p50 106 us, p90 106 us, p99 106 us (16 tokens)" in text
    assert "an iteration" in text
    assert any(command.startswith("fastprof serving ") for command in result.facts["next"])


def test_other_programs_have_steps(tmp_path):
    trace = KinetoFile()
    for step in range(3):
        trace.events += products(f"ProfilerStep#{step}", begin=step * 1000).events
    result = fastprof.open(trace.write(tmp_path / "one.json")).overview()
    text = result.text()
    assert "iteration" not in text
    assert "tokens" not in text
    assert not any(command.startswith("fastprof serving ") for command in result.facts["next"])


def test_the_page_has_the_stages(tmp_path):
    profile = fastprof.open(engine_trace().write(tmp_path / "one.json"), copies=True)
    html = profile.report().html
    assert "Stages of the engine" in html
    assert "Idle time of iterations" in html
    other = KinetoFile().launch(10, 20, 1).kernel(30, 40, 1)
    profile = fastprof.open(other.write(tmp_path / "other.json"), copies=True)
    assert "Stages of the engine" not in profile.report().html
