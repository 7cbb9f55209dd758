"""Threads: values that are computed once, functions on several threads."""

import os
import pickle
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from fastprof._system.threads import SecondThread, computed_once, map_on_threads, usable_cores
from support import processes

WAIT = 30.0  # s


class Measured:
    """Two properties; the first ends only after the second has been computed."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.second_done = threading.Event()

    @computed_once
    def first(self) -> int:
        self.calls.append("first")
        assert self.second_done.wait(WAIT)
        return 1

    @computed_once
    def second(self) -> int:
        self.calls.append("second")
        self.second_done.set()
        return 2

    @computed_once
    def sum(self) -> int:
        self.calls.append("sum")
        return self.first + self.second


def test_threads_that_need_the_same_value_compute_it_once():
    measured, n = Measured(), 4
    ready = threading.Barrier(n)

    def read(_: int) -> int:
        ready.wait(WAIT)
        return measured.sum

    with ThreadPoolExecutor(n) as pool:
        result = pool.map(read, range(n))
        assert measured.second == 2
        assert list(result) == [3] * n
    assert sorted(measured.calls) == ["first", "second", "sum"]


def test_one_property_does_not_wait_for_another():
    measured = Measured()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: measured.first)
        assert measured.second == 2  # while the other thread computes `first`
        assert first.result(WAIT) == 1


def test_a_property_that_fails_is_computed_again():
    class Failing:
        tries = 0

        @computed_once
        def value(self) -> int:
            self.tries += 1
            if self.tries == 1:
                raise ValueError("first try")
            return self.tries

    failing = Failing()
    with pytest.raises(ValueError, match="first try"):
        _ = failing.value
    assert failing.value == failing.value == 2


class Kept:
    """An object with a value that pickles contain."""

    @computed_once
    def value(self) -> int:
        return 3


def test_an_object_can_be_pickled_once_its_property_is_computed():
    kept = Kept()
    assert kept.value == 3
    assert vars(kept) == vars(pickle.loads(pickle.dumps(kept))) == {"value": 3}


def test_a_map_gives_results_in_order_on_as_many_threads_as_asked():
    used = set()

    def square(n: int) -> int:
        used.add(threading.get_ident())
        return n * n

    assert map_on_threads(square, range(50), 2) == [n * n for n in range(50)]
    assert len(used) <= min(2, usable_cores())
    assert threading.get_ident() not in used
    assert map_on_threads(square, []) == []


def test_a_map_raises_the_first_error_and_starts_nothing_more(monkeypatch):
    n, started, tried = 10, [], []
    all_cancelled = threading.Event()
    cancel = Future.cancel

    def counted(future: Future[None]) -> bool:
        is_cancelled = cancel(future)
        tried.append(future)
        if len(tried) == n - 1:
            all_cancelled.set()
        return is_cancelled

    def fail_first(number: int) -> None:
        started.append(number)
        if number == 0:
            raise ValueError("the first")
        assert all_cancelled.wait(WAIT)

    monkeypatch.setattr(Future, "cancel", counted)
    with pytest.raises(ValueError, match="the first"):
        map_on_threads(fail_first, range(n), 1)
    assert started[0] == 0 and len(started) <= 2  # one may start before all are cancelled


def test_a_second_thread_runs_functions_in_order():
    ran: list[tuple[int, str]] = []
    with SecondThread() as second:
        tasks = [
            second.submit(lambda i: ran.append((i, threading.current_thread().name)), i)
            for i in range(50)
        ]
        assert [task.result() for task in tasks] == [None] * 50
    assert [number for number, _ in ran] == list(range(50))
    assert len({name for _, name in ran}) == 1
    assert {name for _, name in ran} != {threading.current_thread().name}


def test_errors_of_a_second_thread_are_raised_where_the_result_is_needed():
    with SecondThread() as second:
        failing, other = second.submit(lambda: 1 // 0), second.submit(lambda: 2)
        assert other.result() == 2
        with pytest.raises(ZeroDivisionError):
            failing.result()


def test_leaving_a_second_thread_waits_for_what_runs_and_cancels_the_rest():
    begun, go_on = threading.Event(), threading.Event()
    ran: list[str] = []

    def long() -> None:
        begun.set()
        assert go_on.wait(WAIT)
        ran.append("long")

    with SecondThread() as second:
        running, waiting = second.submit(long), second.submit(lambda: ran.append("waiting"))
        last = second.submit(lambda: ran.append("last"))
        assert begun.wait(WAIT)
        assert not running.cancel()
        assert waiting.cancel()
        threading.Timer(0.05, go_on.set).start()
    assert ran == ["long"]
    assert running.result() is None
    for cancelled in (waiting, last):
        with pytest.raises(RuntimeError, match="cancelled"):
            cancelled.result()


# Ctrl-C when the thread has started, or before it is told to end. The reference keeps the object.
INTERRUPTED = """
import threading
from fastprof._system import threads

def interrupt(*_):
    raise KeyboardInterrupt

class Interrupted(threading.Thread):
    def start(self):
        super().start()
        interrupt()

if {moment!r} == "start":
    threads.Thread = Interrupted
else:
    threads.SecondThread.__exit__ = interrupt
kept = threads.SecondThread()
try:
    with kept as second:
        assert second.submit(lambda: 1).result() == 1
except KeyboardInterrupt:
    print("interrupted", threading.active_count())
"""


@pytest.mark.parametrize("moment", ["start", "end"])
def test_python_exits_after_an_interruption_of_a_second_thread(moment):
    finished = processes.python("-c", INTERRUPTED.format(moment=moment), timeout=WAIT, check=True)
    assert finished.stdout.startswith("interrupted")
    assert not finished.stderr


# Prints how many threads run after numpy is imported, and the setting that programs would see.
IMPORT = """
import os, sys
from fastprof._system.threads import import_numpy
assert "numpy" not in sys.modules
import_numpy()
assert "numpy" in sys.modules
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs the list of threads")
@pytest.mark.parametrize("given", [None, "1", "2"])
def test_numpy_is_imported_without_threads_of_its_own(given):
    variables = {name: text for name, text in os.environ.items() if "NUM_THREADS" not in name}
    if given is not None:
        variables["OPENBLAS_NUM_THREADS"] = given
    done = processes.python("-c", IMPORT, env=variables, check=True)
    threads, setting = done.stdout.split()
    assert setting == str(given)
    assert int(threads) == 1 or given == "2"
