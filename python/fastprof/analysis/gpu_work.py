"""The work of each GPU on its time line: what runs when, the gaps, and sums over intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _cells
from fastprof._core._sweep import Sweep
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple, dataclass
from fastprof.analysis.grouping import numbers, texts
from fastprof.model.arrays import Bools, Int32, Int64, UInt8, place_in, unique
from fastprof.model.columns import Column, RepeatedInts
from fastprof.profile.data import ProfileData, answered, kept
from fastprof.profile.facts import devices_used

COMPUTE: Final = 1
COMMUNICATION: Final = 2
COPY: Final = 4  # copies and memsets
_KIND_OF_CLASS: Final = {"communication": COMMUNICATION, "memcpy": COPY, "memset": COPY}
N_MASKS: Final = 8  # sums of the three
MOST_GPUS: Final = 1000  # in values for JSON
_WINDOWS_AT_ONCE: Final = 1 << 15


class Gaps(NamedTuple):
    """The gaps of a GPU: times without work between its first and last work.

    Parameters
    ----------
    start, end : int64 [gaps], ns
    before, after : int32 [gaps], kernel rows: the work that ends last before the gap, and the work
        that begins at its end
    """

    start: Int64
    end: Int64
    before: Int32
    after: Int32


@dataclass(frozen=True, slots=True)
class GpuWork:
    """The work of a GPU on all streams, in order of start.

    Parameters
    ----------
    rows : int32 [work], kernel rows
    start, end : int64 [work], ns; work of unknown duration ends at its start
    kind : uint8 [work], COMPUTE, COMMUNICATION or COPY
    """

    rows: Int32
    start: Int64
    end: Int64
    kind: UInt8

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: npt.NDArray[np.intp]) -> GpuWork:
        """Some of the work, in order of start."""
        return GpuWork(self.rows[places], self.start[places], self.end[places], self.kind[places])


class PartsOfWork:
    """Work divided by a key, each part in order of start.

    A part is a view of common arrays, made when it is asked for: a file may have very many.

    Parameters
    ----------
    work : all of it
    key : int [work]

    Attributes
    ----------
    keys : int [parts], ascending
    work : GpuWork, all of it, by part
    bounds : int64 [parts + 1], where the work of each part begins
    """

    def __init__(self, work: GpuWork, key: npt.NDArray[np.integer]) -> None:
        self.keys, self.work = key[:1], work
        self.bounds: Int64 = np.array([0, len(key)])[: len(self.keys) + 1]
        if (key != key[:1]).any():
            order = np.argsort(key, kind="stable")
            self.keys, first = np.unique(key[order], return_index=True)
            self.bounds, self.work = np.append(first, len(key)), work.take(order)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, i: int) -> GpuWork:
        work, part = self.work, slice(self.bounds[i], self.bounds[i + 1])
        return GpuWork(work.rows[part], work.start[part], work.end[part], work.kind[part])

    def selected(self, rows: Bools) -> PartsOfWork:
        """The same parts with some of their work.

        rows : the work to include, bool [kernels]
        """
        places = np.flatnonzero(rows[self.work.rows])
        work = copy(self)
        work.work = self.work.take(places)
        work.bounds = np.searchsorted(places, self.bounds)
        return work

    def numbers(self) -> Int32:
        """The part of each piece of `work`."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.bounds))

    def by_kernel(self, n: int) -> Int32:
        """The part of each of n kernels, -1 for none."""
        result = np.full(n, -1, np.int32)
        result[self.work.rows] = self.numbers()
        return result

    @property
    def spans(self) -> tuple[Int64, Int64]:
        """[parts] Start of the first and end of the last work, ns; 0 without work."""
        begin, finish = np.zeros((2, len(self)), np.int64)
        some = np.flatnonzero(np.diff(self.bounds))
        if len(some):
            begin[some] = self.work.start[self.bounds[some]]
            finish[some] = np.maximum.reduceat(self.work.end, self.bounds[some])
        return begin, finish

    @property
    def _sweep(self) -> Sweep:
        return Sweep(self.work.start, self.work.end, self.work.kind, self.bounds)

    def _gaps(self, start: Int64, end: Int64, before: Int32, after: Int32) -> Gaps:
        return Gaps(start, end, take(self.work.rows, before), take(self.work.rows, after))

    def gaps(self) -> Gaps:
        """The gaps without work of each part, in order."""
        return self._gaps(*self._sweep.gaps())

    def ns_by_kinds(self, part: Int32 | Int64, windows: tuple[Int64, Int64]) -> Int64:
        """How long exactly each set of kinds runs in each window.

        Parameters
        ----------
        part : int [windows]
        windows : start and end, int64 [windows] each, ns; in any order, may overlap

        Returns
        -------
        int64 [windows, 8]
            ns by the sum of the kinds that run: `[:, 0]` idle, `[:, COMPUTE | COPY]` both at once.
        """
        begin, finish = windows
        result = np.empty((len(begin), N_MASKS), np.int64)
        for first in range(0, len(begin), _WINDOWS_AT_ONCE):
            some = slice(first, first + _WINDOWS_AT_ONCE)
            result[some] = self._ns_by_kinds(part[some], begin[some], finish[some])
        return result

    def _ns_by_kinds(self, part: Int32 | Int64, begin: Int64, finish: Int64) -> Int64:
        n = len(begin)
        time = np.concatenate([begin, np.maximum(begin, finish)])
        of = np.concatenate([part, part])
        order = np.lexsort((time, of))
        bounds = np.searchsorted(of[order], np.arange(len(self) + 1))
        until = self._sweep.until(time[order], bounds)
        place = np.empty(2 * n, np.int64)
        place[order] = np.arange(2 * n)
        result: Int64 = until[place[n:]] - until[place[:n]]
        return result

    def idle(
        self, windows: tuple[Int64, Int64], bounds: Int64, short_ns: int
    ) -> tuple[Gaps, Int32, Int64]:
        """The parts of gaps within windows, including the time before the first work.

        Parameters
        ----------
        windows : start and end, int64 [windows] each, ns; those of a part ascend
        bounds : int64 [parts + 1], where the windows of each part begin
        short_ns : shorter parts are only summed

        Returns
        -------
        gaps : Gaps
        window : int32 [gaps]
        short : int64 [windows], ns
        """
        begin, finish = windows
        first = np.append(begin, 0)[bounds[:-1]]
        result = self._sweep.idle(first, begin, finish, short_ns, bounds)
        start, end, before, after, window, short = result
        return self._gaps(start, end, before, after), window, short

    def own_ns(self) -> Int64:
        """The part of a GPU's busy time that is each work's own, ns [work].

        Each moment with work belongs to one: compute before communication before copies, of these
        the first to start. Sums over any groups of work of a part add up to its busy time.
        """
        return self._sweep.own()


class WorkOfDevices(Mapping[int, GpuWork]):
    """The work of each GPU, by number, ascending.

    parts : the same, without numbers
    """

    def __init__(self, work: GpuWork, device: npt.NDArray[np.integer]) -> None:
        self.parts = PartsOfWork(work, device)

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[int]:
        return iter(self.parts.keys.tolist())

    def __getitem__(self, device: int) -> GpuWork:
        return self.parts[self.place(device)]

    def place(self, device: int) -> int:
        """The part of a GPU."""
        return place_in(self.parts.keys, device)


def owners(profile: ProfileData) -> Int64:
    """[kernels] The pid that each piece of work counts for; -1 if no process is recorded.

    Work of an unknown process counts for the one with the most work on its GPU: it runs on a GPU
    that is known, and is none of its own.
    """
    if "pid" not in profile.names:
        return np.full(len(profile), -1, np.int64)
    pid, device = numbers(profile, "pid").astype(np.int64), numbers(profile, "device")
    unknown = pid < 0
    if unknown.all() or not unknown.any():
        return pid
    time = np.maximum(numbers(profile, "sil"), 0)
    for gpu in unique(device[unknown]):
        rows = np.flatnonzero(~unknown & (device == gpu))
        if len(rows):
            pids, place = np.unique(pid[rows], return_inverse=True)
            pid[unknown & (device == gpu)] = pids[np.argmax(np.bincount(place, time[rows]))]
    return pid


def work_of_device(profile: ProfileData, rows: Bools | None = None) -> WorkOfDevices:
    """The work of each GPU, by number, ascending; empty if the file has no times.

    -1 is the number of work whose GPU is not recorded. Unexpanded CUDA graphs and work of unknown
    class count as compute.

    rows : the work to include, bool [kernels]; None for all, which is kept while the profile lives
    """
    return _work_of_device(profile, rows) if rows is not None else kept(profile, _work_of_device)


def answered_work(profile: ProfileData) -> WorkOfDevices:
    """The work of each GPU in the part of `Profile.trim`, or after the start-up; kept."""
    rows = answered(profile)
    return work_of_device(profile) if rows is None else kept(profile, _answered_work)


def _answered_work(profile: ProfileData) -> WorkOfDevices:
    return work_of_device(profile, answered(profile))


def _work_of_device(profile: ProfileData, rows: Bools | None = None) -> WorkOfDevices:
    every = np.arange(len(profile), dtype=np.int32)
    if "start" not in profile.names or not len(profile):
        nothing = np.empty(0, np.int64)
        return WorkOfDevices(GpuWork(every[:0], nothing, nothing, np.empty(0, np.uint8)), nothing)
    start = numbers(profile, "start")
    end = np.maximum(numbers(profile, "sil"), 0, dtype=np.int64)
    end += start
    classes = (
        texts(profile, "class").mapped(lambda name: _KIND_OF_CLASS.get(name, COMPUTE)).shared()
    )
    of_class = np.array([*classes.values, COMPUTE], np.uint8)
    kind = take(of_class[classes.id_of_row], classes.rows, COMPUTE)
    work, device = GpuWork(every, start, end, kind), numbers(profile, "device")
    if rows is not None:
        places = np.flatnonzero(rows)
        work, device = work.take(places), device[places]
    return WorkOfDevices(work, device)


def ns_with(by_mask: Int64, kinds: int, without: int = 0) -> Int64:
    """The part of `sweep` with at least one of some kinds: their union, ns [windows].

    without : kinds that do not run at that time
    """
    masks = [mask for mask in range(N_MASKS) if mask & kinds and not mask & without]
    result: Int64 = by_mask[:, masks].sum(axis=1)
    return result


class TimeLine(NamedTuple):
    """The time line of a GPU: span = compute + exposed communication + exposed copy + idle, ns.

    Parameters
    ----------
    span : from the start of its first to the end of its last work
    compute, communication : during which at least one such kernel runs
    exposed_communication : communication without compute
    exposed_copy : copies and memsets without compute and communication
    """

    span: int
    compute: int
    communication: int
    exposed_communication: int
    exposed_copy: int
    idle: int

    @property
    def hidden(self) -> int:
        """Communication during compute."""
        return self.communication - self.exposed_communication

    @property
    def hidden_share(self) -> float | None:
        """Of the communication, the share during compute."""
        return self.hidden / self.communication if self.communication else None


class TimeLines(Mapping[int, TimeLine]):
    """The time line of each GPU, by number, between its first and its last work.

    Columns of numbers: a time line is made when it is asked for, as a file may have very many.

    columns : by the fields of `TimeLine`, int64 [GPUs], ns
    """

    def __init__(self, work: WorkOfDevices) -> None:
        begin, finish = work.parts.spans
        by_mask = work.parts.ns_by_kinds(np.arange(len(work)), (begin, finish))
        self._devices = work.parts.keys
        self.columns: dict[str, Int64] = {
            "span": finish - begin,
            "compute": ns_with(by_mask, COMPUTE),
            "communication": ns_with(by_mask, COMMUNICATION),
            "exposed_communication": ns_with(by_mask, COMMUNICATION, COMPUTE),
            "exposed_copy": ns_with(by_mask, COPY, COMPUTE | COMMUNICATION),
            "idle": by_mask[:, 0].copy(),
        }

    def __len__(self) -> int:
        return len(self._devices)

    def __iter__(self) -> Iterator[int]:
        return iter(self._devices.tolist())

    def __getitem__(self, device: int) -> TimeLine:
        place = place_in(self._devices, device)
        return TimeLine(**{name: int(column[place]) for name, column in self.columns.items()})

    def largest(self) -> dict[int, TimeLine]:
        """The `MOST_GPUS` of the longest span, by number; nobody reads more."""
        span = self.columns["span"]
        rows = np.sort(np.argsort(-span, kind="stable")[:MOST_GPUS])
        return {number: self[number] for number in self._devices[rows].tolist()}

    def rest(self) -> dict[str, Any]:
        """How many more GPUs there are than `largest` has, and their sums, for JSON."""
        shown = self.largest().values()
        if len(shown) == len(self):
            return {}
        sums = {
            f"{name}_ns": int(column.sum()) - sum(getattr(one, name) for one in shown)
            for name, column in self.columns.items()
        }
        return {"more_gpus": {"gpus": len(self) - len(shown), **sums}}


def time_lines(profile: ProfileData) -> TimeLines:
    """The time line of each GPU, by number; kept."""
    return kept(profile, _time_lines)


def _time_lines(profile: ProfileData) -> TimeLines:
    return TimeLines(answered_work(profile))


class Busy(NamedTuple):
    """The time line of a GPU, ns.

    Parameters
    ----------
    span : from the start of its first to the end of its last work
    busy : during which at least one kernel, copy or memset runs, on any stream
    """

    span: int
    busy: int

    @property
    def idle(self) -> int:
        """The rest of the span."""
        return self.span - self.busy


def busy_by_device(profile: ProfileData, rows: Bools | None = None) -> dict[int, Busy]:
    """Span and busy time of each GPU with work; empty if the file has no times.

    rows : the work to count, bool [kernels]; None for all
    """
    if "start" not in profile.names:
        return {}
    used = devices_used(profile.column("device")).tolist()
    ids, device = _ids(profile.column("device"))
    number = {each: i for i, each in enumerate(used)}
    begin, end, busy = _cells.busy(
        np.ascontiguousarray(numbers(profile, "start"), np.int64),
        np.ascontiguousarray(numbers(profile, "sil"), np.int64),
        ids,
        np.array([number.get(each, -1) for each in device.tolist()], np.int32),
        len(used),
        None if rows is None else rows.view(np.uint8),
    )
    lines = zip(used, begin.tolist(), end.tolist(), busy.tolist(), strict=True)
    return {each: Busy(last - first, time) for each, first, last, time in lines if first <= last}


def _ids(column: Column) -> tuple[Int32, npt.NDArray[Any]]:
    """The place of each number among some numbers, which contain all distinct ones."""
    if isinstance(column, RepeatedInts):
        return column.ids, column.distinct
    distinct, ids = np.unique(column.values, return_inverse=True)
    return ids.astype(np.int32), distinct


class BusyTime:
    """The time during which at least one of some intervals runs.

    Attributes
    ----------
    start : int64 [intervals], ns
    end : int64 [intervals], ns, the last end of this interval and those before it
    """

    def __init__(self, start: Int64, end: Int64) -> None:
        """Add up intervals, which are in order of start."""
        self.start, self.end = start, np.maximum.accumulate(end)
        before = np.concatenate([start[:1], self.end[:-1]])
        self._busy = np.cumsum(np.maximum(end - np.maximum(start, before), 0))

    def until(self, time: Int64) -> Int64:
        """ns [times] of busy time before each time."""
        n = np.searchsorted(self.start, time, "left") - 1
        running = np.maximum(self.end[n] - time, 0)
        return np.where(n >= 0, self._busy[n] - running, 0)
