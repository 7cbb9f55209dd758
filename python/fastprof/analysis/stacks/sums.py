"""Sums over the kernels of each path, where a path is a chain of layers or of source lines.

A kernel counts to every layer or line of its path. Sums over kernels are computed once per distinct
path; `onto` adds those of paths up to rows. Sums of integers are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof.analysis.cells import ReportCells
from fastprof.analysis.grouping import Grouping, numbers, texts
from fastprof.analysis.roofline.ideal import KNOWN, TOO_HIGH, TOO_SHORT, Ideals, Roof, roof_of
from fastprof.analysis.saturated import scattered
from fastprof.analysis.summary.measures import calls, flags_of, ratio, step_shares, time_in_steps
from fastprof.model.columns import Ints
from fastprof.model.table import ColumnData, Floats
from fastprof.profile.phases import BACKWARD, FORWARD
from fastprof.profile.steps.kernel_steps import StepsOfKernels

Numbers = npt.NDArray[Any]

LARGEST: Final = np.iinfo(np.int64).max
# Columns that text omits if they are 0 or unknown in all rows.
OPTIONAL: Final = ("backward_ns", "other_ns")
_IN_TOTAL: Final = (
    *("forward_ns", "backward_ns", "other_ns", "gpu_ns", "step_ns"),
    *("calls", "kernels", "flops", "bytes", "ideal_ns", "lost_ns", "peak_share"),
)
_DIRECTIONS: Final = {FORWARD: "fprop", BACKWARD: "bprop"}


@dataclass(frozen=True)
class Sums:
    """Sums over the kernels of each path or row.

    Parameters
    ----------
    of : arrays [paths] by name, int64 except ideal_ns and lost_ns. gpu_ns, forward_ns, backward_ns;
        steps_ns, the GPU time in counted steps; kernels, calls (-1: not recorded); flops, bytes,
        and the number of cells where they are known, n_flops, n_bytes; rated_flops and flops_ns,
        FLOPs and GPU time of cells with known and possible flops; ideal_ns, lost_ns, roof_ns and
        n_roof, ideal time, lost time, GPU time and number of cells with an ideal time;
        too_high_ns, too_short_ns, GPU time of cells without one for these reasons
    n_windows : the counted steps, each times the GPUs of its process; 0 if steps are unknown
    """

    of: dict[str, Numbers]
    n_windows: int

    def only(self, *names: str) -> Sums:
        """Some of the sums."""
        return Sums({name: self.of[name] for name in names}, self.n_windows)

    def onto(self, paths: Sequence[int], rows: Sequence[int], n_rows: int) -> Sums:
        """Add the sums of path `paths[i]` to row `rows[i]`, for each i."""
        path, row = np.array(paths, np.intp), np.array(rows, np.intp)
        of = {name: _added(array, path, row, n_rows) for name, array in self.of.items()}
        return Sums(of, self.n_windows)

    def take(self, rows: Sequence[int]) -> Sums:
        """The sums of some rows, in this order."""
        picked = np.array(rows, np.intp)
        return Sums({name: array[picked] for name, array in self.of.items()}, self.n_windows)

    def cells(self, total: Sums) -> dict[str, ColumnData]:
        """The columns of a table; shares are those of the sum of the rows of `total`."""
        of, n = self.of, len(self.of["kernels"])
        flops = np.where(of["n_flops"] > 0, of["flops"], -1)
        is_rated = of["flops_ns"] >= KNOWN * of["gpu_ns"]
        rate = ratio(of["rated_flops"], np.where(is_rated, of["flops_ns"], 0)) * 1e9
        columns: dict[str, ColumnData] = {
            "forward_ns": Ints(of["forward_ns"]),
            "backward_ns": Ints(of["backward_ns"]),
            "other_ns": Ints(of["gpu_ns"] - of["forward_ns"] - of["backward_ns"]),
            "gpu_ns": Ints(of["gpu_ns"]),
            "step_ns": Floats(ratio(of["steps_ns"], np.full(n, self.n_windows))),
            "step_share": Floats(
                step_shares(of["steps_ns"], int(total.of["steps_ns"].sum()), self.n_windows)
            ),
            "share": Floats(ratio(of["gpu_ns"], np.full(n, int(total.of["gpu_ns"].sum())))),
            "calls": Ints(np.maximum(of["calls"], -1)),
            "kernels": Ints(of["kernels"]),
            "flops": Ints(flops),
            "flop_per_s": Floats(rate),
            "bytes": Ints(np.where(of["n_bytes"] > 0, of["bytes"], -1)),
        }
        if "ideal_ns" not in of:
            return columns
        roof = self._roof()
        return columns | {
            "ideal_ns": Floats(roof.ideal),
            "lost_ns": Floats(roof.lost),
            "peak_share": Floats(roof.share),
            "covered_share": Floats(roof.covered),
            "flag": flags_of(roof),
        }

    def _roof(self) -> Roof:
        of, has_ideal = self.of, self.of["n_roof"] > 0
        ideal, lost = (np.where(has_ideal, of[name], np.nan) for name in ("ideal_ns", "lost_ns"))
        times = (of[name] for name in ("roof_ns", "gpu_ns", "too_high_ns", "too_short_ns"))
        return roof_of(ideal, lost, *times)

    def totals(self) -> dict[str, Any]:
        """The sums over all paths, for the last row of a table."""
        n = len(self.of["kernels"])
        if not n:
            return {}
        whole = self.onto(range(n), [0] * n, 1)
        cells = whole.cells(whole)
        return {name: cells[name].at(0) for name in _IN_TOTAL if name in cells}


def _added(
    values: Numbers, paths: npt.NDArray[np.intp], rows: npt.NDArray[np.intp], n_rows: int
) -> Numbers:
    if values.dtype.kind == "f":
        return np.bincount(rows, values[paths], n_rows).astype(np.float64)
    return scattered(values[paths], rows, (n_rows,))


def path_sums(
    cells: ReportCells,
    paths: Grouping,
    steps: StepsOfKernels,
    ideal: Ideals | None = None,
    has_calls: bool = True,
) -> Sums:
    """The sums over the cells of each path; those of ideal times if `ideal` has them."""
    time = numbers(cells, "sil")
    gpu = paths.stats(time).sum
    of: dict[str, Numbers] = {
        "gpu_ns": gpu,
        "kernels": paths.stats(cells.kernels).sum,
    }
    if has_calls:
        of["calls"] = calls(cells, paths)
    for part in (FORWARD, BACKWARD):
        of[f"{part}_ns"] = paths.stats(np.where(in_part(cells, part), time, -1)).sum
    for name in ("flops", "bytes"):
        values = paths.stats(numbers(cells, name))
        of[name], of[f"n_{name}"] = values.sum, values.count
    flops = numbers(cells, "flops")
    rated = (flops >= 0) if ideal is None else (flops >= 0) & (ideal.doubt == 0)
    of["flops_ns"] = paths.stats(np.where(rated, time, -1)).sum
    of["rated_flops"] = paths.stats(np.where(rated, flops, -1)).sum
    if ideal is not None:
        roof = paths.stats(np.where(ideal.is_counted, time, -1))
        of["roof_ns"], of["n_roof"] = roof.sum, roof.count
        of["ideal_ns"], of["lost_ns"] = paths.sums(ideal.ideal), paths.sums(ideal.lost)
        for name, doubt in (("too_high_ns", TOO_HIGH), ("too_short_ns", TOO_SHORT)):
            of[name] = paths.stats(np.where(ideal.doubt == doubt, np.maximum(time, 1), -1)).sum
    in_steps = time_in_steps(cells, steps)
    of["steps_ns"] = paths.stats(in_steps.time).sum
    return Sums(of, in_steps.n_windows)


def in_part(cells: ReportCells, part: str) -> npt.NDArray[np.bool_]:
    """Whether each cell is in the forward or backward phase; dict lines have directions only."""
    has_phases = "phase" in cells.names
    column = texts(cells, "phase" if has_phases else "dir")
    value = part if has_phases else _DIRECTIONS[part]
    return column.fits(lambda each: each == value)
