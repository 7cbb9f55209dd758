"""One recording of some steps, and torch's own record of its GPU memory meanwhile."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from fastprof._core import _hooks
from fastprof._system.memory import available, format_size
from fastprof._system.reasons import reason
from fastprof.annotate import gpus
from fastprof.annotate.layers import Layers
from fastprof.annotate.recorders import (
    RECORDERS,
    InUseRecorder,
    RangesRecorder,
    RoctxRecorder,
    rank_and_world,
)
from fastprof.runs.facts import Settings, snapshot_of, trace_name

_LOG_LEVEL = "KINETO_LOG_LEVEL"
_MOST_MEMORY = 4 << 30  # bytes, by default
_OTHER_THREAD = (
    "the thread that was recorded ended no step before the program ended, and torch.profiler gives "
    "events to their thread alone; let the program wait for its threads"
)
_FIRST_USE = (
    "the program began to use a GPU while it was recorded, and the trace has none of its work; "
    "record later steps with --steps, or later with --after"
)
_RECORDERS = {
    **RECORDERS,
    "torch": InUseRecorder,
    "ranges": RangesRecorder,
    "roctx": RoctxRecorder,
}


class StepRecording:
    """Records consecutive steps, after one that warms the profiler up.

    All calls come from one thread, at the ends of steps, except `end` and `abandon`: what
    torch.profiler recorded is lost in another thread. torch.profiler keeps what it records in
    memory: the recording ends when the process has grown by `settings.max_memory`.

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
    cause : why it begins, if a condition held, see `Watch`

    Attributes
    ----------
    is_stopped : bool
        Whether it ended early, for a reason that the user is told.
    note : str
        The reason, if it is one of the recording itself, or what else is lost.

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
        cause: dict[str, Any] | None = None,
    ) -> None:
        self.path: Path | None = None
        self.unrecorded, self.cause = unrecorded, cause
        self.thread = threading.current_thread()
        self.first, self.last = step + warmup, None if n_steps is None else step + warmup + n_steps
        self.is_stopped, self.note, self._is_over = False, "", False
        self._step, self._seconds = step, seconds
        self._memory = _Memory(settings.max_memory)
        self._is_of_a_thread = settings.backend == "torch"
        trace = Path(settings.directory, trace_name(number))
        self._recorder = _RECORDERS[settings.backend](
            trace if settings.backend == "torch" else None
        )
        self._recorder.unrecorded = unrecorded
        # A stretch by time, such as the start of the program, includes its first use of a GPU.
        is_start = settings.after is not None
        if isinstance(self._recorder, InUseRecorder):
            self._recorder.is_start = is_start
        self._used_gpus = is_start or gpus.are_used()
        self._recorder.prepare(*rank_and_world())
        self._was_on = _hooks.annotate(True)
        self._layers: list[Layers] = []
        self._began: float | None = None  # the first recorded step, s
        self._history: MemoryHistory | None = None
        try:
            if cause is not None and "memory" in cause:
                self._history = MemoryHistory(snapshot_of(trace))
            self._layers = layers()
            self._enter()
        except BaseException:
            self.abandon()
            raise

    @property
    def is_of_this_thread(self) -> bool:
        """Whether the thread that calls is the one that is recorded."""
        return self.thread is threading.current_thread()

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
        if not is_over and self.n_recorded and self._memory.is_used_up():
            self.stop(f"the process has grown by {self._memory}; raise --max-memory for more")
            is_over = True
        if is_over:
            self.end()
        else:
            self._enter()
        return is_over

    def end(self) -> None:
        """End the recording and save what was recorded; do nothing if it is over.

        Raises
        ------
        CaptureError
            The trace cannot be written.
        """
        if self._is_over:
            return
        self._is_over = True
        self.annotate_no_more()
        try:
            if self._history is not None:
                self._history.end(keep=self.has_begun)
        except Exception as error:
            self.note = self.note or f"the memory snapshot is lost: {reason(error)}"
        is_lost = self._is_of_a_thread and not self.is_of_this_thread
        with _quiet_kineto():
            self.path = self._recorder.end(keep=self.has_begun and not is_lost)
        if self._is_of_a_thread and self.path is not None and not self._used_gpus:
            self.note = self.note or (_FIRST_USE if gpus.are_used() else "")
        if is_lost and self.has_begun:
            self._step = self.first
            self.stop(_OTHER_THREAD)

    def abandon(self) -> None:
        """End the recording after a failure; nothing is saved."""
        self._is_over = True
        with suppress(Exception):
            self.annotate_no_more()
        with suppress(Exception), _quiet_kineto():
            self._recorder.end(keep=False)
        with suppress(Exception):
            if self._history is not None:
                self._history.end(keep=False)

    def stop(self, why: str) -> None:
        """Note why fewer steps than asked for are recorded, before `end`."""
        asked = "" if self.last is None else f" of {self.last - self.first}"
        self.is_stopped, self.note = True, f"recorded {self.n_recorded}{asked} steps: {why}"

    def _is_time_over(self) -> bool:
        if self._seconds is None or self._began is None:
            return False
        return time.monotonic() >= self._began + self._seconds

    def _enter(self) -> None:
        is_recorded = self._step >= self.first
        if is_recorded and self._began is None:
            self._began = time.monotonic()
            self._memory.begin()
        with _quiet_kineto():
            self._recorder.enter(self._step, is_on=True, is_recorded=is_recorded)

    def annotate_no_more(self) -> None:
        """Remove the layers, and turn ranges off."""
        _hooks.annotate(self._was_on)
        while self._layers:
            self._layers.pop().remove()


@contextmanager
def _quiet_kineto() -> Iterator[None]:
    """torch's profiler writes to stderr what it does, unless told when it starts first."""
    is_set = _LOG_LEVEL in os.environ
    if not is_set:
        os.environ[_LOG_LEVEL] = "99"
    try:
        yield
    finally:
        if not is_set:
            os.environ.pop(_LOG_LEVEL, None)


class _Memory:
    """How much this process may grow by, while torch.profiler keeps events in memory."""

    def __init__(self, limit: int | None) -> None:
        self._limit = min(_MOST_MEMORY, available()[0] / 4) if limit is None else float(limit)
        self._before = self._grown = 0

    def begin(self) -> None:
        """Count from now on."""
        self._before = _resident()

    def is_used_up(self) -> bool:
        """Whether the process has grown by the limit."""
        self._grown = _resident() - self._before
        return self._grown > self._limit

    def __str__(self) -> str:
        return format_size(self._grown)


def _resident() -> int:
    """Bytes of this process in memory; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


_MOST_EVENTS = 100_000


class MemoryHistory:
    """Keeps allocations with their call stacks; does nothing if the program does so itself.

    Parameters
    ----------
    path : of the snapshot to write
    """

    def __init__(self, path: Path) -> None:
        self._path: Path | None = None
        if torch.cuda.is_initialized() and not torch._C._cuda_isHistoryEnabled():
            torch.cuda.memory._record_memory_history(max_entries=_MOST_EVENTS)
            self._path = path

    def end(self, keep: bool) -> None:
        """Save the snapshot, and record no more."""
        path, self._path = self._path, None
        if path is None:
            return
        try:
            if keep:
                torch.cuda.memory._dump_snapshot(str(path))
        finally:
            torch.cuda.memory._record_memory_history(enabled=None)
