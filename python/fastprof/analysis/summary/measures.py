"""Measures of groups of kernels: the columns of `summary` behind its keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._groups import GroupStats
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof._system.threads import computed_once
from fastprof.analysis.cells import ReportCells, cells_of
from fastprof.analysis.counted import steps_times_gpus
from fastprof.analysis.grouping import Floats64, Grouping, numbers, texts
from fastprof.analysis.roofline.ideal import KNOWN, Ideals, Roof, against_ideal
from fastprof.analysis.summary.columns import ABOVE_ROOF, DOUBTS, MEASURES
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.derived import DerivedFloats, DerivedInts
from fastprof.model.heading import Heading
from fastprof.model.table import ColumnData, Floats
from fastprof.profile.data import ProfileData, kept
from fastprof.profile.steps.kernel_steps import StepsOfKernels

_TENSOR_CORES, _OTHER_CORES = "1", "0"
_NONE: Final = np.iinfo(np.int64).min


class TimeInSteps(NamedTuple):
    """The GPU time in counted steps.

    Parameters
    ----------
    time : int64 [cells], ns
    n_windows : the counted steps, each times the GPUs of its process; 0 if steps are unknown
    """

    time: Int64
    n_windows: int


def time_in_steps(cells: ReportCells, steps: StepsOfKernels) -> TimeInSteps:
    """The GPU time of each cell in counted steps."""
    n_windows = steps_times_gpus(cells.profile, steps)
    if not n_windows:
        return TimeInSteps(np.zeros(len(cells), np.int64), 0)
    if cells.is_coarsest:
        return TimeInSteps(kept(cells.profile, _time_of_coarsest, steps), n_windows)
    return TimeInSteps(_time(cells, steps), n_windows)


def _time_of_coarsest(profile: ProfileData, steps: StepsOfKernels) -> Int64:
    return _time(cells_of(profile), steps)


def _time(cells: ReportCells, steps: StepsOfKernels) -> Int64:
    return cells.sum_where(numbers(cells.profile, "sil"), in_counted_steps(steps))


def measures(
    cells: ReportCells,
    groups: Grouping,
    in_steps: TimeInSteps,
    ideal: Ideals,
    wanted: Collection[str] | None = None,
) -> dict[str, ColumnData]:
    """The measures of each group of cells; see `analysis.summary_columns` for units and help.

    wanted : only these; None for all
    """
    result = _Measures(cells, groups, in_steps, ideal)
    names = [measure.key for measure in MEASURES if wanted is None or measure.key in wanted]
    return {name: result.make(name) for name in names}


class _Measures:
    """The measures of groups of cells, each computed on request."""

    def __init__(
        self, cells: ReportCells, groups: Grouping, in_steps: TimeInSteps, ideal: Ideals
    ) -> None:
        self._cells, self._groups, self._in_steps, self._ideal = cells, groups, in_steps, ideal
        self._time = numbers(cells, "sil")
        self._gpu = groups.stats(self._time).sum
        self._work: dict[str, Ints] = {}

    @computed_once
    def of_kernels(self) -> GroupStats:
        """The statistics of the kernels' GPU time."""
        return self._cells.grouped(self._groups).stats(numbers(self._cells.profile, "sil"))

    def make(self, name: str) -> ColumnData:
        """The column of a name in MEASURES."""
        return _MAKERS[name](self)

    def calls(self) -> ColumnData:
        return Ints(calls(self._cells, self._groups))

    def kernels(self) -> ColumnData:
        return Ints(self._groups.stats(self._cells.kernels).sum)

    def gpu(self) -> ColumnData:
        return Ints(self._gpu, none=_NONE)

    def mean(self) -> ColumnData:
        counted = np.where(self._time >= 0, self._cells.kernels, -1)
        return Floats(ratio(self._gpu, self._groups.stats(counted).sum))

    def on_request(
        self,
        column: type[DerivedFloats | DerivedInts],
        make: Callable[[GroupStats], npt.NDArray[Any]],
    ) -> ColumnData:
        """A column from the GPU time of each kernel; text does not show it."""
        return column(self._groups.n, lambda rows: make(self.of_kernels)[rows])

    def share(self) -> ColumnData:
        return Floats(ratio(self._gpu, np.full(self._groups.n, int(self._gpu.sum()))))

    def step(self) -> ColumnData:
        return Floats(per_step(self._groups, self._in_steps))

    def step_share(self) -> ColumnData:
        time = self._groups.stats(self._in_steps.time).sum
        return Floats(step_shares(time, int(time.sum()), self._in_steps.n_windows))

    def work(self, name: str) -> Ints:
        """FLOPs or bytes of the kernels with a known count."""
        if name not in self._work:
            of_groups = self._groups.stats(numbers(self._cells, name))
            self._work[name] = Ints(np.where(of_groups.count > 0, of_groups.sum, -1))
        return self._work[name]

    def rate(self, name: str) -> ColumnData:
        """FLOPs or bytes per second of the kernels with a known and possible count."""
        counts = numbers(self._cells, name)
        known = (counts >= 0) & (self._ideal.doubt == 0)
        counted = self._groups.sum_where(self._time, known)
        result = ratio(self._groups.sums(counts, known), counted) * 1e9
        return Floats(np.where(counted >= KNOWN * self._gpu, result, np.nan))

    @computed_once
    def roof(self) -> Roof:
        """The groups against their ideal times."""
        return against_ideal(self._groups, self._ideal, np.maximum(self._time, 0))

    def flag(self) -> ColumnData:
        return flags_of(self.roof)

    def tensor_cores(self) -> ColumnData:
        return Floats(tensor_cores(self._cells, self._groups, self._time))


_MAKERS: Final[dict[str, Callable[[_Measures], ColumnData]]] = {
    "calls": _Measures.calls,
    "kernels": _Measures.kernels,
    "gpu_ns": _Measures.gpu,
    "share": _Measures.share,
    "step_ns": _Measures.step,
    "step_share": _Measures.step_share,
    "mean_ns": _Measures.mean,
    "median_ns": lambda of: of.on_request(DerivedFloats, lambda time: time.median()),
    "min_ns": lambda of: of.on_request(DerivedInts, lambda time: time.min),
    "max_ns": lambda of: of.on_request(DerivedInts, lambda time: time.max),
    "std_ns": lambda of: of.on_request(
        DerivedFloats, lambda time: np.sqrt(ratio(time.squares, time.count))
    ),
    "flops": lambda of: of.work("flops"),
    "flop_per_s": lambda of: of.rate("flops"),
    "bytes": lambda of: of.work("bytes"),
    "bytes_per_s": lambda of: of.rate("bytes"),
    "peak_share": lambda of: Floats(of.roof.share),
    "ideal_ns": lambda of: Floats(of.roof.ideal),
    "lost_ns": lambda of: Floats(of.roof.lost),
    "covered_share": lambda of: Floats(of.roof.covered),
    "tc_share": _Measures.tensor_cores,
    "flag": _Measures.flag,
}


def flags_of(roof: Roof) -> Values:
    """[groups] Why the share of the roof is unknown, or that it is above 1; "" for others."""
    flag = np.where(roof.is_above, 1 + len(DOUBTS), roof.doubt).astype(np.int32)
    return Values(flag, ["", *DOUBTS, ABOVE_ROOF])


def ratio(above: npt.NDArray[Any], below: npt.NDArray[Any]) -> Floats64:
    """Quotients; NaN where the divisor is 0."""
    out = np.full(len(above), np.nan)
    np.divide(above, below, out=out, where=np.asarray(below) != 0)
    return out


def per_step(groups: Grouping, in_steps: TimeInSteps) -> Floats64:
    """[groups] GPU time per counted step and GPU; NaN without steps."""
    return ratio(groups.stats(in_steps.time).sum, np.full(groups.n, in_steps.n_windows))


def step_shares(time: npt.NDArray[Any], total: int, n_windows: int) -> Floats64:
    """[groups] Shares of the GPU time in counted steps; NaN without steps."""
    return ratio(time, np.full(len(time), max(total, 1) if n_windows else 0))


def in_counted_steps(steps: StepsOfKernels) -> Bools:
    """[kernels] Whether means over steps include the kernel."""
    return take(steps.is_counted, steps.of_kernel, False)


def calls(cells: ReportCells, groups: Grouping) -> Int64:
    """[groups] The number of distinct calls; -1 if the profile has no column `call`."""
    if "call" not in cells.names:
        return np.full(groups.n, -1, np.int64)
    return cells.grouped(groups).distinct_counts(numbers(cells.profile, "call"))


def tensor_cores(cells: ReportCells, groups: Grouping, time: Int64) -> Floats64:
    """[groups] The share of the time with tensor cores, of kernels that could use them."""
    column = texts(cells, "tc")
    of = {value: column.ids == i for i, value in enumerate(column.values)}
    none = np.zeros(len(column), bool)
    used, unused = of.get(_TENSOR_CORES, none), of.get(_OTHER_CORES, none)
    with_cores = groups.sum_where(time, used)
    return ratio(with_cores, with_cores + groups.sum_where(time, unused))


def totals(columns: dict[str, ColumnData]) -> dict[str, Any]:
    """Sums over all groups; exact, None where no group has a value."""
    result: dict[str, Any] = {}
    for name in ("calls", "kernels", "gpu_ns", "flops", "bytes", "ideal_ns", "lost_ns", "step_ns"):
        column = columns.get(name)
        if isinstance(column, Ints):
            known = [value for value in column.values.tolist() if value != column.none]
            result[name] = sum(known) if known or not len(column) else None
        elif isinstance(column, Floats):
            is_known = ~np.isnan(column.values)
            result[name] = float(column.values[is_known].sum()) if is_known.any() else None
    return result


def shown(
    headings: Iterable[Heading], columns: dict[str, ColumnData], not_zero: Collection[str] = ()
) -> tuple[Heading, ...]:
    """The headings of these columns; text omits columns without known values, and rates of 0.

    Text shows `step_share` in place of `share` if steps are known.

    not_zero : further columns that text omits if all values are 0
    """
    result = {
        heading.key: replace(
            heading, in_text=heading.in_text and _has_values(columns[heading.key], is_omitted)
        )
        for heading in headings
        if heading.key in columns
        for is_omitted in (heading.unit.endswith("/s") or heading.key in not_zero,)
    }
    if "step_share" in result and result["step_share"].in_text:
        result["share"] = replace(result["share"], in_text=False)
    return tuple(result.values())


def _has_values(column: ColumnData, not_zero: bool) -> bool:
    if isinstance(column, Values):
        return not len(column) or bool(column.fits(lambda text: text != "").any())
    known = column.known()
    return not len(column) or bool(known.any() if not_zero else known.size)
