"""Paths to results, on processes of this machine.

Each worker is a process that is given a file when it is done with the one before. One that dies
takes nothing with it but that file, which is tried once more when all others are done: alone, since
the system may have killed its worker because all of them together needed too much memory.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Generator, Sequence

from fastprof.ranks.process import Worker
from fastprof.ranks.work import Failure, Options, Result

__all__ = ["run_local", "usable_cores"]


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_local(
    paths: Sequence[str], options: Options, jobs: int, memory: int | None
) -> Generator[Result, None, None]:
    """The result of each path, once each, in the order in which they are done.

    Parameters
    ----------
    jobs : how many processes
    memory : bytes that each may have; None for no bound

    When the iterator is closed before its end, all processes are ended.
    """
    done: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    for path in paths:
        todo.put(path)
    slots = [_Slot(todo, done, options, memory) for _ in range(min(jobs, len(paths)))]
    died = []
    try:
        for slot in slots:
            slot.start()
        for _ in paths:
            result = _raised(done.get())
            if isinstance(result, Failure) and result.died:
                died.append(result.path)
            else:
                yield result
        for path in died:
            todo.put(path)
            slots.append(_Slot(todo, done, options, memory))
            slots[-1].start()
            yield _raised(done.get())
    finally:
        for slot in slots:
            slot.stop()
        for slot in slots:
            slot.join()


def _raised(result: Result | BaseException) -> Result:
    if isinstance(result, BaseException):
        raise result
    return result


class _Slot(threading.Thread):
    """Keeps one worker busy, and replaces it when it is spent, until nothing is left to do."""

    def __init__(
        self,
        todo: queue.SimpleQueue[str],
        done: queue.SimpleQueue[Result | BaseException],
        options: Options,
        memory: int | None,
    ) -> None:
        super().__init__(daemon=True)
        self._todo, self._done = todo, done
        self._settings = options, memory
        self._worker: Worker | None = None
        self._lock = threading.Lock()  # of _worker and _stopped
        self._stopped = False

    def run(self) -> None:
        """Until `todo` is empty, or `stop`."""
        try:
            while (worker := self._running()) is not None:
                result = worker.ask(self._todo.get_nowait())
                self._done.put(result)
                if isinstance(result, Failure) and (result.died or result.memory):
                    self._end()
        except queue.Empty:
            pass
        except BaseException as error:  # whoever waits for results has to know
            self._done.put(error)
        finally:
            self._end()

    def stop(self) -> None:
        """End the worker now, whatever it does."""
        with self._lock:
            self._stopped = True
            if self._worker is not None:
                self._worker.kill()

    def _running(self) -> Worker | None:
        """The worker, started if there is none; None after `stop`."""
        with self._lock:
            if self._worker is None and not self._stopped:
                self._worker = Worker(*self._settings)
            return None if self._stopped else self._worker

    def _end(self) -> None:
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()
