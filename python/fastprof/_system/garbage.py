"""Keep the garbage collector from work that frees nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause the garbage collector.

    For code that creates many objects and no reference cycles: each collection would traverse all
    objects of the program and free none.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


_ALLOCATIONS = 100_000  # between collections, instead of 700


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Collect rarely in a process that runs one command, and not when it ends.

    A command on a small trace would collect a hundred times, and traverse all objects once more at
    the end of the process: a seventh of its time.
    """
    gc.set_threshold(_ALLOCATIONS)
    yield
    gc.freeze()
