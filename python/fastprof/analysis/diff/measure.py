"""The Side of a profile: counted steps, their time line, idle causes, kernels, the host's lead."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, Final

import numpy as np

from fastprof._core._counted import counted
from fastprof._core._launched import NO_GROUP, OTHER, launched
from fastprof._core._sweep import Sweep
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof._system.threads import SecondThread
from fastprof.analysis.cells import ReportCells, cells_of
from fastprof.analysis.diff.plan import make_plan
from fastprof.analysis.diff.side import COMMUNICATION, COMPUTE, COPIES, KEYS, Side, not_planned
from fastprof.analysis.grouping import group, numbers
from fastprof.analysis.idle.causes import Host
from fastprof.analysis.idle.gaps import gaps_in_windows
from fastprof.analysis.keys import key_of
from fastprof.analysis.launches.report import STARVED
from fastprof.analysis.notes import NO_GPU_WORK
from fastprof.analysis.registry import Where
from fastprof.analysis.schedule import computing
from fastprof.analysis.selection import selected
from fastprof.analysis.stats.gpu import is_of_kinds
from fastprof.analysis.steps.windows import (
    Windows,
    gpu_counters,
    host_times,
    times_of,
    windows_of,
)
from fastprof.errors import ReportError
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Values, unknown
from fastprof.model.numbers import without_index
from fastprof.profile.data import ProfileData
from fastprof.profile.facts import gpu_names
from fastprof.profile.recording_hints import advice_on
from fastprof.profile.steps.kernel_steps import StepsOfKernels

_PARTS = {"communication": COMMUNICATION, "memcpy": COPIES, "memset": COPIES}


def side_of(
    profile: ProfileData,
    steps: str | None = None,
    where: Where | None = None,
    has_plan: bool = False,
) -> Side:
    """Measure a capture.

    Parameters
    ----------
    steps : what a step is, see `Profile.find_steps`
    where : only this work counts; see `fastprof.analysis.selection`
    has_plan : whether the side can make its plan; it then keeps the profile

    Raises
    ------
    ReportError
        The capture has no GPU work or no times, or a condition is malformed.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    BadInputError
        The file has changed since it was read.
    """
    rows = selected(profile, where)
    if "start" not in profile.names:
        raise ReportError(f"{profile.name}: dict lines contain no times; compare original traces")
    with SecondThread() as second:
        grouping = second.submit(_Groups, profile, rows)
        kernels = profile.find_steps(steps)
        every = windows_of(profile, kernels, rows)
        windows = every.take(np.flatnonzero(every.is_counted))
        if not len(windows):
            raise ReportError(f"{profile.name}: {_nothing(profile)}")
        host, own = Host(profile), own_work(windows)
        times = _times(profile, windows, kernels, host)
        idle = gaps_in_windows(windows, host).by_window()
        groups = grouping.result()
    work, place = _work_of_groups(profile, windows, kernels, groups, own)
    plan = not_planned
    if has_plan and not where:
        plan = cache(partial(make_plan, profile, steps, take(place, groups.of_kernel)))
    return Side(
        names=(profile.name,),
        gpus=gpu_names(profile.about, profile.column("device")),
        steps=kernels.description,
        has_steps=kernels.source != "none",
        windows=times,
        idle=idle,
        notes=tuple(kernels.notes),
        plan=plan,
        **work,
    )


def _nothing(profile: ProfileData) -> str:
    """Why there is nothing to measure."""
    return NO_GPU_WORK if len(profile) else advice_on(profile.about, profile.contents, "op")


def _times(
    profile: ProfileData, windows: Windows, steps: StepsOfKernels, host: Host
) -> dict[str, Int64]:
    clock = gpu_counters(profile, windows)["sm_clock_hz"]
    return {
        "step": steps.number[windows.step],
        "pid": windows.lanes.pid[windows.lane],
        "device": windows.lanes.device[windows.lane],
        "rank": np.zeros(len(windows), np.int64),
        "wall_ns": windows.wall,
        **times_of(windows),
        **host_times(profile, windows, steps),
        **launching(profile, windows, steps),
        "sm_clock_hz": np.where(np.isnan(clock), -1, clock).astype(np.int64),
    }


def _work_of_groups(
    profile: ProfileData, windows: Windows, steps: StepsOfKernels, groups: _Groups, own: Own
) -> tuple[dict[str, Any], Int32]:
    """The fields of a Side that describe groups, and the row of each of `groups`, -1 for none."""
    is_counted = np.zeros(len(steps), np.uint8)
    is_counted[windows.step] = True
    sums, pieces = counted(
        (groups.of_kernel, steps.of_kernel, numbers(profile, "call"), numbers(profile, "sil")),
        own,
        is_counted,
        groups.n,
    )
    kernels, calls, gpu_ns, first = sums
    group_of, window, ns = _added(*pieces, len(windows))
    # In order of their first kernel in a step; groups that run outside only are omitted.
    first = np.where(kernels > 0, first, np.int32(len(profile)))
    is_used = kernels > 0
    is_used[group_of] = True
    used = np.flatnonzero(is_used)
    used = used[np.argsort(first[used], kind="stable")]
    place = np.full(groups.n, -1, np.int32)
    place[used] = np.arange(len(used))
    fields = {
        "keys": {name: Values(key.ids[used], key.values) for name, key in groups.keys.items()},
        "calls": calls[used],
        "kernels": kernels[used],
        "gpu_ns": gpu_ns[used],
        "group": place[group_of],
        "window": window,
        "own_ns": ns,
    }
    return fields, place


def _added(group_of: Int32, window: Int32, ns: Int64, n_windows: int) -> tuple[Int32, Int32, Int64]:
    """Add up the pieces of each group in each window."""
    key = group([Values(window, [None] * n_windows), _ids(group_of)], len(ns))
    first = key.first
    return group_of[first], window[first], key.stats(ns).sum


def _ids(numbers: Int32) -> Values:
    return Values(numbers, [None] * (int(numbers.max(initial=-1)) + 1))


def _folded(layer: str) -> str:
    """`blocks.0:attn` and `blocks.1:attn` are both `blocks.*:attn`."""
    return ":".join(map(without_index, layer.split(":")))


class _Groups:
    """The groups of kernels that agree in KEYS.

    Attributes
    ----------
    of_kernel : int32 [kernels], groups are in order of their first kernel
    keys : [groups] by name
    """

    def __init__(self, profile: ProfileData, rows: Bools | None) -> None:
        with computing(profile, ("calls",)):
            has_ops = bool((key_of(profile, "op").ids >= 0).any())
            cells = cells_of(profile, () if has_ops else ("range",))
            columns = {name: self._key(cells, name, has_ops) for name in KEYS}
            groups = group(list(columns.values()), len(cells))
        self.n = groups.n
        self.of_kernel = take(groups.ids, cells.of_kernel)
        if rows is not None:
            self.of_kernel = np.where(rows, self.of_kernel, np.int32(-1))
        self.keys = {
            name: Values(column.ids[groups.first], column.values)
            for name, column in columns.items()
        }

    @staticmethod
    def _key(cells: ReportCells, name: str, has_ops: bool) -> Values:
        if name == "part":
            return key_of(cells, "kind").mapped(lambda kind: _PARTS.get(kind, COMPUTE))
        if name == "range" and has_ops:
            return unknown(len(cells))
        values = key_of(cells, name)
        return values.mapped(_folded) if name == "layer" else values


LAUNCHING: Final = ("launches", "launch_ns", "launched", "starved")


def launching(profile: ProfileData, windows: Windows, steps: StepsOfKernels) -> dict[str, Int64]:
    """What is launched in the step of each window, by the names in LAUNCHING; int64 [rows].

    launches : API calls that launch kernels or graphs; launch_ns: their host time, ns
    launched : kernels and graphs that start after their launch; starved: those that find an empty
        queue
    """
    api, n_steps = profile.api, len(steps)
    group = np.full(len(profile), NO_GROUP, np.int32)
    for i, lane in enumerate(windows.lanes):
        work = lane.selected.rows
        step = take(steps.of_kernel, work)
        group[work] = np.where(step < 0, np.int32(NO_GROUP), step + np.int32(i * n_steps))
    np.copyto(group, np.int32(OTHER), where=~is_of_kinds(profile, "kernel", "graph"))
    sums = launched(
        (group, api.of_kernel, numbers(profile, "start")),
        (api.start, api.end),
        n_steps * len(windows.lanes),
        STARVED,
    )
    place = windows.lane * np.int64(n_steps) + windows.step
    return {name: array[place] for name, array in zip(LAUNCHING, sums, strict=True)}


class Own(NamedTuple):
    """The busy time of windows by the work that it belongs to; see `gpu_work.own_ns`.

    Parameters
    ----------
    row : int32 [pieces], kernel rows; a kernel has a piece in each window in which it runs
    window : int32 [pieces], rows of the windows
    ns : int64 [pieces]; the sum of a window is its busy time
    """

    row: Int32
    window: Int32
    ns: Int64


def own_work(windows: Windows) -> Own:
    """Divide the busy time of each window among its work.

    windows : those of a GPU do not overlap
    """
    results = []
    for lane, rows in windows.by_lane():
        order, start, end = _in_order(windows, rows)
        work = lane.selected
        piece, place, ns = Sweep(work.start, work.end, work.kind).own_in(start, end)
        results.append(Own(take(work.rows, piece), take(order, place), ns))
    if not results:
        none = np.empty(0, np.int32)
        return Own(none, none, np.empty(0, np.int64))
    if len(results) == 1:
        return results[0]
    return Own._make(map(np.concatenate, zip(*results, strict=True)))


def _in_order(windows: Windows, rows: Int64) -> tuple[Int32, Int64, Int64]:
    """Some windows in order of start: their rows, starts and ends."""
    order = rows[np.argsort(windows.start[rows], kind="stable")].astype(np.int32)
    return order, windows.start[order], windows.end[order]
