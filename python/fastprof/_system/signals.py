"""Deferred delivery of signals.

Ctrl-C and SIGTERM end a command, which removes its partial output before it exits.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
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


class _Interrupted(KeyboardInterrupt):
    """Raised by the signal handlers.

    A subclass, because a KeyboardInterrupt that leaves `exec` or `eval` of a string (dataclass and
    namedtuple use them) makes Python exit by SIGINT even if it is caught (run_eval_code_obj in
    CPython's pythonrun.c).
    """


_SOON = 0.001  # seconds


class Interruption:
    """Context in which SIGTERM acts like Ctrl-C: the program removes partial output and exits."""

    def __init__(self) -> None:
        self.received = False
        self._is_over = False
        self._number, self._n_received = 0, 0
        self._before: dict[int, Any] = {}
        self._hook = sys.unraisablehook

    def __enter__(self) -> Interruption:
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError):  # only the main thread may set handlers
                self._before[number] = signal.signal(number, self._interrupt)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over = True
        if signal.SIGALRM in self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        sys.unraisablehook = self._hook

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if frame is not None and _is_unsafe(frame):
            self._defer(number)
            return
        self._n_received += 1
        if self._is_over or self._n_received == 2:
            return  # the command has finished, or is removing partial output
        if self._n_received > 2:  # do not wait for the removal
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.received, self._number = True, number
        raise _Interrupted

    def _unraisable(self, lost: Any) -> None:
        """Python ignores exceptions in finalizers and callbacks of weak references."""
        if isinstance(lost.exc_value, _Interrupted):
            self._n_received -= 1
            self._defer(self._number)
        else:
            self._hook(lost)

    def _defer(self, number: int) -> None:
        """Interrupt a little later, at another place of the program."""
        self._number = number
        if signal.SIGALRM not in self._before:
            self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._again)
        signal.setitimer(signal.ITIMER_REAL, _SOON)

    def _again(self, number: int, frame: FrameType | None) -> None:
        self._interrupt(self._number, frame)


def _is_unsafe(frame: FrameType) -> bool:
    """Whether an exception must not be raised here.

    In importlib, it could leave the lock of imports held, for which other threads wait. The
    handlers run within importlib, or where Python ignores exceptions.
    """
    return frame.f_code.co_filename == _IMPORTING or frame.f_code in _HANDLERS


_IMPORTING = "<frozen importlib._bootstrap>"
_HANDLERS = {
    handler.__code__
    for handler in (
        Interruption._interrupt,
        Interruption._unraisable,
        Interruption._defer,
        Interruption._again,
    )
}
