"""One recording of some steps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from fastprof._core import _hooks
from fastprof.annotate.layers import Layers
from fastprof.annotate.recorders import RECORDERS, RangesRecorder, rank_and_world
from fastprof.runs.settings import Settings, trace_name

_ENDLESS = 1 << 30  # steps
_RECORDERS = {**RECORDERS, "ranges": RangesRecorder}


class Recording:
    """Records consecutive steps, after one that warms the profiler up.

    All calls come from one thread, at the ends of steps.

    Parameters
    ----------
    settings : what to record
    number : of this recording in the process, from 0
    step : number of the step that begins now, from 0
    warmup : the step that begins now is to warm up
    n_steps : steps to record; None to record for some time
    seconds : the time, None to record steps
    layers : gives all modules their layers
    unrecorded : the steps before, see `UnrecordedSteps.facts`

    Raises
    ------
    CaptureError
        Another profiler is active, or the trace cannot be written.
    """

    def __init__(
        self,
        settings: Settings,
        number: int,
        step: int,
        warmup: bool,
        n_steps: int | None,
        seconds: float | None,
        layers: Callable[[], list[Layers]],
        unrecorded: dict[str, Any] | None = None,
    ) -> None:
        self.path: Path | None = None
        self.unrecorded = unrecorded
        self.thread = threading.current_thread()
        self.first, self.last = step + warmup, None if n_steps is None else step + warmup + n_steps
        self._step, self._seconds = step, seconds
        is_file = settings.backend == "torch"
        self._recorder = _RECORDERS[settings.backend](
            (step, int(warmup), n_steps or _ENDLESS),
            Path(settings.directory) / trace_name(number) if is_file else None,
            None,
        )
        self._recorder.unrecorded = unrecorded
        self._recorder.prepare(*rank_and_world())
        self._was_on = _hooks.annotate(True)
        self._layers = layers()
        self._began: float | None = None  # the first recorded step, s
        try:
            self._enter()
        except BaseException:
            self._annotate_no_more()
            raise

    @property
    def has_begun(self) -> bool:
        """Whether anything is recorded, as opposed to a step that warms the profiler up."""
        return self._began is not None

    @property
    def n_recorded(self) -> int:
        """Complete recorded steps."""
        return max(0, self._step - self.first)

    @property
    def is_overdue(self) -> bool:
        """Whether the time is over and no step has ended."""
        return self._is_time_over() and self.n_recorded == 0

    def step_ended(self) -> bool:
        """Go on with the next step, or end the recording; return whether it is over."""
        self._step += 1
        is_over = self._step == self.last or self._is_time_over()
        if is_over:
            self.end()
        else:
            self._enter()
        return is_over

    def end(self) -> None:
        """End the recording and save what was recorded.

        Raises
        ------
        CaptureError
            The trace cannot be written.
        """
        self._annotate_no_more()
        self.path = self._recorder.end(keep=self.has_begun)

    def abandon(self) -> None:
        """End the recording after a failure; nothing is saved."""
        self._annotate_no_more()
        with suppress(Exception):
            self._recorder.end(keep=False)

    def _is_time_over(self) -> bool:
        if self._seconds is None or self._began is None:
            return False
        return time.monotonic() >= self._began + self._seconds

    def _enter(self) -> None:
        is_recorded = self._step >= self.first
        if is_recorded and self._began is None:
            self._began = time.monotonic()
        self._recorder.enter(self._step, is_on=True, is_recorded=is_recorded)

    def _annotate_no_more(self) -> None:
        _hooks.annotate(self._was_on)
        while self._layers:
            self._layers.pop().remove()
