"""The program that `fastprof run` started: counts its steps and records some."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer
from torch.utils.data import get_worker_info

from fastprof._core._countdown import Countdown
from fastprof._system.reasons import reason
from fastprof.annotate.layers import Layers
from fastprof.annotate.program.layers import LayerAnnotation, annotate_all
from fastprof.annotate.program.modules import Outermost, OwnProfilers
from fastprof.annotate.program.recording import StepRecording
from fastprof.annotate.program.signals import Guard, HandOver, Signals
from fastprof.annotate.program.status import Status
from fastprof.annotate.program.steps import OptimizerSteps, RepeatedCall, parameters_of
from fastprof.annotate.program.watch import Afterwards, Due
from fastprof.errors import CaptureError
from fastprof.runs.facts import TRAINING_CALLS, Settings

_GRACE = 2.0  # s to wait for the end of a step before recording without steps
_LONG_GRACE = 120.0  # s, in a program with modules or optimizers
_THREAD_ENDED = (
    "the thread whose steps were recorded has ended, and torch.profiler records one thread; call "
    "the model in a thread that stays, or use --backend nsys"
)
_SECONDS = 2.0  # s to record without steps, by default


class RecordedProgram:
    """Counts steps, and starts and ends recordings at their ends.

    A step ends with the call of `Optimizer.step`, or, in programs without optimizer, with the call
    of the outermost module or of `generate`. A program without steps is recorded by time, from a
    signal handler in its main thread.

    The program reaches us only through a `Guard`. After the last recording, and a few steps that
    are timed to compare with, everything is undone; after a failure, at once.

    Parameters
    ----------
    settings : what to record
    annotation : of torch
    """

    def __init__(self, settings: Settings, annotation: LayerAnnotation) -> None:
        self._settings, self._annotation = settings, annotation
        self._due = Due(settings)
        self._watched = self._due.watch
        self._countdown = Countdown(self._watched.passed)
        self._guard = Guard(self._failed)
        self._signals = Signals(lambda: self._guard(self._timed), self._ending, self._guard.handler)
        self._is_resting = self._is_leaving = self._has_failed = False
        self._afterwards = Afterwards()
        self._steps = OptimizerSteps(lambda each: self._guard(self._stepped, each), self._countdown)
        self._modules = Outermost(
            lambda each: self._guard(self._called, each), countdown=self._countdown
        )
        self._own_profilers = OwnProfilers(self._starting)
        self._by = None if settings.step == "auto" else settings.step
        self._begin_anew()

    def _begin_anew(self) -> None:
        """The state of a new process."""
        self._pid = os.getpid()
        self._status = Status(self._settings.directory, self._pid)
        self._countdown.stop()
        self._due.forget()
        self._stay()
        self._repeated = RepeatedCall(self._take)
        self._recording: StepRecording | None = None
        self._handover = HandOver(self._signals.ask)
        self._n_training_calls = self._n_steps = 0
        self._has_told = self._guard.is_busy = False

    def begin(self) -> None:
        """Watch the program from now on."""
        self._guard(self._begin)

    def _begin(self) -> None:
        try:
            self._watch()
            os.register_at_fork(after_in_child=lambda: self._guard.quietly(self._forked))
            self._signals.install()
            if self._settings.after is not None:
                self._signals.ask_after(self._settings.after)
        except BaseException:
            self._has_failed = True
            self._rest()
            raise
        self._guard.quietly(self._report, False)

    def _forked(self) -> None:
        """This process is a copy of the one that was watched."""
        if self._recording is not None:
            self._own_profilers.close()
            self._recording.annotate_no_more()
        self._signals.forget()
        self._begin_anew()

    def ended(self) -> None:
        """The program ends: save what is recorded."""
        if os.getpid() == self._pid:
            self._hand_over(self._end)
            self._guard(self._save_all)

    def _watch(self) -> None:
        self._watched.pause()
        self._countdown.is_off = self._is_resting = False
        if self._by != "call":
            self._steps.install()
        self._annotation.apply()
        if self._by is None:
            self._modules.look()
        elif self._by == "call":
            self._modules.look()
            self._modules.resume()

    def _rest(self) -> None:
        """Undo everything, until a signal asks for a recording.

        After calls of modules, the first step of an optimizer may still show that they were an
        evaluation before training.
        """
        self._is_resting = True
        self._stay()
        undoing = [self._own_profilers.close, self._modules.close, self._annotation.undo]
        if self._by != "call" or self._settings.step != "auto" or self._has_failed:
            self._countdown.is_off = True
            # Those that the annotation is around need the second call.
            undoing = [*undoing[:-1], self._steps.close, undoing[-1], self._steps.close]
        for function in undoing:
            if not self._guard.quietly(function):
                self._guard.quietly(function)

    # What the program calls, through the guard.

    def _stepped(self, optimizer: Optimizer) -> None:
        """An optimizer has stepped."""
        self._take()
        if self._by != "optimizer":
            self._train()
        if self._repeated.called(optimizer):
            self._step_ended()

    def _called(self, module: Any) -> None:
        """The program has called an outermost module, or `generate`."""
        if self._by == "optimizer":
            return
        self._take()
        is_training = torch.is_grad_enabled() and getattr(module, "training", False)
        if self._by is None and (is_training or self._steps.is_expected):
            self._n_training_calls += 1
            if self._n_training_calls <= TRAINING_CALLS:
                return
        if self._by is None:
            self._by = "call"
        if self._repeated.called(module):
            self._step_ended()

    def _timed(self) -> None:
        """SIGUSR2: start or end a recording outside the ends of steps, if there are none."""
        self._take()
        now = time.monotonic()
        if self._recording is not None:
            if self._recording.is_of_this_thread:
                self._handover.run()
                if self._recording is not None and self._recording.is_overdue:
                    self._end()
        elif self._due.asked is None:
            self._due.asked = now
            if self._is_resting:
                self._watch()
            self._signals.ask_after(_GRACE)
        elif not self._n_steps:
            has_steps = self._modules.found or self._steps.is_expected
            if now >= self._due.asked + 0.9 * (_LONG_GRACE if has_steps else _GRACE):
                self._due.asked = None
                self._record(False, None, self._settings.seconds or _SECONDS)
            else:
                self._signals.ask_after(_GRACE)

    def _starting(self) -> None:
        """The program is about to start a profiler itself; profilers of two threads crash torch."""
        self._hand_over(self._yield)
        self._guard(self._yield)

    def _yield(self) -> None:
        """End the recording, since the program is about to use a profiler itself."""
        if self._recording is not None:
            step = self._n_steps
            self._recording.stop(
                f"in step {step} the program starts a profiler of torch itself, and one can run at "
                f"a time, so nothing is recorded from step {step} on; switch its profiler off, or "
                "record other steps with --steps"
            )
            self._end()

    def _ending(self) -> bool:
        """A signal ends the program; return False if it must wait for `Signals.release`."""
        if self._guard.is_busy:
            return False
        self._hand_over(self._end)
        self._guard(self._save_all)
        return True

    def _hand_over(self, action: Callable[[], None]) -> None:
        """Let the thread that is recorded run an action, if it is another one."""
        if self._recording is not None and not self._recording.is_of_this_thread:
            self._handover.give(action, _GRACE)

    def _save_all(self) -> None:
        self._take()
        if self._recording is not None:
            self._end()
        if self._is_leaving:
            self._status.followed(self._afterwards.facts())
        if not self._is_resting:
            self._rest()
        self._write(True)
        self._signals.release()

    def _failed(self, error: Exception) -> None:
        """Give up after an error of ours."""
        self._has_failed = True
        recording, self._recording = self._recording, None
        if recording is not None:
            self._guard.quietly(recording.abandon)
        self._rest()
        self._status.problem = reason(error)
        self._write(False)
        self._signals.release()

    # Steps and recordings.

    def _take(self) -> None:
        """Take over from the countdown."""
        n_steps, n_calls = self._countdown.stop()
        self._n_steps += n_steps
        self._repeated.counted(n_calls)

    def _count_down(self) -> None:
        """Let the countdown count the steps until the next look for a request, or a recording."""
        if self._due.asked is None:
            objects, n_calls = self._repeated.calls
            self._countdown.start(objects, n_calls, *self._due.until_look(self._n_steps))

    def _train(self) -> None:
        """Begin to count steps of optimizers; calls before the first are no steps."""
        self._modules.stop()
        if self._by == "call":
            self._discard()
        self._by, self._n_steps, self._repeated = "optimizer", 0, RepeatedCall(self._take)
        self._watched.forget()
        if self._is_resting:
            self._watch()

    def _discard(self) -> None:
        """Discard what was recorded, such as an evaluation before training."""
        if self._recording is not None:
            self._finish()
        self._stay()
        self._status.discard()
        self._due.discard()

    def _step_ended(self) -> None:
        recording = self._recording
        if recording is not None and not recording.is_of_this_thread:
            if not recording.thread.is_alive():
                raise CaptureError(_THREAD_ENDED)
            return
        now = time.perf_counter_ns()
        is_timed = recording is None and self._afterwards.ended(now)
        if is_timed:
            self._status.followed(self._afterwards.facts())
        if self._is_leaving:
            self._leave(is_timed)
            return
        self._n_steps += 1
        if recording is not None:
            self._watched.ended(now, is_recorded=True)
            self._guard.defer_signals(self._signals.held)
            if recording.step_ended() or self._signals.is_pending:
                self._over()
            self._handover.run()
            self._watched.begin()
        elif self._due.ended(now, self._n_steps) and get_worker_info() is None:
            self._start()
            self._watched.begin()
        else:
            self._count_down()

    def _leave(self, is_timed: bool) -> None:
        """A step after the last recording has ended; with the last of them that is timed, rest."""
        if self._due.is_asked_now() and get_worker_info() is None:
            self._stay()
            self._n_steps += 1
            self._start()
            self._watched.begin()
        elif is_timed:
            self._rest()
            self._write(False)

    def _stay(self) -> None:
        """There is no last recording yet, or everything is undone."""
        self._is_leaving = False
        self._afterwards.forget()

    def _start(self) -> None:
        """Start a recording with the step that begins now."""
        settings = self._settings
        warmup = not self._due.is_at_step or self._n_steps != settings.first
        if settings.seconds is None:
            self._record(warmup, settings.last - settings.first, None)
        else:
            self._record(warmup, None, settings.seconds)

    def _record(self, warmup: bool, n_steps: int | None, seconds: float | None) -> None:
        self._guard.defer_signals(self._signals.held)
        if self._own_profilers.are_active():
            step = self._n_steps
            raise CaptureError(
                f"a profiler of the program is already active in step {step}, and one can run at a "
                f"time, so nothing is recorded from step {step} on; switch its profiler off, or "
                "record other steps with --steps"
            )
        self._due.n_recordings += 1
        self._recording = StepRecording(
            self._settings, self._due.n_recordings - 1, self._n_steps, warmup, n_steps, seconds,
            self._layers, self._watched.unrecorded.facts(), self._watched.cause,
        )  # fmt: skip
        self._own_profilers.install()
        self._signals.keep()
        if seconds is not None:
            self._signals.ask_after(seconds)

    def _layers(self) -> list[Layers]:
        optimizers = [call for call in self._repeated.calls[0] if isinstance(call, Optimizer)]
        return annotate_all(parameters_of(optimizers), self._modules.found)

    def _end(self) -> None:
        """End the recording before its last step."""
        self._guard.defer_signals(self._signals.held)
        if self._recording is not None:
            self._over()

    def _over(self) -> None:
        recording = self._recording
        try:
            self._finish()
        finally:
            if recording is not None and recording.note:
                self._status.notes.append(recording.note)
        is_stopped = recording is not None and recording.is_stopped
        n_recorded = 0 if recording is None or is_stopped else recording.n_recorded
        if self._due.is_over or is_stopped:
            self._is_leaving = n_recorded > 0
            if not self._is_leaving:
                self._rest()
        self._write(False)
        self._signals.release()
        self._afterwards.begin(n_recorded)

    def _finish(self) -> None:
        """The recording is over, or discarded."""
        recording, self._recording = self._recording, None
        self._own_profilers.close()
        if recording is not None:
            recording.end()
            self._status.recorded(recording)

    def _write(self, is_over: bool) -> None:
        """Report to `fastprof run`; on failure, tell the user instead."""
        try:
            self._report(is_over)
        except Exception as error:
            self._tell(self._status.problem or f"its report is lost: {reason(error)}")

    def _report(self, is_over: bool) -> None:
        self._status.write(
            steps=self._n_steps, by=self._by, training_calls=self._n_training_calls,
            is_over=is_over,
            is_signalled=(self._is_resting or self._is_leaving) and self._signals.are_asking,
            **self._watched.facts(),
        )  # fmt: skip

    def _tell(self, problem: str) -> None:
        """Say once what is lost; nobody else can."""
        if not self._has_told and sys.stderr is not None:
            self._has_told = True
            self._guard.quietly(sys.stderr.write, f"fastprof: recording failed: {problem}\n")
