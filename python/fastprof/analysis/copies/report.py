"""`copies`: memory copies and memsets by direction, memory and size, with the peak of their bus."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from operator import eq
from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple, dataclass
from fastprof.analysis import keys
from fastprof.analysis.copies.columns import COLUMNS, FLAGS
from fastprof.analysis.counted import steps_times_gpus
from fastprof.analysis.gpu_work import work_of_device
from fastprof.analysis.grouping import Floats64, Grouping, group, numbers, texts
from fastprof.analysis.host.waits import blocked_ns
from fastprof.analysis.key_names import check_keys, heading_of
from fastprof.analysis.registry import Where
from fastprof.analysis.roofline.ideal import KNOWN
from fastprof.analysis.roofline.limits import clock_ns, least_ns_of_bytes
from fastprof.analysis.selection import selected
from fastprof.analysis.stats.gpu import is_of_kinds
from fastprof.analysis.steps.windows import step_means
from fastprof.analysis.summary.measures import in_counted_steps, ratio, shown
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.devices import Device
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Floats, Table
from fastprof.profile.data import ProfileData, inside_part
from fastprof.profile.facts import gpu_names
from fastprof.profile.program import OTHER, TORCH
from fastprof.profile.steps.kernel_steps import StepsOfKernels

_BY: Final = ("direction", "memory", "size_class")
_TOTALS: Final = (
    *("copies", "bytes", "time_ns", "step_ns", "mean_ns", "max_ns"),
    *("blocking", "blocked_ns", "exposed_ns"),
)


def copies(
    profile: ProfileData,
    by: str | Sequence[str] | None = None,
    where: Where | None = None,
    steps: str | None = None,
    bus: float | None = None,
) -> Table:
    """Memory copies and memsets by any keys, the longest first. See docs/reports.md.

    The profile must be opened with `copies=True`.

    Parameters
    ----------
    by : keys, see `fastprof.analysis.key_names`; by default direction, memory and size_class
    where : see `fastprof.analysis.selection`
    steps : what a step is, see `Profile.find_steps`
    bus : peak of the bus between host and GPU in GB/s, each direction; by default that of the
        fastest PCIe bus that the GPU supports

    Raises
    ------
    ReportError
        A key is unknown.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    BadInputError
        The file has changed since it was read.
    """
    names = (by,) if isinstance(by, str) else tuple(by or _BY)
    check_keys(names)
    kernels = profile.find_steps(steps)
    wanted, chosen = is_of_kinds(profile, "memcpy", "memset"), selected(profile, where)
    rows = np.flatnonzero(wanted if chosen is None else wanted & chosen)
    if not len(rows):
        return _empty(names, _why_empty(profile, wanted))
    peaks = copy_peaks(profile, rows, bus)
    work = _work(profile, rows, peaks, kernels)
    by_name = {name: _key(profile, name, rows) for name in names}
    groups = group(list(by_name.values()), len(rows))
    columns: dict[str, ColumnData] = {
        name: Values(key.ids[groups.first], key.values) for name, key in by_name.items()
    }
    measured = _measures(work, groups) | _places(profile, work, groups)
    of_all = _measures(work, Grouping(np.zeros(len(rows), np.int32), 1))
    total = {name: of_all[name].at(0) for name in _TOTALS}
    return Table(
        {**columns, **measured},
        (*map(heading_of, names), *shown(COLUMNS, measured)),
        lead=(*overview(profile, kernels, rows, total), ""),
        notes=(*peaks.notes(), *_notes(profile, work)),
        total=total,
        facts={"buses": peaks.facts()},
    ).sort("time_ns")


def _why_empty(profile: ProfileData, wanted: Bools) -> str:
    """Why there are no copies, in words; `wanted` : [kernels], the copies and memsets."""
    if not wanted.any():
        return "no memory copies or memsets; in Python, open the trace with copies=True"
    inside = inside_part(profile)
    if inside is not None and not (wanted & inside).any():
        rest = int(np.count_nonzero(wanted))
        return f"no memory copies or memsets in this part of the capture; {rest} outside of it"
    return "--where selects no copy or memset"


def _empty(names: Sequence[str], note: str) -> Table:
    none: ColumnData = Ints(np.empty(0, np.int64))
    columns = dict.fromkeys((*names, *(column.key for column in COLUMNS)), none)
    return Table(columns, (*map(heading_of, names), *COLUMNS), notes=(note,))


def _key(profile: ProfileData, name: str, rows: Int64) -> Values:
    """A key of some rows; the direction of a memset is `memset`."""
    column = keys.key_of(profile, name)
    if name != "direction":
        return column.take(rows)
    is_set = is_of_kinds(profile, "memset")[rows]
    ids = np.where(is_set, np.int32(len(column.values)), column.take(rows).ids)
    return Values(ids, [*column.values, "memset"])


@dataclass(frozen=True)
class _Work:
    """Copies and memsets.

    Parameters
    ----------
    rows : int64 [copies], kernel rows
    time : int64 [copies], ns, 0 if unknown
    n_bytes : int64 [copies], -1 if unknown
    peaks : float64 [copies], bytes per second, NaN if unknown
    is_possible : bool [copies], whether the GPU can copy or set so many bytes in the time
    blocked : int64 [copies], ns that the host waits, -1 if unknown
    exposed : int64 [copies], ns during which the GPU only copies
    is_counted : bool [copies], in a step that means include
    n_windows : those steps, each times the GPUs of its process; 0 if steps are not known
    """

    rows: Int64
    time: Int64
    n_bytes: Int64
    peaks: Floats64
    is_possible: Bools
    blocked: Int64
    exposed: Int64
    is_counted: Bools
    n_windows: int


def _work(profile: ProfileData, rows: Int64, peaks: CopyPeaks, steps: StepsOfKernels) -> _Work:
    exposed = np.zeros(len(profile), np.int64)
    work = work_of_device(profile).parts
    exposed[work.work.rows] = work.own_ns()
    time = np.maximum(numbers(profile, "sil")[rows], 0).astype(np.int64)
    return _Work(
        rows=rows,
        time=time,
        n_bytes=np.ascontiguousarray(numbers(profile, "copied")[rows], np.int64),
        peaks=peaks.of_copy,
        is_possible=peaks.least_ns <= time + clock_ns(profile),
        blocked=blocked_ns(profile, rows),
        exposed=exposed[rows],
        is_counted=in_counted_steps(steps)[rows],
        n_windows=steps_times_gpus(profile, steps),
    )


def _measures(work: _Work, groups: Grouping) -> dict[str, ColumnData]:
    time, size = groups.stats(work.time), groups.stats(work.n_bytes)
    is_known = (work.n_bytes >= 0) & (work.time > 0)
    is_rated = is_known & work.is_possible
    rated = groups.sum_where(work.n_bytes, is_rated)
    # Most bytes at an impossible rate: that of the rest says nothing of the row.
    too_high = rated < KNOWN * groups.sum_where(work.n_bytes, is_known)
    rate = ratio(np.where(too_high, np.nan, rated), groups.sum_where(work.time, is_rated)) * 1e9
    has_peak = is_rated & ~np.isnan(work.peaks)
    ideal = groups.sums(np.where(has_peak, work.n_bytes / work.peaks * 1e9, 0.0))
    share = ratio(np.where(too_high, np.nan, ideal), groups.sum_where(work.time, has_peak))
    blocked, blocking = groups.stats(work.blocked), groups.sums(work.blocked > 0)
    per_step = groups.sum_where(work.time, work.is_counted) / max(work.n_windows, 1)
    return {
        "copies": Ints(groups.counts),
        "bytes": Ints(np.where(size.count > 0, size.sum, -1)),
        "time_ns": Ints(time.sum),
        "step_ns": Floats(per_step if work.n_windows else np.full(groups.n, np.nan)),
        "mean_ns": Floats(ratio(time.sum, time.count)),
        "max_ns": Ints(time.max),
        "bytes_per_s": Floats(rate),
        "peak_share": Floats(share),
        "flag": Values(np.select([too_high, share > 1], (1, 2), 0).astype(np.int32), FLAGS),
        "blocking": Ints(np.where(blocked.count > 0, blocking, -1).astype(np.int64)),
        "blocked_ns": Ints(np.where(blocked.count > 0, blocked.sum, -1)),
        "exposed_ns": Ints(groups.stats(work.exposed).sum),
    }


def _places(profile: ProfileData, work: _Work, groups: Grouping) -> dict[str, ColumnData]:
    """Line, layer and operator of the longest copy of each group."""
    longest = np.zeros(groups.n, np.int64)
    order = np.argsort(work.time, kind="stable")
    longest[groups.ids[order]] = work.rows[order]  # the last one assigned is the longest
    result: dict[str, ColumnData] = {}
    best = np.full(groups.n, None, object)
    for name in ("op", "layer", "line"):
        key = keys.key_of(profile, name)
        column = key.take(longest)
        result[f"longest_{name}"] = column
        best = np.where(column.ids >= 0, column.array(), best)
    names = [number for number in dict.fromkeys(best.tolist()) if number is not None]
    place = {name: i for i, name in enumerate(names)}
    ids = np.array([place.get(number, -1) for number in best.tolist()], np.int32)
    return {"longest_at": Values(ids, names), **result}


def _notes(profile: ProfileData, work: _Work) -> list[str]:
    omitted, missing = profile.source.host_omitted, int(np.count_nonzero(work.blocked < 0))
    if omitted or not missing:
        return [omitted] if omitted else []
    return [f"launch not recorded for {missing} copies and memsets: blocked excludes them"]


def overview(
    profile: ProfileData, steps: StepsOfKernels, rows: Int64, total: Mapping[str, Any]
) -> list[str]:
    """Lines of text.

    rows : the copies and memsets, kernel rows
    total : their measures together
    """
    gpus = gpu_names(profile.about, profile.column("device")) or "GPU not named in the file"
    lines = [gpus]
    work = (
        f"{total['copies']} copies and memsets of {quantity(total['bytes'] or 0, 'bytes')} take "
        f"{quantity(total['time_ns'], 'ns')}"
    )
    means = step_means(profile, steps)
    if total["step_ns"] is not None and means is not None:
        lines = [f"{gpus}, {steps.description}", *steps.notes]
        share = f"{total['step_ns'] / means.wall:.1%} of the step"
        work += f", {quantity(total['step_ns'], 'ns')} per step ({share})"
    exposed = f"exposed {quantity(total['exposed_ns'], 'ns')}, during which the GPU only copies"
    if total["blocked_ns"] is not None:
        waits = quantity(total["blocked_ns"], "ns")
        exposed += f"; the host waits {waits} in {total['blocking']} of them"
    lines += [work, exposed]
    return [*lines, *_pageable(profile, rows)]


def _pageable(profile: ProfileData, rows: Int64) -> list[str]:
    """The copies from and to pageable memory, and what to do."""
    direction, memory = texts(profile, "copy_direction"), texts(profile, "copy_memory")
    size = np.maximum(numbers(profile, "copied")[rows], 0)
    lines = []
    pageable = memory.fits(lambda text: "pageable" in text)[rows]
    for name, word in _WORDS:
        how = profile.contents.program.choose(_ADVICE[name])
        own = direction.fits(partial(eq, name))[rows]
        result = own & pageable
        if result.any():
            share = size[result].sum() / max(size[own].sum(), 1)
            lines.append(
                f"{name}: {np.count_nonzero(result)} of {np.count_nonzero(own)} copies {word} "
                f"pageable memory, {share:.1%} of the bytes; {how}"
            )
    return lines


_WORDS: Final = (("HtoD", "from"), ("DtoH", "to"))
_ADVICE: Final = {
    "HtoD": {
        TORCH: "pinned memory and non_blocking=True let them overlap with kernels",
        OTHER: "asynchronous copies from pinned memory overlap with kernels",
    },
    "DtoH": {
        TORCH: "each waits for the work before it, as .item() and .cpu() do",
        OTHER: "each waits for the work before it",
    },
}


# Directions over the bus, and within a GPU. Copies between GPUs take a bus that is not recorded.
_OVER_BUS: Final = frozenset({"HtoD", "DtoH", "HtoA", "AtoH"})
_WITHIN: Final = frozenset({"DtoD", "DtoA", "AtoD", "AtoA"})
_BUS_EXCESS: Final = 1.1  # of the vendor's clock


class CopyPeaks(NamedTuple):
    """Peaks of copies.

    Parameters
    ----------
    of_copy : float64 [copies], bytes per second; NaN if unknown
    least_ns : float64 [copies], the least time in which the GPU can do it
    buses : the bus of each GPU with copies over it, None if unknown
    is_given : whether the user gave the peak of the bus
    """

    of_copy: Floats64
    least_ns: Floats64
    buses: dict[int, Bus | None]
    is_given: bool

    def notes(self) -> list[str]:
        """What the peaks of buses assume."""
        results = [bus for bus in self.buses.values() if bus is not None]
        lines = []
        if results and not self.is_given:
            named = (f"{bus.name}, {quantity(bus.peak, 'bytes/s')}" for bus in results)
            lines.append(
                f"peak of the bus: {'; '.join(dict.fromkeys(named))} in each direction, the most "
                "that the GPU supports; the machine may have less: --bus GB/s"
            )
        if None in self.buses.values():
            lines.append("peak of the bus unknown for this GPU: give it with --bus GB/s")
        return lines

    def facts(self) -> dict[str, Any]:
        """The values for JSON."""
        return {
            str(device): None if bus is None else {"name": bus.name, "bytes_per_s": bus.peak}
            for device, bus in self.buses.items()
        }


def copy_peaks(profile: ProfileData, rows: Int64, bus: float | None) -> CopyPeaks:
    """The peaks of some copies and memsets.

    bus : peak of the bus in GB/s, None for that of the GPU's generation
    """
    device = numbers(profile, "device")[rows]
    over_bus, within = (_has(profile, rows, names) for names in (_OVER_BUS, _WITHIN))
    sets = is_of_kinds(profile, "memset")[rows]
    of_copy, buses = np.full(len(rows), np.nan), {}
    for number, each in profile.devices.items():
        own = device == number
        if each.bandwidth is not None:
            of_copy[own & sets] = each.bandwidth
            of_copy[own & within] = each.bandwidth / 2  # reads and writes
        if np.any(own & over_bus):
            result = bus_of(each) if bus is None else Bus("--bus", bus * 1e9)
            buses[number] = result
            of_copy[own & over_bus] = np.nan if result is None else result.peak
    n_bytes = np.maximum(numbers(profile, "copied")[rows], 0)
    return CopyPeaks(
        of_copy,
        np.where(
            over_bus & ~np.isnan(of_copy),
            n_bytes / (of_copy * _BUS_EXCESS) * 1e9,
            _least_in_memory(profile, device, np.where(within, 2 * n_bytes, n_bytes)),
        ),
        buses,
        bus is not None,
    )


def _least_in_memory(profile: ProfileData, device: Int64, n_bytes: Int64) -> Floats64:
    """[copies] The least time for bytes read and written in the memory of a GPU."""
    gpus = [*profile.devices.values(), Device(None)]
    place = np.full(len(device), len(gpus) - 1)
    for i, number in enumerate(profile.devices):
        place[device == number] = i
    return least_ns_of_bytes(n_bytes, place, gpus, np.zeros(len(device), bool))


def _has(profile: ProfileData, rows: Int64, names: Sequence[str] | frozenset[str]) -> Any:
    return texts(profile, "copy_direction").fits(lambda direction: direction in names)[rows]


class Bus(NamedTuple):
    """A bus: its name, and its peak in bytes per second and direction."""

    name: str
    peak: float


def _pcie(generation: int, gigatransfers: float) -> Bus:
    """16 lanes; of 130 bits, 128 are data."""
    return Bus(f"PCIe {generation}.0 x16", gigatransfers * 1e9 * 16 / 8 * 128 / 130)


_PCIE_3, _PCIE_4, _PCIE_5 = _pcie(3, 8), _pcie(4, 16), _pcie(5, 32)
# By the begin of the compute capability or, for AMD, the architecture.
_OF_CAPABILITY: Final = (
    (re.compile(r"[3567]\."), _PCIE_3),
    (re.compile(r"8\.|gfx90[68a]"), _PCIE_4),
    (re.compile(r"(?:9|10|12)\.|gfx9[45]"), _PCIE_5),
)
# Their GPU shares a chip or a package with the CPU.
_OTHER_BUS: Final = re.compile(r"GH200|GB\d+|Grace|Orin|Thor|Xavier|Jetson|MI300A", re.IGNORECASE)


def bus_of(device: Device) -> Bus | None:
    """The fastest PCIe bus that the GPU supports; None if unknown, or if it has another bus."""
    if _OTHER_BUS.search(device.name or ""):
        return None
    capability = device.capability or ""
    return next((bus for pattern, bus in _OF_CAPABILITY if pattern.match(capability)), None)
