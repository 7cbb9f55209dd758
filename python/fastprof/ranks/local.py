"""Paths to results in local worker processes, or on the workers of a Dask cluster.

Each worker processes one file at a time. If a worker dies, its file is retried once after all
others, alone: the system may have killed the worker because all workers together needed too much
memory.

Workers of Dask read the files under the given paths. Only paths and summaries move over the
network. The scheduler reassigns tasks of workers that died; each result is used once.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Any, Final

from fastprof._system.optional import import_optional
from fastprof._version import __version__
from fastprof.errors import FastprofError
from fastprof.ranks.work import Failure, Options, Result, work


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


# multiprocessing would run the caller's main module again. The first entry of sys.path is removed:
# the working directory may contain a pickle.py.
_PROGRAM: Final = (
    "import sys; sys.path.pop(0); import pickle; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from fastprof.ranks.work import main; main()"
)


# glibc: freed memory stays with the process, which needs as much for its next arrays. The system
# clears each page that it lends again: a sixth of a worker's time.
_KEPT: Final = {"MALLOC_TRIM_THRESHOLD_": str(512 << 20), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}


class Worker:
    """A process that runs `fastprof.ranks.work`, in its own session: Ctrl-C does not reach it."""

    def __init__(self, options: Options, memory: int | None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**_KEPT, **os.environ, "OPENBLAS_NUM_THREADS": "1"},  # unused threads take memory
        )
        with suppress(OSError):  # `ask` detects a dead worker
            self._send(sys.path)
            self._send((options, memory))

    def ask(self, path: str) -> Result:
        """The result of a path; a Failure if the worker dies."""
        try:
            self._send(path)
            result: Result = pickle.load(self._process.stdout)  # type: ignore[arg-type]  # a pipe
            return result
        except (EOFError, OSError, pickle.UnpicklingError):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(1)  # its own exit code is more informative than SIGKILL
            self.kill()
            return Failure(path, f"{path}: {cause(self._process.wait())}", died=True)

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    def end(self) -> None:
        """Close its input and wait for its exit."""
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        self._process.wait()

    def _send(self, value: object) -> None:
        stream = self._process.stdin
        pickle.dump(value, stream, pickle.HIGHEST_PROTOCOL)  # type: ignore[arg-type]  # a pipe
        stream.flush()  # type: ignore[union-attr]  # a pipe


def cause(code: int) -> str:
    """A description of the exit code of a dead worker."""
    if code >= 0:
        return f"the worker process exited with code {code}; see its output above"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    advice = ": probably out of memory; use fewer jobs" if name == "SIGKILL" else ""
    return f"the worker process was killed by {name}{advice}"


_WAIT = "30s"  # for a scheduler to answer


class ClusterError(FastprofError):
    """The cluster cannot be used."""


def connect(address: str) -> Any:
    """A client of the scheduler at an address.

    Raises
    ------
    MissingDependencyError
        `distributed` is not installed.
    ClusterError
        No scheduler answers.
    """
    distributed = _distributed()
    try:
        return distributed.Client(address, timeout=_WAIT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(
            f"{address}: no Dask scheduler answers there ({error or type(error).__name__}); "
            "expected an address as `dask scheduler` prints it: tcp://HOST:8786"
        ) from error


def run_on_cluster(
    client: Any, paths: Sequence[str], options: Options
) -> Generator[Result, None, None]:
    """The result of each path, in order of arrival.

    Closing the iterator early cancels the remaining tasks.
    """
    distributed = _distributed()
    if getattr(client, "asynchronous", False):
        raise ClusterError(
            "client is asynchronous; expected a distributed.Client without asynchronous=True"
        )
    run = uuid.uuid4().hex[:12]
    path_of = {f"fastprof-{run}-{i}": path for i, path in enumerate(paths)}
    futures = {
        key: client.submit(work, path, options, key=key, pure=False)
        for key, path in path_of.items()
    }
    try:
        for future in distributed.as_completed(list(futures.values()), loop=client.loop):
            if futures.pop(future.key, None) is None:
                continue  # duplicate result
            result = _result(future, path_of[future.key])
            future.release()
            yield result
    finally:
        if futures:
            client.cancel(list(futures.values()))


def _result(future: Any, path: str) -> Result:
    try:
        result: Result = future.result()
    except Exception as error:  # Dask could not run the task
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Failure(path, f"{path}: the cluster could not run it: {text}")
    if not isinstance(result, Failure) and result.version != __version__:
        return Failure(
            path,
            f"{path}: read by fastprof {result.version} on the worker, expected {__version__}; "
            "install the same version on both",
        )
    return result


def _distributed() -> Any:
    return import_optional("distributed", "a Dask cluster needs")
