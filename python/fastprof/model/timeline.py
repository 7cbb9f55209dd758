"""Recorded: the times of ranges, API calls and other host events, as a reader returns them.

A profile drops the times of ranges and most API calls. They are read when first requested, unless
the caller of `open` needs them.
"""

from __future__ import annotations

from dataclasses import field

from fastprof._system.classes import dataclass
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Values
from fastprof.model.metadata import Memory

# CUPTI's types of synchronisation (CUpti_ActivitySynchronizationType), by number.
SYNC_KINDS = ("unknown", "event", "stream wait", "stream", "context")


@dataclass()
class RecordedCalls:
    """API calls, in the order in which a correlation id takes its first call.

    `thread` indexes `Recorded.threads`, `name` indexes `Recorded.strings`. -1 means "none".
    """

    start: Int64
    end: Int64  # NEVER if not recorded
    thread: Int32
    name: Int32
    correlation: Int64

    def __len__(self) -> int:
        return len(self.start)


@dataclass()
class RecordedRanges:
    """The ranges, in the order of `Recording.ranges`.

    Parameters
    ----------
    thread : index into `Recorded.threads`
    domain : the name of the NVTX domain, unknown for the default domain
    is_push_pop : whether the range was pushed and popped, as opposed to started and ended
    """

    start: Int64
    end: Int64
    thread: Int32
    domain: Values
    is_push_pop: Bools

    def __len__(self) -> int:
        return len(self.start)


@dataclass()
class RecordedSyncs:
    """CUPTI's records of synchronisation, in the order of the file.

    Parameters
    ----------
    process : index into `Recorded.processes`, -1 if not recorded
    kind : index into SYNC_KINDS
    correlation : id of the API call
    """

    start: Int64
    end: Int64
    process: Int32
    device: Int32
    stream: Int32
    kind: Int32
    correlation: Int64


@dataclass()
class RecordedEvents:
    """Further events of threads, in the order of the file.

    Parameters
    ----------
    thread : index into `threads`, -1 if unknown
    name : index into `names`, -1 if unknown
    threads : thread id and process id of the operating system
    """

    start: Int64
    end: Int64
    thread: Int32
    name: Int32
    names: list[str | None]
    threads: list[tuple[int, int]]


@dataclass(kw_only=True)
class RecordedHost:
    """All API calls, synchronisations and allocations of a trace.

    Indices of threads are those of this object, which may differ from those of the Recording.
    """

    calls: RecordedCalls
    syncs: RecordedSyncs
    strings: list[str | None]
    threads: Int32 | Int64  # thread ids of the operating system
    process_of_thread: Int32  # index into processes
    processes: Int32  # process ids
    memory: Memory = field(default_factory=Memory)  # allocations


@dataclass(kw_only=True)
class KeptHost(RecordedHost):
    """The same from the first reading of the file.

    call_of_kernel : [kernels] the call that launched each kernel, -1 if none
    """

    call_of_kernel: Int32


@dataclass(kw_only=True)
class Recorded(RecordedHost):
    """The same with the ranges.

    Parameters
    ----------
    phase_domain : [Trace.phases] as `RecordedRanges.domain`
    """

    ranges: RecordedRanges
    phase_domain: Values
