"""Recorded: the times of ranges, API calls and other host events, as a reader returns them.

A profile drops the times of ranges and most API calls. They are read when first requested, unless
the caller of `open` needs them.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

import numpy as np

from fastprof._system.classes import dataclass
from fastprof.model.arrays import Bools, Floats64, Int32, Int64
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


METRICS: Final = ("sm_clock_hz", "sm_active", "tensor_active", "dram", "nvlink")


@dataclass()
class GpuSamples:
    """Samples of a GPU's counters, in order of time; a counter of one metric has its own samples.

    Parameters
    ----------
    time : int64 [samples], ns
    device : int32 [samples]
    counter : int32 [samples], index into `metric`
    value : float64 [samples], Hz for clocks, else a share of the peak, 0 to 1
    metric : int32 [counters], index into METRICS; a metric is the sum of its counters
    """

    time: Int64
    device: Int32
    counter: Int32
    value: Floats64
    metric: Int32

    def __len__(self) -> int:
        return len(self.time)

    def means(self, device: int, start: Int64, end: Int64) -> dict[str, Floats64]:
        """By metric, the mean of the samples of a GPU in each window; NaN without samples.

        start, end : int64 [windows], ns
        """
        result: dict[str, Floats64] = {}
        for counter, metric in enumerate(self.metric.tolist()):
            rows = np.flatnonzero((self.counter == counter) & (self.device == device))
            if not len(rows):
                continue
            first, last = (np.searchsorted(self.time[rows], edge) for edge in (start, end))
            sums = np.append(0.0, np.cumsum(self.value[rows]))
            with np.errstate(invalid="ignore"):
                mean = (sums[last] - sums[first]) / (last - first)
            name = METRICS[metric]
            result[name] = result[name] + mean if name in result else mean
        return result


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

    Parameters
    ----------
    call_of_kernel : [kernels] the call that launched each kernel, -1 if none
    payloads : the ranges with payloads, None if there are none
    """

    call_of_kernel: Int32
    payloads: RecordedEvents | None = None


@dataclass(kw_only=True)
class Recorded(RecordedHost):
    """The same with the ranges.

    Parameters
    ----------
    phase_domain : [Trace.phases] as `RecordedRanges.domain`
    """

    ranges: RecordedRanges
    phase_domain: Values
