"""Measures of groups of kernels: the columns of `summary` behind its keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.grouping import Grouping
from fastprof.analysis.ideal import against_ideal, kept_ideals
from fastprof.model.arrays import Bools
from fastprof.model.columns import Ints, Values
from fastprof.model.heading import Heading
from fastprof.model.table import Cells, Floats
from fastprof.profile.facts import step_count
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

__all__ = [
    "calls",
    "in_counted_steps",
    "measures",
    "per_step",
    "ratio",
    "shown",
    "tensor_cores",
    "totals",
]

_TENSOR_CORES, _OTHER_CORES = "1", "0"


def measures(profile: Profile, groups: Grouping, steps: StepsOfKernels) -> dict[str, Cells]:
    """The measures of each group; see `analysis.catalogue` for units and help."""
    time = numbers(profile, "sil")
    gpu = groups.stats(time)
    total = int(np.maximum(time, 0)[groups.ids >= 0].sum())
    columns: dict[str, Cells] = {
        "calls": Ints(calls(profile, groups)),
        "kernels": Ints(groups.counts),
        "gpu_ns": Ints(gpu.sum, none=_NONE),
        "share": Floats(ratio(gpu.sum, np.full(groups.n, total))),
        "step_ns": Floats(per_step(groups, time, steps)),
        "mean_ns": Floats(ratio(gpu.sum, gpu.count)),
        "median_ns": Floats(gpu.median()),
        "min_ns": Ints(gpu.min),
        "max_ns": Ints(gpu.max),
        "std_ns": Floats(np.sqrt(ratio(gpu.squares, gpu.count))),
    }
    for name, rate in (("flops", "flop_per_s"), ("bytes", "bytes_per_s")):
        values = numbers(profile, name)
        of_groups = groups.stats(values)
        known = np.where(of_groups.count > 0, of_groups.sum, -1)
        # Rates are of the kernels with a known count only.
        counted = groups.stats(np.where(values >= 0, time, -1)).sum
        columns[name] = Ints(known)
        columns[rate] = Floats(ratio(np.where(known > 0, known, 0), counted) * 1e9)
    columns |= _roof(profile, groups, np.maximum(time, 0))
    columns["tc_share"] = Floats(tensor_cores(profile, groups, time))
    return columns


def _roof(profile: Profile, groups: Grouping, time: npt.NDArray[np.int64]) -> dict[str, Cells]:
    ideal, lost, share = against_ideal(groups, kept_ideals(profile), time)
    return {"peak_share": Floats(share), "ideal_ns": Floats(ideal), "lost_ns": Floats(lost)}


_NONE: Final = np.iinfo(np.int64).min


def ratio(above: npt.NDArray[Any], below: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Quotients; NaN where the divisor is 0."""
    out = np.full(len(above), np.nan)
    np.divide(above, below, out=out, where=np.asarray(below) != 0)
    return out


def per_step(
    groups: Grouping, time: npt.NDArray[np.int64], steps: StepsOfKernels
) -> npt.NDArray[np.float64]:
    """GPU time per counted step; NaN without steps."""
    n = step_count(steps)
    if steps.source == "none" or not n:
        return np.full(groups.n, np.nan)
    return groups.sums(np.maximum(time, 0), in_counted_steps(steps)) / n


def in_counted_steps(steps: StepsOfKernels) -> Bools:
    """[kernels] Whether means over steps include the kernel."""
    return np.append(steps.is_counted, False)[steps.of_kernel]


def calls(profile: Profile, groups: Grouping) -> npt.NDArray[np.int64]:
    """[groups] The number of distinct calls; -1 if the profile has no column `call`."""
    if "call" not in profile.names:
        return np.full(groups.n, -1, np.int64)
    return groups.distinct_counts(numbers(profile, "call"))


def tensor_cores(
    profile: Profile, groups: Grouping, time: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """The share of the time with tensor cores, of kernels that could use them."""
    column = texts(profile, "tc")
    of = {value: column.ids == i for i, value in enumerate(column.values)}
    none = np.zeros(len(column), bool)
    used, unused = of.get(_TENSOR_CORES, none), of.get(_OTHER_CORES, none)
    known = np.maximum(time, 0)
    with_cores = groups.sums(known, used)
    return ratio(with_cores, with_cores + groups.sums(known, unused))


def totals(columns: dict[str, Cells]) -> dict[str, Any]:
    """Sums over all groups; exact, None where no group has a value."""
    found: dict[str, Any] = {}
    for name in ("calls", "kernels", "gpu_ns", "flops", "bytes", "ideal_ns", "lost_ns", "step_ns"):
        column = columns.get(name)
        if isinstance(column, Ints):
            known = [each for each in column.values.tolist() if each != column.none]
            found[name] = sum(known) if known or not len(column) else None
        elif isinstance(column, Floats):
            is_known = ~np.isnan(column.values)
            found[name] = float(column.values[is_known].sum()) if is_known.any() else None
    return found


def shown(
    headings: Iterable[Heading], columns: dict[str, Cells], not_zero: Collection[str] = ()
) -> tuple[Heading, ...]:
    """The headings of these columns; text omits columns without known values, and rates of 0.

    not_zero : further columns that text omits if all values are 0
    """
    return tuple(
        replace(each, in_text=each.in_text and _has_values(columns[each.key], is_omitted))
        for each in headings
        if each.key in columns
        for is_omitted in (each.unit.endswith("/s") or each.key in not_zero,)
    )


def _has_values(column: Cells, not_zero: bool) -> bool:
    if isinstance(column, Values):
        has_text = np.array([*(each != "" for each in column.values), False])
        return not len(column) or bool(has_text[column.ids].any())
    known = np.ma.masked_invalid(column.array())
    return not len(column) or bool(known.any() if not_zero else known.count())
