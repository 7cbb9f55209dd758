"""A block of code -> how long it took, on the GPU where it works there."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from time import perf_counter_ns
from types import TracebackType
from typing import Any, Protocol, TypeVar, cast

import torch

from fastprof.annotate.timings import Timings, add, measured
from fastprof.errors import FastprofError

__all__ = ["Timer", "TimerError", "Timings", "timer", "timings"]

_F = TypeVar("_F", bound=Callable[..., Any])
# PyTorch before 2.1 has no such question; its compiled code is not timed from inside.
_is_compiling: Callable[[], bool] = getattr(
    getattr(torch, "compiler", None), "is_compiling", lambda: False
)


class TimerError(FastprofError, ValueError):
    """A timer cannot be made as it was asked for."""


def timer(name: str, device: str | torch.device | None = None) -> Timer:
    """Time a block of code, or a function.

    Parameters
    ----------
    name : str
        What the time is listed as in `fastprof.timings`; blocks of one name are counted together.
    device : str or torch.device, optional
        "cuda", or "cuda:1": time between the points at which the GPU comes to the start and to
        the end of the block, on the stream that is current there. "cpu": wall clock. Without it,
        "cuda" where the program uses CUDA by then, else "cpu".

    Returns
    -------
    Timer
        A context manager and a decorator, of coroutine functions too.

    Raises
    ------
    TimerError
        An argument makes no sense, or there is no CUDA.

    Notes
    -----
    Nothing waits for the GPU, neither here nor in the block: an event is recorded at each end, and
    the time between them is read when `fastprof.timings` is called, or earlier, when many wait and
    are past. So a block's time is that of the work it put on its stream (and the time in which the
    stream waited for the block to put it there), not that of the Python code.

    Blocks may nest, and one timer may be entered again before it is left, by several threads too.
    An exception ends the measurement, and it counts. Nothing is measured in compiled code, which
    stays one graph if the timer is made in it (`with fastprof.timer("x"):`) or decorates a
    function; nor while a CUDA graph is captured on the stream.

    Examples
    --------
    >>> with fastprof.timer("forward"):    # doctest: +SKIP
    ...     loss = model(batch)
    >>> print(fastprof.timings())          # doctest: +SKIP
    """
    return Timer(name, device)


def timings() -> Timings:
    """What all timers measured so far. It waits for the GPU to come to the end of their blocks.

    Returns
    -------
    Timings
        `print` shows a table; `rows` and `to_dict()` have the numbers; `reset()` forgets them.
    """
    return measured()


class Timer:
    """Times blocks of code; `fastprof.timer` makes it."""

    def __init__(self, name: str, device: str | torch.device | None = None) -> None:
        if not isinstance(name, str):
            raise TimerError(f"timer({name!r}): expected a name")
        self.name = name
        self.device = None if device is None or _is_compiling() else _device(device)

    def __enter__(self) -> Timer:
        if not _is_compiling():
            _of_thread.started.append((self, self._start()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if _is_compiling():
            return
        block = _last_of(self)
        if block is not None:
            try:
                block.stop(self.name)
            except RuntimeError:  # a GPU in trouble; the block's own error says more
                if error is None:
                    raise

    def __call__(self, function: _F) -> _F:
        """The function, each call of which is timed."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TimerError(
                f"timer({self.name!r}): {function.__qualname__} is a generator, which runs after "
                "its call; put `with` around what is to be timed"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def timed_coroutine(*args: Any, **keywords: Any) -> Any:
                with Timer(self.name, self.device):  # one of its own: calls of a thread overlap
                    return await function(*args, **keywords)

            return cast(_F, timed_coroutine)

        @functools.wraps(function)
        def timed(*args: Any, **keywords: Any) -> Any:
            if _is_compiling():  # which takes no `with` of an object from outside
                return function(*args, **keywords)
            with self:
                return function(*args, **keywords)

        return cast(_F, timed)

    def _start(self) -> _Block | None:
        """The block that begins; None where it cannot be measured."""
        device = self.device
        if device is None:
            device = _CUDA if torch.cuda.is_initialized() else _CPU
        if device.type == "cpu":
            return _WallBlock()
        return None if torch.cuda.is_current_stream_capturing() else _CudaBlock(device)


_CPU, _CUDA = torch.device("cpu"), torch.device("cuda")


class _Block(Protocol):
    """A block that runs."""

    def stop(self, name: str) -> None:
        """End it, and put its time on the list."""


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
    """The blocks of a thread that run, the innermost last."""

    def __init__(self) -> None:
        self.started: list[tuple[Timer, _Block | None]] = []


_of_thread = _OfThread()


def _last_of(timer: Timer) -> _Block | None:
    """The innermost block of a timer, which runs no more. Blocks of others may have begun since."""
    started = _of_thread.started
    for i in reversed(range(len(started))):
        if started[i][0] is timer:
            return started.pop(i)[1]
    return None


def _device(device: str | torch.device) -> torch.device:
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise TimerError(f"device={device!r}: expected 'cuda' or 'cpu'") from error
    if found.type not in ("cuda", "cpu"):
        raise TimerError(f"device={device!r}: expected 'cuda' or 'cpu'; there is no timer for it")
    if found.type == "cuda" and not torch.cuda.is_available():
        raise TimerError(f"device={device!r}: there is no CUDA; leave device out, or give 'cpu'")
    return found
