"""When recordings begin: at a step, at a time, when a condition holds, or when asked for."""

from __future__ import annotations

import time
from pathlib import Path

from fastprof.annotate.program.watch import Watch
from fastprof.runs.condition import parse_condition
from fastprof.runs.settings import NOW, Settings

_LOOK = 0.1  # s between looks for a request
_ALL = 1 << 60


class Due:
    """Tells with which step a recording begins.

    Parameters
    ----------
    settings : what to record

    Attributes
    ----------
    watch : of the lengths of steps
    n_recordings : begun until now
    asked : when a recording was asked for by a signal, s of `time.monotonic`; None if none is
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._now = Path(settings.directory, NOW)
        self.watch = Watch(None if settings.when is None else parse_condition(settings.when))
        self.forget()

    def forget(self) -> None:
        """The state of a new process."""
        self.discard()
        self.watch.forget()
        self.asked: float | None = None
        self._answered: str | None = None  # the request in the file, the last that was seen
        self._began = time.monotonic()

    def discard(self) -> None:
        """No recording has begun yet."""
        self.n_recordings = self._n_caught = 0

    @property
    def is_over(self) -> bool:
        """Whether only a signal can ask for a recording from now on."""
        return self._settings.when is None or self._n_caught >= self._settings.times

    @property
    def is_at_step(self) -> bool:
        """Whether the step to record is known, so that the one before can warm up."""
        return self._settings.after is None and self._settings.when is None

    def ended(self, now: int, n_steps: int) -> bool:
        """A step ends that is not recorded; return whether a recording begins with the next.

        Parameters
        ----------
        now : ns of `time.perf_counter_ns`
        n_steps : that have ended, with this one
        """
        self.watch.cause = None
        is_caught = self.watch.ended(now) and not self.is_over
        if self.is_asked_now():
            return True
        if self._settings.when is not None:
            self._n_caught += is_caught
            return is_caught
        if self.n_recordings:
            return False
        if self._settings.after is not None:
            return time.monotonic() >= self._began + self._settings.after
        return n_steps == max(1, self._settings.first - 1)

    def is_asked_now(self) -> bool:
        """Whether a recording was asked for since the last look."""
        if not self._is_asked_by_file() and self.asked is None:
            return False
        self.watch.cause, self.asked = None, None
        return True

    def _is_asked_by_file(self) -> bool:
        """Whether `fastprof run` has received a signal since the last look."""
        try:
            request = self._now.read_text() if self._now.exists() else None
        except OSError:
            return False
        is_new = request not in (None, self._answered)
        self._answered = request
        return is_new

    def until_look(self, n_steps: int) -> tuple[int, int]:
        """Until when no recording begins: steps from now, and a time of `time.perf_counter_ns`."""
        n_left, wait = _ALL, _LOOK
        if self.is_at_step and not self.n_recordings:
            n_left = max(1, self._settings.first - 1) - n_steps - 1
            n_left = n_left if n_left >= 0 else _ALL
        elif self._settings.after is not None and not self.n_recordings:
            wait = min(wait, self._began + self._settings.after - time.monotonic())
        return n_left, time.perf_counter_ns() + round(wait * 1e9)
