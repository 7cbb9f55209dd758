"""Files being written and files that are not regular are read correctly or rejected in one line."""

import contextlib
import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import fastprof
from fastprof.errors import BadInputError
from fastprof.readers import dict_lines
from fastprof.readers.kineto import event_columns
from fastprof.readers.sqlite.database import Database
from support.commands import one_line, refusal, run, state_of
from support.exports import Export
from support.waiting import PATIENCE

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def export(path: Path, n: int = 3) -> Path:
    made = Export().push_pop(0, 10**6, "layer:a", tid=1)
    for i in range(n):
        made.launch(10 + i, 11 + i, corr=i, tid=1).kernel(20 + i, 25 + i, corr=i, name="k")
    return made.write(path)


@pytest.fixture
def file(tmp_path):
    return export(tmp_path / "x.sqlite")


# Another process that writes to the file and reports its progress.
WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    connection.execute(statement).fetchall()
print("there", flush=True)
sys.stdin.read()
import os
os._exit(0)  # as a program that is killed: nothing is cleaned up
"""
MORE = f"INSERT INTO {KERNELS} SELECT * FROM {KERNELS}"
SPILL = ["PRAGMA cache_size = 1", "PRAGMA cache_spill = 1", "BEGIN IMMEDIATE", *[MORE] * 10]


@contextlib.contextmanager
def written_by_another(path, *statements):
    """A second process that has run the statements and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), *statements],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == b"there\n"
        yield
    finally:
        process.stdin.close()
        process.wait(timeout=PATIENCE)
        process.stdout.close()


@pytest.mark.parametrize("mode", ["DELETE", "TRUNCATE", "PERSIST", "WAL"])
def test_a_file_with_an_open_transaction_that_reached_it_is_refused(mode, file, tmp_path):
    with written_by_another(file, f"PRAGMA journal_mode = {mode}", *SPILL):
        message = refusal(file, tmp_path)
    assert "another program is writing the file" in message
    assert "-wal" in message if mode == "WAL" else "-journal" in message


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_what_a_killed_writer_leaves_is_refused(mode, file, tmp_path):
    with written_by_another(file, f"PRAGMA journal_mode = {mode}", *SPILL):
        pass
    assert "was stopped while writing it" in refusal(file, tmp_path)
    sqlite3.connect(file).execute("SELECT count(*) FROM StringIds").fetchall()  # rolls it back
    if mode == "DELETE":
        assert len(fastprof.open(file)) == 3


def test_rows_that_are_only_in_the_log_are_not_passed_over(file, tmp_path):
    with written_by_another(file, "PRAGMA journal_mode = WAL", MORE):
        assert "x.sqlite-wal" in refusal(file, tmp_path)


def test_rows_are_read_when_the_log_is_in_the_file(file):
    after = "PRAGMA wal_checkpoint(TRUNCATE)"
    with written_by_another(file, "PRAGMA journal_mode = WAL", MORE, after):
        assert len(fastprof.open(file)) == 6


@pytest.mark.parametrize("lock", ["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_lock_without_a_change_does_not_matter(lock, file):
    with written_by_another(file, lock, "SELECT count(*) FROM StringIds"):
        assert len(fastprof.open(file)) == 3


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
@pytest.mark.parametrize("links", [1, 2])
def test_a_log_beside_the_file_that_a_link_leads_to_is_seen(suffix, links, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "near").mkdir()
    origin = export(tmp_path / "far" / "x.sqlite")
    Path(f"{origin}{suffix}").write_bytes(b"x" * 100)
    link = tmp_path / "near" / "y.sqlite"
    link.symlink_to(origin)
    if links == 2:
        (tmp_path / "near" / "z.sqlite").symlink_to(link)
        link = tmp_path / "near" / "z.sqlite"
    assert f"x.sqlite{suffix} exists: another program" in refusal(link, tmp_path)


def test_a_link_is_read(file, tmp_path):
    (tmp_path / "y").symlink_to(file)
    (tmp_path / "z").symlink_to("y")
    assert len(fastprof.open(tmp_path / "z")) == 3


def test_a_ring_of_links_is_one_line(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "symbolic links" in refusal(tmp_path / "a", tmp_path)


# Files that change while they are read.


def changes(path):
    """Ways to change a file, by name."""

    def grow():
        with path.open("ab") as more:
            more.write(b"\n" * 4096)

    return {
        "grows": grow,
        "shrinks": lambda: os.truncate(path, path.stat().st_size // 2),
        "is emptied": lambda: os.truncate(path, 0),
        "is written": lambda: path.write_bytes(path.read_bytes()),
    }


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """An export large enough that readers report progress."""
    return export(tmp_path_factory.mktemp("large") / "x.sqlite", 20_000)


@pytest.mark.parametrize("way", ["", "sqlite"])
@pytest.mark.parametrize("change", changes(Path()))
def test_an_export_that_changes_while_it_is_read_is_refused(
    change, way, large, tmp_path, monkeypatch
):
    monkeypatch.setenv("FASTPROF_SCAN", way)
    path = Path(shutil.copy(large, tmp_path))
    begun = []

    def progress(table, rows, total):
        if not begun:
            begun.append(table)
            changes(path)[change]()

    with pytest.raises(BadInputError):
        fastprof.open(path, progress)
    assert begun


def test_a_log_that_appears_while_a_file_is_read_is_seen(large, tmp_path):
    path = Path(shutil.copy(large, tmp_path))

    def progress(table, rows, total):
        Path(f"{path}-journal").write_bytes(b"x")

    with pytest.raises(BadInputError, match="exists: another program"):
        fastprof.open(path, progress)


def test_a_file_that_is_replaced_between_two_looks_is_refused(file, tmp_path):
    other = export(tmp_path / "other.sqlite", 7)
    with Database(file) as first:
        shutil.copystat(file, other)
        os.replace(other, file)
        with pytest.raises(BadInputError, match="was changed while it was read"):
            first.another()


LINE = b"{'kShortName': 'k', 'kDuration': 5}\n"


def trace_text() -> bytes:
    events = [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": i, "dur": 1, "args": {}}
        for i in range(60_000)
    ]
    return json.dumps({"traceEvents": events}).encode()


@pytest.mark.parametrize("change", changes(Path()))
def test_a_trace_of_torch_profiler_that_changes_while_it_is_read_is_refused(change, tmp_path):
    path = tmp_path / "trace.json"
    path.write_bytes(trace_text())
    told = []

    def progress(what, n, total):
        if not told:
            told.append(n)
            changes(path)[change]()

    with pytest.raises(BadInputError, match="was changed while it was read"):
        event_columns.read(path, "trace.json", progress)


def test_dict_lines_that_are_still_written_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "net.dict"
    path.write_bytes(LINE * 10)
    monkeypatch.setattr(dict_lines, "BLOCK_SIZE", 64)
    fill = dict_lines._fill

    def fill_and_grow(file, block):
        count = fill(file, block)
        with path.open("ab") as more:
            more.write(LINE if path.stat().st_size < 1000 else b"")
        return count

    monkeypatch.setattr(dict_lines, "_fill", fill_and_grow)
    with pytest.raises(BadInputError, match="was changed while it was read"):
        dict_lines.read(path, "net.dict")


# Files that are not regular.


@pytest.fixture
def pipe(tmp_path):
    """A named pipe, and how to write into it from another thread."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    threads = []

    def write(content: bytes) -> Path:
        def feed() -> None:
            with contextlib.suppress(BrokenPipeError), path.open("wb") as file:
                file.write(content)

        threads.append(threading.Thread(target=feed))
        threads[-1].start()
        return path

    yield write
    for thread in threads:
        thread.join(timeout=PATIENCE)


def test_dict_lines_are_read_from_a_named_pipe(pipe):
    done = run("prof", "-c", "kernel,sil", pipe(LINE * 3))
    assert (done.returncode, done.stdout) == (0, b"Kernel Sil(ns)\n" + b"k 5\n" * 3)


@pytest.mark.parametrize("kind", ["export", "trace", "gzip"])
def test_a_trace_in_a_named_pipe_is_refused(kind, pipe, file):
    text = trace_text()
    content = {"export": file.read_bytes(), "trace": text, "gzip": gzip.compress(text)}[kind]
    assert "expected a dict line" in one_line(run("prof", pipe(content)))


def test_devices_are_read_as_what_is_in_them(tmp_path):
    assert run("parse", "/dev/null").returncode == 0
    for endless in ("/dev/zero", "/dev/full", "/dev/urandom"):
        if os.path.exists(endless):
            assert f"{endless}: line 1" in one_line(run("prof", endless))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(file, tmp_path):
    file.chmod(0)
    assert "Permission denied" in one_line(run("prof", file))


def test_a_file_that_cannot_be_read_is_named():
    if not os.path.exists("/proc/self/mem"):
        pytest.skip("there is no /proc")
    assert "/proc/self/mem: cannot be read" in one_line(run("prof", "/proc/self/mem"))


def test_an_export_that_nobody_may_write_in_a_folder_that_nobody_may_is_left_alone(file, tmp_path):
    before = state_of(tmp_path)
    file.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert run("prof", "--csv", file).returncode == 0
    finally:
        tmp_path.chmod(0o755)
    assert state_of(tmp_path) == before
