"""Columns of allocations and frees, under the names of the columns of kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from fastprof._core import _join, _nest
from fastprof._core._take import take
from fastprof.analysis.columns import texts
from fastprof.analysis.memory.blocks import UNKNOWN_TIME, MemoryEvents
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Column, Ints, Values
from fastprof.model.metadata import MANAGED, PINNED, About, Memory
from fastprof.profile.calls import named
from fastprof.profile.data import ProfileData
from fastprof.profile.instances import ApiCalls, RangeInstances, Threads
from fastprof.profile.kept import begins_in_part
from fastprof.profile.range_columns import params_of, steps_at
from fastprof.profile.steps.kernel_steps import StepsOfKernels

GPU: Final = "GPU"
CPU: Final = "CPU"
# c10::DeviceType: CPU, MKLDNN, IDEEP; CUDA, HIP, XPU, PrivateUse1.
_NAMES: Final = {
    **dict.fromkeys((0, 2, 5), CPU),
    **dict.fromkeys((1, 6, 12, 20), GPU),
    MANAGED: "managed",
    PINNED: "pinned",
}


def events_of(memory: Memory, wanted: Callable[[str], bool]) -> MemoryEvents:
    """The events with a time and a size, of some memories.

    wanted : whether to include a memory, by its name: `GPU 0`, `CPU`, `managed`, `pinned`
    """
    place = memory.device_type.astype(np.int64) << 32 | (memory.device.astype(np.int64) + 1)
    distinct, of = np.unique(place, return_inverse=True)
    names = [_name(int(each) >> 32, (int(each) & 0xFFFFFFFF) - 1) for each in distinct]
    order = sorted({name for name in names if name and wanted(name)}, key=_order)
    number = np.array([order.index(name) if name in order else -1 for name in names], np.int32)
    own = number[of] if len(names) else np.empty(0, np.int32)
    known = (memory.time != UNKNOWN_TIME) & (memory.bytes != UNKNOWN_TIME) & (memory.bytes != 0)
    rows = np.flatnonzero(known & (own >= 0))
    rows = rows[np.argsort(memory.time[rows], kind="stable")]
    used = sorted(set(np.unique(own[rows]).tolist()))
    return MemoryEvents(
        names=[order[each] for each in used],
        memory=np.searchsorted(used, own[rows]).astype(np.int32),
        time=memory.time[rows],
        size=memory.bytes[rows],
        address=_addresses(memory, rows),
        allocated=memory.total_allocated[rows],
        reserved=memory.total_reserved[rows],
        row=rows,
    )


def _name(device_type: int, device: int) -> str:
    name = _NAMES.get(device_type, "")
    return f"{name} {device}" if name == GPU and device >= 0 else name


def _order(name: str) -> tuple[bool, int, str]:
    """GPUs first, by number."""
    number = name.removeprefix(f"{GPU} ")
    return not name.startswith(GPU), int(number) if number.isdigit() else -1, name


def _addresses(memory: Memory, rows: Int64) -> Int64:
    """An id for each address of each process; -1 where the address is not recorded."""
    address, pid = memory.address[rows], memory.pid[rows]
    if not len(rows) or (pid == pid[0]).all():
        return address
    order = np.lexsort((address, pid))
    changes = (np.diff(address[order]) != 0) | (np.diff(pid[order]) != 0)
    ids = np.empty(len(rows), np.int64)
    ids[order] = np.append(0, np.cumsum(changes))
    return np.where(address == -1, np.int64(-1), ids)


class AllocationColumns:
    """Columns of events: of the innermost range on their thread, as of kernels launched there.

    Attributes
    ----------
    about : About
        The metadata of the trace.
    names : list of str
        The columns.
    """

    _OF_RANGES: Final = (
        *("dir", "layer", "trace", "line", "library_line", "ranges", "launch_ranges", "phase"),
    )

    def __init__(
        self, profile: ProfileData, memory: Memory, events: MemoryEvents, steps: StepsOfKernels
    ) -> None:
        self.about: About = profile.about
        self._columns, self._events = profile.source.range_columns, events
        self._pid, self._tid = memory.pid[events.row], memory.tid[events.row]
        ranges, api = profile.ranges, profile.api
        thread = _threads(self._pid, self._tid, memory.correlation[events.row], api)
        known = thread >= 0
        self._pid = np.where(known, take(ranges.threads.pid, thread), self._pid)
        self._tid = np.where(known, take(ranges.threads.tid, thread), self._tid)
        self._row = _innermost(ranges, events.time, thread)
        self.is_inside = begins_in_part(profile, events.time)
        self._makers: dict[str, Callable[[], Column]] = {
            "op": lambda: self._of_call(lambda meaning: named(meaning).op),
            "mod": lambda: self._of_call(lambda meaning: named(meaning).mod),
            "params": lambda: self._of_call(params_of),
            "step": lambda: steps_at(steps, events.time, self._pid),
            "tid": lambda: Ints(self._tid),
            "pid": lambda: Ints(self._pid),
            "device": lambda: Values(events.memory, events.names),
        }
        self.names = [*self._OF_RANGES, *self._makers]

    def __len__(self) -> int:
        return len(self._events)

    def column(self, name: str) -> Column:
        """A column of `names`."""
        if name in self._makers:
            return self._makers[name]()
        return self._taken(texts(self._columns, name))

    def _of_call(self, value: Callable[..., str | None]) -> Values:
        return self._taken(self._columns.calls(value))

    def _taken(self, of_ranges: Values) -> Values:
        return Values(take(of_ranges.ids, self._row), of_ranges.values)


def _threads(pid: Int64, tid: Int64, correlation: Int64, api: ApiCalls) -> Int32:
    """[events] The thread, by its ids or by the API call of the event; -1 if unknown."""
    threads = api.threads
    thread = _by_ids(pid, tid, threads)
    rows = np.flatnonzero((thread < 0) & (correlation >= 0))
    if len(rows):
        process = _process_of(threads)
        pids, first = np.unique(threads.pid, return_index=True)
        of_pid = dict(zip(pids.tolist(), process[first].tolist(), strict=True))
        own = np.array([of_pid.get(each, -1) for each in pid[rows].tolist()], np.int32)
        join = _join.Join(own, correlation[rows])
        join.offer(take(process, api.thread), api.correlation)
        thread[rows] = take(api.thread, join.rows(own, correlation[rows]))
    return thread


def _process_of(threads: Threads) -> Int32:
    """[threads] The number of the process."""
    return np.unique(threads.pid, return_inverse=True)[1].astype(np.int32)


def _by_ids(pid: Int64, tid: Int64, threads: Threads) -> Int32:
    pairs = zip(threads.pid.tolist(), threads.tid.tolist(), strict=True)
    number = {pair: i for i, pair in reversed(list(enumerate(pairs)))}
    thread = np.full(len(pid), -1, np.int32)
    if not len(pid):
        return thread
    changes = np.flatnonzero((np.diff(pid) != 0) | (np.diff(tid) != 0)) + 1
    starts = np.append(0, changes)
    ids = zip(pid[starts].tolist(), tid[starts].tolist(), strict=True)
    found = np.array([number.get(each, -1) if each[1] >= 0 else -1 for each in ids], np.int32)
    return np.repeat(found, np.diff(np.append(starts, len(pid))))


def _innermost(ranges: RangeInstances, time: Int64, thread: Int32) -> Int32:
    """[events] The innermost range of the thread at each time, -1 for none."""
    n = ranges.n_own
    _, of_frame, _, frame = _nest.sweep(
        ranges.start[:n], ranges.end[:n], ranges.thread[:n], time, thread, len(ranges.threads.tid)
    )
    return take(of_frame, frame)
