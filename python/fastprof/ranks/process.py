"""A worker process as its parent sees it: a path goes in, a result comes out."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Final

from fastprof.ranks.work import Failure, Options, Result

__all__ = ["Worker", "cause"]

# A program instead of multiprocessing's, which runs the main module of the caller again. The first
# entry of sys.path is the working directory, where a pickle.py may lie.
_PROGRAM: Final = (
    "import sys; sys.path.pop(0); import pickle; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from fastprof.ranks.worker import main; main()"
)


class Worker:
    """A process that runs `fastprof.ranks.worker`; Ctrl-C does not reach it, its parent ends it."""

    def __init__(self, options: Options, memory: int | None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # its threads take memory, for nothing
        )
        with suppress(OSError):  # a worker that is gone is noticed when it is asked
            self._send(sys.path)
            self._send((options, memory))

    def ask(self, path: str) -> Result:
        """The result of a path; a Failure that says so when the worker dies of it."""
        try:
            self._send(path)
            result: Result = pickle.load(self._process.stdout)  # type: ignore[arg-type]  # a pipe
            return result
        except (EOFError, OSError, pickle.UnpicklingError):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(1)  # its own end says more than ours
            self.kill()
            return Failure(path, f"{path}: {cause(self._process.wait())}", died=True)

    def kill(self) -> None:
        """End it now, whatever it does."""
        self._process.kill()

    def end(self) -> None:
        """Tell it that nothing more will come, and wait for its end."""
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
    """What the exit code of a worker that died says."""
    if code >= 0:
        return f"the process that read it ended with exit code {code}; what it said is above"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    advice = ": out of memory? Give fewer jobs" if name == "SIGKILL" else ""
    return f"the process that read it was ended by {name}{advice}"
