"""`roofline`: GPU time against the time at the GPU's peak rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._cells import short_time
from fastprof._system.threads import SecondThread
from fastprof.analysis.cells import ReportCells, cells_of
from fastprof.analysis.gpu_work import MOST_GPUS
from fastprof.analysis.grouping import Grouping, group, numbers, texts
from fastprof.analysis.key_names import check_keys, heading_of
from fastprof.analysis.keys import key_of
from fastprof.analysis.notes import missing
from fastprof.analysis.registry import Where
from fastprof.analysis.roofline.columns import ROOFLINE, ROOFS
from fastprof.analysis.roofline.ideal import (
    BANDWIDTH,
    KNOWN,
    PRACTICAL,
    PRODUCTS,
    TOO_HIGH,
    TOO_SHORT,
    Ideals,
    Roof,
    against_ideal,
    ideals_of,
)
from fastprof.analysis.roofline.limits import is_one_of
from fastprof.analysis.roofline.utilisation import (
    devices_with,
    peaks_lines,
    utilisation,
    utilisation_text,
)
from fastprof.analysis.selection import selected
from fastprof.analysis.summary.columns import ABOVE_ROOF, DOUBTS
from fastprof.analysis.summary.measures import (
    TimeInSteps,
    calls,
    per_step,
    ratio,
    shown,
    tensor_cores,
    time_in_steps,
    totals,
)
from fastprof.errors import ReportError
from fastprof.model.arrays import Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.devices import CLOCKS, Device
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Floats, Table
from fastprof.ops.tensor_cores import COMPUTE_TYPES
from fastprof.profile.cells import SUMS
from fastprof.profile.data import ProfileData

BOUNDS: Final = ["compute", "bandwidth", "latency"]
FLAGS: Final = [*DOUBTS, ABOVE_ROOF, "no roof", "no cost", "no peak", "partial cost"]
_SHORT: Final = 10_000  # ns, of a kernel
_TOO_SHORT: Final = 2_000  # ns of ideal time: a kernel takes about as long without work
_BY: Final = ("dir", "op", "shape")


def roofline(
    profile: ProfileData,
    by: str | Sequence[str] | None = None,
    where: Where | None = None,
    steps: str | None = None,
    roof: str = "peak",
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
    plot: str | None = None,
) -> Table:
    """Time against ideal time of groups of calls, the most lost first. See docs/reports.md.

    Parameters
    ----------
    by : keys, by default dir, op and shape; ideal times of these groups are added up
    where : see `fastprof.analysis.selection`
    steps : what a step is, see `Profile.find_steps`
    roof : "peak" or "practical", see `fastprof.analysis.roofline.ideal.PRACTICAL`
    gpu, peak, bandwidth : see `fastprof.model.devices.with_figures`
    plot : file for a chart, .png or .svg

    Raises
    ------
    ReportError
        A key, roof, GPU or figure is unknown.
    MissingDependencyError
        A plot is requested and matplotlib is not installed.
    """
    names = (by,) if isinstance(by, str) else tuple(by or _BY)
    check_keys(names)
    if roof not in ROOFS:
        raise ReportError(f"roof: expected {' or '.join(ROOFS)}, found {roof!r}")
    devices = devices_with(profile, gpu, peak, bandwidth)
    kernels, cells = profile.find_steps(steps), cells_of(profile, names, where)
    ideal = ideals_of(cells, devices, roof)
    key_columns = [key_of(cells, name) for name in names]
    groups = group(key_columns, len(cells), selected(cells, where))
    columns: dict[str, ColumnData] = {
        name: Values(key.ids[groups.first], key.values)
        for name, key in zip(names, key_columns, strict=True)
    }
    with SecondThread() as second:
        footer = second.submit(missing, profile, ("op", "shapes", "cost"))
        making = second.submit(
            _measures, cells, groups, time_in_steps(cells, kernels), ideal, devices
        )
        of_steps = utilisation(profile, kernels, devices)
        one = Grouping(np.minimum(groups.ids, 0), 1)
        of_all = against_ideal(one, ideal, np.maximum(numbers(cells, "sil"), 0))
        measured = making.result()
    table = Table(
        {**columns, **measured},
        (*map(heading_of, names), *shown(ROOFLINE, measured)),
        lead=tuple(_lead(devices, roof)),
        notes=(
            *_notes(measured, utilisation_text(of_steps), of_all),
            *footer.result(),
            *([CLOCKS] if any(device.flops for device in devices.values()) else ()),
        ),
        total=totals(measured) | {"peak_share": Floats(of_all.share).at(0)},
        facts={
            "peaks": {
                str(number): _facts(device) for number, device in islice(devices.items(), MOST_GPUS)
            },
            "roof": roof,
            "utilisation": of_steps,
        },
    ).sort("lost_ns")
    if plot is not None:
        from fastprof.analysis.plot import draw

        draw(table, list(devices.values()), plot)
    return table


def _measures(
    cells: ReportCells,
    groups: Grouping,
    in_steps: TimeInSteps,
    ideal: Ideals,
    devices: Mapping[int, Device],
) -> dict[str, ColumnData]:
    time = np.maximum(numbers(cells, "sil"), 0)
    helper = numbers(cells, "helper") == 1
    flops, bytes_ = (np.where(helper, -1, numbers(cells, name)) for name in ("flops", "bytes"))
    roof = against_ideal(groups, ideal, time)
    # What takes the most memory comes first, while there are few columns.
    bound, flag = _bounds(cells, groups, ideal, devices), _flags(cells, groups, ideal, roof)
    type_ = _most(groups, texts(cells, "compute_type").ids, np.where(helper, 0, time), 7)
    work, moved = (_known_sums(groups, values) for values in (flops, bytes_))
    rated = np.where(roof.doubt == 0, roof.counted, 0.0)
    rated_flops, rated_bytes = (
        np.where(known >= 0, groups.sums(np.maximum(array, 0), ideal.is_counted), np.nan)
        for known, array in ((work, flops), (moved, bytes_))
    )
    return {
        "calls": Ints(calls(cells, groups)),
        "kernels": Ints(groups.stats(cells.kernels).sum),
        "gpu_ns": Ints(groups.stats(time).sum),
        "step_ns": Floats(per_step(groups, in_steps)),
        "ideal_ns": Floats(roof.ideal),
        "lost_ns": Floats(roof.lost),
        "bound": Values(bound, BOUNDS),
        "peak_share": Floats(roof.share),
        "covered_share": Floats(roof.covered),
        "flop_per_s": Floats(ratio(rated_flops, rated) * 1e9),
        "attainable_flop_per_s": Floats(ratio(rated_flops, np.nan_to_num(roof.ideal)) * 1e9),
        "peak_flop_per_s": Floats(ratio(rated_flops, groups.sums(ideal.at_peak)) * 1e9),
        "bytes_per_s": Floats(ratio(rated_bytes, rated) * 1e9),
        "intensity": Floats(ratio(np.where(work >= 0, work, np.nan), np.maximum(moved, 0))),
        "compute_type": Values(type_, list(COMPUTE_TYPES)),
        "tc_share": Floats(tensor_cores(cells, groups, time)),
        "flops": Ints(work),
        "bytes": Ints(moved),
        "helper_ns": Ints(groups.stats(np.where(helper, time, 0)).sum),
        "flag": Values(flag, [*FLAGS, ""]),
    }


def _known_sums(groups: Grouping, values: Int64) -> Int64:
    """[groups] The sums of numbers that are not negative; -1 if none is known."""
    stats = groups.stats(values)
    return np.where(stats.count > 0, stats.sum, -1)


def _most(groups: Grouping, code: npt.NDArray[Any], weight: npt.NDArray[Any], n: int) -> Any:
    """int32 [groups] The code 0 .. n - 1 with the most weight; -1 if none has any."""
    place = (groups.ids + 1) * np.int64(n + 1) + code + 1
    sums = np.bincount(place, weight, (groups.n + 1) * (n + 1)).reshape(-1, n + 1)[1:, 1:]
    best = sums.argmax(axis=1)
    return np.where(sums.max(axis=1) > 0, best, -1).astype(np.int32)


def _bounds(
    cells: ReportCells,
    groups: Grouping,
    ideal: Ideals,
    devices: Mapping[int, Device],
) -> npt.NDArray[np.int32]:
    """Index into BOUNDS of each group, -1 if unknown: that of the work with the most time."""
    time = np.maximum(numbers(cells, "sil"), 0)
    bound = _most(groups, ideal.bound, time, BANDWIDTH + 1)
    device = key_of(cells, "device")
    sms = np.array([devices[number].sms or 0 for number in device.values] + [0])
    is_small = (_blocks(cells) < sms[device.ids]).view(np.uint8)
    duration, flops, bytes_ = (numbers(cells.profile, name) for name in SUMS)
    coefficients = is_small, ideal.per_flop, ideal.per_byte
    short = short_time(cells.of_kernel, duration, flops, bytes_, *coefficients, _SHORT, _TOO_SHORT)
    has_bound = ideal.bound >= 0
    is_short = groups.sums(short, has_bound) > 0.5 * groups.sums(time, has_bound)
    ideal_ns, counted = groups.sums(ideal.ideal), groups.sums(time, ideal.is_counted)
    latency = is_short & (bound >= 0) & (ideal_ns < 0.5 * counted)
    return np.where(latency, BOUNDS.index("latency"), bound).astype(np.int32)


def _some(groups: Grouping, *rows: npt.NDArray[np.bool_]) -> list[npt.NDArray[np.bool_]]:
    """For each property of cells, whether some cell of each group has it."""
    result = []
    for flags in rows:
        has = np.zeros(groups.n + 1, bool)  # the last for cells in no group
        has[groups.ids[flags]] = True
        result.append(has[:-1])
    return result


def _blocks(cells: ReportCells) -> npt.NDArray[np.int64]:
    """[cells] The number of blocks; large if unknown."""
    blocks = numbers(cells, "grid").astype(np.int64).prod(axis=1)
    return np.where(blocks < 0, np.iinfo(np.int64).max, blocks)


def _flags(
    cells: ReportCells, groups: Grouping, ideal: Ideals, roof: Roof
) -> npt.NDArray[np.int32]:
    """Index into FLAGS of each group, len(FLAGS) for none."""
    works = ideal.has_roof & (numbers(cells, "helper") != 1)
    flops, bytes_ = numbers(cells, "flops") >= 0, numbers(cells, "bytes") >= 0

    has_roof, has_cost, lacks_cost, known, partial = _some(
        groups,
        ideal.has_roof,
        works & (flops | bytes_),
        works & ~(bytes_ | (flops & is_one_of(texts(cells, "class"), *PRODUCTS))),
        ideal.is_counted,
        works & ~(flops & bytes_ & ideal.is_counted),
    )
    doubts = [roof.doubt == number for number in (TOO_HIGH, TOO_SHORT)]
    no_peak = ~known & ~lacks_cost
    conditions = [*doubts, roof.is_above, ~has_roof, ~has_cost, no_peak, partial | ~known]
    return np.select(conditions, range(len(FLAGS)), len(FLAGS)).astype(np.int32)


def _facts(device: Device) -> dict[str, Any]:
    """The peaks of a GPU in JSON."""
    return {
        "name": device.name,
        "flop_per_s": device.flops,
        "bytes_per_s": device.bandwidth,
        "sources": device.sources,
    }


def _lead(devices: Mapping[int, Device], roof: str) -> list[str]:
    """Which peaks the report compares with."""
    lines = peaks_lines(devices)
    if roof == "practical":
        lines.append(
            f"practical roof: {PRACTICAL[0]:.0%} of the tensor-core peak, "
            f"{PRACTICAL[1]:.0%} of the bandwidth"
        )
    return lines


def _notes(columns: dict[str, ColumnData], utilisation_line: str, of_all: Roof) -> list[str]:
    """Model FLOPs utilisation, what roofs cover, and the GPU time of rows with flags."""
    notes = [utilisation_line] if utilisation_line else []
    if 0 < of_all.covered[0] < KNOWN:
        share = of_all.ideal[0] / of_all.counted[0]
        notes.append(f"roof {share:.1%} of work with an ideal time, {of_all.covered[0]:.1%} of all")
    time, flag = columns["gpu_ns"].array(), columns["flag"]
    total = int(time.sum() or 0)
    if isinstance(flag, Values) and total:
        of_flag = [int(time[flag.ids == i].sum() or 0) for i in range(len(FLAGS))]
        for i, number in enumerate(of_flag):
            if number:
                notes.append(
                    f"{FLAGS[i]}: {quantity(number, 'ns')}, {number / total:.1%} of the GPU time"
                )
    return notes
