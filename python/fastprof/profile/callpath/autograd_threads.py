"""Threads that work while another waits, such as autograd's, and the ranges of the waiting one.

`loss.backward()` passes the graph to threads of the engine (`pt_autograd_0`, ...) and waits: the
calling thread launches nothing until they are done. A thread of the engine is recognised by

- its name, where the file has names of threads,
- torch's ranges: backward nodes, but no forward operators,
- its launches and the names of its kernels: see `_passes`.

The last needs no ranges of torch: it is for captures with the user's own ranges only, in which
exporters often give each thread the name of its process. A thread that launches in the same manner,
but no kernel that only backward passes have, may be anyone's: it inherits the ranges of the thread
that waits, but its work is not known to be backward.

How this fails: an engine whose backward passes launch fewer than `_FEW` times and that nothing
names is not recognised, and of an unnamed thread without backward kernels a single pass is not
enough. A thread without ranges that trains by itself, while another with ranges launches now and
then, is taken for that one's backward pass only if it launches at most `_MOST_TIMES` as often.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _nest
from fastprof._core._cells import refine
from fastprof._core._groups import sum_where
from fastprof._core._take import take, where
from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.model.arrays import Bools, Int32, Int64, among
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import Activity, Recording

_NAME: Final = regex(r"pt_autograd_\d+")
# Names that threads inherit from the one that starts them.
_ANY_THREAD: Final = regex(r"python[\d.]*\Z|pt_main_thread\Z", re.IGNORECASE)
_BACKWARD_KERNEL: Final = regex(
    r"backward|bwd|bprop|[dw]grad|_grad_(?:input|weight|bias)|fmha_cutlassB", re.IGNORECASE
)

_FEW: Final = 3  # launches of a pass
_LEAST_ALIKE: Final = 8  # launches of a pass without backward kernels
_ALIKE: Final = 0.1  # by which the lengths of such passes differ
_MOST: Final = 0.8  # share of the launches that are in passes of this length
_MOST_TIMES: Final = 10  # launches of a thread by those of the one that waits
_CALLERS: Final = 4  # threads that are tried

Rows = npt.NDArray[np.intp]


class Waited(NamedTuple):
    """Threads that others wait for.

    Parameters
    ----------
    is_engine : [threads] whether a thread belongs to the autograd engine
    callers : for each thread that others wait for, those that may wait; one, or up to `_CALLERS` of
        which the record does not tell which one
    """

    is_engine: Bools
    callers: dict[int, list[int]]


class Launchers:
    """The launches of a recording by thread, and what they launch."""

    def __init__(self, recording: Recording) -> None:
        self.recording, launches = recording, recording.launches
        order = np.argsort(launches.thread, kind="stable")  # in order of time for each thread
        numbers = np.arange(len(recording.threads) + 1)
        self._order = order
        self._bounds = np.searchsorted(launches.thread[order], numbers)
        self.counts: Int64 = np.diff(self._bounds)
        kernels, configs = recording.kernels, recording.kernels.configs
        config = np.full(len(launches) + 1, -1, np.int32)  # the last for launch -1
        config[kernels.launch] = kernels.config
        self._config = config[:-1]
        is_backward = [
            kind == Activity.KERNEL and _BACKWARD_KERNEL.search(_text(recording, name)) is not None
            for kind, name in zip(configs.kind.tolist(), configs.name.tolist(), strict=True)
        ]
        self._is_backward = np.array(is_backward, bool)
        self._is_kernel = (configs.kind == Activity.KERNEL) | (configs.kind == Activity.GRAPH)
        self._stream = configs.device.astype(np.int64) << 32 | configs.stream.astype(np.int64)
        self._device = take(configs.device, self._config)
        self._on_device: dict[int, Int64] = {}

    def rows(self, thread: int) -> Rows:
        """The launches of a thread, in order of time."""
        result: Rows = self._order[self._bounds[thread] : self._bounds[thread + 1]]
        return result

    def start(self, thread: int) -> Int64:
        """Their times."""
        return self.recording.launches.start[self.rows(thread)]

    def are_backward(self, thread: int) -> Bools:
        """Whether each launches a kernel that only backward passes have."""
        return take(self._is_backward, self._config[self.rows(thread)], False)

    def are_kernels(self, thread: int) -> Bools:
        """Whether each launches a kernel or a graph."""
        return take(self._is_kernel, self._config[self.rows(thread)], False)

    def streams(self, thread: int) -> Int64:
        """The GPU and stream of each, as one number; -1 if unknown."""
        return take(self._stream, self._config[self.rows(thread)], -1)

    def on_device_of(self, thread: int) -> Int64:
        """[threads] Their launches on the GPU that this thread uses most."""
        own = self._device[self.rows(thread)]
        own = own[own >= 0]
        if not len(own):
            return self.counts
        numbers, times = np.unique(own, return_counts=True)
        gpu = int(numbers[np.argmax(times)])
        if gpu not in self._on_device:
            launched = self.recording.launches.thread[self._device == gpu]
            counts = np.bincount(launched[launched >= 0], minlength=len(self.counts))
            self._on_device[gpu] = counts
        return self._on_device[gpu]


def _text(recording: Recording, name: int) -> str:
    return (recording.strings[name] or "") if name >= 0 else ""


def find(launchers: Launchers, meanings: list[Meaning], frame_of_launch: Int32) -> Waited:
    """The threads that others wait for.

    frame_of_launch : [launches] the innermost range around each, on its own thread; -1 for none
    """
    recording, counts = launchers.recording, launchers.counts
    ranges, n = recording.ranges, len(recording.threads)
    _, rows = refine(ranges.thread, n, ranges.label, len(meanings))  # of each thread and label
    has_ranges = _flags(ranges.thread[rows], n)
    is_engine = _named(recording) | _of_torch(recording, meanings, rows)
    if not has_ranges.any() or np.count_nonzero(counts) + np.count_nonzero(is_engine) < 2:
        return Waited(is_engine, {})
    callers: dict[int, list[int]] = {}
    for own, other, knows in _pairs(launchers, has_ranges, is_engine, frame_of_launch):
        is_engine[own] |= knows
        callers[own] = [other]
    for own in np.flatnonzero(is_engine).tolist():
        candidates = has_ranges & ~is_engine & _beside(recording, own)
        candidates[list(callers)] = False
        if own not in callers and candidates.any():
            callers[own] = _likeliest(launchers, own, np.flatnonzero(candidates))
    return Waited(is_engine, callers)


def _named(recording: Recording) -> Bools:
    """[threads] Whether each has the name of a thread of the engine."""
    return np.array([_NAME.search(name) is not None for name in _names(recording)], bool)


def _names(recording: Recording) -> list[str]:
    pids = recording.processes[recording.process_of_thread].tolist()
    names = recording.about.threads
    return [names.get(key, "") for key in zip(pids, recording.threads.tolist(), strict=True)]


def _of_torch(recording: Recording, meanings: list[Meaning], rows: Int32) -> Bools:
    """[threads] Whether each runs backward nodes and no forward operators, which have sequence
    numbers above 0.

    rows : a range of each thread and label that occur together
    """
    n = len(recording.threads)
    backward = np.array([m.backward for m in meanings], bool)
    if not backward.any():
        return np.zeros(n, bool)
    ranges = recording.ranges
    torch = np.array([m.kind == Kind.TORCH and not m.backward for m in meanings], bool)
    of_torch = take(torch, ranges.label, False).view(np.uint8)
    has_forward: Bools = sum_where(ranges.thread, ranges.seq, of_torch, n) > 0
    return _flags(ranges.thread[rows[backward[ranges.label[rows]]]], n) & ~has_forward


def _flags(numbers: Int32, n: int) -> Bools:
    """[n] Whether each number occurs."""
    flags = np.zeros(n, bool)
    flags[numbers] = True
    return flags


def _beside(recording: Recording, thread: int) -> Bools:
    """[threads] Whether each belongs to the process of a thread."""
    process = recording.process_of_thread
    beside: Bools = process == process[thread]
    return beside


def _pairs(
    launchers: Launchers, has_ranges: Bools, is_engine: Bools, frame_of_launch: Int32
) -> Iterator[tuple[int, int, bool]]:
    """Threads of processes without a known engine, the thread that waits for each, and whether the
    thread is known to be the engine's."""
    recording = launchers.recording
    process, names = recording.process_of_thread, _names(recording)
    has_engine = np.zeros(len(recording.processes) + 1, bool)
    has_engine[process[is_engine]] = True
    of_launch = recording.launches.thread
    alone = np.bincount(of_launch[(frame_of_launch < 0) & (of_launch >= 0)], minlength=len(names))
    works = (launchers.counts >= _FEW) & (2 * alone >= launchers.counts) & ~has_engine[process]
    ranged = has_ranges & (alone < launchers.counts)
    for own in np.flatnonzero(works).tolist():
        others = np.flatnonzero(ranged & _beside(recording, own))
        others = others[others != own]
        counts = launchers.on_device_of(own)[others]
        others = others[np.argsort(-counts, kind="stable")]
        for other in others[counts[np.argsort(-counts, kind="stable")] > 0][:_CALLERS].tolist():
            if names[own] != names[other] and names[own] and not _ANY_THREAD.match(names[own]):
                continue  # its name says what it does
            knows = _passes(launchers, own, other)
            if knows is not None:
                yield own, other, knows
                break


def _passes(launchers: Launchers, own: int, other: int) -> bool | None:
    """Whether a thread is the engine's that runs the backward passes of another; None if the other
    does not wait for it.

    It waits if it launches nothing between the first and the last launch of each pass. The thread
    is the engine's if its passes have backward kernels, and the other's work has none. Otherwise it
    must launch kernels, on streams of the other, in passes of equal length.
    """
    start = launchers.start(own)
    before = np.searchsorted(launchers.start(other), start)
    passes, of_launch, lengths = np.unique(before, return_inverse=True, return_counts=True)
    n, n_other = len(start), int(launchers.counts[other])
    if passes[0] == 0 or _FEW * len(passes) > n or n > _MOST_TIMES * n_other:
        return None
    is_backward = launchers.are_backward(own)
    if is_backward.any():
        have = np.bincount(of_launch.ravel(), is_backward, len(passes)) > 0
        elsewhere = int(launchers.are_backward(other).sum())
        if 2 * have.sum() >= len(passes) and 10 * elsewhere <= is_backward.sum():
            return True
    length = np.median(lengths)
    alike = lengths[np.abs(lengths - length) <= _ALIKE * length].sum()
    shared = among(launchers.streams(own), launchers.streams(other))
    waits = (
        len(passes) > 1
        and length >= _LEAST_ALIKE
        and alike >= _MOST * n
        and 2 * np.count_nonzero(launchers.are_kernels(own) & shared) >= n
    )
    return False if waits else None


def _likeliest(launchers: Launchers, own: int, candidates: Rows) -> list[int]:
    """The threads with the most launches on the GPU of a thread of the engine, which serves one
    GPU; several if none has twice as many as another."""
    counts = launchers.on_device_of(own)[candidates]
    if not counts.any():
        counts = launchers.counts[candidates]
    order = np.lexsort((launchers.recording.threads[candidates], -counts))
    rivals = order[2 * counts[order] >= counts.max()]
    likeliest: list[int] = candidates[rivals[:_CALLERS]].tolist()
    return likeliest


OpenFrames = tuple[Int32, Int32, Int32, Int32]  # result of _nest.sweep


class Inherited(NamedTuple):
    """Frames with those that threads inherit.

    Parameters
    ----------
    frames : those of `_nest.sweep`; a launch outside all ranges of a thread that another waits for
        has the frame of the waiting one
    in_engine : [launches] whether a thread of the engine made it outside all ranges of its own
    caller : [frames] of an outermost range on a thread that another waits for, the frame of the
        user's range that the waiting one had open; -1 for others. None if none has one
    """

    frames: OpenFrames
    in_engine: Bools
    caller: Int32 | None


def inherit(
    recording: Recording,
    meanings: list[Meaning],
    waited: Waited,
    launchers: Launchers,
    frames: OpenFrames,
) -> Inherited:
    """Give work of threads that others wait for the ranges of the waiting thread.

    If several threads may wait, it is the one that launched nothing for longest around that time,
    twice as long as each other; otherwise none.
    """
    launches = recording.launches
    is_alone = frames[3] < 0
    in_engine = is_alone & np.append(waited.is_engine, False)[launches.thread]
    if not waited.callers:
        return Inherited(frames, in_engine, None)
    rows, caller = [], []
    for own, others in waited.callers.items():
        mine = launchers.rows(own)
        mine = mine[is_alone[mine]]
        rows.append(mine)
        caller.append(_silent(launchers, others, launches.start[mine]))
    row, of = np.concatenate(rows), np.concatenate(caller)
    if (of >= 0).any():
        frames = _swept_again(recording, row[of >= 0], of[of >= 0], frames)
    return Inherited(
        frames, in_engine, _callers_of_roots(recording, meanings, waited, launchers, frames)
    )


def _swept_again(recording: Recording, row: Int64, caller: Int32, frames: OpenFrames) -> OpenFrames:
    """The frames, with the frame of another thread for some launches.

    Crossing ranges get frames where calls are. So one sweep must include all calls.
    """
    launches, ranges = recording.launches, recording.ranges
    n = len(launches)
    rows = np.concatenate([np.arange(n), row])
    order = np.argsort(launches.start[rows], kind="stable")
    thread = np.concatenate([launches.thread, caller])[order]
    parent, of_frame, of_range, frame_of_query = _nest.sweep(
        ranges.start, ranges.end, ranges.thread,
        launches.start[rows[order]], thread, len(recording.threads), recording.name,
    )  # fmt: skip
    frame_of_point = np.empty(len(rows), np.int32)
    frame_of_point[order] = frame_of_query
    of_launch = frame_of_point[:n].copy()
    of_launch[row] = frame_of_point[n:]
    return parent, of_frame, of_range, of_launch


def _callers_of_roots(
    recording: Recording,
    meanings: list[Meaning],
    waited: Waited,
    launchers: Launchers,
    frames: OpenFrames,
) -> Int32 | None:
    """`Inherited.caller`."""
    parent, range_of_frame, frame_of_range, _ = frames
    ranges = recording.ranges
    n_own = len(ranges) - recording.appended.ranges
    is_user = np.array([m.kind == Kind.USER for m in meanings], bool)
    is_waited = np.zeros(len(recording.threads), bool)
    is_waited[list(waited.callers)] = True
    users = where(is_user, ranges.label[:n_own])
    users = users[~is_waited[ranges.thread[users]]]
    roots = np.flatnonzero(parent < 0)
    roots = roots[is_waited[ranges.thread[range_of_frame[roots]]]]
    if not len(users) or not len(roots):
        return None
    time, of = ranges.start[range_of_frame[roots]], ranges.thread[range_of_frame[roots]]
    caller = np.full(len(roots), -1, np.int32)
    for own, others in waited.callers.items():
        mine = np.flatnonzero(of == own)
        caller[mine] = _silent(launchers, others, time[mine])
    order = np.argsort(time, kind="stable")
    _, range_of_user, _, user = _nest.sweep(
        ranges.start[users], ranges.end[users], ranges.thread[users],
        time[order], caller[order], len(recording.threads), recording.name,
    )  # fmt: skip
    inside = np.flatnonzero(user >= 0)
    frame = frame_of_range[users[range_of_user[user[inside]]]]
    roots = roots[order[inside]]
    precedes = frame < roots  # parents precede their children
    result = np.full(len(parent), -1, np.int32)
    result[roots[precedes]] = frame[precedes]
    return result if precedes.any() else None


def _silent(launchers: Launchers, threads: list[int], time: Int64) -> Int32:
    """The thread that waits at each time, -1 if unknown."""
    if len(threads) == 1:
        return np.full(len(time), threads[0], np.int32)
    all_of = launchers.recording.launches.start
    ends = all_of[[0, -1]] if len(all_of) else np.zeros(2, np.int64)
    gaps = np.stack([_gap(launchers.start(thread), time, ends) for thread in threads])
    order = np.argsort(gaps, axis=0, kind="stable")
    longest, second = (np.take_along_axis(gaps, order[[k]], 0)[0] for k in (-1, -2))
    which = np.array(threads, np.int32)[order[-1]]
    silent: Int32 = np.where(longest >= 2 * second, which, np.int32(-1))
    return silent


def _gap(start: Int64, time: Int64, ends: Int64) -> Int64:
    """The time from the launch before each time to the one after it.

    ends : the first and last launch of the trace, which count too
    """
    place = np.searchsorted(start, time)
    known = np.concatenate([ends[:1], start, ends[1:]])
    gap: Int64 = known[place + 1] - known[place]
    return gap
