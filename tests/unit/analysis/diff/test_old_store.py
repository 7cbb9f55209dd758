"""Baselines of earlier versions, Parquet files, are read and become stores."""

import os
from pathlib import Path

import pytest

import fastprof
from fastprof.analysis.diff import old_store, store
from fastprof.analysis.diff.captures import sides_of
from fastprof.analysis.diff.database import FILE
from fastprof.analysis.diff.store import Baseline, BaselineError
from support import old_baselines
from support.training_files import call, kineto

parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")

CALLS = [call("net:in", "mm", 50_000), call("net:out", "relu", 20_000), call(None, "add_", 9_000)]
PAIR = {"before": ["a"], "after": ["b"], "ids": ["data-loading"], "predicted_ns": 5,
        "measured_ns": 4}  # fmt: skip


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return kineto(tmp_path / "before.json", [CALLS] * 4)


@pytest.fixture
def directory(capture: Path, tmp_path: Path) -> Path:
    (side,) = sides_of([capture])
    return old_baselines.write(Baseline(side), tmp_path / "store", [PAIR])


def test_a_baseline_compares_as_its_capture(capture: Path, directory: Path, tmp_path: Path) -> None:
    after = kineto(tmp_path / "after.json", [[*CALLS, CALLS[0]]] * 4)
    result, expected = fastprof.diff(directory, after), fastprof.diff(capture, after)
    assert result.wall == expected.wall
    assert list(result.table().rows()) == list(expected.table().rows())


def test_it_becomes_the_first_capture_of_a_store(capture: Path, directory: Path) -> None:
    old = (directory / "baseline.parquet").read_bytes()
    assert store.is_store(directory)
    (side,) = sides_of([capture])
    path, number = store.save(Baseline(side), directory)
    assert (path, number) == (directory / FILE, 2)
    first, second = store.captures(directory)
    assert (first.id, first.version, first.names) == (1, "0.1.0", (str(capture),))
    assert first.saved_ns == (directory / "baseline.parquet").stat().st_mtime_ns
    assert first.figures == second.figures
    assert store.earlier(directory) == [PAIR]
    assert (directory / "baseline.parquet").read_bytes() == old


def test_it_is_migrated_once(directory: Path) -> None:
    assert store.load(directory).side.n_groups == 3
    assert len(store.captures(directory)) == 1
    (directory / "baseline.parquet").unlink()
    assert len(store.captures(directory)) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_read(directory: Path) -> None:
    directory.chmod(0o500)
    assert len(store.captures(directory)) == 1
    assert not (directory / FILE).exists()


def test_it_is_read_in_memory(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert len(store.captures(directory)) == 1
    assert store.load(directory).side.n_groups == 3
    assert not (directory / FILE).exists()


def test_an_older_one_has_no_plan(capture: Path, tmp_path: Path) -> None:
    (side,) = sides_of([capture])
    directory = old_baselines.write(Baseline(side), tmp_path / "store", plan=None)
    assert "was stored without a plan" in store.load(directory).side.plan().because


@pytest.mark.parametrize("damage", ["text", "cut", "other table", "windows"])
def test_damaged_ones_are_errors(directory: Path, damage: str) -> None:
    file = directory / "baseline.parquet"
    if damage == "text":
        file.write_text("not Parquet")
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    else:
        table = parquet.read_table(file)
        properties = table.schema.metadata[b"fastprof_baseline"].decode()
        changed = {b"fastprof_baseline": properties.replace('"wall_ns"', '"other_ns"')}
        parquet.write_table(table.replace_schema_metadata(
            {} if damage == "other table" else changed), file)  # fmt: skip
    damaged = file.read_bytes()
    with pytest.raises(BaselineError, match="is damaged or not a baseline"):
        store.load(directory)
    assert file.read_bytes() == damaged


def test_those_of_other_versions_are_errors(capture: Path, tmp_path: Path) -> None:
    (side,) = sides_of([capture])
    directory = old_baselines.write(Baseline(side), tmp_path / "store", schema=0)
    with pytest.raises(BaselineError, match="cannot compare with; remove it and store it again"):
        store.load(directory)


@pytest.mark.parametrize("text", ["{", "[1]", '[{"predicted_ns": "x"}]'])
def test_damaged_predictions_are_errors(directory: Path, text: str) -> None:
    (directory / "predictions.json").write_text(text)
    with pytest.raises(BaselineError, match="is damaged; remove it"):
        old_store.pairs(directory)
    with pytest.raises(BaselineError, match="is damaged; remove it"):
        store.load(directory)
    (directory / "predictions.json").unlink()
    assert store.load(directory).side.n_groups == 3
