"""A training loop -> a recording of a few of its iterations."""

from __future__ import annotations

import enum
import os
import warnings
import weakref
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from fastprof.annotate.recorders import RECORDERS, Recorder, rank_and_world
from fastprof.errors import CaptureError

__all__ = ["Capture", "capture"]


class _Phase(enum.Enum):
    BEFORE = enum.auto()
    WAIT = enum.auto()
    WARMUP = enum.auto()
    ACTIVE = enum.auto()
    OVER = enum.auto()


_RUNNING = (_Phase.WAIT, _Phase.WARMUP, _Phase.ACTIVE)

# PyTorch has one profiler, so one capture may run. One that nobody holds any more runs no more.
_running: weakref.ref[Capture] | None = None


def capture(
    *,
    wait: int = 10,
    warmup: int = 2,
    active: int = 1,
    backend: str = "nvtx",
    path: str | os.PathLike[str] | None = None,
    with_stack: bool | None = None,
    ranks: Collection[int] | None = None,
) -> Capture:
    """Record a few iterations of a loop.

    Parameters
    ----------
    wait : int
        Iterations that nothing is done in.
    warmup : int
        Iterations after them with the profiler on and nothing recorded yet.
    active : int
        Iterations after those that are recorded. Then the profiler is off again.
    backend : {"nvtx", "torch"}
        "nvtx": for a program that runs under Nsight Systems (`fastprof nsys --captured`, or `nsys
        profile --capture-range=cudaProfilerApi --capture-range-end=stop`): operators become NVTX
        ranges with shapes (`torch.autograd.profiler.emit_nvtx`), iterations `ProfilerStep#N`.
        "torch": torch.profiler records, and its trace is saved. It needs no GPU.
    path : path, optional
        Of "torch": the file to write, .json or .json.gz, `fastprof_trace.json.gz` without it. It
        appears when it is whole and replaces an older one. Where there are several ranks, each
        has a file of its own: `net.rank3.json.gz` for `net.json.gz`.
    with_stack : bool, optional
        Of "torch": record Python's functions too, for source lines and modules. They make the
        file several times larger and slow the iterations down, not the kernels in them. By default
        only where `fastprof.init` is not on, which tells lines by itself.
    ranks : collection of int, optional
        The ranks that record; all without it. For the others nothing happens. Several processes
        under one nsys are recorded until the first of them stops: let one of them record.

    Returns
    -------
    Capture
        To be used as a context manager, or by start() and stop(). Its step() is called at the end
        of each iteration, by the thread that started it.

    Raises
    ------
    CaptureError
        An argument makes no sense, or what the backend needs is not there.

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
                f"{name}={value!r}: expected a number of iterations, {least} or more"
            )
    if backend not in RECORDERS:
        raise CaptureError(
            f"backend={backend!r}: expected one of {', '.join(map(repr, RECORDERS))}"
        )
    recorder = RECORDERS[backend]((wait, warmup, active), path, with_stack)
    return Capture(wait, warmup, active, recorder, ranks)


class Capture:
    """A recording of a few iterations; `fastprof.capture` makes it.

    Attributes
    ----------
    path : Path or None
        The trace that was saved. None: none yet, or the backend writes none.

    Notes
    -----
    A block that is left before its end stops the recording too. What was recorded by then is
    kept, with a warning; after an exception it is not. A capture may be started again when it is
    over; two at once may not run.
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
        self._iteration = 0  # that runs, from 0

    def start(self) -> Capture:
        """Begin with the first iteration; the capture itself.

        Raises
        ------
        CaptureError
            This capture or another is running, or the recording cannot be made.
        """
        global _running
        other = None if _running is None else _running()
        if other is not None:
            which = "this capture" if other is self else "another capture"
            raise CaptureError(f"{which} is running; stop() it before the next is started")
        rank, world = rank_and_world()
        self.path, self._iteration = None, 0
        if self._ranks is not None and rank not in self._ranks:
            self._phase = _Phase.OVER
            return self
        self._recorder.prepare(rank, world)
        _running = weakref.ref(self)
        self._enter()
        return self

    def step(self) -> None:
        """Say that an iteration is done. Nothing happens when the capture is over.

        Raises
        ------
        CaptureError
            The capture was not started, or the recording cannot be made or saved.
        """
        if self._phase is _Phase.BEFORE:
            raise CaptureError("step() of a capture that was not started; use `with`, or start()")
        if self._phase in _RUNNING:
            self._iteration += 1
            if self._iteration < len(self._phases):
                self._enter()
            else:
                self._end(keep=True)

    def stop(self) -> None:
        """End the recording now; nothing happens when the capture is over.

        Raises
        ------
        CaptureError
            The recording cannot be saved.
        """
        self._stop()

    def __enter__(self) -> Capture:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self._stop()
        elif self._phase in _RUNNING:
            with suppress(RuntimeError):  # a GPU in trouble; the loop's own error says more
                self._end(keep=False)

    def _stop(self) -> None:
        if self._phase in _RUNNING:
            self._end(keep=True)
            warnings.warn(self._missing(), RuntimeWarning, stacklevel=3)

    def _enter(self) -> None:
        """Do what the iteration that comes next begins with."""
        self._phase = self._phases[self._iteration]
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
        """What was not captured, and why."""
        n_active = self._phases.count(_Phase.ACTIVE)
        n_done = max(0, self._iteration - len(self._phases) + n_active)
        begun = self._iteration >= len(self._phases) - n_active
        told = f"{n_done} of {n_active} iterations were captured to their end"
        return (
            f"fastprof.capture: {told if begun else 'nothing was captured'}: step() was called "
            f"{self._iteration} times, and {len(self._phases)} are needed ({self._numbers})"
        )
