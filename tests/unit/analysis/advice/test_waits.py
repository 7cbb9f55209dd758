"""Findings on waits: copies that the host waits for, work that is queued, memory that is freed."""

from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.page.section import PageSource
from fastprof.page.sections import answer
from support.kineto_files import KinetoFile

US = 1000


class Decode(KinetoFile):
    """Steps that begin with a copy which the host waits for; then it needs 400 us for a launch.

    The GPU computes for 500 us a step; times in us.
    """

    def __init__(self, copy: str = "HtoD (Pageable -> Device)", n_bytes: int = 256) -> None:
        super().__init__()
        at = free = 1
        corr = 0
        for step in range(8):
            begin, at, corr = at, at + 30, corr + 1
            start = max(at + 10, free)
            self.op((at - 5) * US, (start + 25) * US, "aten::copy_")
            self.launch(at * US, (start + 20) * US, corr, name="cudaMemcpyAsync")
            self.copy(start * US, (start + 3) * US, corr, f"Memcpy {copy}", n_bytes)
            at, free = start + 430, start + 3
            for i in range(5):
                corr += 1
                self.launch(at * US, (at + 5) * US, corr)
                start = max(at + 8, free)
                self.kernel(start * US, (start + 100) * US, corr, f"kernel_{i}")
                free, at = start + 100, at + 6
            self.annotation(begin * US, at * US, f"ProfilerStep#{step}")


def first(trace: KinetoFile, folder: Path) -> dict[str, Any]:
    """The first finding."""
    table = fastprof.open(trace.write(folder / "net.json"), copies=True).advise()
    row: dict[str, Any] = next(iter(table.rows()))
    return row | {"answer": table.facts["answer"], "step_ns": table.facts["step_ns"]}


@pytest.mark.parametrize(
    ("copy", "n_bytes", "what", "remedy"),
    [
        ("HtoD (Pageable -> Device)", 256, "inputs", "token ids, stays on the GPU"),
        ("HtoD (Pinned -> Device)", 256, "inputs", "the memory is pinned already"),
        ("DtoH (Device -> Pageable)", 256, "results", ".item()"),
        ("DtoH (Device -> Pageable)", 1 << 20, "results", "keep results on the GPU"),
    ],
)
def test_copies_at_the_start_of_a_step(copy, n_bytes, what, remedy, tmp_path):
    result = first(Decode(copy, n_bytes), tmp_path)
    assert result["id"] == "sync"
    assert result["what"].startswith(f"The host waits for copies of {what} at the start of a step")
    assert result["answer"].startswith(
        f"The host waits for copies of {what} at the start of a step:"
    )
    assert "A host that does not wait would run ahead and save about" in result["answer"]
    assert remedy in result["remedy"]
    assert result["where"] == "copy_ 100%"
    # The host would run ahead: steps as long as its own 490 us, or the GPU's 503 us.
    assert result["step_ns"] - result["saving_ns"] == pytest.approx(560 * US, rel=0.12)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("vllm/v1/worker/gpu_worker.py(12): execute_model", "--async-scheduling keeps token ids"),
        ("sglang/srt/managers/scheduler.py(9): run_batch", "the overlap scheduler"),
    ],
)
def test_serving_engines_keep_token_ids_on_the_gpu(file, words, tmp_path):
    trace = Decode()
    trace.python(0, 8000 * US, f"/packages/{file}")
    result = first(trace, tmp_path)
    assert result["id"] == "sync"
    assert words in result["remedy"]


class Queued(KinetoFile):
    """A kernel that is launched at once, and starts late: what it waits for is not recorded."""

    def __init__(self, late: int) -> None:
        super().__init__()
        self.launch(1 * US, 5 * US, 1).kernel(8 * US, 20 * US, 1, "first")
        self.launch(6 * US, 10 * US, 2).kernel((20 + late) * US, (120 + late) * US, 2, "second")


def test_work_that_is_queued_and_waits(tmp_path):
    result = first(Queued(900), tmp_path)
    assert result["id"] == "queued-gaps"
    assert result["saving_ns"] is None
    assert "1 gap, the longest 900 us" in result["evidence"]
    assert "record several steps" in result["remedy"]
    assert result["answer"] == (
        "The GPU is idle for 0.90 of 1.01 ms with work queued that waits for what the file does "
        "not show."
    )
    short = first(Queued(40), tmp_path)
    assert "is idle for" not in short["answer"]


def test_a_capture_of_a_graph_is_not_judged_as_work(tmp_path):
    trace = KinetoFile().launch(1 * US, 5 * US, 1).kernel(8 * US, 20 * US, 1, "fill")
    for i in range(20):
        trace.launch((100 + i * 100) * US, (105 + i * 100) * US, 2 + i)
    said = first(trace, tmp_path)["answer"]
    assert said.startswith("The GPU works only 12.0 us in 1.999 ms of calls: record while")
    trace.launch(50 * US, 60 * US, 99, name="cudaStreamBeginCapture_v10000")
    said = first(trace, tmp_path)["answer"]
    assert said.startswith("The host captures a graph")
    assert said.endswith("With a trace of replays, this file is --graph-capture.")


@pytest.mark.parametrize(("frees", "is_off"), [(60, True), (3, False)])
def test_tensors_that_are_freed_one_by_one(frees, is_off, tmp_path):
    trace, at = KinetoFile(), 0
    for corr in range(1, 61):
        trace.op(at * US, (at + 5) * US, "aten::add")
        trace.launch(at * US, (at + 5) * US, corr)
        trace.kernel((at + 8) * US, (at + 18) * US, corr, f"kernel_{corr}")
        if corr <= frees:
            wait = 6000 // frees
            trace.launch((at + 20) * US, (at + wait) * US, 100 + corr, name="cudaFree")
            at += wait
        at += 30
    result = first(trace, tmp_path)
    assert result["id"] == "alloc"
    assert ("the caching allocator is off" in result["remedy"]) == is_off


def test_first_calls_are_on_the_first_screen_and_on_the_page(tmp_path):
    trace, at = KinetoFile(), 0
    for corr in range(1, 6):
        trace.launch(at * US, (at + 900) * US, corr)  # loads code
        trace.kernel((at + 898) * US, (at + 908) * US, corr, f"kernel_{corr}")
        at += 910
    profile = fastprof.open(trace.write(tmp_path / "net.json"), copies=True)
    (line,) = [each for each in profile.overview().lead if each.startswith("first calls take")]
    assert "code loading" in line
    assert line in answer.section(PageSource(profile)).lead
