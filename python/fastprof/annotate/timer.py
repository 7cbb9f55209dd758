"""Times blocks of code, on the GPU if they use it."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Protocol, TypeVar, cast

import torch

from fastprof.annotate.timings import Timings, add, measured
from fastprof.errors import FastprofError

_F = TypeVar("_F", bound=Callable[..., Any])
# Missing in PyTorch before 2.1, where timers in compiled code are not supported.
_is_compiling: Callable[[], bool] = getattr(
    getattr(torch, "compiler", None), "is_compiling", lambda: False
)


class TimerError(FastprofError, ValueError):
    """A timer has invalid arguments or cannot use its device."""


def timer(name: str, device: str | torch.device | None = None) -> Timer:
    """Time a block of code, or a function.

    Parameters
    ----------
    name : str
        The name in `fastprof.timings`. Blocks of the same name are counted together.
    device : str or torch.device, optional
        "cuda" or "cuda:1": GPU time between the start and the end of the block on the current
        stream. "cpu": wall clock. Default: "cuda" if CUDA is initialized, else "cpu".

    Returns
    -------
    Timer
        A context manager and a decorator, also for coroutine functions.

    Raises
    ------
    TimerError
        An argument is invalid, or CUDA is not available.

    Notes
    -----
    Timers do not synchronize with the GPU. Each end of a block records a CUDA event; the events are
    read by `fastprof.timings`, or earlier when many are complete. A block's time is therefore that
    of its work on the stream, including gaps where the stream waits for the block to launch more,
    not that of the Python code.

    Blocks may nest. A timer is reentrant and thread-safe. A block left by an exception counts.
    Nothing is measured in compiled code or while the stream captures a CUDA graph. Compiled code
    stays one graph if it creates the timer itself (`with fastprof.timer("x"):`) or if the timer
    decorates a function.

    Examples
    --------
    >>> with fastprof.timer("forward"):    # doctest: +SKIP
    ...     loss = model(batch)
    >>> print(fastprof.timings())          # doctest: +SKIP
    """
    return Timer(name, device)


def timings() -> Timings:
    """All measurements so far. Waits until the GPU completes the measured blocks.

    Returns
    -------
    Timings
        `print` shows a table; `rows` and `to_dict()` contain the numbers; `reset()` clears them.
    """
    return measured()


class Timer:
    """Times blocks of code; created by `fastprof.timer`."""

    def __init__(self, name: str, device: str | torch.device | None = None) -> None:
        if not isinstance(name, str):
            raise TimerError(f"timer({name!r}): expected a name (str), found {type(name).__name__}")
        self.name = name
        self.device = None if device is None or _is_compiling() else _device(device)

    def __enter__(self) -> Timer:
        if not _is_compiling():
            _of_thread.started.append((self, self._start()))
        return self

    def __exit__(self, kind: object, error: BaseException | None, *rest: object) -> None:
        if _is_compiling():
            return
        block = _last_of(self)
        if block is not None:
            try:
                block.stop(self.name)
            except RuntimeError:  # a GPU failure; the block's exception is more useful
                if error is None:
                    raise

    def __call__(self, function: _F) -> _F:
        """Decorate a function: time each of its calls."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TimerError(
                f"timer({self.name!r}): {function.__qualname__} is a generator, whose body runs "
                "after the call; use `with` inside it"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def timed_coroutine(*args: Any, **keywords: Any) -> Any:
                with Timer(self.name, self.device):  # a new object: calls in a thread overlap
                    return await function(*args, **keywords)

            return cast(_F, timed_coroutine)

        @functools.wraps(function)
        def timed(*args: Any, **keywords: Any) -> Any:
            if _is_compiling():  # it cannot enter an outside object
                return function(*args, **keywords)
            with self:
                return function(*args, **keywords)

        return cast(_F, timed)

    def _start(self) -> _Block | None:
        """Begin a block; None while the stream captures a CUDA graph."""
        device = self.device
        if device is None:
            device = _CUDA if torch.cuda.is_initialized() else _CPU
        if device.type == "cpu":
            return _WallBlock()
        return None if torch.cuda.is_current_stream_capturing() else _CudaBlock(device)


_CPU, _CUDA = torch.device("cpu"), torch.device("cuda")


class _Block(Protocol):
    """A running block."""

    def stop(self, name: str) -> None:
        """End the block and add its time."""


class _WallBlock:
    def __init__(self) -> None:
        self._start = perf_counter_ns()

    def stop(self, name: str) -> None:
        add(name, "wall", perf_counter_ns() - self._start)


class _CudaBlock:
    def __init__(self, device: torch.device) -> None:
        stream = torch.cuda.current_stream(device)
        self._device = stream.device
        self._start = torch.cuda.Event(enable_timing=True)
        self._start.record(stream)

    def stop(self, name: str) -> None:
        if torch.cuda.is_current_stream_capturing():
            return
        end = torch.cuda.Event(enable_timing=True)
        end.record(torch.cuda.current_stream(self._device))
        add(name, "cuda", (self._start, end))


class _OfThread(threading.local):
    """The running blocks of a thread, the innermost last."""

    def __init__(self) -> None:
        self.started: list[tuple[Timer, _Block | None]] = []


_of_thread = _OfThread()


def _last_of(timer: Timer) -> _Block | None:
    """Remove and return a timer's innermost block, even if other timers' blocks are inside."""
    started = _of_thread.started
    for i in reversed(range(len(started))):
        if started[i][0] is timer:
            return started.pop(i)[1]
    return None


def _device(device: str | torch.device) -> torch.device:
    try:
        result = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise TimerError(f"device={device!r}: expected 'cuda' or 'cpu'") from error
    if result.type not in ("cuda", "cpu"):
        raise TimerError(
            f"device={device!r}: expected 'cuda' or 'cpu'; no timer for {result.type!r}"
        )
    if result.type == "cuda" and not torch.cuda.is_available():
        raise TimerError(f"device={device!r}: CUDA is not available; omit device, or use 'cpu'")
    return result
