"""Iterations of transformers' generate, from recorded stacks and shapes."""

import runpy
from pathlib import Path
from typing import Any

import pytest

import fastprof
from support.kineto_files import KinetoFile

US = 1000
UTILS = "transformers/generation/utils.py"


class Generate:
    """A trace of generate: a loop, in it calls of a model, in them an embedding and a kernel."""

    def __init__(self, has_prefill: bool = True) -> None:
        self.trace, self._has_prefill = KinetoFile(), has_prefill
        self._at = self._loop = self._number = 0

    def loop(self, *sizes: tuple[int, int] | None, name: str = "_sample") -> "Generate":
        """A loop of calls with these sequences and tokens; None: no embedding is recorded."""
        begin = self._at
        for i, size in enumerate(sizes):
            start = begin + i * 1000 * US
            if i == 0 and self._has_prefill:
                self.trace.python(start + 5 * US, start + 595 * US, f"{UTILS}(4283): _prefill")
            self._call(start + 10 * US, size)
            self._launch(start + 700 * US, "sampled", start + 700 * US)
        self._at = begin + len(sizes) * 1000 * US
        self.trace.python(begin, self._at - US, f"{UTILS}(3123): {name}")
        return self

    def _call(self, start: int, size: tuple[int, int] | None) -> None:
        for depth, module in enumerate(("LlamaForCausalLM_0", "LlamaModel_0", "LlamaMLP_0")):
            inset = depth * 10 * US
            self.trace.python(start + inset, start + 500 * US - inset, f"nn.Module: {module}")
        if size is not None:
            dims = [[128, 64], list(size), [], [], []]
            self.trace.op(start + 50 * US, start + 90 * US, "aten::embedding", dims=dims)
        self._launch(start + 60 * US, "embedding", start + 60 * US)

    def _launch(self, at: int, name: str, launch: int) -> None:
        self._number += 1
        self.trace.launch(launch, launch + 2 * US, self._number)
        self.trace.kernel(at + 5 * US, at + 25 * US, self._number, name)

    def open(self, folder: Path) -> fastprof.Profile:
        return fastprof.open(self.trace.write(folder / "generate.json"))


def columns(profile: fastprof.Profile, *names: str) -> list[tuple[Any, ...]]:
    """Values of columns, a tuple for each kernel."""
    rows = range(len(profile))
    result = [profile.column(name) for name in names]
    return [tuple(column.at(row) for column in result) for row in rows]


def test_calls_of_the_model_are_iterations_with_sequences_and_tokens(tmp_path):
    profile = Generate().loop((3, 17), (3, 1), (3, 1)).open(tmp_path)
    steps = profile.find_steps()
    assert steps.source == "iteration"
    assert list(steps.labels) == [
        "generate[prefill bs=3 toks=51]", "generate[decode bs=3 toks=3]",
        "generate[decode bs=3 toks=3]",
    ]  # fmt: skip
    assert steps.of_kernel.tolist() == [0, 0, 1, 1, 2, 2]
    inside = columns(profile, "stage", "batch", "tokens", "requests")[::2]
    assert inside[0] == ("prefill", "3 prefill of 51 tokens", 51, 3)
    assert inside[1:] == [("decode", "3 decode", 3, 3)] * 2
    assert columns(profile, "stage")[1::2] == [("sampling",)] * 3


def test_the_report_has_tokens_per_second(tmp_path):
    profile = Generate().loop((2, 8), *[(2, 1)] * 6).loop((2, 8), *[(2, 1)] * 6).open(tmp_path)
    rows = {row["stage"]: row for row in profile.serving().rows()}
    assert rows["decode"]["requests"] == 2
    assert rows["decode"]["tokens"] == 2
    assert rows["prefill"]["tokens"] == 16
    assert rows["decode"]["tokens_per_s"] == pytest.approx(2 / 1e-3, rel=0.35)


def test_older_versions_compute_the_prompt_in_the_first_call_of_the_loop(tmp_path):
    profile = Generate(has_prefill=False).loop((1, 9), (1, 1), name="_beam_search").open(tmp_path)
    assert list(profile.find_steps().labels) == [
        "generate[prefill bs=1 toks=9]", "generate[decode bs=1 toks=1]",
    ]  # fmt: skip


def test_without_an_embedding_the_stage_alone_is_known(tmp_path):
    profile = Generate().loop(None, None).open(tmp_path)
    assert list(profile.find_steps().labels) == ["generate[prefill]", "generate[decode]"]
    assert columns(profile, "stage", "tokens", "requests")[0] == ("prefill", None, None)


def test_calls_of_unknown_stage_are_no_iterations(tmp_path):
    profile = Generate(has_prefill=False).loop(None, None).open(tmp_path)
    assert profile.find_steps().source != "iteration"
    profile = Generate().loop((2, 8), (2, 5), (2, 1)).open(tmp_path / "..")  # a later chunk
    assert [label.split()[0] for label in profile.find_steps().labels] == [
        "generate[prefill", "generate[decode",
    ]  # fmt: skip


def test_ranges_of_the_file_are_as_they_were(tmp_path):
    trace = Generate().loop((3, 17), (3, 1))
    profile = trace.open(tmp_path)
    assert profile.contents.ranges["user"] == 2
    assert len(profile.ranges) == len(trace.trace.events) - 2 * len(profile) + 2
    assert len({layer for (layer,) in columns(profile, "layer")[::2]}) == 1
    assert columns(profile, "op")[::2] == [("embedding",)] * 2


SOURCE = """
def _prefill(model, ids):
    return model(ids)

def _sample(model, ids, n):
    out = _prefill(model, ids)
    for _ in range(n):
        out = model(out.argmax(-1)[:, -1:])
"""


def test_a_trace_of_torch_has_the_same_structure(tmp_path):
    torch = pytest.importorskip("torch")
    source = tmp_path / UTILS
    source.parent.mkdir(parents=True)
    source.write_text(SOURCE)
    scope = runpy.run_path(str(source))
    model = torch.nn.Sequential(torch.nn.Embedding(32, 8), torch.nn.Linear(8, 32))
    scope["_sample"](model, torch.ones(2, 5, dtype=torch.long), 1)
    with torch.profiler.profile(record_shapes=True, with_stack=True) as recorder:
        scope["_sample"](model, torch.ones(2, 5, dtype=torch.long), 3)
    recorder.export_chrome_trace(str(tmp_path / "torch.json"))
    ranges = fastprof.open(tmp_path / "torch.json").ranges
    names = [ranges.meanings[label].label for label in ranges.label.tolist()]
    assert [name for name in names if name.startswith("generate[")] == [
        "generate[prefill bs=2 toks=10]", *["generate[decode bs=2 toks=2]"] * 3,
    ]  # fmt: skip
