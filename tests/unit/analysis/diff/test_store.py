"""Baselines: what is stored compares as the capture itself."""

from pathlib import Path

import numpy as np
import pytest

import fastprof
from fastprof.analysis.diff import store
from fastprof.analysis.diff.captures import sides_of
from fastprof.analysis.diff.side import KEYS
from fastprof.analysis.diff.store import Baseline, BaselineError
from support.training_files import call, kineto

parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")

CALLS = [call("net:in", "mm", 50_000), call("net:out", "relu", 20_000), call(None, "add_", 9_000)]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return kineto(tmp_path / "before.json", [CALLS] * 4)


@pytest.fixture
def baseline(capture: Path, tmp_path: Path) -> Path:
    (side,) = sides_of([capture])
    store.save(Baseline(side), tmp_path / "new" / "store")
    return tmp_path / "new" / "store"


def test_what_is_read_is_what_was_stored(capture: Path, baseline: Path) -> None:
    (side,), found = sides_of([capture]), store.load(baseline).side
    assert found.windows.keys() == side.windows.keys()
    for name in ("names", "gpus", "steps", "has_steps", "notes"):
        assert getattr(found, name) == getattr(side, name)
    for name in ("idle", "calls", "kernels", "gpu_ns", "own"):
        np.testing.assert_array_equal(getattr(found, name), getattr(side, name))
    for name in side.windows:
        np.testing.assert_array_equal(found.windows[name], side.windows[name])
    for name in KEYS:
        assert found.texts(name) == side.texts(name)


def test_a_baseline_compares_as_its_capture(capture: Path, baseline: Path, tmp_path: Path) -> None:
    after = kineto(tmp_path / "after.json", [[*CALLS, CALLS[0]]] * 4)
    found, expected = fastprof.diff(baseline, after), fastprof.diff(capture, after)
    assert found.wall == expected.wall
    assert list(found.table().rows()) == list(expected.table().rows())
    assert any(row["delta_ns"] for row in found.table().rows())


def test_a_baseline_is_small(baseline: Path) -> None:
    assert (baseline / "baseline.parquet").stat().st_size < 20_000


def test_later_captures_are_measured_as_the_baseline(capture: Path, tmp_path: Path) -> None:
    where = ("op=relu",)
    (side,) = sides_of([capture], "none", where)
    store.save(Baseline(side, "none", where), tmp_path / "store")
    table = fastprof.diff(tmp_path / "store", capture, "op").table()
    assert [op for op in table["op"] if op] == ["relu"]
    assert set(table["delta_ns"]) == {0}


@pytest.mark.parametrize("options", [{"steps": "none"}, {"where": "op=relu"}])
def test_other_steps_are_refused(capture: Path, baseline: Path, options: dict[str, str]) -> None:
    with pytest.raises(BaselineError, match=r"was stored with --.* unset, expected .*; omit --"):
        fastprof.diff(baseline, capture, **options)  # type: ignore[arg-type]  # steps or where


def test_a_new_baseline_replaces_the_old(baseline: Path, tmp_path: Path) -> None:
    other = kineto(tmp_path / "other.json", [CALLS[:1]] * 4)
    (side,) = sides_of([other])
    store.save(Baseline(side), baseline)
    assert store.load(baseline).side.names == (str(other),)
    assert [path.name for path in baseline.iterdir()] == ["baseline.parquet"]


def test_a_missing_baseline_is_an_error(tmp_path: Path) -> None:
    assert not store.is_baseline(tmp_path)
    with pytest.raises(BaselineError, match="contains no baseline; store one with"):
        store.load(tmp_path)


@pytest.mark.parametrize("damage", ["text", "cut", "other table", "windows"])
def test_damaged_baselines_are_errors(baseline: Path, damage: str) -> None:
    file = baseline / "baseline.parquet"
    if damage == "text":
        file.write_text("not Parquet")
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    else:
        table = parquet.read_table(file)
        properties = table.schema.metadata[b"fastprof_baseline"].decode()
        changed = {b"fastprof_baseline": properties.replace('"wall_ns": [', '"wall_ns": [1, 1, ')}
        if damage == "windows":
            changed = {b"fastprof_baseline": properties.replace('"wall_ns"', '"other_ns"')}
        parquet.write_table(table.replace_schema_metadata(
            {} if damage == "other table" else changed), file)  # fmt: skip
    with pytest.raises(BaselineError, match="is damaged or not a baseline"):
        store.load(baseline)


def test_baselines_of_other_versions_are_errors(baseline: Path) -> None:
    file = baseline / "baseline.parquet"
    table = parquet.read_table(file)
    properties = table.schema.metadata[b"fastprof_baseline"].replace(b'"schema": 1', b'"schema": 0')
    parquet.write_table(table.replace_schema_metadata({b"fastprof_baseline": properties}), file)
    with pytest.raises(BaselineError, match="cannot compare with; store it again with --save"):
        store.load(baseline)


def test_unwritable_directories_are_errors(capture: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (side,) = sides_of([capture])
    with pytest.raises(BaselineError, match="cannot be written"):
        store.save(Baseline(side), tmp_path / "file" / "store")
