"""The program of a worker process: reads options and paths from stdin, writes results to stdout.

All are pickles between fastprof's own processes.
"""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress

from fastprof.ranks.work import Failure, work


def main() -> None:
    """Process paths until stdin ends. Exit after running out of memory, which may be fragmented."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of user code must not mix with results
    with suppress(EOFError, BrokenPipeError):
        options, memory = pickle.load(sys.stdin.buffer)
        if memory is not None:
            _limit_memory(memory)
        while True:
            result = work(pickle.load(sys.stdin.buffer), options)
            pickle.dump(result, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
            if isinstance(result, Failure) and result.memory:
                return


def _limit_memory(memory: int) -> None:
    """Limit the private memory of this process (Linux). Exceeding it raises MemoryError."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard != resource.RLIM_INFINITY:
        memory = min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, hard))
