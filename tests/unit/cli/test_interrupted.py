"""Signals, full disks and closed pipes at any time: an output file is complete or absent."""

import fcntl
import importlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench.generate import generate

from fastprof._system.output_file import output_file
from support import processes, rank_files
from support.commands import Forked, command, run
from support.exports import Export
from support.hypothesis_profiles import IS_FULL
from support.waiting import PATIENCE, wait_for

OLD = b"old"
# The fast profile: one moment per signal and format, in a fork of the command server. The full
# one: seven moments, in a new interpreter.
N_MOMENTS, N_ROUNDS = (7, 2) if IS_FULL else (1, 1)


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Large enough that reading and writing take a while."""
    path = tmp_path_factory.mktemp("trace") / "x.sqlite"
    generate(path, 60_000, 1)
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    export = Export().launch(0, 1, corr=1, tid=1).kernel(2, 3, corr=1, name="k" * 500)
    for i in range(2000):
        export.kernel(10 + i, 20 + i, corr=1)
    return export.write(tmp_path_factory.mktemp("small") / "x.sqlite")


WRITING = {
    "dict": ["parse"],
    "parquet": ["parse", "--format", "parquet"],
    "csv": ["prof", "--csv"],
    "width": ["prof", "-w", "200"],
}


def seconds_of(*words):
    """How long a command takes that is not interrupted."""
    begin = time.monotonic()
    options = {"env": os.environ} if IS_FULL else {}  # with the start of an interpreter
    assert run(*words, **options).returncode == 0
    return time.monotonic() - begin


def interrupted(number, seconds, *words):
    """A command that gets a signal after so many seconds: a new interpreter in the full profile."""
    if not IS_FULL:
        fork = Forked(*words)
        time.sleep(seconds)
        fork.send_signal(number)
        return fork.ended()
    with subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        time.sleep(seconds)
        process.send_signal(number)
        output, message = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(words, process.returncode, output, message)


@pytest.fixture(scope="module", params=WRITING)
def writing(request, trace, tmp_path_factory):
    """A command, its output without an interruption, and its run time."""
    if request.param == "parquet":
        pytest.importorskip("pyarrow")
    words = [*WRITING[request.param], trace]
    out = tmp_path_factory.mktemp("whole") / "out"
    seconds = seconds_of(*words, "-o", out)
    return words, out.read_bytes(), seconds


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_at_any_moment_leaves_the_old_file_or_the_whole_new_one(number, writing, tmp_path):
    words, whole, seconds = writing
    moments = random.Random(f"{number} {words[:-1]}")
    out = tmp_path / "out"
    ended = set()
    for _ in range(N_MOMENTS):
        out.write_bytes(OLD)
        done = interrupted(number, moments.uniform(0, 1.05 * seconds), *words, "-o", out)
        ended.add(done.returncode)
        assert done.stdout == b""
        content = out.read_bytes()
        assert content in (OLD, whole)
        if done.returncode == 0:
            assert content == whole
        if number != signal.SIGKILL:
            assert os.listdir(tmp_path) == ["out"]
    # Before the handlers are set, a signal ends the program as usual.
    assert ended <= {0, 130, -number, 1 if number == signal.SIGINT else 0}


def test_a_signal_at_any_moment_leaves_whole_summaries(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    rank_files.run(tmp_path / "run", 2)
    words = ["batch", tmp_path / "run", "--store", tmp_path / "store", "-j", "2"]
    seconds = seconds_of(*words)
    moments = random.Random(5)
    for number in [signal.SIGINT, signal.SIGTERM, signal.SIGKILL] * N_ROUNDS:
        shutil.rmtree(tmp_path / "store", ignore_errors=True)
        interrupted(number, moments.uniform(0.3 * seconds, seconds), *words)
        for path in (tmp_path / "store").glob("*.parquet"):
            assert parquet.read_table(path).schema.metadata
        if number != signal.SIGKILL:
            assert list((tmp_path / "store").glob("*.part")) == []


def test_a_second_signal_does_not_keep_the_first_from_cleaning_up(trace, tmp_path):
    for pause in (0, 0.001, 0.01):
        process = subprocess.Popen(
            command("parse", trace, "-o", tmp_path / "out"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(lambda process=process: os.listdir(tmp_path) or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        time.sleep(pause)
        process.send_signal(signal.SIGTERM)
        # Once all is removed, a signal may end the process as it ends every program.
        assert process.wait(timeout=PATIENCE) in (130, 0, -signal.SIGTERM)
        assert os.listdir(tmp_path) == (["out"] if process.returncode == 0 else [])
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()


# Files left by a killed process.


def leave(path: Path, seconds_ago: float = 3600) -> Path:
    path.write_bytes(b"half")
    os.utime(path, (time.time() - seconds_ago,) * 2)
    return path


def test_what_a_killed_process_left_is_removed_by_the_next_and_nothing_else(small, tmp_path):
    left, living = (
        leave(tmp_path / ".out.12-0123abcd.part"),
        leave(tmp_path / ".out.12-4567cdef.part"),
    )
    begun = leave(tmp_path / ".out.12-89abcdef.part", 0)
    with living.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as one that still writes
        assert run("parse", small, "-o", tmp_path / "out").returncode == 0
        assert living.read_bytes() == b"half"
    assert begun.exists() and not left.exists()


@pytest.mark.parametrize(
    "name", [".out.part", ".out.12.part", ".other.12-0123abcd.part", ".out.12-0123abcd.part.gz"]
)
def test_files_of_similar_names_are_left_alone(name, tmp_path):
    other = leave(tmp_path / name)
    with output_file(tmp_path / "out") as file:
        file.write(b"new")
    assert other.exists()


def test_a_link_of_such_a_name_is_left_alone(tmp_path):
    (tmp_path / "far").mkdir()
    target = leave(tmp_path / "far" / "file")
    link = tmp_path / ".out.12-0123abcd.part"
    link.symlink_to(target)
    with output_file(tmp_path / "out") as file:
        file.write(b"new")
    assert target.exists()
    assert link.is_symlink()


def test_two_writers_of_one_file_give_that_of_one_of_them(tmp_path):
    with output_file(tmp_path / "out") as first, output_file(tmp_path / "out") as second:
        first.write(b"first")
        second.write(b"second")
    assert (tmp_path / "out").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["out"]


# Full disks and closed pipes.


def limited(size: int):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("name", WRITING)
def test_a_disk_that_is_full_at_any_byte_leaves_the_old_file(name, small, tmp_path):
    if name == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / "out"
    assert run(*WRITING[name], small, "-o", out).returncode == 0
    size = out.stat().st_size
    for most in (0, 1, size // 2, size - 1):
        out.write_bytes(OLD)
        done = run(*WRITING[name], small, "-o", out, file_size=most)
        message = done.stderr.decode().splitlines()[-1]
        assert done.returncode == 1
        assert message.startswith("fastprof: ")
        assert "cannot be written: File too large" in message
        assert out.read_bytes() == OLD
        assert os.listdir(tmp_path) == ["out"]


def test_a_store_on_a_full_disk_is_one_line_and_no_file(tmp_path):
    pytest.importorskip("pyarrow")
    rank_files.run(tmp_path / "run", 1)
    words = ["batch", tmp_path / "run", "--store", tmp_path / "store", "-j", "1"]
    done = run(*words, file_size=100)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert b"cannot be written" in done.stderr
    assert os.listdir(tmp_path / "store") == []


def every_command(small: Path, tmp_path: Path) -> list[list[object]]:
    rank_files.run(tmp_path / "run", 1)
    return [
        ["parse", small],
        ["parse", small, "--format", "jsonl"],
        ["prof", small],
        ["prof", small, "--csv"],
        ["prof", small, "--json"],
        ["prof", small, "-w", "150"],
        ["info", small],
        ["info", small, "--json"],
        ["batch", tmp_path / "run"],
        ["nsys", "--print", "--", "python", "train.py"],
        ["--help"],
        ["prof", "--help"],
        ["--version"],
    ]


def test_nobody_who_reads_is_no_error_of_any_command(small, tmp_path):
    outcomes = {}
    for words in every_command(small, tmp_path):
        read, write = os.pipe()
        os.close(read)
        done = run(*words, stdout=write)
        os.close(write)
        if done.returncode != 0 or b"rror" in done.stderr:
            outcomes[" ".join(map(str, words))] = done.returncode, done.stderr[-300:]
    assert outcomes == {}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_standard_output_that_is_full_is_one_line_of_every_command(small, tmp_path):
    outcomes = {}
    for words in every_command(small, tmp_path)[:-3]:  # argparse ignores it
        with open("/dev/full", "wb") as full:
            done = run(*words, stdout=full)
        last = done.stderr.decode().splitlines()[-1:]
        if done.returncode != 1 or "No space left" not in last[0] or b"Traceback" in done.stderr:
            outcomes[" ".join(map(str, words))] = done.returncode, done.stderr[-300:]
    assert outcomes == {}


def test_the_page_of_operators_is_written_whole(tmp_path):
    docs = Path(__file__).resolve().parents[3] / "docs"
    shutil.copy(docs / "make_ops.py", tmp_path)
    (tmp_path / "ops.md").write_bytes(OLD)
    # -B: Python would cut the files of modules off.
    words = [sys.executable, "-B", tmp_path / "make_ops.py"]
    assert subprocess.run(words, preexec_fn=limited(1000), stderr=subprocess.DEVNULL).returncode
    assert (tmp_path / "ops.md").read_bytes() == OLD
    subprocess.run(words, check=True)
    assert (tmp_path / "ops.md").read_bytes() == (docs / "ops.md").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["make_ops.py", "ops.md"]


IN_A_TEXT = """
import os, signal, sys
from fastprof.cli import _guarded
sys.exit(_guarded(lambda: eval("[os.kill(os.getpid(), int(sys.argv[1])), [i for i in (1, 2)]]")))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_within_an_evaluated_text_gives_the_same_exit_code(number, tmp_path):
    (tmp_path / "evaluated.py").write_text(IN_A_TEXT)
    words = [sys.executable, "-m", "evaluated", str(int(number))]
    done = processes.ran(words, cwd=tmp_path, text=False)
    assert (done.returncode, done.stderr) == (130, b"fastprof: interrupted\n")


HELD = """
import os, signal, subprocess, sys
from fastprof._system.signals import Interruption
from fastprof._system.signals import deferred
running = None
with Interruption():
    try:
        with deferred():
            os.kill(os.getpid(), getattr(signal, sys.argv[1]))
            running = subprocess.Popen([sys.executable, "-c", "pass"])
        print("not interrupted")
    except KeyboardInterrupt:
        print("interrupted", running is not None)
        running.wait()
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_program_that_is_being_started_is_known_when_a_signal_takes_effect(number):
    words = [sys.executable, "-c", HELD, number]
    assert processes.ran(words, text=False).stdout == b"interrupted True\n"


LOST = """
import os, signal, sys, time, weakref
from fastprof.cli import _guarded

class Kept: pass

def callback(_):
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    [i for i in (1, 2)]

def run():
    kept = Kept()
    weak = weakref.ref(kept, callback)
    del kept
    time.sleep(600)
    print("not interrupted")
    return 0

sys.exit(_guarded(run))
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_signal_where_python_ignores_exceptions_is_not_lost(number):
    words = [sys.executable, "-c", LOST, number]
    done = processes.ran(words, text=False)
    assert (done.returncode, done.stdout) == (130, b"")
    assert done.stderr == b"fastprof: interrupted\n"


IMPORTING = """
import signal, sys, time, types
from fastprof._system.signals import Interruption
code = types.SimpleNamespace(co_filename=importing)
number = getattr(signal, sys.argv[1])
with Interruption() as signals:
    try:
        signals._interrupt(number, types.SimpleNamespace(f_code=code))
        time.sleep(600)
    except KeyboardInterrupt:
        print("interrupted", signals._n_received, signal.SIGALRM in signals._before)
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_signal_in_the_import_of_a_module_takes_effect_after_it(number):
    importing = importlib.import_module.__globals__["_bootstrap"]._gcd_import.__code__.co_filename
    words = [sys.executable, "-c", f"importing = {importing!r}\n{IMPORTING}", number]
    done = processes.ran(words, text=False)
    assert done.stdout == b"interrupted 1 True\n"
