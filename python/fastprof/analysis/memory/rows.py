"""The rows of `memory`: sums over blocks by any keys, and the use of each memory over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from fastprof._core import _join, _nest
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.analysis.grouping import Grouping, group, texts
from fastprof.analysis.host.events import CpuEvents, Measure, counted, joined_ids
from fastprof.analysis.memory.blocks import UNKNOWN_TIME, Blocks, MemoryEvents, Use, blocks_of
from fastprof.analysis.memory.columns import COLUMNS, EARLIER, memory_heading
from fastprof.analysis.summary.measures import ratio
from fastprof.errors import ReportError
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Column, Ints, Values
from fastprof.model.metadata import MANAGED, OF_AMD, PINNED, About, Memory
from fastprof.model.table import ColumnData, Floats, Table
from fastprof.profile.calls import named
from fastprof.profile.data import ProfileData, begins_in_part
from fastprof.profile.instances import ApiCalls, RangeInstances, Threads
from fastprof.profile.program import WITH_OPERATORS
from fastprof.profile.range_columns import params_of, steps_at
from fastprof.profile.steps.kernel_steps import StepsOfKernels

_NONE: Final = np.iinfo(np.int64).min


class Net(NamedTuple):
    """Allocated less freed bytes of CPU events, and the keys of these events."""

    events: CpuEvents
    measure: Measure
    keys: Mapping[str, Values]


def rows_of(blocks: Blocks, by: Mapping[str, Values], rows: Bools | None, net: Net | None) -> Table:
    """A row for each combination of keys, the largest at the peak first.

    Blocks from before the capture are a row if all rows are selected.

    Parameters
    ----------
    by : the keys of the recorded blocks
    rows : the selected recorded blocks; None for all
    net : what CPU events allocate less what they free; None omits these columns
    """
    n, is_all = int(blocks.is_recorded.sum()), rows is None
    both = list(by.values())
    if net is not None:
        both = [_joined(values, net.keys[name]) for name, values in by.items()]
        changes = (net.measure.total != 0) | (net.measure.own != 0)
        rows = np.append(np.full(n, True), changes)
    groups = group(both, n + (0 if net is None else len(net.events)), rows)
    columns = {
        name: Values(key.ids[groups.first], key.values) for name, key in zip(by, both, strict=True)
    }
    sums = _sums(blocks, Grouping(groups.ids[:n], groups.n))
    if net is not None:
        sums |= _net_sums(net, Grouping(groups.ids[n:], groups.n), "op" in by)
    earlier = _earlier(blocks, sums) if is_all else {}
    if earlier:
        columns = _with_earlier(columns)
        sums = {name: np.append(array, earlier.get(name, _NONE)) for name, array in sums.items()}
    return _table(columns, sums)


def _table(columns: Mapping[str, Values], found: Mapping[str, Int64]) -> Table:
    total = {name: _total(array) for name, array in found.items() if name != "total_bytes"}
    at_peak = found["at_peak_bytes"]
    cells: dict[str, ColumnData] = {name: Ints(array, _NONE) for name, array in found.items()}
    cells["at_peak_share"] = Floats(ratio(at_peak, np.full(len(at_peak), total["at_peak_bytes"])))
    headings = [column for column in COLUMNS if column.key in cells]
    table = Table(
        {**columns, **{heading.key: cells[heading.key] for heading in headings}},
        (*map(memory_heading, columns), *headings),
        total=total,
    )
    return table.take(np.lexsort((-found["allocated_bytes"], -at_peak)))


def empty_table(note: str, facts: Mapping[str, Any]) -> Table:
    """A table without rows, with the reason."""
    none: dict[str, ColumnData] = {column.key: Ints(np.empty(0, np.int64)) for column in COLUMNS}
    return Table(none, COLUMNS, notes=(note,), facts=facts)


def _joined(left: Values, right: Values) -> Values:
    values = Values(joined_ids(left, right), [*left.values, *right.values])
    return values.mapped(lambda value: value)


def _sums(blocks: Blocks, groups: Grouping) -> dict[str, Int64]:
    own = blocks.is_recorded
    size = blocks.size[own]
    at_peak = blocks.is_live(_peaks(blocks))[own]
    at_end = blocks.is_live_at_end[own]

    def sums(values: Int64) -> Int64:
        return np.asarray(groups.stats(values, _NONE).sum)

    return {
        "at_peak_bytes": sums(np.where(at_peak, size, 0)),
        "at_peak_blocks": sums(at_peak.astype(np.int64)),
        "allocated_bytes": sums(size),
        "allocations": np.asarray(groups.counts),
        "at_end_bytes": sums(np.where(at_end, size, 0)),
        "at_end_blocks": sums(at_end.astype(np.int64)),
    }


def _peaks(blocks: Blocks) -> Int64:
    """[blocks] The event after which the memory of each block has its peak."""
    peaks = np.array([use.peak_event for use in blocks.uses], np.int64)
    return peaks[blocks.memory] if len(peaks) else np.empty(0, np.int64)


def _earlier(blocks: Blocks, found: Mapping[str, Int64]) -> dict[str, int]:
    """The blocks from before the capture; those that it does not free only if totals are known.

    Empty if there are none.
    """
    uses = blocks.uses
    if all(use.start is not None for use in uses):
        peak = sum(use.base + use.peak_above for use in uses) - int(found["at_peak_bytes"].sum())
        end = sum(use.base + int(use.above[-1]) for use in uses) - int(found["at_end_bytes"].sum())
    else:
        is_early = ~blocks.is_recorded
        peak = int(blocks.size[is_early & blocks.is_live(_peaks(blocks))].sum())
        end = _NONE if peak or is_early.any() else 0
    if not peak and not end:
        return {}
    return {"at_peak_bytes": peak, "at_end_bytes": end, "allocated_bytes": 0, "allocations": 0}


def _with_earlier(columns: Mapping[str, Values]) -> dict[str, Values]:
    """The keys with those of the row of earlier blocks: the first is EARLIER, others unknown."""
    result: dict[str, Values] = {}
    for name, key in columns.items():
        new = -1 if result else len(key.values)
        values = key.values if result else [*key.values, EARLIER]
        result[name] = Values(np.append(key.ids, np.int32(new)), values)
    return result


def _net_sums(net: Net, groups: Grouping, nested: bool) -> dict[str, Int64]:
    included = counted(net.events, groups, nested)
    total = groups.stats(np.where(included, net.measure.total, 0), _NONE).sum
    own = groups.stats(net.measure.own, _NONE).sum
    return {"self_bytes": np.asarray(own), "total_bytes": np.asarray(total)}


def _total(values: Int64) -> Any:
    known = values[values != _NONE]
    return int(known.sum())


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
        pids, first, process = np.unique(threads.pid, return_index=True, return_inverse=True)
        of_pid = dict(zip(pids.tolist(), process[first].tolist(), strict=True))
        own = np.array([of_pid.get(number, -1) for number in pid[rows].tolist()], np.int32)
        join = _join.Join(own, correlation[rows])
        join.offer(take(process.astype(np.int32), api.thread), api.correlation)
        thread[rows] = take(api.thread, join.rows(own, correlation[rows]))
    return thread


def _by_ids(pid: Int64, tid: Int64, threads: Threads) -> Int32:
    pairs = zip(threads.pid.tolist(), threads.tid.tolist(), strict=True)
    number = {pair: i for i, pair in reversed(list(enumerate(pairs)))}
    thread = np.full(len(pid), -1, np.int32)
    if not len(pid):
        return thread
    changes = np.flatnonzero((np.diff(pid) != 0) | (np.diff(tid) != 0)) + 1
    starts = np.append(0, changes)
    ids = zip(pid[starts].tolist(), tid[starts].tolist(), strict=True)
    result = np.array([number.get(pair, -1) if pair[1] >= 0 else -1 for pair in ids], np.int32)
    return np.repeat(result, np.diff(np.append(starts, len(pid))))


def _innermost(ranges: RangeInstances, time: Int64, thread: Int32) -> Int32:
    """[events] The innermost range of the thread at each time, -1 for none."""
    n = ranges.n_own
    _, of_frame, _, frame = _nest.sweep(
        ranges.start[:n], ranges.end[:n], ranges.thread[:n], time, thread, len(ranges.threads.tid)
    )
    return take(of_frame, frame)


_NO_EVENTS: Final = {
    **dict.fromkeys(
        ("rocprof", "rocpd"),
        "no memory events: record with rocprofv3 --memory-allocation-trace",
    ),
    "rpd": "rocmProfileData records no allocations: record with rocprofv3 "
    "--memory-allocation-trace",
    "kineto": "no memory events: record with torch.profiler.profile(profile_memory=True)",
    "nsys": "no memory events: record with nsys profile --cuda-memory-usage=true",
    "nvprof": "NVProf records no allocations: record with nsys profile --cuda-memory-usage=true",
    "dict": "no memory events in dict lines: use the original trace",
}
# What profilers of the driver record.
_ALLOCATES: Final = {
    **dict.fromkeys(("nsys", "nvprof"), "cudaMalloc"),
    **dict.fromkeys(OF_AMD, "hipMalloc"),
}
_TENSORS: Final = " ({}), or with torch.profiler and profile_memory=True (tensors)"


def why_none(profile: ProfileData) -> str:
    """Why a trace has no memory events, and how to record them."""
    text = _NO_EVENTS[profile.about.format]
    allocates = _ALLOCATES.get(profile.about.format)
    if allocates is None or profile.contents.program.kind not in WITH_OPERATORS:
        return text
    return text + _TENSORS.format(allocates)


def uses_of(profile: ProfileData, device: str | int | None = None) -> list[Use]:
    """The use of the selected memories; none without memory events.

    device : see `fastprof.analysis.memory.report.memory`

    Raises
    ------
    ReportError
        There are events, but none of this memory.
    """
    recorded = profile.memory_events
    memories = events_of(recorded, lambda name: True).names
    if not memories:
        return []
    chosen = wanted(memories, None if device is None else str(device).lower())
    return blocks_of(events_of(recorded, chosen.__contains__), False).uses


def wanted(memories: Sequence[str], device: str | None) -> set[str]:
    """The selected memories; by default GPUs, else the CPU, else the first."""
    if device is None:
        of_gpus = {text for text in memories if text.startswith(GPU)}
        return of_gpus or {CPU if CPU in memories else memories[0]}
    name = f"{GPU} {device}".lower() if device.isdigit() else device
    results = {text for text in memories if name in (text.lower(), text.split()[0].lower())}
    if not results:
        raise ReportError(
            f"expected a memory with events (a number for a GPU), found {device!r}; the file "
            f"records {', '.join(sorted(memories))}"
        )
    return results


def envelope(values: Int64, most: int) -> Int64:
    """int64 [points] Rows that keep the extremes of a curve; about `most`, at least 4, ascending.

    Of equal parts of the curve, the first and last row, and a row of the minimum and of the
    maximum. Short curves keep all rows.
    """
    n = len(values)
    if n <= most:
        return np.arange(n)
    edges = np.linspace(0, n, max(most // 4, 1) + 1).astype(np.int64)
    extremes = [
        begin + int(place(values[begin:end]))
        for begin, end in pairwise(edges.tolist())
        for place in (np.argmin, np.argmax)
    ]
    rows: Int64 = np.concatenate([edges[:-1], edges[1:] - 1, np.array(extremes, np.int64)])
    return np.unique(rows)
