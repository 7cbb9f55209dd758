"""The annotation of torch for `fastprof run`, undone when nothing more is to be recorded."""

from __future__ import annotations

import sys
from typing import Any

from fastprof._core import _hooks
from fastprof.annotate import session


class Annotation:
    """`fastprof.init` on behalf of the user. Its ranges are off, except in recordings.

    Parameters
    ----------
    functions : also record function names, see `fastprof.init`
    """

    def __init__(self, functions: bool) -> None:
        self._functions, self._is_on = functions, False
        self._uses = session.uses()

    def apply(self) -> None:
        """Annotate torch, unless the program has done so."""
        if not session.is_on():
            session.init(self._functions)
            _hooks.annotate(False)
            self._uses, self._is_on = session.uses(), True

    def undo(self) -> None:
        """Restore torch, unless the program uses the annotation too, or has compiled its code.

        torch.compile would compile it again, since functions that it saw have changed.
        """
        if self._is_on and self._uses == session.uses() and not _has_compiled():
            session.uninit()
            self._is_on = False


def _has_compiled() -> bool:
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and bool(dynamo.counters["frames"])
