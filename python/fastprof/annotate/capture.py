"""Records a few iterations of a training loop."""

from __future__ import annotations

import enum
import os
import warnings
import weakref
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Literal

from fastprof.annotate.recorders import RECORDERS, Recorder, rank_and_world
from fastprof.annotate.timings import UnrecordedSteps
from fastprof.errors import CaptureError


class _Phase(enum.Enum):
    BEFORE = enum.auto()
    WAIT = enum.auto()
    WARMUP = enum.auto()
    ACTIVE = enum.auto()
    OVER = enum.auto()


_RUNNING = (_Phase.WAIT, _Phase.WARMUP, _Phase.ACTIVE)

# PyTorch has one profiler, hence one capture at a time. A weak reference: a discarded one is over.
_running: weakref.ref[Capture] | None = None


def capture(
    *,
    wait: int = 10,
    warmup: int = 2,
    active: int = 1,
    backend: Literal["nvtx", "torch"] = "nvtx",
    path: str | os.PathLike[str] | None = None,
    with_stack: bool | None = None,
    ranks: Collection[int] | None = None,
) -> Capture:
    """Record a few iterations of a loop.

    Parameters
    ----------
    wait : int
        Iterations to skip.
    warmup : int
        Iterations after `wait` with the profiler enabled but not recording.
    active : int
        Iterations to record after `warmup`. The profiler is then disabled.
    backend : {"nvtx", "torch"}
        "nvtx": for a program that runs under Nsight Systems (`fastprof nsys --captured`, or `nsys
        profile --capture-range=cudaProfilerApi --capture-range-end=stop`). Operators become NVTX
        ranges with shapes (`torch.autograd.profiler.emit_nvtx`), iterations `ProfilerStep#N`.
        "torch": records with torch.profiler and saves its trace. It needs no GPU.
    path : path, optional
        For "torch": the file to write, .json or .json.gz; default `fastprof_trace.json.gz`. The
        file is replaced atomically when the trace is complete. With several ranks, each writes its
        own file: `net.rank3.json.gz` for `net.json.gz`.
    with_stack : bool, optional
        For "torch": also record Python functions, for source lines and modules. The file becomes
        several times larger and the iterations slower; kernel times do not change. Default: only
        without `fastprof.init`, which records source lines itself.
    ranks : collection of int, optional
        The ranks that record; default all. The others do nothing. If several processes run under
        one nsys, it stops when the first of them stops: let one rank record.

    Returns
    -------
    Capture
        A context manager, with start() and stop() as the alternative. Call its step() at the end of
        each iteration, in the thread that started it.

    Raises
    ------
    CaptureError
        An argument is invalid, or the backend is not available.

    Examples
    --------
    >>> with fastprof.capture(wait=10, active=2) as cap:    # doctest: +SKIP
    ...     for batch in loader:
    ...         train_step(batch)
    ...         cap.step()
    """
    for name, value, least in (("wait", wait, 0), ("warmup", warmup, 0), ("active", active, 1)):
        if type(value) is not int or value < least:
            raise CaptureError(
                f"{name}={value!r}: expected an integer number of iterations, at least {least}"
            )
    if backend not in RECORDERS:
        raise CaptureError(
            f"backend={backend!r}: expected one of {', '.join(map(repr, RECORDERS))}"
        )
    recorder = RECORDERS[backend](path, with_stack)
    return Capture(wait, warmup, active, recorder, ranks)


class Capture:
    """A recording of a few iterations, created by `fastprof.capture`.

    Attributes
    ----------
    path : Path or None
        The saved trace. None if none is saved yet, or if the backend writes no file.

    Notes
    -----
    Leaving the block early stops the recording. The incomplete recording is kept, with a warning;
    after an exception it is discarded. A finished capture can be started again. Only one capture
    can run at a time.
    """

    def __init__(
        self,
        wait: int,
        warmup: int,
        active: int,
        recorder: Recorder,
        ranks: Collection[int] | None,
    ) -> None:
        self.path: Path | None = None
        self._phases = (_Phase.WAIT,) * wait + (_Phase.WARMUP,) * warmup + (_Phase.ACTIVE,) * active
        self._numbers = f"wait={wait}, warmup={warmup}, active={active}"
        self._recorder = recorder
        self._ranks = None if ranks is None else frozenset(ranks)
        self._phase = _Phase.BEFORE
        self._iteration = 0  # the current one, from 0
        self._unrecorded = UnrecordedSteps()

    def start(self) -> Capture:
        """Begin the first iteration and return the capture.

        Raises
        ------
        CaptureError
            A capture is already running, or recording cannot start.
        """
        global _running
        other = None if _running is None else _running()
        if other is not None:
            which = "this capture" if other is self else "another capture"
            raise CaptureError(f"{which} is running; call its stop() before start()")
        rank, world = rank_and_world()
        self.path, self._iteration = None, 0
        if self._ranks is not None and rank not in self._ranks:
            self._phase = _Phase.OVER
            return self
        self._recorder.prepare(rank, world)
        self._unrecorded.forget()
        _running = weakref.ref(self)
        self._enter()
        return self

    def step(self) -> None:
        """End an iteration. Has no effect after the last one.

        Raises
        ------
        CaptureError
            The capture was not started, or recording or saving failed.
        """
        if self._phase is _Phase.BEFORE:
            raise CaptureError("step(): the capture is not started; use `with`, or call start()")
        if self._phase in _RUNNING:
            self._iteration += 1
            if self._iteration < len(self._phases):
                self._enter()
            else:
                self._end(keep=True)

    def stop(self) -> None:
        """End the recording now. Has no effect when the capture is over.

        Raises
        ------
        CaptureError
            The recording cannot be saved.
        """
        self._stop()

    def __enter__(self) -> Capture:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self._stop()
        elif self._phase in _RUNNING:
            with suppress(RuntimeError):  # a GPU failure; the loop's exception is more useful
                self._end(keep=False)

    def _stop(self) -> None:
        if self._phase in _RUNNING:
            self._end(keep=True)
            warnings.warn(self._missing(), RuntimeWarning, stacklevel=3)

    def _enter(self) -> None:
        """Begin the next iteration."""
        self._phase, before = self._phases[self._iteration], self._phase
        if self._phase is _Phase.WAIT or before is _Phase.WAIT:
            self._unrecorded.ended()
        if self._phase is _Phase.ACTIVE and before is not _Phase.ACTIVE:
            self._recorder.unrecorded = self._unrecorded.facts()
        try:
            self._recorder.enter(
                self._iteration,
                is_on=self._phase is not _Phase.WAIT,
                is_recorded=self._phase is _Phase.ACTIVE,
            )
        except BaseException:
            with suppress(RuntimeError):
                self._end(keep=False)
            raise

    def _end(self, keep: bool) -> None:
        global _running
        keep = keep and self._phase is _Phase.ACTIVE
        self._phase, _running = _Phase.OVER, None
        self.path = self._recorder.end(keep)

    def _missing(self) -> str:
        """The warning for an incomplete capture."""
        n_active = self._phases.count(_Phase.ACTIVE)
        n_done = max(0, self._iteration - len(self._phases) + n_active)
        begun = self._iteration >= len(self._phases) - n_active
        done = f"{n_done} of {n_active} iterations were fully captured"
        return (
            f"fastprof.capture: {done if begun else 'nothing was captured'}: expected "
            f"{len(self._phases)} calls of step(), found {self._iteration} ({self._numbers})"
        )
