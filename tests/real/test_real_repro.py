"""Scripts of `fastprof repro` run what real traces recorded, on the meta device."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import fastprof
from fastprof.analysis.repro.script import script
from support.real_data import real

pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")

# Trace: share of the GPU time that a script accepts, calls that run in a torch without further
# libraries, and why others fail.
TRACES = [
    ("owlv2_h100", 0.99, 93, "lists may be missing"),
    ("resnet18_mi300_full", 0.99, 35, ""),
    ("transformer_a100_2024", 0.99, 104, "lists may be missing"),
    ("qwen_h100_unlaunched", 0.69, 34, ""),
    ("sd35_compile_mi300", 0.90, 149, "not in this torch|lists may be missing|nonzero"),
]


@pytest.mark.parametrize(("name", "share", "n_run", "why"), TRACES)
def test_calls_of_a_real_trace_run(
    tmp_path: Path, name: str, share: float, n_run: int, why: str
) -> None:
    result = script(fastprof.open(real(f"kineto/{name}.json.gz")), top=200)
    assert result.share >= share
    program = tmp_path / "repro.py"
    program.write_text(result.text)
    run = subprocess.run(
        [sys.executable, str(program), "--device", "meta"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    failures = [line for line in run.stderr.splitlines() if line.startswith("  failed")]
    assert all(why and re.search(why, line) for line in failures), failures
    assert run.stdout.count("  results   ") >= n_run
    assert run.returncode == (1 if failures else 0)
