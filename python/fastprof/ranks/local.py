"""Paths to results in local worker processes.

Each worker processes one file at a time. If a worker dies, its file is retried once after all
others, alone: the system may have killed the worker because all workers together needed too much
memory.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Sequence

from fastprof.ranks.process import Worker
from fastprof.ranks.work import Failure, Options, Result


def run_local(
    paths: Sequence[str], options: Options, jobs: int, memory: int | None
) -> Generator[Result, None, None]:
    """The result of each path, in order of completion.

    Closing the iterator early ends all processes.

    Parameters
    ----------
    jobs : number of processes
    memory : memory limit per process in bytes; None: unlimited
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
    """Feeds one worker until no paths are left. Replaces a worker that died or is out of memory."""

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
        self._lock = threading.Lock()  # guards _worker and _stopped
        self._stopped = False

    def run(self) -> None:
        """Process paths until `todo` is empty or `stop` is called."""
        try:
            while (worker := self._running()) is not None:
                result = worker.ask(self._todo.get_nowait())
                self._done.put(result)
                if isinstance(result, Failure) and (result.died or result.memory):
                    self._end()
        except queue.Empty:
            pass
        except BaseException as error:  # re-raised by run_local
            self._done.put(error)
        finally:
            self._end()

    def stop(self) -> None:
        """Kill the worker."""
        with self._lock:
            self._stopped = True
            if self._worker is not None:
                self._worker.kill()

    def _running(self) -> Worker | None:
        """The worker, started on demand; None after `stop`."""
        with self._lock:
            if self._worker is None and not self._stopped:
                self._worker = Worker(*self._settings)
            return None if self._stopped else self._worker

    def _end(self) -> None:
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()
