"""Signals that have to wait until what began can be ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held() -> Iterator[None]:
    """Within it, Ctrl-C and SIGTERM wait; the first that came takes effect at its end.

    A program that is started is running before subprocess.Popen returns: a signal in between
    would leave it running, and nobody would know of it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are not delivered here
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])
