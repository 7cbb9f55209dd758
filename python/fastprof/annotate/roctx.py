"""AMD's ranges, roctx, where rocprofv3 records them: it preloads their library.

The functions are those of rocprofiler-sdk-roctx/roctx.h. roctx has no domains and no registered
strings. This module does not import torch.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any, Final

_ALL_THREADS: Final = 0  # of the process, as the thread of roctxProfilerResume


class RoctxDomain:
    """The interface of `nvtx.Domain` as far as annotation uses it."""

    def __init__(self, library: Any) -> None:
        push, self._library = library.roctxRangePushA, library
        push.argtypes, push.restype = [ctypes.c_char_p], ctypes.c_int
        library.roctxProfilerResume.argtypes = [ctypes.c_uint64]
        library.roctxProfilerPause.argtypes = [ctypes.c_uint64]
        self.push_range, self.pop_range = push, library.roctxRangePop

    @staticmethod
    def get_event_attributes(message: str) -> bytes:
        """The text as roctx takes it, up to a null character."""
        return message.encode("utf-8", "surrogatepass")

    def resume(self) -> None:
        """Begin to record; under `rocprofv3 --selected-regions` only."""
        self._library.roctxProfilerResume(_ALL_THREADS)

    def pause(self) -> None:
        """Cease to record."""
        self._library.roctxProfilerPause(_ALL_THREADS)


@cache
def roctx_domain() -> RoctxDomain | None:
    """The ranges of roctx; None where no tool records them.

    Without rocprofv3, PyTorch or the program may have loaded roctx too.
    """
    if "roctx" not in os.environ.get("LD_PRELOAD", ""):
        return None
    try:
        return RoctxDomain(ctypes.CDLL(None))
    except (AttributeError, OSError, TypeError):
        return None
