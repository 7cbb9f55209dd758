"""Artefacts of torch.compile in the directory of a run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import fastprof
from fastprof.readers.beside import COMPILED, FACTS, compiled_beside
from fastprof.runs.collect import collect
from fastprof.runs.facts import Settings
from fastprof.runs.launch import environment
from support.compiled_programs import FOLDER, FORWARD, graphs, write_trace

NAMES = ("TORCH_TRACE", "INDUCTOR_PROVENANCE", "TORCH_COMPILE_DEBUG")


def settings(directory: Path) -> Settings:
    return Settings(
        directory=str(directory), first=10, last=13, after=None, seconds=None, backend="torch",
        functions=False, step="auto", max_memory=None, when=None, times=1,
    )  # fmt: skip


@pytest.fixture
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("_unset")
def test_the_log_goes_into_the_directory_of_the_run(tmp_path: Path) -> None:
    variables = environment(settings(tmp_path))
    assert variables["TORCH_TRACE"] == str(tmp_path / COMPILED)
    assert variables["INDUCTOR_PROVENANCE"] == "1"


@pytest.mark.usefixtures("_unset")
@pytest.mark.parametrize("name", NAMES)
def test_what_the_user_has_set_stays(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "0")
    variables = environment(settings(tmp_path))
    assert {key: variables[key] for key in NAMES if key in variables} == {name: "0"}


def run_directory(path: Path) -> Path:
    path.mkdir()
    (path / FACTS).write_text("{}")
    shutil.copytree(FOLDER, path / COMPILED)
    return write_trace(path / "trace.json", [(graphs()[FORWARD], True)])


def test_a_trace_of_a_run_has_its_artefacts_without_an_option(tmp_path: Path) -> None:
    trace = run_directory(tmp_path / "run")
    assert fastprof.open(trace).source.compiled_work is not None
    elsewhere = tmp_path / "trace.json"
    shutil.copy(trace, elsewhere)
    assert fastprof.open(elsewhere).source.compiled_work is None


def test_logs_are_cut_to_what_is_read(tmp_path: Path) -> None:
    trace = run_directory(tmp_path / "run")
    before = fastprof.open(trace).lines().text()
    collect(trace.parent)
    (log,) = (trace.parent / COMPILED).iterdir()
    assert log.stat().st_size < sum(path.stat().st_size for path in FOLDER.iterdir())
    assert fastprof.open(trace).lines().text() == before


def test_a_rank_has_its_own_logs(tmp_path: Path) -> None:
    trace = run_directory(tmp_path / "run")
    (log,) = (trace.parent / COMPILED).iterdir()
    for rank in range(2):
        shutil.copy(log, log.with_name(f"dedicated_log_torch_trace_rank_{rank}_x.log"))
    log.unlink()
    of_rank = trace.rename(trace.with_name("trace.rank1.json"))
    (result,) = compiled_beside(of_rank)
    assert result.endswith("trace_rank_1_x.log")
    assert fastprof.open(of_rank).source.compiled_work is not None
    assert compiled_beside(trace.with_name("trace.rank7.json")) == [str(log.parent)]


def test_an_empty_folder_of_a_run_is_no_error(tmp_path: Path) -> None:
    trace = run_directory(tmp_path / "run")
    shutil.rmtree(trace.parent / COMPILED)
    (trace.parent / COMPILED).mkdir()
    assert fastprof.open(trace).source.compiled_work is None
