"""The lengths of all steps, also after a recording, and when recordings begin."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch

from fastprof._core._slow_steps import SlowSteps
from fastprof.annotate import gpus
from fastprof.annotate.program.gpu_steps import GpuSteps
from fastprof.annotate.timings import UnrecordedSteps
from fastprof.runs.condition import NEVER, Condition, parse_condition
from fastprof.runs.facts import NOW, Settings

_MOST: Final = 4096  # lengths that are kept; even
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

    The median is of the latest steps, without the first ones and the recorded ones. A condition of
    steps is tested on the host, and where there is a GPU on it too, once the GPU has ended a step.

    Parameters
    ----------
    condition : None to note the lengths only

    Attributes
    ----------
    passed : (ns) -> bool or None
        For the end of a step that needs no Python: notes it; True if `ended` must be called instead
    unrecorded : the latest steps before a recording
    cause : what made the condition hold: `step`, and `ns` and `median_ns`, or `memory`, a share;
        `on` is "gpu" for a length on the GPU
    """

    def __init__(self, condition: Condition | None) -> None:
        self._condition = condition
        self.unrecorded = UnrecordedSteps()
        self._ends: list[int] = []  # not yet in `_lengths`
        of_steps = condition if condition is not None and condition.of == "step" else NEVER
        multiple, fixed = of_steps.limits
        self._slow = SlowSteps(self._ends, multiple, fixed, of_steps.with_limit)
        self._gpu: GpuSteps | None = None
        self._marked, self._was_slow_on_gpu = -1, False  # the latest step, and what the GPU said
        self.passed: Callable[[int], bool | None] = self._slow.passed
        if of_steps is not NEVER and gpus.may_be_used():
            self.watch_gpu(GpuSteps(SlowSteps([], multiple, fixed, of_steps.with_limit)))
        self.forget()

    def watch_gpu(self, gpu: GpuSteps) -> None:
        """Test the condition of steps on a GPU too."""
        self._gpu, self.passed = gpu, self._passed

    def _passed(self, now: int) -> bool | None:
        if self._is_slow_on_gpu(self._lengths.n_steps + len(self._ends)):
            return True
        return self._slow.passed(now)

    def _is_slow_on_gpu(self, step: int) -> bool:
        gpu = self._gpu
        if gpu is not None and step != self._marked:
            self._marked = step
            self._was_slow_on_gpu = gpu.ended(step)
        return self._was_slow_on_gpu

    def forget(self) -> None:
        """Begin with step 0."""
        if self._gpu is not None:
            self._gpu.forget()
        self._marked, self._was_slow_on_gpu = -1, False
        self._ends.clear()
        self.unrecorded.forget()
        self._slow.forget()
        self._lengths = StepLengths()
        self._last = self._next_look = 0
        self._was_above = False
        self.cause: dict[str, Any] | None = None
        self._fullest: dict[str, Any] | None = None

    def begin(self) -> None:
        """The next step begins now, after work of ours."""
        self.pause()
        self.unrecorded.ended()
        self._last = time.perf_counter_ns()
        self._slow.begin(self._last)

    def pause(self) -> None:
        """The next step has an unknown begin."""
        self._settle()
        self.unrecorded.forget()
        self._last = 0
        self._slow.begin(0)
        if self._gpu is not None:
            self._gpu.pause()

    def ended(self, now: int, is_recorded: bool = False) -> bool:
        """Note the end of a step; return whether the condition holds.

        Parameters
        ----------
        now : ns of `time.perf_counter_ns`
        is_recorded : the recorder was on
        """
        self._settle()
        is_slow_on_gpu = not is_recorded and self._is_slow_on_gpu(self._lengths.n_steps)
        is_slow = self._slow.ended(now, not is_recorded)
        self._settle()
        if self._condition is None or is_recorded:
            return False
        step = self._lengths.n_steps - 1
        if self._condition.of == "memory":
            return now >= self._next_look and self._is_full(self._condition, step, now)
        if is_slow:
            slow = self._slow
            self.cause = {"step": step, "ns": slow.length, "median_ns": slow.median}
        elif is_slow_on_gpu and self._gpu is not None:
            self.cause = self._gpu.cause
        return is_slow or is_slow_on_gpu

    def facts(self) -> dict[str, Any]:
        """`step_lengths`, and `most`: the longest step, or the fullest memory, that was watched."""
        self._settle()
        most, longest = self._fullest, self._slow.longest
        if longest is not None:
            most = dict(zip(("step", "ns", "median_ns"), longest, strict=True))
        return {"step_lengths": self._lengths.facts(), "most": most}

    def _settle(self) -> None:
        ends = self._ends[:]
        self._ends.clear()
        for end in ends:
            self._lengths.add(end - self._last if self._last else 0)
            self.unrecorded.ended_at(end)
            self._last = end

    def _is_full(self, condition: Condition, step: int, now: int) -> bool:
        """Whether the share of memory has risen above the limit since the last look."""
        self._next_look = now + _LOOK
        share = reserved_share()
        if share is None:
            return False
        if self._fullest is None or share > self._fullest["memory"]:
            self._fullest = {"step": step, "memory": share}
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


_LOOK_FOR = 0.1  # s between looks for a request
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
        n_left, wait = _ALL, _LOOK_FOR
        if self.is_at_step and not self.n_recordings:
            n_left = max(1, self._settings.first - 1) - n_steps - 1
            n_left = n_left if n_left >= 0 else _ALL
        elif self._settings.after is not None and not self.n_recordings:
            wait = min(wait, self._began + self._settings.after - time.monotonic())
        return n_left, time.perf_counter_ns() + round(wait * 1e9)


_MOST_TIMED: Final = 10  # steps


class Afterwards:
    """Times as many steps as were recorded, at most 10, before everything is undone."""

    def __init__(self) -> None:
        self._steps, self._n_left = UnrecordedSteps(), 0

    def begin(self, n_recorded: int) -> None:
        """The first step after a recording begins."""
        self.forget()
        self._n_left = min(n_recorded, _MOST_TIMED)
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
