"""The expected answers of simulated runs, and the command that writes them."""

import subprocess
import sys
from pathlib import Path

import pytest
from bench.ranks import faults, programs, truth
from bench.ranks.simulate import simulate

ROOT = Path(__file__).resolve().parents[3]
FAULTS = [
    faults.Data(rank=1),
    faults.Rows(rank=2, op="aten::mm", layer="*/Block_1/*"),
    faults.Clock(rank=0, offset=1_000_000, ppm=5.0),
    faults.Window(rank=3, first_instances=2),
]


def test_answers_survive_their_file(tmp_path: Path) -> None:
    expected = truth.truth_of(simulate(programs.fsdp(4), 3, 1, FAULTS))
    expected.write(tmp_path / "truth.json")
    assert truth.read(tmp_path / "truth.json") == expected


def test_each_fault_has_a_cause_and_what_it_saves() -> None:
    expected = truth.truth_of(simulate(programs.ddp(4), 3, 1, FAULTS))
    loading, work = expected.faults
    assert (loading.rank, loading.cause, loading.injected) == (1, "data loading", [5_000_000] * 3)
    assert (work.cause, work.operator, work.layer) == ("uneven work", "aten::mm", "*/Block_1/*")
    assert loading.saves == pytest.approx(4.6e6, rel=0.05)
    assert sum(loading.saves_in) == pytest.approx(3 * loading.saves)
    assert expected.clocks[0] == truth.RankClock(0, 1_000_000, 5.0)
    assert expected.mean_step * 3 == expected.run_ends[-1]


def test_the_time_of_a_step_is_compute_communication_and_idle() -> None:
    run = simulate(programs.tp_dp(8, tensor=4, blocks=2), 3, 1, FAULTS)
    for step in truth.truth_of(run).steps:
        assert step.compute + step.exposed + step.idle == step.end - step.begin
        assert step.compute > 0 and step.exposed > 0 and step.idle >= 0


def test_balanced_runs_have_no_faults() -> None:
    expected = truth.truth_of(simulate(programs.ddp(8)))
    assert expected.faults == []
    waits = [wait for instance in expected.instances for wait in instance.wait]
    assert max(waits) < 300_000


def test_the_command_writes_files_and_answers(tmp_path: Path) -> None:
    command = ["--program", "fsdp", "--ranks", "2", "--steps", "2", "--set", "blocks=2"]
    command += ["--fault", "start:1:ns=9e6"]
    result = subprocess.run(
        [sys.executable, "-m", "bench.ranks", str(tmp_path), *command],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "2 files, 12 communications" in result.stdout
    assert "rank 1: start, saves 4." in result.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "rank0.json.gz", "rank1.json.gz", "truth.json",
    ]  # fmt: skip
    assert truth.read(tmp_path / "truth.json").program == "fsdp"
