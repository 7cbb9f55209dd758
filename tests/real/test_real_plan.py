"""The plans of real traces add up, and their opening sentences are true."""

import re

import pytest

from real import open_traces
from real.open_traces import profile, report
from support.plans import saved_together
from support.real_data import traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*")
US = 1000


@pytest.mark.parametrize("path", TRACES)
def test_savings_add_up_to_the_replay_of_all_changes(path):
    table = report(path, "advise")
    rows = [row for row in table.rows() if row["saving_ns"] is not None]
    assert [row["saving_ns"] is None for row in table.rows()] == (
        [False] * len(rows) + [True] * (table.n_rows - len(rows))
    )
    assert all(row["saving_ns"] >= 0 for row in rows)
    assert sum(row["saving_ns"] for row in rows) == table.total["saving_ns"]
    assert table.total["saving_ns"] <= table.facts["step_ns"]
    if rows and not table.facts["is_bound"]:
        assert rows[0]["alone_ns"] == max(row["alone_ns"] for row in rows)
        assert rows[0]["saving_ns"] >= rows[0]["alone_ns"] - 1
        if not rows[0]["together"]:
            assert rows[0]["saving_ns"] == pytest.approx(rows[0]["alone_ns"], abs=len(rows))
        total, together = saved_together(open_traces.rule_facts(path))
        assert table.total["saving_ns"] == pytest.approx(total, abs=1)
        assert together == pytest.approx(total, abs=len(rows) * US)


@pytest.mark.parametrize("path", TRACES)
def test_no_finding_saves_more_than_one_above_it(path):
    table = report(path, "advise")
    rows = [row for row in table.rows() if row["saving_ns"] is not None]
    savings = [row["saving_ns"] for row in rows]
    assert savings == sorted(savings, reverse=True)
    for number, row in enumerate(rows, 1):
        members = [int(part) for part in (row["together"] or "").split(",") if part]
        assert not members or (number in members and len(members) > 1)
        own = [rows[member - 1] for member in members]
        assert all(each["together"] == row["together"] for each in own)
        assert all(abs(each["saving_ns"] - row["saving_ns"]) <= 1 for each in own)


@pytest.mark.parametrize("path", TRACES)
def test_every_screen_opens_with_the_same_sentence(path):
    table, overview = report(path, "advise"), report(path, "overview")
    sentence = table.facts["answer"]
    assert sentence.endswith(".")
    assert "{" not in sentence
    assert len(re.findall(r"[.] [A-Z]", sentence)) <= 1, "one sentence, at most two"
    assert overview.facts["answer"] == table.lead[0] == sentence
    assert " ".join(overview.text().split()).startswith(sentence), "all of it is on the screen"
    assert list(overview["findings"].rows()) == list(table.rows())
    section = open_traces.first_section(path)
    if len(profile(path, copies=True)):
        assert section.lead[0] == sentence
        shown = [row["what"] for row in table.rows()]
        assert [card.title for card in section.cards] == shown[: len(section.cards)]


# What somebody who knows the program would sign. Figures have the digits of the sentence.
SENTENCES = {
    "kineto/resnet50_2021_01_loader0.json.gz": (
        "The GPU waits 47 of 209 ms a step for the data loader. Workers would save about 47 ms."
    ),
    "kineto/resnet50_2021_stack_memory.json.gz": "waits 57 of 176 ms a step for the data loader",
    "kineto/resnet_intermittent_loader.json.gz": "of 334 ms a step for the data loader",
    "kineto/moe_b200_eager.json.gz": "A CUDA graph would save about",
    "kineto/resnet_v100_2024_fwdbwd.json.gz": "Tensor cores would save about 4",
    "kineto/dtensor_tp2_rank0.json.gz": "This may be start-up",
    "kineto/particle_first_calls_a100.json.gz": "while the host loads code (cudaLaunchKernel).",
    "nsys/fsdp_upload_2gpu_h100.sqlite": "The GPU copies parameters for 921 of 969 ms",
    "nsys/cudagraph_a100_nsys2024.sqlite": "The GPU is busy 100 % of the step. Whether",
    "kineto/sglang_graph_decode.json.gz": (
        "The GPU is idle for 463 of 474 ms an iteration with work queued that waits for what the "
        "file does not"
    ),
    "kineto/sglang_graph_capture.json.gz": "here it works 11.0 us in 33.6 ms of calls.",
    "kineto/graph_replay_2024.json.gz": (
        "The GPU is idle for 123 of 215 ms a step within replays of graphs, with their work queued."
    ),
    "kineto/nccl_params.json.gz": "If all of it ran elsewhere, about 121 ms would be saved.",
    "kineto/resnet18_mi300_full.json.gz": "742 of 819 ms a step while the host frees memory (hipF",
    "nsys/no_cuda_tables_nsys2025.sqlite": "No kernels: record with nsys profile",
}


@pytest.mark.parametrize(("path", "words"), SENTENCES.items())
def test_sentences(path, words):
    assert words in report(path, "advise").facts["answer"]


def test_tensors_that_are_freed_one_by_one(path="kineto/resnet18_mi300_full.json.gz"):
    """1427 hipFree in 5 steps: the run is without the caching allocator, by the file's name."""
    rows = {row["id"]: row for row in report(path, "advise").rows()}
    assert "the caching allocator is off" in rows["alloc"]["remedy"]
    cached = profile("kineto/toy_mi250.json.gz", copies=True).advise().rows()
    assert not any("caching allocator is off" in row["remedy"] for row in cached)


def test_uploads_that_fill_the_run_are_not_to_be_hidden(path="nsys/fsdp_upload_2gpu_h100.sqlite"):
    """95 % of the busy time are uploads, which little else can hide: they are to go."""
    rows = {row["id"]: row for row in profile(path, copies=True).advise(min=0).rows()}
    assert "exposed-copy" not in rows
    assert rows["parameter-upload"]["saving_ns"] <= 921e6
    assert "next batch" not in rows["parameter-upload"]["remedy"]
