"""`launches`: host time of launches, launch-to-start latency and the queue of the GPU.

The answer first: the lines above the table of `launches`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from fastprof._core._take import take
from fastprof._system.threads import SecondThread
from fastprof.analysis import keys
from fastprof.analysis.grouping import Grouping, group
from fastprof.analysis.key_names import check_keys, heading_of
from fastprof.analysis.launches.columns import COLUMNS
from fastprof.analysis.launches.times import (
    STARVED,
    LaunchTimes,
    QueueDepth,
    launch_times,
    queue_depths,
)
from fastprof.analysis.registry import Where
from fastprof.analysis.selection import selected
from fastprof.analysis.stats.gpu import printed
from fastprof.analysis.steps.means import step_means
from fastprof.analysis.summary.measures import in_counted_steps, ratio, shown
from fastprof.model.columns import Ints, Values
from fastprof.model.quantity import quantity
from fastprof.model.table import ColumnData, Floats, Table
from fastprof.profile.data import ProfileData
from fastprof.profile.facts import gpu_names
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
    found = profile.find_steps(steps)
    rows = selected(profile, where)
    if "start" not in profile.names:
        return _empty(names, "dict lines have no times: open the trace that they are from")
    api = profile.api  # read before both threads need it
    with SecondThread() as second:
        depths = second.submit(lambda: queue_depths(profile, api) if rows is None else [])
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
        queues = depths.result()
        total = {name: column.at(0) for name, column in of_all.result().items()}
    lines, facts = overview(profile, times, found, total)
    return Table(
        {**columns, **measured},
        (*map(heading_of, names), *shown(COLUMNS, measured)),
        lead=(*lines, *queue_lines(queues), ""),
        notes=tuple(_notes(times)),
        total=total,
        facts={**facts, "queue_depth": [each.facts() for each in queues]},
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
    columns = dict.fromkeys((*names, *(each.key for each in COLUMNS)), none)
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


def queue_lines(queues: Sequence[QueueDepth]) -> list[str]:
    """Two lines for each queue: figures, and the depth over time as bars."""
    pids = {queue.pid for queue in queues}
    lines = []
    for queue in queues[:_MOST]:
        of = f" of process {queue.pid}" if len(pids) > 1 else ""
        lines += [
            f"queue of GPU {queue.device}{of}: {queue.mean:.3g} kernels and copies on average, at "
            f"most {queue.most}; empty for {queue.empty_share:.1%} of the time",
            f"|{queue.sparkline()}|",
        ]
    return [*lines, f"and {len(queues) - _MOST} more queues"] if len(queues) > _MOST else lines
