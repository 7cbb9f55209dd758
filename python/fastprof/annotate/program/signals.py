"""Signals of the program: one asks for a recording; others end the program while it records.

The one way from the program into us: nothing that fails here reaches the program.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any, Final

from fastprof._system.signals import Deferral

_ENDING: Final = ("SIGTERM", "SIGHUP")
_ASKED: Final = 20  # times


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
        self._left: Callable[[], None] | None = None  # to the main thread, by another one
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
        if self._leaves(self.keep):
            return
        for name in _ENDING:
            number = getattr(signal, name)
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._end)
                self.held.append(number)

    def forget(self) -> None:
        """This process is a fork, which records nothing."""
        self._pending = self._left = None
        self.release()

    def release(self) -> None:
        """The recording is over: the signals end the program at once."""
        if self._leaves(self.release):
            return
        while self.held:
            number = self.held.pop()
            if signal.getsignal(number) == self._end:
                signal.signal(number, signal.SIG_DFL)
        if self._pending is not None:
            _die_of(self._pending)

    def _leaves(self, action: Callable[[], None]) -> bool:
        """Leave an action to the main thread, whose handlers are, if this is another one."""
        if _is_main():
            return False
        self._left = action
        self.ask()
        return True

    @property
    def is_pending(self) -> bool:
        """Whether a signal waits for `release`."""
        return self._pending is not None

    def ask_after(self, seconds: float) -> None:
        """Send SIGUSR2 to the main thread later, if the program has no handler of its own."""
        timer = threading.Timer(seconds, self.ask)
        timer.daemon = True
        timer.start()

    def ask(self) -> None:
        """Send SIGUSR2 to the main thread, if the program has no handler of its own."""
        main = threading.main_thread().ident
        if main is not None and self.are_asking:
            signal.pthread_kill(main, signal.SIGUSR2)

    def _usr2(self, _: int, __: FrameType | None) -> None:
        left, self._left = self._left, None
        if left is not None:
            left()
        else:
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


class Guard:
    """Runs our part of a call of the program.

    No `Exception` leaves it. The program's signal handlers run outside of it: what they raise, such
    as KeyboardInterrupt, reaches the program unchanged.

    Parameters
    ----------
    failed : (error) -> None, called with an exception of ours
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._deferral: Deferral | None = None
        self.is_busy = False

    def __call__(self, action: Callable[..., Any], *arguments: Any) -> None:
        """Run an action; do nothing if one runs already, in this thread or another."""
        if self.is_busy:
            return
        self.is_busy = True
        try:
            action(*arguments)
        except Exception as error:
            if is_of_handler(error):
                raise
            self.quietly(self._failed, error)
        finally:
            self.is_busy = False
            if self._deferral is not None:
                deferral, self._deferral = self._deferral, None
                deferral.end()

    def defer_signals(self, ours: Collection[int] = ()) -> None:
        """Let signal handlers wait for the end of the action, except those of `ours`."""
        if self._deferral is None:
            self._deferral = Deferral()
            self._deferral.begin(ours)

    def handler(self, number: int) -> Any:
        """The handler of a signal, which may be deferred."""
        deferral = self._deferral
        return signal.getsignal(number) if deferral is None else deferral.handler(number)

    def quietly(self, action: Callable[..., Any], *arguments: Any) -> bool:
        """Run an action; return whether it raised no `Exception`."""
        try:
            action(*arguments)
        except Exception:
            return False
        return True


class HandOver:
    """Lets the thread that is recorded run an action: a profiler is of the thread that started it.

    Parameters
    ----------
    ask : () -> None, makes the main thread call `run`
    """

    def __init__(self, ask: Callable[[], None]) -> None:
        self._ask = ask
        self._action: Callable[[], None] | None = None
        self._done = threading.Event()

    def give(self, action: Callable[[], None], seconds: float) -> None:
        """Wait for the thread that is recorded to run an action, for some time.

        Not under the guard, which that thread needs.
        """
        self._done.clear()
        self._action = action
        for _ in range(_ASKED):  # the main thread may be at work of ours, which ignores it
            self._ask()
            if self._done.wait(seconds / _ASKED):
                break
        self._action = None

    def run(self) -> None:
        """Run the action that waits, if any; called by the thread that is recorded."""
        action, self._action = self._action, None
        if action is not None:
            try:
                action()
            finally:
                self._done.set()


def is_of_handler(error: BaseException) -> bool:
    """Whether an exception comes from a signal handler of the program that ran within our code."""
    handlers = map(signal.getsignal, signal.valid_signals())
    codes = {
        getattr(getattr(handler, "__func__", handler), "__code__", None) for handler in handlers
    }
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code in codes for frame, _ in frames)
