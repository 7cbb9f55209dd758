"""Keeps warnings of torch's profilers, which we use, from the program, which does not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import torch.autograd.profiler
import torch.profiler.profiler

_MODULES: Final[tuple[Any, ...]] = (torch.profiler.profiler, torch.autograd.profiler)
_NAME: Final = "warn"  # what both import from `warnings`
_SHOWN: Final = "_WARNINGS_SHOWN"  # the messages that torch shows once


@contextmanager
def unwarned() -> Iterator[None]:
    """Within the block, drop what torch's profilers warn of in this thread.

    The filters of `warnings` stay as they are: they are of all threads, and to change them makes
    Python show again what it shows once. A message of ours does not count as shown, so the program
    sees it if it uses a profiler itself.
    """
    with ExitStack() as stack:
        for module in _MODULES:
            if hasattr(module, _NAME):
                stack.enter_context(_Quiet(module))
        yield


class _Quiet:
    """Stands in for a module's `warnings.warn`, silent in the thread that made it."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._warn: Callable[..., None] = getattr(module, _NAME)
        self._thread: int | None = threading.get_ident()

    def __enter__(self) -> None:
        setattr(self._module, _NAME, self)

    def __exit__(self, *_: object) -> None:
        self._thread = None
        if getattr(self._module, _NAME, None) is self:  # else another thread's is around it
            setattr(self._module, _NAME, self._warn)

    def __call__(
        self, message: Any, category: Any = None, stacklevel: int = 1, *others: Any, **more: Any
    ) -> None:
        if threading.get_ident() == self._thread:
            getattr(self._module, _SHOWN, set()).discard(message)
        else:
            self._warn(message, category, stacklevel + 1, *others, **more)
