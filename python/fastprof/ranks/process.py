"""The parent's end of a worker process: send a path, receive a result."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Final

from fastprof.ranks.work import Failure, Options, Result

# multiprocessing would run the caller's main module again. The first entry of sys.path is removed:
# the working directory may contain a pickle.py.
_PROGRAM: Final = (
    "import sys; sys.path.pop(0); import pickle; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from fastprof.ranks.worker import main; main()"
)


class Worker:
    """A process that runs `fastprof.ranks.worker`, in its own session: Ctrl-C does not reach it."""

    def __init__(self, options: Options, memory: int | None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # unused threads take memory
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
