"""The one way from the program into us: nothing that fails here reaches the program."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Collection
from typing import Any

from fastprof._system.signals import Deferral


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


def is_of_handler(error: BaseException) -> bool:
    """Whether an exception comes from a signal handler of the program that ran within our code."""
    handlers = map(signal.getsignal, signal.valid_signals())
    codes = {getattr(getattr(each, "__func__", each), "__code__", None) for each in handlers}
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code in codes for frame, _ in frames)
