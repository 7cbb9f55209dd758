"""The answer first: the lines above the table of `launches`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.grouping import Grouping
from fastprof.analysis.launch_times import STARVED, LaunchTimes
from fastprof.analysis.measures import in_counted_steps
from fastprof.analysis.queue_depth import QueueDepth
from fastprof.analysis.stats.calls import printed
from fastprof.analysis.step_means import step_means
from fastprof.model.quantity import quantity
from fastprof.profile.facts import gpu_names
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

_BOUND: Final = 0.2  # share of starved kernels
_MOST: Final = 4  # queues, and functions


def overview(
    profile: Profile, times: LaunchTimes, steps: StepsOfKernels, total: Mapping[str, Any]
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


def _by_function(profile: Profile, times: LaunchTimes) -> list[str]:
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
