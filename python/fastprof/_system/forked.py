"""A call in a copy of this process: threads would share the GIL and the lock of its memory."""

from __future__ import annotations

import gc
import io
import multiprocessing
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar, cast

from fastprof._system.signals import deferred
from fastprof._system.threads import usable_cores

Result = TypeVar("Result")


class ForkedCall(Generic[Result]):
    """Calls a function in a fork of this process, which sees all objects as they are now.

    The result comes back pickled, and what the function prints on stderr is printed with it. If
    this process cannot fork safely, or the fork fails or dies, `result` calls the function here, so
    that its errors are the usual ones.

    A context manager: leaving it kills the fork. After a result, it does not wait until the system
    has released the memory of the fork: `multiprocessing` waits at the next start of a process, or
    at exit.
    """

    def __init__(self, function: Callable[[], Result]) -> None:
        """Begin."""
        self._function = function
        self._process: Any = None
        self._has_result = False
        if not _can_fork():
            return
        context = multiprocessing.get_context("fork")
        self._results, sending = context.Pipe(duplex=False)
        with warnings.catch_warnings(), deferred(), sending:
            # Python 3.12 warns of threads of C libraries, such as those of OpenBLAS. They are idle.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = context.Process(target=_run, args=(function, sending), daemon=True)
            with suppress(OSError):  # no more processes, or no memory
                process.start()
                self._process = process

    def result(self) -> Result:
        """What the function returns."""
        if self._process is not None:
            with suppress(EOFError, OSError):
                printed, found = cast("tuple[str, Result]", self._results.recv())
                self._has_result = True
                if printed and sys.stderr is not None:
                    sys.stderr.write(printed)
                return found
        return self._function()

    def __enter__(self) -> ForkedCall[Result]:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._process is not None:
            self._process.kill()
            if not self._has_result:
                self._process.join()
            self._results.close()


def _can_fork() -> bool:
    """Whether a fork is safe, and another core can run it."""
    return (
        sys.platform == "linux"
        and threading.active_count() == 1  # a lock that another thread holds is never released
        and not multiprocessing.current_process().daemon
        and usable_cores() > 1
    )


def _run(function: Callable[[], Any], results: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C: the parent kills the fork
    gc.freeze()  # a collection would copy the pages of all objects
    sys.stderr = printed = io.StringIO()
    result = function()
    results.send((printed.getvalue(), result))
