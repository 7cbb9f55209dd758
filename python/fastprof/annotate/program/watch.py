"""The lengths of all steps, and the condition of `fastprof run --when`."""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from collections import deque
from math import inf
from typing import Any, Final

import torch

from fastprof.annotate.unrecorded import UnrecordedSteps
from fastprof.runs.condition import Condition

_MOST: Final = 4096  # lengths that are kept; even
_WARM_UP: Final = 3  # steps with a known length that are no part of the median
_FEWEST: Final = 10  # steps with a median
_WINDOW: Final = 101  # steps of the median
_LOOK: Final = 100_000_000  # ns between looks at the memory


class StepLengths:
    """The lengths of all steps on the host, from step 0.

    At most `_MOST` are kept: when there are more, pairs become one, the longer.
    """

    def __init__(self) -> None:
        self.n_steps, self._per, self._longest = 0, 1, list[int]()

    def add(self, length: int) -> None:
        """Add a step's length in ns; 0 if it is unknown."""
        longest = self._longest
        if self.n_steps % self._per:
            if length > longest[-1]:
                longest[-1] = length
        else:
            if len(longest) == _MOST:
                longest[:] = map(max, longest[::2], longest[1::2])
                self._per *= 2
            longest.append(length)
        self.n_steps += 1

    def facts(self) -> dict[str, Any]:
        """`ns`: the longest of each `per` consecutive steps."""
        return {"per": self._per, "ns": list(self._longest)}


class Watch:
    """Notes the ends of steps, and tells after which the condition holds.

    The median is of the latest steps, without the first ones and the recorded ones.

    Parameters
    ----------
    condition : None to note the lengths only

    Attributes
    ----------
    passed : (ns) -> bool or None
        Called for the end of a step that is nothing but noted; True if `ended` must be called
        instead.
    unrecorded : the latest steps before a recording
    cause : what made the condition hold: `step`, and `ns` and `median_ns`, or `memory`, a share
    """

    def __init__(self, condition: Condition | None) -> None:
        self._condition = condition
        self.unrecorded = UnrecordedSteps()
        self._ends: list[int] = []  # noted by `passed` alone
        is_of_steps = condition is not None and condition.of == "step"
        self.passed: Any = self._passed if is_of_steps else self._ends.append
        self.forget()

    def forget(self) -> None:
        """Begin with step 0."""
        self._ends.clear()
        self.unrecorded.forget()
        self._lengths = StepLengths()
        self._last = self._n_warm = self._next_look = 0
        self._window: deque[int] = deque()
        self._sorted: list[int] = []
        self._median, self._limit = 0, inf
        self._was_above = False
        self.cause: dict[str, Any] | None = None
        self._most: dict[str, Any] | None = None

    def begin(self) -> None:
        """The next step begins now, after work of ours."""
        self.settle()
        self.unrecorded.forget()
        self.unrecorded.ended()
        self._last = time.perf_counter_ns()

    def pause(self) -> None:
        """The next step has an unknown begin."""
        self.settle()
        self.unrecorded.forget()
        self._last = 0

    def settle(self) -> None:
        """Take over what `passed` has noted alone."""
        if self._ends:
            ends = self._ends[:]
            self._ends.clear()
            for end in ends:
                self._note(end)

    def ended(self, now: int, is_recorded: bool = False) -> bool:
        """Note the end of a step; return whether the condition holds.

        Parameters
        ----------
        now : ns of `time.perf_counter_ns`
        is_recorded : the recorder was on
        """
        self.settle()
        length = self._note(now)
        if self._condition is None or is_recorded:
            return False
        step = self._lengths.n_steps - 1
        if self._condition.of == "memory":
            return now >= self._next_look and self._is_full(self._condition, step, now)
        holds = length > self._limit
        if holds:
            self.cause = {"step": step, "ns": length, "median_ns": self._median}
        if length:
            self._take(step, length)
        return holds

    def facts(self) -> dict[str, Any]:
        """`step_lengths`, and `most`: the longest step, or the fullest memory, that was watched."""
        self.settle()
        return {"step_lengths": self._lengths.facts(), "most": self._most}

    def _passed(self, now: int) -> bool:
        """As `ended`, unless the condition holds."""
        length = now - self._last
        if length > self._limit or not self._last:
            return True
        self._note(now)
        self._take(self._lengths.n_steps - 1, length)
        return False

    def _note(self, end: int) -> int:
        """The length of the step that ends; 0 if its begin is unknown."""
        length = end - self._last if self._last else 0
        self._last = end
        self.unrecorded.ended_at(end)
        self._lengths.add(length)
        return length

    def _take(self, step: int, length: int) -> None:
        """Take a step into the median."""
        if self._n_warm < _WARM_UP:
            self._n_warm += 1
            return
        ordered, window = self._sorted, self._window
        if self._limit < inf and (self._most is None or length > self._most["ns"]):
            self._most = {"step": step, "ns": length, "median_ns": self._median}
        window.append(length)
        insort(ordered, length)
        if len(window) > _WINDOW:
            del ordered[bisect_left(ordered, window.popleft())]
        if len(window) >= _FEWEST and self._condition is not None:
            self._median = ordered[len(ordered) // 2]
            self._limit = self._condition.limit_for(self._median)

    def _is_full(self, condition: Condition, step: int, now: int) -> bool:
        """Whether the share of memory has risen above the limit since the last look."""
        self._next_look = now + _LOOK
        share = reserved_share()
        if share is None:
            return False
        if self._most is None or share > self._most["memory"]:
            self._most = {"step": step, "memory": share}
        was_above, self._was_above = self._was_above, condition.holds_for(share)
        if self._was_above and not was_above:
            self.cause = {"step": step, "memory": share}
            return True
        return False


def reserved_share() -> float | None:
    """The share of a GPU's memory that torch has reserved, of the fullest; None without a GPU."""
    if not torch.cuda.is_initialized():
        return None
    return max(
        (
            torch.cuda.memory_reserved(gpu) / torch.cuda.get_device_properties(gpu).total_memory
            for gpu in range(torch.cuda.device_count())
        ),
        default=None,
    )
