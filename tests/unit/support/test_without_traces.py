"""A clone without real traces: their tests are the same in all processes, and skipped."""

import os
import subprocess
import sys
from pathlib import Path

from support.real_data import data_dir

ROOT = Path(__file__).resolve().parents[3]
COLLECT = [sys.executable, "-m", "pytest", "--collect-only", "-n0", "tests/real"]


def test_every_process_collects_the_same_tests(tmp_path):
    """Two seeds of the hash, as two workers of xdist have."""
    variables = {**os.environ, "FASTPROF_DATA": str(tmp_path)}
    processes = [
        subprocess.Popen(
            COLLECT,
            cwd=ROOT,
            env={**variables, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    texts = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], texts
    first, second = ([line for line in text.splitlines() if "::" in line] for text in texts)
    assert len(first) > 100
    assert first == second


def test_a_folder_without_traces_is_no_folder_of_traces(tmp_path, monkeypatch):
    monkeypatch.setenv("FASTPROF_DATA", str(tmp_path))
    assert data_dir() is None
    (tmp_path / "nsys").mkdir()
    assert data_dir() == tmp_path
