"""Calls in a fork of this process. Each test is a program: one with threads does not fork."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastprof.analysis.diff import captures
from fastprof.errors import BadInputError
from support import processes
from support.training_files import call, nsys
from support.waiting import PATIENCE, is_alive, wait_for

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
    reason="forks on Linux only, with at least two cores",
)
IMPORTS = "import os, sys, time, json, threading; from fastprof._system.forked import ForkedCall\n"


def program(text: str, *words: object) -> list[str]:
    return [sys.executable, "-c", IMPORTS + text, *map(str, words)]


def ran(text: str, *words: object, **variables: str) -> tuple[Any, str]:
    """What a program prints, as JSON, and its stderr."""
    done = processes.ran(program(text, *words), env={**os.environ, **variables})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_the_function_runs_in_a_fork_that_sees_the_objects_of_now():
    (same, result), _ = ran(
        "seen = [1]\n"
        "with ForkedCall(lambda: (os.getpid(), seen)) as forked:\n"
        "    seen.append(2)\n"
        "    pid, found = forked.result()\n"
        "print(json.dumps([pid == os.getpid(), found]))"
    )
    assert (same, result) == (False, [1])


def test_what_the_fork_prints_comes_with_its_result():
    _, printed = ran(
        "with ForkedCall(lambda: print('second', file=sys.stderr)) as forked:\n"
        "    time.sleep(0.1)\n"
        "    print('first', file=sys.stderr)\n"
        "    forked.result()\n"
        "print('null')"
    )
    assert printed.split() == ["first", "second"]


@pytest.mark.parametrize(
    "elsewhere",
    ["1 / 0", "os._exit(3)", "os.kill(os.getpid(), 9)", "lambda: 0"],
    ids=["an error", "an exit", "a kill", "no pickle"],
)
def test_a_fork_that_gives_no_result_is_replaced_by_a_call_here(elsewhere):
    result, printed = ran(
        "pid = os.getpid()\n"
        f"with ForkedCall(lambda: pid if os.getpid() == pid else ({elsewhere})) as forked:\n"
        "    print(json.dumps(forked.result() == pid))"
    )
    assert (result, printed) == (True, "")


def test_a_process_with_threads_does_not_fork():
    result, _ = ran(
        "end = threading.Event(); thread = threading.Thread(target=end.wait); thread.start()\n"
        "with ForkedCall(os.getpid) as forked:\n"
        "    print(json.dumps(forked.result() == os.getpid()))\n"
        "end.set()"
    )
    assert result is True


def test_leaving_ends_the_fork():
    pid, _ = ran(
        "with ForkedCall(lambda: time.sleep(1e6)) as forked:\n    pid = forked._process.pid\n"
        "print(pid)"
    )
    assert not is_alive(pid)


def test_ctrl_c_ends_both_at_once_and_only_the_caller_says_so():
    text = (
        "with ForkedCall(lambda: time.sleep(1e6)) as forked:\n"
        "    print(forked._process.pid, flush=True)\n"
        "    forked.result()"
    )
    started = subprocess.Popen(
        program(text), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    fork = int(started.stdout.readline())
    os.killpg(started.pid, signal.SIGINT)
    printed = started.communicate(timeout=PATIENCE)[1]
    assert printed.count("KeyboardInterrupt") == 1
    wait_for(lambda: not is_alive(fork))


# `fastprof.diff`

DIFF = """
import fastprof
from fastprof.analysis.diff import captures
if sys.argv[1] == "fork":
    captures._LARGE = 0
here, opened_here = os.getpid(), []
def opened(path):
    print("opens", path, file=sys.stderr)
    if os.getpid() == here:
        opened_here.append(path)
    return fastprof.open(path, copies=True)
try:
    found = fastprof.diff(*sys.argv[2:4], by="op", opened=opened).table().to_json()
except fastprof.FastprofError as error:
    found = [type(error).__name__, str(error)]
print(json.dumps([found, opened_here]))
"""


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    work = [call("net:in", "relu", 20_000), call("net:in", "mm", 40_000)]
    return [nsys(tmp_path / f"{name}.sqlite", [work[:n]] * 4) for n, name in ((1, "a"), (2, "b"))]


def test_a_fork_measures_the_second_capture(files):
    (expected, both), printed = ran(DIFF, "here", *files)
    assert both == [*map(str, files)]
    (result, first), printed_as_well = ran(DIFF, "fork", *files)
    assert first == both[:1]
    assert (result, printed_as_well) == (expected, printed)
    assert len(json.loads(expected)["rows"]) > 1


@pytest.mark.parametrize("missing", [(0,), (1,), (0, 1)])
def test_errors_are_those_without_a_fork(files, missing):
    for each in missing:
        files[each].unlink()
    (result, _), _ = ran(DIFF, "fork", *files)
    assert result[0] == BadInputError.__name__
    assert str(files[missing[0]]) in result[1]


def test_small_captures_are_measured_here(files):
    assert max(file.stat().st_size for file in files) < captures._LARGE
    (_, opened), _ = ran(DIFF, "here", *files)
    assert len(opened) == 2


def test_captures_that_do_not_fit_in_memory_together_are_measured_in_turn(files):
    largest = max(file.stat().st_size for file in files)
    (_, opened), _ = ran(DIFF, "fork", *files, FASTPROF_MEMORY=str(6 * largest))
    assert len(opened) == 2
