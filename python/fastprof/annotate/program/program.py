"""The program that `fastprof run` started: counts its steps and records some."""

from __future__ import annotations

import os
import signal
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.optim import Optimizer
from torch.utils.data import get_worker_info

from fastprof.annotate.layers import Layers
from fastprof.annotate.program.layers import annotate_all
from fastprof.annotate.program.modules import Outermost
from fastprof.annotate.program.optimizers import OptimizerSteps, parameters_of
from fastprof.annotate.program.profilers import OwnProfilers
from fastprof.annotate.program.recording import Recording
from fastprof.annotate.program.status import Status
from fastprof.annotate.program.steps import Repeated
from fastprof.annotate.unrecorded import UnrecordedSteps
from fastprof.errors import CaptureError
from fastprof.runs.settings import NOW, Settings

_TRAINING_CALLS = 100  # calls of a program that may train, before they count as steps
_GRACE = 2.0  # s to wait for the end of a step before recording without steps
_LONG_GRACE = 120.0  # s, in a program with modules or optimizers
_THREAD_ENDED = (
    "the thread whose steps were recorded has ended, and torch.profiler records one thread; call "
    "the model in a thread that stays, or use --backend nsys"
)
_OWN_PROFILER = "the program started a profiler of torch itself, which ended this recording"
_SECONDS = 2.0  # s to record without steps, by default


class Program:
    """Counts steps, and starts and ends recordings at their ends.

    A step ends with the call of `Optimizer.step`, or, in programs without optimizer, with the call
    of the outermost module or of `generate`. A program without steps is recorded by time, from a
    signal handler in its main thread.

    Parameters
    ----------
    settings : what to record
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._now = Path(settings.directory, NOW)
        self._optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._steps, self._modules = OptimizerSteps(self._stepped), Outermost(self._called)
        self._own_profilers = OwnProfilers(self._yield)
        self._by = None if settings.step == "auto" else settings.step
        self._begin_anew()

    def _begin_anew(self) -> None:
        """The state of a new process."""
        self._pid = os.getpid()
        self._status = Status(self._settings.directory, self._pid)
        self._repeated, self._unrecorded = Repeated(), UnrecordedSteps()
        self._recording: Recording | None = None
        self._n_recordings = self._n_training_calls = self._n_steps = 0
        self._is_busy = False
        self._asked: float | None = None  # when a recording was asked for, s
        self._answered: str | None = None  # the request in the file, the last that was seen
        self._began = time.monotonic()

    def watch(self) -> None:
        """Watch the program from now on."""
        if self._by != "call":
            self._steps.install()
        if self._by != "optimizer":
            self._modules.look()
        os.register_at_fork(after_in_child=self._begin_anew)
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL:
            signal.signal(signal.SIGUSR2, self._signalled)
        if self._settings.after is not None:
            self._signal_after(self._settings.after)

    def ended(self) -> None:
        """The program ends: save what is recorded."""
        if os.getpid() != self._pid:
            return
        with suppress(Exception):
            self._modules.close()
            self._steps.close()
        if self._recording is not None:
            self._guarded(self._end)
        self._status.write(self._n_steps, self._by)

    def _stepped(self, optimizer: Optimizer) -> None:
        """An optimizer has stepped."""
        if self._by != "optimizer":
            self._train()
        self._optimizers.add(optimizer)
        if self._repeated.called(optimizer):
            self._guarded(self._step_ended)

    def _train(self) -> None:
        """Begin to count steps of optimizers; calls before the first are no steps."""
        self._modules.stop()
        if self._by == "call":
            self._guarded(self._discard)
        self._by, self._n_steps, self._repeated = "optimizer", 0, Repeated()
        self._unrecorded.forget()

    def _discard(self) -> None:
        """Discard what was recorded, such as an evaluation before training."""
        if self._recording is not None:
            self._end()
        self._status.discard()
        self._n_recordings = 0

    def _called(self, module: Any) -> None:
        """The program has called an outermost module, or `generate`."""
        if self._by == "optimizer":
            return
        is_training = torch.is_grad_enabled() and getattr(module, "training", False)
        if self._by is None and (is_training or self._steps.is_expected):
            self._n_training_calls += 1
            if self._n_training_calls <= _TRAINING_CALLS:
                return
        if self._by is None:
            self._by = "call"
        if self._repeated.called(module):
            self._guarded(self._step_ended)

    def _guarded(self, action: Any) -> None:
        """Run an action; a failure must not reach the program."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            action()
        except Exception as error:
            if self._recording is not None:
                self._recording.abandon()
            self._own_profilers.close()
            self._recording = None
            self._status.problem = f"{type(error).__name__}: {error}"
            self._status.write(self._n_steps, self._by)
        finally:
            self._is_busy = False

    def _step_ended(self) -> None:
        recording = self._recording
        if recording is not None and recording.thread is not threading.current_thread():
            if not recording.thread.is_alive():
                raise CaptureError(_THREAD_ENDED)
            return
        self._n_steps += 1
        if recording is None:
            self._unrecorded.ended()
            if self._is_due() and get_worker_info() is None:
                self._start()
        elif recording.step_ended():
            self._over()

    def _is_due(self) -> bool:
        """Whether a recording begins with the step that begins now."""
        if self._asked is not None or self._is_asked_by_file():
            self._asked = None
            return True
        if self._n_recordings:
            return False
        if self._settings.after is not None:
            return time.monotonic() >= self._began + self._settings.after
        return self._n_steps == max(1, self._settings.first - 1)

    def _is_asked_by_file(self) -> bool:
        """Whether `fastprof run` has received a signal since the last look."""
        try:
            request = self._now.read_text() if self._now.exists() else None
        except OSError:
            return False
        is_new = request not in (None, self._answered)
        self._answered = request
        return is_new

    def _start(self) -> None:
        """Start a recording with the step that begins now."""
        settings = self._settings
        warmup = settings.after is not None or self._n_steps != settings.first
        if settings.seconds is None:
            self._record(warmup, settings.last - settings.first, None)
        else:
            self._record(warmup, None, settings.seconds)

    def _record(self, warmup: bool, n_steps: int | None, seconds: float | None) -> None:
        self._n_recordings += 1
        self._recording = Recording(
            self._settings, self._n_recordings - 1, self._n_steps, warmup, n_steps, seconds,
            self._layers, self._unrecorded.facts(),
        )  # fmt: skip
        self._unrecorded.forget()
        self._own_profilers.install()
        if seconds is not None:
            self._signal_after(seconds)

    def _layers(self) -> list[Layers]:
        return annotate_all(parameters_of(list(self._optimizers)), self._modules.found)

    def _end(self) -> None:
        """End the recording before its last step."""
        if self._recording is not None:
            self._recording.end()
            self._over()

    def _yield(self) -> None:
        """End the recording, since the program is about to use a profiler itself."""
        if self._recording is not None and not self._is_busy:
            self._guarded(self._end)
            self._status.problem = _OWN_PROFILER
            self._status.write(self._n_steps, self._by)

    def _over(self) -> None:
        self._own_profilers.close()
        if self._recording is not None:
            self._status.recorded(self._recording)
            self._recording = None
        self._status.write(self._n_steps, self._by)

    def _signalled(self, _: int, __: FrameType | None) -> None:
        """SIGUSR2, from the user or from a timer: in the main thread."""
        self._guarded(self._timed)

    def _timed(self) -> None:
        """Start or end a recording outside the ends of steps, if there are none."""
        now = time.monotonic()
        if self._recording is not None:
            if self._recording.is_overdue:
                self._end()
        elif self._asked is None:
            self._asked = now
            self._signal_after(_GRACE)
        elif not self._n_steps:
            has_steps = self._modules.found or self._steps.is_expected
            if now >= self._asked + 0.9 * (_LONG_GRACE if has_steps else _GRACE):
                self._asked = None
                self._record(False, None, self._settings.seconds or _SECONDS)
            else:
                self._signal_after(_GRACE)

    def _signal_after(self, seconds: float) -> None:
        """Send SIGUSR2 to the main thread later, if the program has no handler of its own."""
        timer = threading.Timer(seconds, self._signal)
        timer.daemon = True
        timer.start()

    def _signal(self) -> None:
        main = threading.main_thread().ident
        if main is not None and signal.getsignal(signal.SIGUSR2) == self._signalled:
            signal.pthread_kill(main, signal.SIGUSR2)
