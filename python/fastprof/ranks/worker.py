"""The program of a worker process: options, then paths on standard input, results on its output.

All are pickles; both ends are fastprof's own.
"""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress

from fastprof.ranks.work import Failure, work

__all__ = ["main"]


def main() -> None:
    """Work until standard input ends, or memory does: what is left of it then is in pieces."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what costs of the user's own print must not get between the results
    with suppress(EOFError, BrokenPipeError):
        options, memory = pickle.load(sys.stdin.buffer)
        if memory is not None:
            _bound(memory)
        while True:
            result = work(pickle.load(sys.stdin.buffer), options)
            pickle.dump(result, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
            if isinstance(result, Failure) and result.memory:
                return


def _bound(memory: int) -> None:
    """Let the process have so many bytes of its own, and no more: what asks for more gets a
    MemoryError. Files that are mapped do not count; on Linux only."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard != resource.RLIM_INFINITY:
        memory = min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, hard))
