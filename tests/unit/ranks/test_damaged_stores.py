"""Hostile and damaged files in `fastprof-runs`, stores and baselines: a line each, no more."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastprof.analysis.diff.captures import sides_of
from fastprof.analysis.diff.store import Baseline
from fastprof.api.batch import batch
from fastprof.ranks.store import Store
from fastprof.readers.beside import unrecorded_beside
from support import old_baselines
from support.every_command import run_here
from support.exports import Export

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

DAMAGED = {
    "text": b"hello",
    "nested": b'{"a":' * 100_000,
    "digits": b'{"seconds":' + b"9" * 10_000 + b"}",
    "a list": b"[1]",
    "bytes": b"\xff\xfe\x00",
    "empty": b"",
}
ODD = (
    *(
        '{"seconds":"x"}',
        '{"processes":5}',
        '{"processes":[{"recordings":5}]}',
        '{"processes":[1]}',
    ),
    *('{"git":"abc"}', '{"git":{"commit":5}}', '{"command":5}', '{"command":null}'),
    *('{"seconds":1e400}', '{"exit_code":1' + "0" * 36 + "}", '{"exit_code":[1]}'),
    *('{"step_ns":{"a":1}}', '{"processes":[{"recordings":[{"n_steps":"9"}]}]}', '{"seconds":NaN}'),
    r'{"command":["\u001b]0;pwned\u0007","\u202e"],"started":"\u001b[31mred"}',
)


def run_of(home: Path, name: str, content: bytes) -> Path:
    (home / name).mkdir(parents=True)
    (home / name / "run.json").write_bytes(content)
    return home / name


@pytest.mark.parametrize("kind", [*DAMAGED, "fifo", "directory", "endless"])
def test_a_damaged_run_is_one_line_and_hides_no_other(kind, tmp_path):
    run_of(tmp_path, "good", b'{"seconds": 12.5, "command": ["train.py"]}')
    bad = run_of(tmp_path, "bad", DAMAGED.get(kind, b"")) / "run.json"
    if kind not in DAMAGED:
        bad.unlink()
        make: dict[str, Callable[[], None]] = {
            "fifo": lambda: os.mkfifo(bad),
            "directory": bad.mkdir,
            "endless": lambda: bad.symlink_to("/dev/zero"),
        }
        make[kind]()
    done = run_here("run", "--list", "-o", tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "12.5" in done.out
    told = [line for line in done.out.splitlines() if str(bad) in line]
    assert len(told) == 1, done.out
    (bad.parent / "trace.sqlite").write_bytes(b"")
    assert unrecorded_beside(bad.parent / "trace.sqlite") is None


@pytest.mark.parametrize("facts", ODD)
def test_facts_of_other_types_are_unknown(facts, tmp_path):
    run_of(tmp_path, "odd", facts.encode())
    run_of(tmp_path, "good", b'{"seconds": 12.5}')
    done = run_here("run", "--list", "-o", tmp_path)
    assert (done.code, done.err, "12.5" in done.out) == (0, "", True)
    assert done.out.replace("\n", "").isprintable()
    assert not {"nan", "inf"} & {*done.out.split()}


# Stored results.


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two traces and their results."""
    folder = tmp_path_factory.mktemp("stored")
    for rank in range(2):
        export = Export().push_pop(0, 100, "layer:a", tid=1)
        for i in range(3):
            export.launch(10 * i, 10 * i + 2, corr=i, tid=1).kernel(10 * i + 3, 10 * i + 9, corr=i)
        export.write(folder / f"rank{rank}.sqlite")
    batch(folder, jobs=1, store=folder / "store")
    return folder


def properties(key: str, value: Any) -> Callable[[Any], Any]:
    def change(table: Any) -> Any:
        known = json.loads(table.schema.metadata[b"fastprof"])
        process = known["processes"][0]
        (process if key in process else known)[key] = value
        return table.replace_schema_metadata({b"fastprof": json.dumps(known)})

    return change


def column(name: str, values: Callable[[int], Any]) -> Callable[[Any], Any]:
    def change(table: Any) -> Any:
        place = table.column_names.index(name)
        return table.set_column(place, name, arrow.array(values(len(table))))

    return change


EDITS: dict[str, Callable[[Any], Any]] = {
    "process": column("process", lambda n: [10**6] * n),
    "process -1": column("process", lambda n: [-1] * n),
    "kernels text": column("kernels", lambda n: ["x"] * n),
    "time": column("time", lambda n: [-(2**63)] * n),
    "op numbers": column("op", lambda n: list(range(n))),
    "op lists": column("op", lambda n: [["a"]] * n),
    "start numbers": column("start", lambda n: [1] * n),
    "deep": lambda table: table.replace_schema_metadata({b"fastprof": "[" * 200_000}),
    "no metadata": lambda table: table.replace_schema_metadata({}),
    **{
        f"{key} {value!r}": properties(key, value)
        for key, value in [
            *[("processes", 5), ("processes", []), ("coverage", [1]), ("coverage", {"op": "x"})],
            *[("gpu_time", "x"), ("rank", "x"), ("rank", -1), ("world_size", "x"), ("steps", None)],
            *[("warnings", 5), ("warnings", [5]), ("format", 5), ("seconds", "x"), ("pid", "x")],
            *[("devices", "ab"), ("span", "ab"), ("span", [1, 2, 3]), ("busy", "x"), ("new", 1)],
        ]
    },
}


@pytest.mark.parametrize("edit", [*EDITS, "directory", "fifo", "text", "link"])
def test_a_damaged_result_is_not_used(edit, stored, tmp_path):
    trace = str(stored / "rank0.sqlite")
    (made,) = (stored / "store").glob("rank0*")
    table = parquet.read_table(made)
    options = json.loads(table.schema.metadata[b"fastprof"])["options"]
    store = Store(tmp_path, options)
    file = store.path_of(trace)
    shutil.copy(made, file)
    summary = store.find(trace)
    file.unlink()
    make: dict[str, Callable[[], object]] = {
        "directory": file.mkdir,
        "fifo": lambda: os.mkfifo(file),
        "text": lambda: file.write_text("hello"),
        "link": lambda: file.symlink_to("/dev/zero"),
    }
    make.get(edit, lambda: parquet.write_table(EDITS[edit](table), file))()
    assert store.find(trace) is None
    assert store.problem(trace) == f"{file}: is damaged; {trace} is read again"
    store.add(summary)
    assert file.is_dir() or store.find(trace) is not None


def test_batch_prints_the_line_and_goes_on(stored):
    folder, (file,) = stored, stored.joinpath("store").glob("rank0*")
    file.write_bytes(b"x")
    done = run_here("batch", folder, "--store", folder / "store", "-j", "1", "--table", "ranks")
    assert done.code == 0
    assert len([line for line in done.err.splitlines() if "is damaged" in line]) == 1
    assert parquet.read_table(file).num_rows


# Baselines.


@pytest.mark.parametrize("content", DAMAGED.values())
def test_a_damaged_baseline_is_one_line(content, stored, tmp_path):
    trace, store = stored / "rank0.sqlite", tmp_path / "store"
    assert run_here("diff", "--baseline", store, "--save", trace).code == 0
    (store / "history.sqlite").write_bytes(content)
    for words in (["diff", "--baseline", store, trace], ["history", store]):
        done = run_here(*words)
        assert (done.code, done.err.count("\n")) == (1, 1), done.err
        why = "is damaged or not a store" if content else "contains no baseline"
        assert why in done.err
    assert (store / "history.sqlite").read_bytes() == content


def test_metadata_of_a_baseline_that_is_nested_or_of_other_types(stored, tmp_path):
    store, trace = tmp_path / "store", stored / "rank0.sqlite"
    (side,) = sides_of([str(trace)])
    file = old_baselines.write(Baseline(side), store) / "baseline.parquet"
    table = parquet.read_table(file)
    known = json.loads(table.schema.metadata[b"fastprof_baseline"])
    for change in ("[" * 200_000, "[]", '"x"', *(
        json.dumps({**known, key: value})
        for key in known
        for value in (5, [[]])
    )):  # fmt: skip
        metadata = {b"fastprof_baseline": change}
        parquet.write_table(table.replace_schema_metadata(metadata), file)
        (store / "history.sqlite").unlink(missing_ok=True)
        done = run_here("diff", "--baseline", store, trace)
        assert done.code in (0, 1), change[:100]
        assert done.code == 0 or done.err.count("\n") == 1, done.err
