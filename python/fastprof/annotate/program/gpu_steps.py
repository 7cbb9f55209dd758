"""The lengths of steps on the GPU, for `fastprof run --when`; nothing waits for the GPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

import torch

from fastprof._core._slow_steps import SlowSteps

_MOST: Final = 64  # steps that the GPU may be behind


class StepEvent(Protocol):
    """A mark in a stream of the GPU, as `torch.cuda.Event(enable_timing=True)`."""

    def record(self) -> None:
        """Mark the current stream."""

    def query(self) -> bool:
        """Whether the GPU has reached the mark."""

    def elapsed_time(self, end: Any) -> float:
        """ms from this mark to a later one."""


class GpuSteps:
    """Marks the ends of steps in the current stream, and asks later when the GPU reached them.

    The GPU's time between two marks includes waiting: a step is as long as it takes the GPU to go
    from end to end. Marks that the GPU has passed are used again. An error, such as that of another
    device, ends the marks, and no more is told.

    Parameters
    ----------
    slow : limit and median of these lengths
    new_event : () -> an event
    is_usable : () -> whether a GPU is in use, and no graph of it is captured

    Attributes
    ----------
    cause : dict or None
        The latest slow step: `step`, `ns`, `median_ns`, and `on`, "gpu".
    """

    def __init__(
        self,
        slow: SlowSteps,
        new_event: Callable[[], StepEvent] | None = None,
        is_usable: Callable[[], bool] | None = None,
    ) -> None:
        self._slow = slow
        self._new_event: Callable[[], StepEvent] = new_event or _timed_event
        self._is_usable = is_usable or _is_usable
        self._marks: deque[tuple[int, StepEvent]] = deque()  # steps and ends that are not known yet
        self._free: list[StepEvent] = []
        self._last: StepEvent | None = None
        self._is_off = False
        self.forget()

    def forget(self) -> None:
        """Begin with step 0."""
        self._slow.forget()
        self._time = 1.0  # ns, of the latest end that the GPU has reached; 0 is unknown to `_slow`
        self.cause: dict[str, Any] | None = None
        self.pause()

    def pause(self) -> None:
        """The next step has an unknown begin on the GPU."""
        self._free += [event for _, event in self._marks]
        self._marks.clear()
        if self._last is not None:
            self._free.append(self._last)
        self._last = None

    def ended(self, step: int) -> bool:
        """Mark the end of a step; return whether one that the GPU has ended by now is slow."""
        if self._is_off:
            return False
        try:
            if not self._is_usable():
                self.pause()
                return False
            is_slow = self._ask()
            if len(self._marks) < _MOST:
                event = self._free.pop() if self._free else self._new_event()
                event.record()
                self._marks.append((step, event))
            else:
                self.pause()
        except RuntimeError:
            self._is_off = True
            self.pause()
            return False
        return is_slow

    def _ask(self) -> bool:
        """Take the lengths of the steps that the GPU has ended."""
        is_slow = False
        while self._marks and self._marks[0][1].query():
            step, event = self._marks.popleft()
            last, self._last = self._last, event
            if last is None:
                self._slow.begin(round(self._time))
                continue
            self._time += last.elapsed_time(event) * 1e6
            self._free.append(last)
            slow = self._slow
            if slow.ended(round(self._time), True):
                is_slow = True
                self.cause = {
                    "step": step, "ns": slow.length, "median_ns": slow.median, "on": "gpu"
                }  # fmt: skip
        return is_slow


def _timed_event() -> StepEvent:
    event: StepEvent = torch.cuda.Event(enable_timing=True)
    return event


def _is_usable() -> bool:
    return torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing()
