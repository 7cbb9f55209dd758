"""torch's own record of its GPU memory, during a recording of `--when 'memory > ...'`."""

from __future__ import annotations

from pathlib import Path

import torch

_MOST_EVENTS = 100_000


class MemoryHistory:
    """Keeps allocations with their call stacks; does nothing if the program does so itself.

    Parameters
    ----------
    path : of the snapshot to write
    """

    def __init__(self, path: Path) -> None:
        self._path: Path | None = None
        if torch.cuda.is_initialized() and not torch._C._cuda_isHistoryEnabled():
            torch.cuda.memory._record_memory_history(max_entries=_MOST_EVENTS)
            self._path = path

    def end(self, keep: bool) -> None:
        """Save the snapshot, and record no more."""
        path, self._path = self._path, None
        if path is None:
            return
        try:
            if keep:
                torch.cuda.memory._dump_snapshot(str(path))
        finally:
            torch.cuda.memory._record_memory_history(enabled=None)
