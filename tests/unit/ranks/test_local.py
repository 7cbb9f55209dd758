"""Worker processes of a batch that die, run out of memory or are slow."""

import os
import signal
import sys
import threading

import pytest

import fastprof
from fastprof.api.batch import LEAST_MEMORY
from fastprof.ranks import local as process
from fastprof.ranks.local import cause
from support import processes, rank_files
from support.rank_files import CALLS
from support.waiting import is_alive, wait_for

pytestmark = pytest.mark.usefixtures("forked_workers")


@pytest.fixture
def new_interpreters(forked_workers, monkeypatch):
    """Let workers be new interpreters, as they are for users."""
    monkeypatch.setattr(process, "_PROGRAM", forked_workers)


@pytest.fixture
def folder(tmp_path):
    """Five ranks; rank 2 calls `mine.stop`."""
    folder = tmp_path / "run"
    rank_files.run(folder, 5, stops=2)
    return folder


def costs(folder, body):
    return rank_files.costs(folder.parent / "mine.py", body, folder.parent / "flag")


def check_whole(found, seen):
    """Nothing is lost, and nothing counted twice."""
    assert found.failures == []
    assert [done.n for done in seen] == [1, 2, 3, 4, 5]
    assert len({done.result.path for done in seen}) == 5
    assert found.ranks["kernels"].tolist() == [3 * CALLS] * 5
    assert found.table("op")["kernels"].sum() == 15 * CALLS


def test_a_file_whose_process_dies_is_read_again(new_interpreters, folder):
    killing = costs(folder, "if first: os.kill(os.getpid(), signal.SIGKILL)")
    seen = []
    batch = fastprof.batch(folder, jobs=2, ops=[killing], progress=seen.append)
    check_whole(batch, seen)
    assert os.path.basename(seen[-1].result.path) == "rank2.sqlite"  # last, by itself


def test_a_process_that_is_killed_from_outside_loses_nothing(folder):
    slow = costs(folder, "if first: time.sleep(3600)")
    flag = folder.parent / "flag"

    def kill():
        wait_for(flag.exists)
        os.kill(int(flag.read_text()), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    seen = []
    batch = fastprof.batch(folder, jobs=2, ops=[slow], progress=seen.append)
    thread.join()
    check_whole(batch, seen)


def test_a_file_whose_process_always_dies_is_one_bad_file(folder):
    dying = costs(folder, "os.kill(os.getpid(), signal.SIGSEGV)")
    batch = fastprof.batch(folder, jobs=2, ops=[dying])
    (failure,) = batch.failures
    assert failure.error == f"{failure.path}: the worker process was killed by SIGSEGV"
    assert batch.ranks["file"].tolist()[-1] == str(folder / "rank2.sqlite")
    assert batch.ranks["rank"].tolist() == [0, 1, 3, 4, None]


def test_the_end_of_a_process_says_what_may_have_been_the_cause():
    assert "SIGKILL: probably out of memory" in cause(-signal.SIGKILL)
    assert "exited with code 3" in cause(3)
    assert "signal 99" in cause(-99)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is bounded on Linux only")
def test_a_file_that_needs_too_much_memory_is_one_bad_file(new_interpreters, folder):
    (folder / "rank2.sqlite").unlink()
    rank_files.export(2).push_pop(5, 6, "x" * (100 << 20), tid=1).write(folder / "rank2.sqlite")
    batch = fastprof.batch(folder, jobs=1, memory=LEAST_MEMORY)
    (failure,) = batch.failures
    assert failure.path == str(folder / "rank2.sqlite")
    assert "more memory" in failure.error
    assert len(batch.summaries) == 4


def test_what_the_users_costs_print_does_not_disturb(folder, capfd):
    printing = costs(folder, "print('hello from costs', flush=True)")
    assert fastprof.batch(folder, ops=[printing]).failures == []
    said = capfd.readouterr()
    assert "hello" not in said.out
    assert "hello" in said.err


def test_an_error_in_the_callers_function_ends_the_processes(new_interpreters, folder):
    slow = costs(folder, "if first: time.sleep(3600)")
    flag = folder.parent / "flag"

    def stop(done):
        wait_for(flag.exists)
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        fastprof.batch(folder, jobs=2, ops=[slow], progress=stop)
    assert not is_alive(int(flag.read_text()))


def test_a_script_without_a_main_guard_works(folder, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"import fastprof\nfound = fastprof.batch({str(folder)!r}, jobs=2)\n"
        "print(found.ranks.n_rows)\n"
    )
    (tmp_path / "pickle.py").write_text("raise SystemExit('the wrong pickle')\n")
    done = processes.python(script.name, cwd=tmp_path, text=False)
    # Python puts the script's directory first.
    assert b"wrong pickle" in done.stderr
    (tmp_path / "pickle.py").rename(folder / "pickle.py")
    done = processes.python(script, cwd=folder, text=False)
    assert (done.stdout, done.stderr) == (b"5\n", b"")


def test_no_process_can_be_started_is_said(folder, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(OSError, match="nonexistent"):
        fastprof.batch(folder, jobs=2)
