"""Deferred delivery of signals."""

from __future__ import annotations

import signal
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def deferred() -> Iterator[None]:
    """Defer SIGINT (Ctrl-C) and SIGTERM to the end of the block.

    A child process runs before subprocess.Popen returns. A signal in between would leave it running
    without an owner.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python runs signal handlers in the main thread only
        return
    received: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: received.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        signal.raise_signal(received[0])


class Deferral:
    """Defers the calls of all signal handlers of the program from `begin` to `end`.

    Signals without a handler act as before. In other threads than the main one it does nothing:
    Python runs no handlers there.
    """

    def __init__(self) -> None:
        self._received: list[int] = []
        self._before: dict[int, Any] = {}

    def begin(self, without: Collection[int] = ()) -> None:
        """Defer from now on all signals but some."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in signal.valid_signals():
            handler = signal.getsignal(number)
            is_handler = callable(handler) and not isinstance(handler, signal.Handlers)
            if is_handler and number not in without:
                self._before[number] = handler
                signal.signal(number, self._note)

    def end(self) -> None:
        """Put the handlers back, then call those whose signals came; they may raise."""
        while self._before:
            number, handler = self._before.popitem()
            if signal.getsignal(number) == self._note:
                signal.signal(number, handler)
        for number in dict.fromkeys(self._received):
            signal.raise_signal(number)

    def handler(self, number: int) -> Any:
        """The handler of a signal, which may be deferred."""
        return self._before.get(number, signal.getsignal(number))

    def _note(self, number: int, _: Any) -> None:
        self._received.append(number)
