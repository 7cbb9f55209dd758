"""Process and thread ids of a generated process, packed as in Nsight Systems exports."""

from __future__ import annotations

from dataclasses import dataclass

from bench.recorder import Thread

VIRTUAL_MACHINE = 1 << 48
FIRST_PID = 4211
CONTEXT = 1
THREAD_OFFSETS = {Thread.MAIN: 0, Thread.BACKWARD: 145, Thread.LOADER: 152}
THREAD_NAMES = {
    Thread.MAIN: "python3",
    Thread.BACKWARD: "pt_autograd_0",
    Thread.LOADER: "pin_memory",
}


@dataclass(frozen=True)
class Identity:
    """The process with this rank, which uses the GPU of the same number."""

    rank: int

    @property
    def pid(self) -> int:
        return FIRST_PID + 4 * self.rank

    @property
    def global_pid(self) -> int:
        """High part | pid << 24, as in columns named globalPid."""
        return VIRTUAL_MACHINE | self.pid << 24

    def global_tid(self, thread: Thread) -> int:
        """High part | pid << 24 | tid, as in columns named globalTid."""
        return self.global_pid | self.pid + THREAD_OFFSETS[thread]
