"""The program's own use of torch's profilers, of which one runs at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch._C._dynamo import eval_frame
from torch.autograd import profiler

from fastprof._core._around import Around
from fastprof.annotate.patches import Patches

_KINDS: Final = (torch.profiler.profile, profiler.profile, profiler.emit_nvtx)


class OwnProfilers:
    """Reports that the program is about to make a profiler, so that ours can end before.

    Parameters
    ----------
    made : () -> None
    """

    def __init__(self, made: Callable[[], None]) -> None:
        self._made = made
        self._patches = Patches()

    def install(self) -> None:
        """Report profilers from now on."""
        for kind in _KINDS:
            path = f"{kind.__module__}:{kind.__qualname__}.__init__"
            around = Around(kind.__init__, path, self._before, _nothing, eval_frame.set_eval_frame)
            self._patches.replace(kind, "__init__", around)

    def close(self) -> None:
        """Report no more."""
        self._patches.revert()

    def _before(self, _: Any) -> None:
        self._made()


def _nothing(_: Any) -> None:
    """Follows the construction of a profiler."""
