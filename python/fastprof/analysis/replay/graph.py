"""The graph of what the host calls and the GPU work of a trace, or of some steps, wait for."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from fastprof._core import _replay
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof._system.regex import regex
from fastprof._system.threads import computed_once
from fastprof.analysis.grouping import numbers, texts
from fastprof.analysis.host.waits import implied_waits
from fastprof.model.arrays import Int32, Int64, UInt8
from fastprof.model.columns import Column
from fastprof.model.metadata import About
from fastprof.model.trace import NEVER
from fastprof.profile.api_classes import ALLOC, COPY_CALL, LAUNCH, LOAD, SYNC
from fastprof.profile.cells import picked
from fastprof.profile.data import ProfileData, kept
from fastprof.profile.instances import ApiCalls, Synchronisations
from fastprof.profile.steps.kernel_steps import StepsOfKernels

CALL, RETURN, WORK = 1, 2, 3
_LAUNCHES, _WAITS, _WAITS_EVENT, _COPIES, _ALLOCATES, _WAITS_STREAM, _WAITS_LAST, _NONE = range(8)
_KIND_OF_CLASS: Final = {
    LAUNCH: _LAUNCHES, LOAD: _LAUNCHES, COPY_CALL: _COPIES, SYNC: _WAITS, ALLOC: _ALLOCATES,
}  # fmt: skip
_BY_NAME: Final = (
    (regex(r"StreamWaitEvent"), _WAITS_STREAM),
    (regex(r"EventSynchronize"), _WAITS_EVENT),
    (regex(r"Memcpy"), _COPIES),
    (regex(r"Malloc|HostAlloc|MemAlloc"), _LAUNCHES),
)


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in order of time; node 0 is the origin. See csrc/replay/fp_replay_build.h.

    Parameters
    ----------
    source, lag : three int32 [nodes] each, the edges; lag in ns
    before : int64 [nodes], ns between ready and start: the host's own time before a call or until
        its return; of GPU work, time that no record explains
    duration : int64 [nodes], ns, of a call that does not wait, and of GPU work
    kind : uint8 [nodes], CALL, RETURN or WORK
    slot : uint8 [nodes], the edge by which the trace started the node
    call : int32 [nodes], row of `Profile.api`, -1 for work
    kernel : int32 [nodes], kernel row, -1 for host nodes; of a launch, its first kernel
    node_of_kernel : int32 [kernels]
    origin : ns on the trace's clock
    unexplained : ns, the sum of `before` of GPU work
    n_cut : edges against the order of time
    n_unplaced : GPU work at its recorded time, whatever happens before
    """

    source: list[Int32]
    lag: list[Int32]
    before: Int64
    duration: Int64
    kind: UInt8
    slot: UInt8
    call: Int32
    kernel: Int32
    node_of_kernel: Int32
    origin: int
    unexplained: int
    n_cut: int
    n_unplaced: int

    def __len__(self) -> int:
        return len(self.before)


def graph_of(profile: Run, begin: int) -> Graph:
    """The graph of a trace. Reads the file again on first use.

    begin : when the first step begins, ns on the trace's clock

    Raises
    ------
    BadInputError
        The file has changed, or it is dict lines.
    """
    api = profile.api
    kinds = _kinds(profile)
    launches = np.zeros(len(api) + 1, bool)
    launches[api.of_kernel] = True
    calls = np.flatnonzero((kinds != _NONE) | launches[:-1]).astype(np.int32)
    kinds[kinds == _NONE] = _LAUNCHES
    place = np.full(len(api) + 1, -1, np.int32)
    place[calls] = np.arange(len(calls), dtype=np.int32)
    process, n_processes, lane, first = _lanes(profile, api)
    names = texts(profile, "name")
    pid, device = process[len(api.threads.pid) :], numbers(profile, "device")
    columns, counts = _replay.build(
        api.start[calls],
        np.where(api.end == NEVER, api.start, api.end)[calls],
        api.thread[calls],
        _waited_lanes(profile, lane)[calls],
        kinds[calls],
        np.ascontiguousarray(process[: len(api.threads.pid)]),
        np.ascontiguousarray(numbers(profile, "start"), np.int64),
        np.ascontiguousarray(numbers(profile, "sil"), np.int64),
        lane,
        place[api.of_kernel],
        np.where(names.ids < 0, np.int32(len(names.values)), names.ids),
        pid[first],
        np.ascontiguousarray(device[first], np.int32),
        len(names.values) + 1,
        n_processes,
        begin,
    )
    row, kind = columns["row"], columns["kind"]
    is_work = kind == WORK
    call = np.where(is_work | (kind == 0), np.int32(-1), take(calls, np.where(is_work, -1, row)))
    first_kernel = np.full(len(api) + 1, -1, np.int32)
    first_kernel[api.of_kernel[::-1]] = np.arange(len(profile) - 1, -1, -1, dtype=np.int32)
    first_kernel[-1] = -1
    return Graph(
        source=columns["source"],
        lag=columns["lag"],
        before=columns["before"],
        duration=columns["duration"],
        kind=kind,
        slot=columns["slot"],
        call=call,
        kernel=np.where(is_work, row, first_kernel[call]),
        node_of_kernel=columns["work_node"],
        **counts,
    )


def pids_of(profile: Run) -> Int64:
    """[kernels] The process of each; without a launch, the only one known to use its GPU, or -1."""
    pid, device = (numbers(profile, name) for name in ("pid", "device"))
    known = pid >= 0
    if known.all():
        return pid
    gpus, gpu = np.unique(device, return_inverse=True)
    pairs = np.unique(np.stack([gpu[known], pid[known]], axis=1), axis=0)
    only = np.where(np.bincount(pairs[:, 0], minlength=len(gpus)) == 1, 0, -1)
    only[pairs[:, 0]] = np.where(only[pairs[:, 0]] == 0, pairs[:, 1], -1)
    pids: Int64 = np.where(known, pid, only[gpu])
    return pids


def _kinds(profile: Run) -> UInt8:
    """[calls] What each call does, by its class and name, or by when it ends."""
    api = profile.api
    of_class = [_KIND_OF_CLASS.get(str(value), _NONE) for value in api.call_class.values]
    kinds = np.array([*of_class, _NONE], np.uint8)[api.call_class.ids]
    of_name = [
        next((kind for pattern, kind in _BY_NAME if pattern.search(str(name))), _NONE)
        for name in api.name.values
    ]
    named = np.array([*of_name, _NONE], np.uint8)[api.name.ids]
    result = np.where(named != _NONE, named, kinds)
    waits, *_ = kept(profile.whole if isinstance(profile, RunPart) else profile, implied_waits)
    if isinstance(profile, RunPart):
        waits = profile.calls_within(waits)
    result[waits[np.isin(result[waits], (_LAUNCHES, _NONE))]] = _WAITS_LAST
    return result


def _lanes(profile: Run, api: ApiCalls) -> tuple[Int32, int, Int32, Int32]:
    """Processes of threads and kernels, their number, the lane of kernels, its first kernel.

    The kernels of a lane run one after another: a stream of a GPU of a process.
    """
    pid = np.concatenate([api.threads.pid, pids_of(profile)])
    process, known = alike([np.ascontiguousarray(pid, np.int64)])
    keys = [np.ascontiguousarray(numbers(profile, name), np.int64) for name in ("device", "stream")]
    lane, first = alike([process[len(api.threads.pid) :], *keys])
    return process, max(len(known), 1), lane, first


def _waited_lanes(profile: Run, lane: Int32) -> Int32:
    """[calls] The lane that a recorded synchronisation waits for, -1 if unknown."""
    api, syncs = profile.api, profile.synchronisations
    result = np.full(len(api) + 1, -1, np.int32)
    of_stream = syncs.kind.fits(lambda kind: kind == "stream")
    rows = np.flatnonzero(of_stream & (syncs.call >= 0) & (syncs.stream >= 0))
    if not len(rows):
        return result[:-1]
    number = [pids_of(profile), *(numbers(profile, name) for name in ("device", "stream"))]
    lanes, first = np.unique(lane, return_index=True)
    place = {tuple(int(array[k]) for array in number): i for i, k in zip(lanes, first, strict=True)}
    pid = syncs.pid[rows].tolist()
    keys = zip(pid, syncs.device[rows].tolist(), syncs.stream[rows].tolist(), strict=True)
    result[syncs.call[rows]] = [place.get(key, -1) for key in keys]
    return result[:-1]


_LEAST: Final = 5  # steps


class RunPart:
    """Some steps of a profile, as a profile: what a replay needs of it.

    Parameters
    ----------
    whole : Profile
    rows : int64 [kernels of the part], rows of `whole`, ascending
    calls : the API calls of the part, a slice of `whole.api`
    steps : the steps of the part
    """

    def __init__(
        self, whole: ProfileData, rows: Int64, calls: slice, steps: StepsOfKernels
    ) -> None:
        self.whole, self.rows, self._calls, self._steps = whole, rows, calls, steps

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def about(self) -> About:
        """That of the whole."""
        return self.whole.about

    @property
    def names(self) -> list[str]:
        """The columns."""
        return self.whole.names

    def column(self, name: str) -> Column:
        """A column [kernels of the part] of numbers or texts."""
        return picked(self.whole.column(name), self.rows)

    def find_steps(self, source: str | None = None) -> StepsOfKernels:
        """The steps of the part, whatever the source: it decided which part this is."""
        return self._steps

    @computed_once
    def api(self) -> ApiCalls:
        """The API calls of the part."""
        api, calls = self.whole.api, self._calls
        return replace(
            api,
            start=api.start[calls],
            end=api.end[calls],
            thread=api.thread[calls],
            name=api.name.take(calls),
            call_class=api.call_class.take(calls),
            correlation=api.correlation[calls],
            of_kernel=self._row_of(api.of_kernel[self.rows]),
        )

    @computed_once
    def synchronisations(self) -> Synchronisations:
        """The synchronisations of the whole, with the calls of the part."""
        syncs = self.whole.synchronisations
        return replace(syncs, call=self._row_of(syncs.call))

    def _row_of(self, call: Int32) -> Int32:
        """Rows of `api`; -1 for calls outside."""
        first, n = self._calls.start, self._calls.stop - self._calls.start
        row = call - np.int32(first)
        result: Int32 = np.where((call >= 0) & (row >= 0) & (row < n), row, np.int32(-1))
        return result

    @computed_once
    def _place(self) -> Int32:
        result = np.full(len(self.whole), -1, np.int32)
        result[self.rows] = np.arange(len(self.rows), dtype=np.int32)
        return result

    def within(self, rows: Int64) -> Int64:
        """Those kernels of the whole that are in the part, as rows of the part."""
        place = self._place[rows]
        return place[place >= 0].astype(np.int64)

    def places(self, rows: Int32) -> Int32:
        """The row of the part of each kernel of the whole, -1 if it is not in the part."""
        return take(self._place, rows)

    def calls_within(self, rows: Int64) -> Int64:
        """Those API calls of the whole that are in the part, as rows of `api`."""
        first, end = self._calls.start, self._calls.stop
        result: Int64 = rows[(rows >= first) & (rows < end)] - first
        return result


Run = ProfileData | RunPart


def part_of(profile: ProfileData, steps: StepsOfKernels, most: int) -> Run:
    """About `most` kernels: steps from the middle of the run, and at least five.

    The whole run if it has no more, or no steps.
    """
    counts = np.bincount(steps.of_kernel + 1, minlength=len(steps) + 1)[1:]
    order = np.argsort(steps.start, kind="stable")
    counted = np.flatnonzero(steps.is_counted[order] & (counts[order] > 0))
    if len(profile) <= most or steps.source == "none" or len(counted) <= _LEAST:
        return profile
    middle = int(counted[len(counted) // 2])
    before = np.concatenate([[0], np.cumsum(counts[order])])
    half = (most + 1) // 2
    begin = int(np.searchsorted(before, before[middle] - half, "right")) - 1
    end = int(np.searchsorted(before, before[middle] + half))
    begin = min(max(begin, 0), max(middle - _LEAST // 2, 0))
    end = max(end, begin + _LEAST)
    chosen = order[begin:end]
    known = np.concatenate([_last_of_each(steps.pid, order[:begin]), chosen])
    since, until = int(steps.start[known].min()), int(steps.end[chosen].max())
    api = profile.api
    calls = slice(*(int(each) for each in np.searchsorted(api.start, [since, until])))
    start, call = numbers(profile, "start"), api.of_kernel
    is_inside = (call >= calls.start) & (call < calls.stop)
    is_inside |= (call < 0) & (start >= since) & (start < until)
    rows = np.flatnonzero(is_inside)
    return RunPart(profile, rows, calls, _some(steps, np.sort(known), chosen, rows))


def _last_of_each(pid: Int64, rows: Int64) -> Int64:
    """The last of some rows of each process."""
    last = {int(pid[row]): row for row in rows.tolist()}
    return np.array(list(last.values()), np.int64)


def _some(steps: StepsOfKernels, known: Int64, chosen: Int64, kernels: Int64) -> StepsOfKernels:
    """Some steps, for some kernels.

    known : further steps than `chosen`, of unknown length: the end of their work begins the next
    """
    place = np.full(len(steps), -1, np.int32)
    place[known] = np.arange(len(known), dtype=np.int32)
    is_chosen = np.isin(known, chosen)
    columns = ("number", "pid", "start", "end", "gpu_start", "gpu_end", "length")
    return replace(
        steps,
        **{name: getattr(steps, name)[known] for name in columns},
        gpu_length=np.where(is_chosen, steps.gpu_length[known], -1),
        is_counted=steps.is_counted[known] & is_chosen,
        of_kernel=take(place, steps.of_kernel[kernels]),
    )
