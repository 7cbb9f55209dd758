"""Stored captures: what is stored compares as the capture itself; damaged files are errors."""

import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import apsw
import numpy as np
import pytest

import fastprof
from fastprof.analysis.diff import database, store
from fastprof.analysis.diff.captures import sides_of
from fastprof.analysis.diff.database import FILE, VERSION
from fastprof.analysis.diff.packing import pack, unpack
from fastprof.analysis.diff.side import KEYS
from fastprof.analysis.diff.store import Baseline, BaselineError
from support.training_files import call, kineto

CALLS = [call("net:in", "mm", 50_000), call("net:out", "relu", 20_000), call(None, "add_", 9_000)]
SAVE = """
import sys
from fastprof.analysis.diff import store
from fastprof.analysis.diff.captures import sides_of
from fastprof.analysis.diff.store import Baseline
(side,) = sides_of([sys.argv[1]])
for i in range(int(sys.argv[4])):
    store.save(Baseline(side), sys.argv[2], {"writer": sys.argv[3], "n": str(i)})
"""


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return kineto(tmp_path / "before.json", [CALLS] * 4)


@pytest.fixture
def baseline(capture: Path, tmp_path: Path) -> Path:
    (side,) = sides_of([capture])
    store.save(Baseline(side), tmp_path / "new" / "store")
    return tmp_path / "new" / "store"


def test_what_is_read_is_what_was_stored(capture: Path, baseline: Path) -> None:
    (side,), result = sides_of([capture]), store.load(baseline).side
    assert result.windows.keys() == side.windows.keys()
    for name in ("names", "gpus", "steps", "has_steps", "notes"):
        assert getattr(result, name) == getattr(side, name)
    for name in ("idle", "calls", "kernels", "gpu_ns", "own", "group", "window"):
        np.testing.assert_array_equal(getattr(result, name), getattr(side, name))
        assert getattr(result, name).dtype == getattr(side, name).dtype
    for name in side.windows:
        np.testing.assert_array_equal(result.windows[name], side.windows[name])
    for name in KEYS:
        assert result.texts(name) == side.texts(name)


def test_a_baseline_compares_as_its_capture(capture: Path, baseline: Path, tmp_path: Path) -> None:
    after = kineto(tmp_path / "after.json", [[*CALLS, CALLS[0]]] * 4)
    result, expected = fastprof.diff(baseline, after), fastprof.diff(capture, after)
    assert result.wall == expected.wall
    assert list(result.table().rows()) == list(expected.table().rows())
    assert any(row["delta_ns"] for row in result.table().rows())


def test_a_capture_is_small(baseline: Path) -> None:
    assert len(pack(store.load(baseline))) < 3_000
    assert (baseline / FILE).stat().st_size < 50_000


def test_names_are_stored_whatever_they_are(tmp_path: Path) -> None:
    name = "mm'\";--</script>\u2028\N{SNOWMAN}"
    path = kineto(tmp_path / "odd.json", [[call("net", name, 5_000)]] * 3)
    (side,) = sides_of([path])
    store.save(Baseline(side), tmp_path / "s.sqlite", {"a'b": name, "lone": "\ud800"})
    (result,) = store.captures(tmp_path / "s.sqlite")
    assert result.tags == {"a'b": name, "lone": "?"}
    assert store.load(tmp_path / "s.sqlite", f"a'b={name}").side.texts("op") == side.texts("op")


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


def test_the_newest_capture_is_the_baseline(baseline: Path, capture: Path, tmp_path: Path) -> None:
    other = kineto(tmp_path / "other.json", [CALLS[:1]] * 4)
    (side,) = sides_of([other])
    assert store.save(Baseline(side), baseline, {"commit": "b"}) == (baseline / FILE, 2)
    assert store.save(Baseline(side), baseline, {"commit": "b"})[1] == 3  # another measurement
    assert store.load(baseline).side.names == (str(other),)
    assert store.load(baseline, 1).side.names == store.load(baseline, "1").side.names
    assert store.load(baseline, "1").side.names == (str(capture),)
    assert [each.id for each in store.captures(baseline)] == [1, 2, 3]
    assert [path.name for path in baseline.iterdir()] == [FILE]
    for missing in ("4", "commit=c", "x"):
        with pytest.raises(BaselineError, match=f"contains no capture {missing}"):
            store.load(baseline, missing)


def test_a_store_is_a_file_or_a_directory(capture: Path, tmp_path: Path) -> None:
    (side,) = sides_of([capture])
    assert store.save(Baseline(side), tmp_path / "a.sqlite")[0] == tmp_path / "a.sqlite"
    assert store.save(Baseline(side), tmp_path / "plain")[0] == tmp_path / "plain" / FILE
    assert store.is_store(tmp_path / "a.sqlite") and store.is_store(tmp_path / "plain")
    assert not store.is_store(capture) and not store.is_store(tmp_path / "none")


def test_figures_are_means_of_steps(baseline: Path) -> None:
    (result,) = store.captures(baseline)
    figures = result.figures
    assert figures.busy_ns == 79_000 and figures.steps == 3
    assert figures.step_ns == pytest.approx(figures.busy_ns + figures.idle_ns)
    assert figures.parts["op"] == {"mm": 50_000, "relu": 20_000, "add_": 9_000}
    assert figures.parts["layer"] == {"net:in": 50_000, "net:out": 20_000}
    assert (figures.mfu, figures.peak_bytes) == (None, None)


def test_a_missing_baseline_is_an_error(tmp_path: Path) -> None:
    assert not store.is_store(tmp_path)
    with pytest.raises(BaselineError, match="contains no baseline; store one with"):
        store.load(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_two_writers_at_once_lose_nothing(capture: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", SAVE, str(capture), str(tmp_path / "s.sqlite")]
    writers = [subprocess.Popen([*words, name, "15"]) for name in "ab"]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    captures = store.captures(tmp_path / "s.sqlite")
    assert [each.id for each in captures] == list(range(1, 31))
    for name in "ab":
        tags = [each.tags["n"] for each in captures if each.tags["writer"] == name]
        assert tags == [str(i) for i in range(15)]


def test_a_writer_that_fails_leaves_the_store_as_it_was(
    capture: Path, baseline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (side,) = sides_of([capture])

    def failing(text: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "clean", failing)
    with pytest.raises(KeyboardInterrupt):
        store.save(Baseline(side), baseline, {"a": "b"})
    assert len(store.captures(baseline)) == 1


def _foreign(file: Path) -> None:
    file.unlink()
    connection = apsw.Connection(str(file))
    connection.execute("CREATE TABLE captures (id, side); PRAGMA user_version=1")
    connection.close()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "text": lambda file: file.write_text("not SQLite, but long enough for a header" * 9),
    "short": lambda file: file.write_bytes(b"x"),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:5000]),
    "zeros": lambda file: file.write_bytes(
        file.read_bytes()[:4096] + bytes(file.stat().st_size - 4096)
    ),
    "foreign": _foreign,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_files_are_errors_and_stay_as_they_are(
    capture: Path, baseline: Path, damage: Callable[[Path], object]
) -> None:
    file = baseline / FILE
    damage(file)
    before = file.read_bytes()
    (side,) = sides_of([capture])
    for act in (store.load, store.captures, store.earlier, lambda s: store.save(Baseline(side), s)):
        with pytest.raises(BaselineError, match="is damaged or not a store of captures"):
            act(baseline)
    assert file.read_bytes() == before


def test_stores_of_newer_versions_are_errors(baseline: Path, capture: Path) -> None:
    connection = apsw.Connection(str(baseline / FILE))
    connection.pragma("user_version", VERSION + 1)
    connection.close()
    before = (baseline / FILE).read_bytes()
    (side,) = sides_of([capture])
    for act in (store.load, store.captures, lambda s: store.save(Baseline(side), s)):
        with pytest.raises(BaselineError, match="was written by a newer fastprof: its schema is"):
            act(baseline)
    assert (baseline / FILE).read_bytes() == before


def test_stores_of_older_versions_are_migrated(
    baseline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = (*database._MIGRATIONS, "ALTER TABLE captures ADD COLUMN more TEXT DEFAULT 'new'")
    monkeypatch.setattr(database, "_MIGRATIONS", more)
    monkeypatch.setattr(database, "VERSION", len(more))
    assert len(store.captures(baseline)) == 1
    connection = apsw.Connection(str(baseline / FILE))
    assert connection.pragma("user_version") == len(more)
    assert connection.execute("SELECT more FROM captures").get == "new"


@pytest.mark.parametrize("column", ["names", "conditions", "steps", "step_ns", "saved_ns"])
def test_values_of_other_types_are_errors(baseline: Path, column: str) -> None:
    connection = apsw.Connection(str(baseline / FILE))
    connection.execute(f"UPDATE captures SET {column} = '[5'")
    connection.close()
    with pytest.raises(BaselineError, match="is damaged or not a store of captures"):
        store.captures(baseline)


def replaced(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """A change of the bytes of a side."""

    def change(data: bytes) -> bytes:
        plain = zlib.decompress(data)
        assert old in plain
        return zlib.compress(plain.replace(old, new))

    return change


@pytest.mark.parametrize("change", [
    lambda data: b"", lambda data: b"x", lambda data: data[:-9], lambda data: 5,
    lambda data: zlib.compress(zlib.decompress(data)[:-8]),
    replaced(b'"names": [', b'"names": [5, '), replaced(b"window.wall_ns", b"window.wall_xx"),
    replaced(b'"has_steps": true', b'"has_steps":  "x"'),
    lambda data: zlib.compress(b"\xff\xff\xff\xff{}"), lambda data: zlib.compress(b"\2\0\0\0[]"),
    lambda data: zlib.compress(bytes(300 << 20)),
])  # fmt: skip
def test_damaged_sides_are_errors(baseline: Path, change: Callable[[bytes], object]) -> None:
    connection = apsw.Connection(str(baseline / FILE))
    data = connection.execute("SELECT side FROM captures").get
    connection.execute("UPDATE captures SET side = ?", (change(data),))
    connection.close()
    with pytest.raises(BaselineError, match="capture 1 is damaged; store it again with --save"):
        store.load(baseline)
    assert len(store.captures(baseline)) == 1


def test_sides_of_other_versions_are_errors(baseline: Path) -> None:
    data = pack(store.load(baseline))
    other = zlib.compress(zlib.decompress(data).replace(b'"schema": 1', b'"schema": 9'))
    connection = apsw.Connection(str(baseline / FILE))
    connection.execute("UPDATE captures SET side = ?", (other,))
    connection.close()
    with pytest.raises(BaselineError, match="cannot compare with; store it again with --save"):
        store.load(baseline)
    assert unpack(data).side.n_groups == 3


def test_unwritable_directories_are_errors(capture: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (side,) = sides_of([capture])
    with pytest.raises(BaselineError, match="cannot be written"):
        store.save(Baseline(side), tmp_path / "file" / "store")
    with pytest.raises(BaselineError, match=r"is damaged or not a store|cannot be written"):
        store.save(Baseline(side), capture)
