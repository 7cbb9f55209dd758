"""`launches`: host time of launches, launch-to-start latency and the queue of the GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof._system.threads import SecondThread, computed_once
from fastprof.analysis import keys
from fastprof.analysis.grouping import Floats64, Grouping, group, numbers
from fastprof.analysis.key_names import check_keys, heading_of
from fastprof.analysis.launches.columns import COLUMNS
from fastprof.analysis.registry import Where
from fastprof.analysis.selection import selected
from fastprof.analysis.stats.gpu import is_of_kinds, printed
from fastprof.analysis.steps.windows import step_means
from fastprof.analysis.summary.measures import in_counted_steps, ratio, shown
from fastprof.model.arrays import Bools, Int32, Int64, rows_by
from fastprof.model.columns import Ints, Values
from fastprof.model.metadata import OF_AMD
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Floats, Table
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.data import ProfileData
from fastprof.profile.facts import gpu_names
from fastprof.profile.instances import ApiCalls
from fastprof.profile.recording_hints import advice_on
from fastprof.profile.steps.kernel_steps import StepsOfKernels


def launches(
    profile: ProfileData,
    by: str | Sequence[str] | None = None,
    where: Where | None = None,
    steps: str | None = None,
) -> Table:
    """Launches of kernels and graphs by any keys, most host time first. See docs/reports.md.

    Parameters
    ----------
    by : keys, see `fastprof.analysis.key_names`; by default op, or kind without operators
    where : see `fastprof.analysis.selection`
    steps : what a step is, see `Profile.find_steps`

    Raises
    ------
    ReportError
        A key is unknown.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    BadInputError
        The file has changed since it was read.
    """
    names = (by,) if isinstance(by, str) else tuple(by or _default(profile))
    check_keys(names)
    kernels = profile.find_steps(steps)
    rows = selected(profile, where)
    if "start" not in profile.names:
        return _empty(names, "dict lines have no times: open the trace that they are from")
    api = profile.api  # read before both threads need it
    with SecondThread() as second:
        depths = second.submit(lambda: queue_depths(profile, api) if rows is None else ([], 0))
        times = launch_times(profile, api, rows)
        if not times.known.any():
            return _empty(names, _nothing(profile, times))
        of_all = second.submit(_measures, times, times.together())
        by_name = {name: keys.key_of(profile, name) for name in names}
        groups = group(list(by_name.values()), len(profile), times.known)
        columns: dict[str, ColumnData] = {
            name: Values(key.ids[groups.first], key.values) for name, key in by_name.items()
        }
        measured = _measures(times, groups)
        queues, n_queues = depths.result()
        total = {name: column.at(0) for name, column in of_all.result().items()}
    lines, facts = overview(profile, times, kernels, total)
    return Table(
        {**columns, **measured},
        (*map(heading_of, names), *shown(COLUMNS, measured)),
        lead=(*lines, *queue_lines(queues, n_queues), ""),
        notes=(*_notes(times), *_left_out(len(queues), n_queues)),
        total=total,
        facts={**facts, "queue_depth": [queue.facts() for queue in queues]},
    ).sort("host_ns")


def _default(profile: ProfileData) -> tuple[str, ...]:
    return ("op",) if any(keys.key_of(profile, "op").values) else ("kind",)


def _measures(times: LaunchTimes, groups: Grouping) -> dict[str, ColumnData]:
    of_calls = Grouping(take(groups.ids, times.first), groups.n)
    host = of_calls.stats(times.host)
    latency, queue = groups.stats(times.latency), groups.stats(times.queue)
    starved = groups.sums(times.is_starved)
    on_time = groups.counts - groups.sums(times.is_early)
    return {
        "launches": Ints(of_calls.counts),
        "kernels": Ints(groups.counts),
        "host_ns": Ints(host.sum),
        "call_mean_ns": Floats(ratio(host.sum, host.count)),
        "call_median_ns": Floats(host.median()),
        "call_min_ns": Ints(host.min),
        "call_max_ns": Ints(host.max),
        "latency_ns": Floats(latency.median()),
        "queue_ns": Floats(queue.median()),
        "queued": Ints(queue.count),
        "gpu_ns": Ints(groups.stats(times.duration).sum),
        "short_share": Floats(ratio(of_calls.sums(times.is_short), of_calls.counts)),
        "starved_share": Floats(ratio(starved, on_time)),
    }


def _empty(names: Sequence[str], note: str) -> Table:
    none: ColumnData = Ints(np.empty(0, np.int64))
    columns = dict.fromkeys((*names, *(column.key for column in COLUMNS)), none)
    return Table(columns, (*map(heading_of, names), *COLUMNS), notes=(note,))


def _nothing(profile: ProfileData, times: LaunchTimes) -> str:
    """Why there are no launches, and what to record."""
    if not times.not_launched:
        return advice_on(profile.about, profile.contents, "op")
    how = _RECORD.get(profile.about.format, "record API calls of CUDA")
    return f"the file has {times.not_launched} kernels and the launch of none: {how}"


_RECORD: Final = {
    "nsys": "record with nsys profile -t cuda,nvtx",
    "nvprof": "record with nvprof --profile-api-trace all",
    **dict.fromkeys(OF_AMD, "record with rocprofv3 --runtime-trace"),
    "kineto": "add a warmup step to the schedule of torch.profiler",
}


def _notes(times: LaunchTimes) -> list[str]:
    notes = []
    n_early = int(np.count_nonzero(times.is_early))
    if n_early:
        rows = np.flatnonzero(times.is_early)
        worst = int((times.begin[rows] - times.start[rows]).max())
        notes.append(
            f"{n_early} kernels start before their launch, by up to {quantity(worst, 'ns')}: the "
            "clocks of host and GPU differ; these count neither in to start and queue nor as "
            "starved"
        )
    if times.not_launched:
        notes.append(f"{times.not_launched} kernels without a recorded launch are left out")
    return notes


def _left_out(n_kept: int, n_queues: int) -> list[str]:
    if n_kept == n_queues:
        return []
    return [f"{n_queues - n_kept} of {n_queues} queues left out: those with the least work"]


_BOUND: Final = 0.2  # share of starved kernels
_MOST: Final = 4  # queues, and functions


def overview(
    profile: ProfileData, times: LaunchTimes, steps: StepsOfKernels, total: Mapping[str, Any]
) -> tuple[list[str], dict[str, Any]]:
    """Lines of text, and the values in them for JSON.

    total : the measures of all launches together
    """
    gpus = gpu_names(profile.about, profile.column("device")) or "GPU not named in the file"
    means = step_means(profile, steps)
    facts: dict[str, Any] = {"step_kernels": None, "step_launches": None, "step_host_ns": None}
    if means is not None and means.is_step:
        counted, n = in_counted_steps(steps), means.n_windows
        facts = {
            "step_kernels": np.count_nonzero(counted & times.known) / n,
            "step_launches": np.count_nonzero(counted[times.first]) / n,
            "step_host_ns": float(times.host[counted[times.first]].sum()) / n,
        }
        kernels, launches, host = facts.values()
        share = f" ({host / means.wall:.1%} of the {means.unit})"
        lines = [f"{gpus}, {steps.description}"]
        of_what = f"{means.unit} {quantity(means.wall, 'ns')}: "
    else:
        kernels, launches, host = (total[name] for name in ("kernels", "launches", "host_ns"))
        lines, of_what, share = [gpus], "", ""
    lines += [
        f"{of_what}{kernels:.0f} kernels, {launches:.0f} launches, which take "
        f"{quantity(host, 'ns')} of host time{share}",
        *steps.notes,
        *_figures(total),
        *_by_function(profile, times),
    ]
    return lines, facts


def _figures(total: Mapping[str, Any]) -> list[str]:
    starved, short = total["starved_share"], total["short_share"]
    lines = []
    if starved is not None:
        verdict = "launch-bound" if starved > _BOUND else "not launch-bound"
        lines.append(
            f"{verdict}: {starved:.1%} of the kernels start within {quantity(STARVED, 'ns')} of "
            f"their launch (starved); {short:.1%} of the launches take longer than their GPU work"
        )
    medians = [
        f"{name} {quantity(total[key], 'ns')}"
        for name, key in (
            ("launch call", "call_median_ns"),
            ("from call to start", "latency_ns"),
            ("queue", "queue_ns"),
        )
        if total[key] is not None
    ]
    return [*lines, f"medians: {', '.join(medians)}"]


def _by_function(profile: ProfileData, times: LaunchTimes) -> list[str]:
    """The number of launches by API function, if there are several functions."""
    api = profile.api
    names = printed(api.name)
    used = Grouping(take(names.ids, times.call[times.first]), len(names.values))
    order = np.argsort(-used.counts, kind="stable")[: np.count_nonzero(used.counts)].tolist()
    if len(order) < 2:
        return []
    listed = [f"{used.counts[i]} {names.values[i]}" for i in order[:_MOST]]
    more = [f"{len(order) - _MOST} more functions"] if len(order) > _MOST else []
    return [f"launches by function: {', '.join(listed + more)}"]


def queue_lines(queues: Sequence[QueueDepth], n_queues: int) -> list[str]:
    """Two lines for each queue: figures, and the depth over time as bars.

    n_queues : number of all queues
    """
    pids = {queue.pid for queue in queues}
    lines = []
    for queue in queues[:_MOST]:
        of = f" of process {queue.pid}" if len(pids) > 1 else ""
        lines += [
            f"queue of GPU {queue.device}{of}: {queue.mean:.3g} kernels and copies on average, at "
            f"most {queue.most}; empty for {queue.empty_share:.1%} of the time",
            f"|{queue.sparkline()}|",
        ]
    return [*lines, f"and {n_queues - _MOST} more queues"] if n_queues > _MOST else lines


# A kernel that starts this soon after its launch found an empty queue, ns.
STARVED: Final = 10_000


@dataclass(frozen=True, eq=False)
class LaunchTimes:
    """The launches of kernels and graphs.

    Parameters
    ----------
    call : int32 [kernels], row of `Profile.api`; -1 for other work, and if no launch is recorded
    begin, end : int64 [kernels], start and end of the call, ns
    start : int64 [kernels], start on the GPU, ns
    duration : int64 [kernels], on the GPU, ns, 0 if unknown
    n_calls : calls in `Profile.api`
    not_launched : kernels and graphs whose launch is not recorded
    """

    call: Int32
    begin: Int64
    end: Int64
    start: Int64
    duration: Int64
    n_calls: int
    not_launched: int

    def together(self) -> Grouping:
        """All kernels with a recorded launch as one group."""
        return Grouping(np.where(self.known, np.int32(0), np.int32(-1)), 1)

    @computed_once
    def known(self) -> Bools:
        """[kernels] Whether the launch is recorded."""
        return self.call >= 0

    @computed_once
    def is_early(self) -> Bools:
        """[kernels] Starts before its launch: the clocks of host and GPU differ."""
        return self.known & (self.start < self.begin)

    @computed_once
    def latency(self) -> Int64:
        """[kernels] From the start of the call to that of the kernel, ns; -1 unknown."""
        return np.where(self.known & ~self.is_early, self.start - self.begin, -1)

    @computed_once
    def queue(self) -> Int64:
        """[kernels] From the end of the call to the start of the kernel, ns; -1 if not after it."""
        wait = self.start - self.end
        return np.where(self.known & (wait > 0), wait, -1)

    @computed_once
    def is_starved(self) -> Bools:
        """[kernels] Starts less than STARVED after its call ends, or during it."""
        return self.known & ~self.is_early & (self.queue < STARVED)

    @computed_once
    def first(self) -> Int32:
        """[launches] The first kernel of each call, in order of the calls."""
        first = np.full(self.n_calls + 1, -1, np.int32)  # the last for kernels without a call
        first[self.call[::-1]] = np.arange(len(self.call) - 1, -1, -1, dtype=np.int32)
        return first[:-1][first[:-1] >= 0]

    @computed_once
    def host(self) -> Int64:
        """[launches] Host time of each call, ns."""
        return self.end[self.first] - self.begin[self.first]

    @computed_once
    def is_short(self) -> Bools:
        """[launches] Whether all kernels of the call together are shorter than the call."""
        gpu = np.bincount(self.call + 1, self.duration, self.n_calls + 1)[1:]
        return np.asarray(gpu[self.call[self.first]] < self.host)


def launch_times(profile: ProfileData, api: ApiCalls, rows: Bools | None = None) -> LaunchTimes:
    """The launches of some kernels.

    api : those of the profile
    rows : the kernels, bool [kernels]; None for all
    """
    wanted = is_of_kinds(profile, "kernel", "graph")
    if rows is not None:
        wanted &= rows
    call = np.where(wanted, api.of_kernel, np.int32(-1))
    end = take(api.end, call, NEVER)
    call[end == NEVER] = -1
    n_known = int(np.count_nonzero(call >= 0))
    return LaunchTimes(
        call=call,
        begin=take(api.start, call, NO_TIME),
        end=end,
        start=numbers(profile, "start"),
        duration=np.maximum(numbers(profile, "sil"), 0),
        n_calls=len(api),
        not_launched=int(np.count_nonzero(wanted)) - n_known,
    )


_BINS: Final = 40
_BARS: Final = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class QueueDepth:
    """The queue of a process on a GPU: kernels, graphs, copies and memsets.

    Parameters
    ----------
    pid, device : process and GPU, -1 if not recorded
    start, end : from the first launch to the last start of work, ns
    mean : mean number of waiting work over that time
    most : the largest number
    empty : ns without waiting work
    bins : float64 [bins], the mean number in equal parts of that time
    """

    pid: int
    device: int
    start: int
    end: int
    mean: float
    most: int
    empty: int
    bins: Floats64

    @property
    def empty_share(self) -> float:
        """The share of the time without waiting work."""
        return self.empty / max(self.end - self.start, 1)

    def sparkline(self) -> str:
        """The bins as bars: a blank below half a unit of work, the full height for the largest."""
        height = max(float(self.bins.max()), 1.0)
        levels = np.ceil(self.bins / height * len(_BARS)).astype(int) - 1
        blank = self.bins < 0.5
        return "".join(
            " " if none else _BARS[max(level, 0)]
            for none, level in zip(blank.tolist(), levels.tolist(), strict=True)
        )

    def facts(self) -> dict[str, Any]:
        """The values for JSON."""
        return {
            "pid": self.pid if self.pid >= 0 else None,
            "device": self.device if self.device >= 0 else None,
            "start_ns": self.start,
            "end_ns": self.end,
            "mean": self.mean,
            "max": self.most,
            "empty_share": self.empty_share,
            "depth": [round(number, 3) for number in self.bins.tolist()],
        }


MOST_QUEUES: Final = 1000  # that a reader can use


def queue_depths(profile: ProfileData, api: ApiCalls) -> tuple[list[QueueDepth], int]:
    """The queues of processes and GPUs with launches, in order of the GPU, and their number.

    Of more than MOST_QUEUES, those with the most work.

    api : the API calls of the profile
    """
    launched = take(api.end, api.of_kernel, NEVER)
    known = np.flatnonzero(launched != NEVER)
    start, begin = numbers(profile, "start"), take(api.start, api.of_kernel)
    pid, device = (
        np.ascontiguousarray(numbers(profile, name), np.int64) for name in ("pid", "device")
    )
    ids, first = alike([pid, device])
    counts = np.bincount(ids[known])
    kept = np.zeros(len(counts), bool)
    kept[np.argsort(-counts, kind="stable")[:MOST_QUEUES]] = True
    n_queues, known = int(np.count_nonzero(counts)), known[kept[ids[known]]]
    queues = []
    for queue, places in rows_by(ids[known]):
        rows, row = known[places], first[queue]
        whole = int(begin[rows].min()), int(start[rows].max())
        rows = rows[start[rows] > launched[rows]]
        queues.append(_depth(int(pid[row]), int(device[row]), whole, launched[rows], start[rows]))
    return sorted(queues, key=lambda queue: (queue.device, queue.pid)), n_queues


def _depth(
    pid: int, device: int, window: tuple[int, int], joins: Int64, leaves: Int64
) -> QueueDepth:
    """The queue of work that waits from `joins` to `leaves`, which are ascending.

    window : its time; may end before it begins, if the clocks of host and GPU differ
    """
    begin, end = window[0], max(window)
    span = max(end - begin, 1)
    leaves, in_order = leaves - begin, np.sort(joins) - begin
    depth = np.arange(1, len(joins) + 1) - np.searchsorted(leaves, in_order, "right")
    edges = np.linspace(0, span, _BINS + 1)
    waited = _until(in_order, edges) - _until(leaves, edges)
    return QueueDepth(
        pid=pid,
        device=device,
        start=begin,
        end=end,
        mean=float((leaves.sum() - in_order.sum()) / span),
        most=int(depth.max(initial=0)),
        empty=span - _union(joins - begin, leaves),
        bins=np.maximum(np.diff(waited), 0) * (_BINS / span),
    )


def _union(start: Int64, end: Int64) -> int:
    """The length of the union of intervals, in order of end."""
    later = np.minimum.accumulate(start[::-1])[::-1]  # the first start of this and later intervals
    until = end.copy()
    np.minimum(until[:-1], later[1:], out=until[:-1])
    return int(np.maximum(until - start, 0).sum())


def _until(times: Int64, edges: Floats64) -> Floats64:
    """The time since each of some sorted times, summed, at each edge."""
    n = np.searchsorted(times, edges)
    since: Floats64 = n * edges - np.append(0.0, np.cumsum(times, dtype=np.float64))[n]
    return since
