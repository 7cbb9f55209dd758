"""Waiting for a condition instead of a time, which a busy machine makes longer."""

import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 600.0  # seconds; only a hang takes as long
Result = TypeVar("Result")


def wait_for(condition: Callable[[], Result], seconds: float = PATIENCE) -> Result:
    """The first true value of `condition()`.

    Raises
    ------
    TimeoutError
        The condition is still false after so many seconds.
    """
    end = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"{condition} is false after {seconds:.0f} s")
        time.sleep(0.005)
    return result


def in_threads(*calls: Callable[[], object]) -> None:
    """Make calls at the same time, each in a thread of its own, and wait for their ends."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)


def is_alive(pid: int) -> bool:
    """Whether there is a process with this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
