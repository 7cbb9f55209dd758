"""Threads for compiled stages and numpy calls, which release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Lock, RLock, Thread
from typing import Any, Generic, TypeVar

from fastprof._system.memory import give_back

Result = TypeVar("Result")
Value = TypeVar("Value")


def usable_cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def import_numpy() -> None:
    """Import numpy without the threads of its linear algebra, which this package does not use.

    On import, OpenBLAS starts a thread for each further core, and each waits actively for 26 ms:
    on two cores, a tenth of the processor time of a small trace. Programs that the process starts
    do not see the setting.
    """
    is_chosen = _BLAS_THREADS in os.environ
    os.environ.setdefault(_BLAS_THREADS, "1")
    try:
        import numpy  # noqa: F401
    finally:
        if not is_chosen:
            del os.environ[_BLAS_THREADS]


_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


class computed_once(Generic[Result]):
    """A cached property; other threads wait while one thread computes it.

    `functools.cached_property` lets each thread compute it, from Python 3.12 on. Properties that
    need each other in a circle would wait forever. The lock goes with the result, so that objects
    can be copied and pickled.
    """

    def __init__(self, make: Callable[[Any], Result]) -> None:
        self._make, self._name = make, ""
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Result:
        if instance is None:
            raise AttributeError(f"{self._name} is an attribute of instances")
        lock = f"_lock_of_{self._name}"
        return once(instance.__dict__, self._name, lock, self._make, instance)


def is_computed(instance: Any, name: str) -> bool:
    """Whether an object has the value of one of its `computed_once`."""
    return name in instance.__dict__


def forget(instance: Any, name: str) -> None:
    """Drop the value of a `computed_once`; it is computed again when it is asked for."""
    instance.__dict__.pop(name, None)


def once(
    results: dict[Any, Any],
    key: Hashable,
    lock: Hashable,
    make: Callable[..., Result],
    *arguments: Any,
) -> Result:
    """results[key]; make(*arguments) computes it if it lacks. Other threads wait meanwhile.

    lock : the key of the lock, which goes with the result
    """
    with results.setdefault(lock, RLock()):
        if key not in results:
            results[key] = make(*arguments)
        result: Result = results[key]
    results.pop(lock, None)
    return result


class Task(Generic[Result]):
    """A function that another thread runs.

    In place of concurrent.futures, whose import takes 5 ms, with logging.
    """

    def __init__(self, function: Callable[[], Result]) -> None:
        self._function: Callable[[], Result] | None = function
        self._taken, self._over = Lock(), Event()
        self._results: list[Result] = []
        self._error: BaseException | None = None

    def cancel(self) -> bool:
        """Prevent the run; False if it has begun."""
        if not self._taken.acquire(blocking=False):
            return False
        self._function, self._error = None, RuntimeError("the task was cancelled")
        self._over.set()
        return True

    def run(self) -> None:
        """Run the function unless the task is cancelled."""
        function = self._function
        if function is None or not self._taken.acquire(blocking=False):
            return
        try:
            self._results.append(function())
        except BaseException as error:  # raised by `result`
            self._error = error
        self._function = None  # and what it refers to
        self._over.set()

    def result(self) -> Result:
        """Wait for the function; its result, or its exception."""
        self._over.wait()
        if self._error is not None:
            raise self._error
        return self._results[0]


class SecondThread:
    """Runs functions on one other thread, in the order of submission; at once if none can start.

    A context manager: leaving it cancels functions that have not started and waits for the one that
    runs. The thread is a daemon: Ctrl-C may interrupt any line here, and Python waits at its exit
    for all other threads, also for one that nobody can end any more.
    """

    def __init__(self, gives_back: bool = True) -> None:
        """gives_back : at its end, return freed memory to the system, which then maps again what
        the next stage needs: the last stage of several does it."""
        self._gives_back = gives_back
        self._tasks: SimpleQueue[Task[Any] | None] = SimpleQueue()
        self._thread: Thread | None = None

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Task[Result]:
        """Schedule function(*arguments)."""
        task = Task(lambda: function(*arguments))
        if self._thread is None:
            thread = Thread(target=_work, args=(self._tasks,), daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system has no thread left
                task.run()
                return task
            self._thread = thread
        self._tasks.put(task)
        return task

    def __enter__(self) -> SecondThread:
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(Empty):
            while task := self._tasks.get_nowait():
                task.cancel()
        self._tasks.put(None)
        if self._thread is not None:
            self._thread.join()
            if self._gives_back:
                give_back()


def _work(tasks: SimpleQueue[Task[Any] | None]) -> None:
    """Run tasks until None."""
    while task := tasks.get():
        task.run()
        del task  # and its result


def map_on_threads(
    function: Callable[[Value], Result], values: Sequence[Value], most: int = 4
) -> list[Result]:
    """The results of a function, called in the order of the values on several threads.

    If no thread can start, on this one: the function may be called twice for a value.

    most : the maximum number of threads; no more than cores
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(most, usable_cores())) as pool:
        try:
            results = pool.map(function, values)
        except RuntimeError:
            results = None
        if results is not None:
            return list(results)
    return [function(value) for value in values]
