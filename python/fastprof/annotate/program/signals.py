"""Signals of the program: one asks for a recording; others end the program while it records."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

_ENDING: Final = ("SIGTERM", "SIGHUP")


class Signals:
    """Handlers in the main thread, for signals that the program leaves at their default.

    Parameters
    ----------
    asked : () -> None, called for SIGUSR2, which the user or a timer sends
    handler : (number of a signal) -> its handler
    ending : () -> bool, called before SIGTERM or SIGHUP ends the program; False if the signal must
        wait for `release`

    Attributes
    ----------
    held : list of int
        The signals that `keep` handles.
    """

    def __init__(
        self,
        asked: Callable[[], None],
        ending: Callable[[], bool],
        handler: Callable[[int], Any],
    ) -> None:
        self._asked, self._ending, self._handler = asked, ending, handler
        self._pending: int | None = None
        self.held: list[int] = []

    def install(self) -> None:
        """Handle SIGUSR2 from now on."""
        if _is_main() and signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL:
            signal.signal(signal.SIGUSR2, self._usr2)

    @property
    def are_asking(self) -> bool:
        """Whether SIGUSR2 reaches us."""
        return bool(self._handler(signal.SIGUSR2) == self._usr2)

    def keep(self) -> None:
        """A recording begins: a signal that ends the program keeps it."""
        if not _is_main():
            return
        for name in _ENDING:
            number = getattr(signal, name)
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._end)
                self.held.append(number)

    def forget(self) -> None:
        """This process is a fork, which records nothing."""
        self._pending = None
        self.release()

    def release(self) -> None:
        """The recording is over: the signals end the program at once."""
        if not _is_main():
            return
        while self.held:
            number = self.held.pop()
            if signal.getsignal(number) == self._end:
                signal.signal(number, signal.SIG_DFL)
        if self._pending is not None:
            _die_of(self._pending)

    @property
    def is_pending(self) -> bool:
        """Whether a signal waits for `release`."""
        return self._pending is not None

    def ask_after(self, seconds: float) -> None:
        """Send SIGUSR2 to the main thread later, if the program has no handler of its own."""
        timer = threading.Timer(seconds, self._ask)
        timer.daemon = True
        timer.start()

    def _ask(self) -> None:
        main = threading.main_thread().ident
        if main is not None and self.are_asking:
            signal.pthread_kill(main, signal.SIGUSR2)

    def _usr2(self, _: int, __: FrameType | None) -> None:
        self._asked()

    def _end(self, number: int, _: Any) -> None:
        if self._ending():
            _die_of(number)
        else:
            self._pending = number


def _die_of(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
