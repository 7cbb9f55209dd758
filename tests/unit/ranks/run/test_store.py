"""Stored records: used again if the file is unchanged; damaged and hostile ones are refused."""

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastprof
from fastprof.api.ranks import Ranks
from fastprof.ranks.files import source_of
from fastprof.ranks.kept import StoreError
from fastprof.ranks.run.record import RecordedFile
from fastprof.ranks.run.store import RecordStore
from support import rank_files
from support.every_command import run_here
from unit.ranks.run.built_runs import LOADING, exchange, ranks


def recorded(path: Path) -> RecordedFile:
    """The records of a made-up file with two ranks and every kind of value."""
    path.write_text("a trace")
    one, other = ranks(2, place=0, n_places=2, rank=3, world_size=8, gpu="GPU é", warnings=["w"])
    for _ in range(3):
        for rank in (one, other):
            rank.step().work(1000, layer="layer", shape="[2,3]", line="a.py:1").work(50, kind=1)
        one.work(500, kind=LOADING)
        exchange([one, other], members=(0, 1), n_ranks=2)
    records = [rank.step().record() for rank in (one, other)]
    return RecordedFile(source_of(str(path)), records, "options", 1.5)


def assert_equal(one: Any, other: Any) -> None:
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()
    elif is_dataclass(one):
        for field in fields(one):
            assert_equal(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, list):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_equal(*pair)
    else:
        assert one == other


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "rank3.json"


@pytest.fixture
def store(tmp_path: Path, trace: Path) -> RecordStore:
    """A store with the records of `trace`."""
    store = RecordStore(tmp_path / "store", "options")
    file = recorded(trace)
    for record in file.ranks:
        object.__setattr__(record, "source", file.source)
    store.add(file)
    return store


def test_what_is_added_is_found(store, trace):
    result = store.find(str(trace))
    file = recorded(trace)
    os.utime(trace, ns=(result.source.changed,) * 2)
    assert result.ranks[0].source == source_of(str(trace))
    for one, other in zip(result.ranks, file.ranks, strict=True):
        for field in fields(one):
            if field.name != "source":
                assert_equal(getattr(one, field.name), getattr(other, field.name))
    assert (result.options, result.seconds) == ("options", 1.5)
    assert store.problem(str(trace)) == ""


def test_a_file_without_ranks_is_kept_too(store, trace):
    store.add(RecordedFile(source_of(str(trace)), [], "options"))
    assert store.find(str(trace)).ranks == []


def test_changed_files_other_options_and_other_versions_are_read_again(store, trace, tmp_path):
    assert RecordStore(tmp_path / "store", "others").find(str(trace)) is None
    edit_facts(store.path_of(str(trace)), lambda facts: facts.update(version="0.0.0"))
    assert store.find(str(trace)) is None
    store.add(recorded(trace))
    assert store.find(str(trace)) is not None
    trace.write_text("another trace")
    assert store.find(str(trace)) is None
    assert store.problem(str(trace)) == ""


def test_files_of_one_name_in_two_directories_are_apart(store, trace, tmp_path):
    other = tmp_path / "other" / trace.name
    assert store.path_of(str(trace)) != store.path_of(str(other))
    assert store.path_of(str(trace)) == store.path_of(os.path.relpath(trace))


def test_a_directory_that_cannot_be_made_is_an_error(trace):
    trace.write_text("a file")
    with pytest.raises(StoreError, match="cannot be used as a directory of results"):
        RecordStore(trace / "store", "")


# Damaged and hostile results.


def contents(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as arrays:
        return dict(arrays)


def edit_facts(path: Path, change: Callable[[Any], object]) -> None:
    arrays = contents(path)
    facts = json.loads(arrays["facts"].tobytes())
    change(facts)
    arrays["facts"] = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    np.savez(path, **arrays)


def of_rank(name: str, value: Any) -> Callable[[Path], None]:
    return lambda path: edit_facts(path, lambda facts: facts["ranks"][0].update({name: value}))


def of_file(name: str, value: Any) -> Callable[[Path], None]:
    return lambda path: edit_facts(path, lambda facts: facts.update({name: value}))


def array(name: str, change: Callable[[np.ndarray], Any]) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        arrays = contents(path)
        arrays[name] = change(arrays[name])
        np.savez(path, **arrays)

    return edit


def pickled(path: Path) -> None:
    """An array of objects runs code when it is loaded as a pickle."""

    class Touches:
        def __reduce__(self) -> Any:
            return os.mkdir, (f"{path}.taken",)

    arrays = contents(path)
    arrays["0/calls/start"] = np.array([Touches()], object)
    np.savez(path, **arrays)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        path.unlink()
        make(path)

    return edit


def npy(n: int, is_empty: bool = False) -> bytes:
    """A file of one array, with or without its values."""
    data = io.BytesIO()
    header = {"descr": "<i8", "fortran_order": False, "shape": (n,)}
    np.lib.format.write_array_header_1_0(data, header)
    return data.getvalue() + (b"" if is_empty else bytes(8 * n))


def claims(n: int) -> Callable[[Path], None]:
    """The header of an array claims n values."""

    def edit(path: Path) -> None:
        with zipfile.ZipFile(path) as old:
            members = {name: old.read(name) for name in old.namelist()}
        members["0/calls/start.npy"] = npy(n, is_empty=True)
        with zipfile.ZipFile(path, "w") as new:
            for name, content in members.items():
                new.writestr(name, content)

    return edit


def first(value: Any) -> Callable[[np.ndarray], np.ndarray]:
    def change(values: np.ndarray) -> np.ndarray:
        values = values.copy()
        values[0] = value
        return values

    return change


LABEL = [2, "", "", "", "", ""]
SIGNATURE = ["all_reduce", 4096, "f32", "0 default_pg", [0, 1], 2, 0, -1, -1, "", "", ""]


def signature(place: int, value: Any) -> Callable[[Path], None]:
    return of_rank("signatures", [[*SIGNATURE[:place], value, *SIGNATURE[place + 1 :]]])


EDITS: dict[str, Callable[[Path], object]] = {
    "pickled": pickled,
    "cut": cut,
    "text": replaced(lambda path: path.write_text("hello")),
    "empty": replaced(Path.touch),
    "directory": replaced(Path.mkdir),
    "fifo": replaced(os.mkfifo),
    "endless": replaced(lambda path: path.symlink_to("/dev/zero")),
    "npy": replaced(lambda path: path.write_bytes(npy(3))),
    "a claim of 10^15 values": claims(10**15),
    "a claim of 10^10 values": claims(10**10),
    "facts as a list": array("facts", lambda _: np.frombuffer(b"[1]", np.uint8)),
    "facts nested": array("facts", lambda _: np.frombuffer(b"[" * 200_000, np.uint8)),
    "facts of digits": array("facts", lambda _: np.frombuffer(b"9" * 10_000, np.uint8)),
    "source": of_file("source", {"path": 5}),
    "source text": of_file("source", "x"),
    "seconds": of_file("seconds", "x"),
    "ranks": of_file("ranks", 5),
    "more ranks": of_file("ranks", [{}] * 3),
    **{
        f"{name} {value!r}"[:60]: of_rank(name, value)
        for name, value in [
            *[("format", 5), ("gpu", 5), ("gpu", None), ("warnings", [5]), ("warnings", 5)],
            *[("rank", "x"), ("rank", -1), ("rank", 1.5), ("rank", 1 << 70), ("rank", True)],
            *[("world_size", "x"), ("world_size", [1]), ("world_size", -3)],
            *[("place", "x"), ("n_places", "x"), ("n_places", None), ("pid", "x"), ("pid", [])],
            *[("device", "x"), ("device", None), ("n_gpus", "x"), ("begin", "x"), ("begin", None)],
            *[("begin", 1 << 70), ("labels", 5), ("labels", [[1]]), ("labels", [])],
            *[("labels", [["x", *LABEL[1:]]] * 9), ("labels", [[99, *LABEL[1:]]] * 9)],
            *[("labels", [[-1, *LABEL[1:]]] * 9), ("labels", [[2, 5, "", "", "", ""]] * 9)],
            *[("labels", [[1.5, *LABEL[1:]]] * 9), ("signatures", []), ("signatures", 5)],
            *[("signatures", [[1]]), ("steps", None), ("steps", 5)],
        ]
    },
    **{
        f"signature {place} {value!r}"[:60]: signature(place, value)
        for place, value in [
            *[(0, 5), (1, "x"), (1, -7), (1, 1 << 70), (1, 1.5), (2, None), (3, 5), (4, 5)],
            *[(4, ["x"]), (4, [-5]), (5, "x"), (6, "x"), (7, 1.5), (8, None), (9, 5), (11, [])],
        ]
    },
    **{
        f"{name} {what}": array(name, change)
        for name, what, change in [
            *[
                (f"0/{name}", what, change)
                for name in ("calls/start", "chain/time", "chain/ns", "steps/start", "chain/call")
                for what, change in {
                    "texts": lambda values: values.astype(str).astype("U"),
                    "short": lambda values: values[:-1],
                    "tables": lambda values: np.stack([values, values], axis=1),
                    "fractions": lambda values: values + 0.5,
                    "unknown": lambda values: np.full(len(values), np.nan),
                }.items()
            ],
            ("0/calls/signature", "large", first(99)),
            ("0/calls/signature", "negative", first(-1)),
            ("0/calls/start", "out of order", lambda values: values[::-1]),
            ("0/chain/time", "out of order", lambda values: values[::-1]),
            ("0/chain/time", "before the begin", lambda values: values - 10**12),
            ("0/chain/kind", "large", first(3)),
            ("0/chain/call", "large", first(99)),
            ("0/chain/call", "unknown call", lambda values: np.full(len(values), -1)),
            ("0/chain/call", "twice", lambda values: np.zeros(len(values), np.int32)),
            ("0/chain/blocked", "negative", first(-1)),
            ("0/chain/slack", "less than none", first(-2)),
            ("0/chain/rest", "negative", first(-1)),
            ("0/chain/lead", "negative", first(-1)),
            ("0/syncs/event", "none", lambda values: np.array([10**6])),
            ("0/chain/ns", "negative", first(-1)),
            ("0/chain/label", "large", first(99)),
            ("0/chain/label", "negative", first(-1)),
            ("0/chain/offsets", "negative", first(-1)),
            ("0/chain/offsets", "out of order", lambda values: values[::-1]),
            ("0/chain/offsets", "large", lambda values: values * 2),
            ("0/steps/start", "out of order", lambda values: values[::-1]),
            ("0/steps/end", "before the start", lambda values: values - 10**9),
        ]
    },
}


@pytest.mark.parametrize("edit", EDITS)
def test_damaged_results_are_not_used(edit, store, trace):
    file = store.path_of(str(trace))
    EDITS[edit](file)
    assert store.find(str(trace)) is None
    assert store.problem(str(trace)) == f"{file}: is damaged; {trace} is read again"
    assert not Path(f"{file}.taken").exists()
    store.add(recorded(trace))
    assert file.is_dir() or store.find(str(trace)) is not None


# In use.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    rank_files.run(folder, 3, slow=1)
    return folder


def open_here(folder: Path, store: Path) -> Ranks:
    return fastprof.open_ranks(folder, jobs=1, store=store)


@pytest.mark.usefixtures("forked_workers")
def test_a_second_reading_has_the_same_tables(folder, tmp_path):
    before = open_here(folder, tmp_path / "store")
    stored = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()}
    assert len(stored) == 3
    after = open_here(folder, tmp_path / "store")
    assert stored == {path.name: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()}
    assert after.facts() == before.facts()


@pytest.mark.usefixtures("forked_workers")
def test_damaged_and_pickled_results_are_read_again_with_a_warning(folder, tmp_path):
    store = tmp_path / "store"
    expected = open_here(folder, store).facts()
    one, other, _ = sorted(store.iterdir())
    cut(one)
    pickled(other)
    done = run_here("ranks", folder, "--store", store, "-j", "1", "--json")
    assert done.code == 0
    assert json.loads(done.out) == expected
    assert len([line for line in done.err.splitlines() if "is damaged" in line]) == 2
    assert not [path for path in store.iterdir() if path.is_dir()]
    again = run_here("ranks", folder, "--store", store, "-j", "1", "--json")
    assert "is damaged" not in again.err
    shutil.rmtree(store)
