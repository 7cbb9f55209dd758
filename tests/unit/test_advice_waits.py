"""Findings on waits: copies that the host waits for, work that is queued, memory that is freed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastprof
from kineto_files import KinetoFile

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
def test_copies_at_the_start_of_a_step(
    copy: str, n_bytes: int, what: str, remedy: str, tmp_path: Path
) -> None:
    found = first(Decode(copy, n_bytes), tmp_path)
    assert found["id"] == "sync"
    assert found["what"].startswith(f"The host waits for copies of {what} at the start of a step")
    assert found["answer"].startswith(f"The host waits for copies of {what} at the start of a step")
    assert remedy in found["remedy"]
    assert found["where"] == "copy_ 100%"
    # The host would run ahead: steps as long as its own 490 us, or the GPU's 503 us.
    assert found["step_ns"] - found["saving_ns"] == pytest.approx(560 * US, rel=0.12)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("vllm/v1/worker/gpu_worker.py(12): execute_model", "--async-scheduling keeps token ids"),
        ("sglang/srt/managers/scheduler.py(9): run_batch", "the overlap scheduler"),
    ],
)
def test_serving_engines_keep_token_ids_on_the_gpu(file: str, words: str, tmp_path: Path) -> None:
    trace = Decode()
    trace.python(0, 8000 * US, f"/packages/{file}")
    found = first(trace, tmp_path)
    assert found["id"] == "sync"
    assert words in found["remedy"]
