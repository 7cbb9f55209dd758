"""The length of the steps after a recording, as of those before it."""

from __future__ import annotations

from typing import Any, Final

from fastprof.annotate.unrecorded import UnrecordedSteps

_MOST: Final = 10  # steps


class Afterwards:
    """Times as many steps as were recorded, at most 10, before everything is undone."""

    def __init__(self) -> None:
        self._steps, self._n_left = UnrecordedSteps(), 0

    def begin(self, n_recorded: int) -> None:
        """The first step after a recording begins."""
        self.forget()
        self._n_left = min(n_recorded, _MOST)
        self._steps.ended()

    def forget(self) -> None:
        """Time no step."""
        self._n_left = 0
        self._steps.forget()

    def ended(self, now: int) -> bool:
        """A step ends; return whether it is the last one that is timed.

        Parameters
        ----------
        now : ns of `time.perf_counter_ns`
        """
        if not self._n_left:
            return False
        self._steps.ended_at(now)
        self._n_left -= 1
        return self._n_left == 0

    def facts(self) -> dict[str, Any] | None:
        """See `UnrecordedSteps.facts`."""
        return self._steps.facts()
