"""The time of each kernel on another GPU, as an interval.

The recorded time is split into three parts:

- **fixed**: what a kernel without work takes, from the start of its blocks to the end of the last;
- **roof**: the time of its FLOPs or bytes at the share of the peak that kernels attain. It changes
  by the ratio of the roofs that bind it on both GPUs;
- **rest**: what neither roof explains: instructions, caches, waits for memory, empty
  multiprocessors. It changes by any ratio between those of the bandwidths, of the multiprocessors
  with their clock, for products of the peaks, and, for kernels with few blocks, not at all.

All parts are intervals, and the result is as wide as their extremes. docs/replay.md has the
assumptions and the errors on real pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np

from fastprof._system.classes import NamedTuple, dataclass
from fastprof.analysis.cells import ReportCells
from fastprof.analysis.grouping import Floats64, numbers, texts
from fastprof.analysis.keys import key_of
from fastprof.analysis.roofline.ideal import (
    COMPUTE,
    PRODUCTS,
    Ideals,
    ideals_of,
    unit_of,
)
from fastprof.analysis.roofline.limits import is_one_of, l2_bytes
from fastprof.errors import ReportError
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.device_links import to_gpus, to_host
from fastprof.model.devices import Device, find, with_figures

RULES: Final = ("compute", "bandwidth", "mixed", "fixed", "no cost", "link")
_COMPUTE, _BANDWIDTH, _MIXED, _FIXED, _NO_COST, _LINK = range(len(RULES))
WIDE: Final = 2.0
"""Longest by shortest time above which a trace does not tell."""

# What kernels with next to no work take, ns: those of the real traces with under 100 kB.
_FIXED_NS: Final = {"NVIDIA": (1000.0, 3500.0), "AMD": (3000.0, 6500.0)}
_OF_FIXED: Final = 1.4  # by how much it differs between architectures of one vendor
_IDLE: Final = 0.25  # of so short a kernel, the time of its FLOPs or bytes at most
# Shares of the peak that large kernels attain, by the begin of the capability: least and best.
_OF_PEAK: Final = {
    "gfx90a": (0.60, 0.80),
    "gfx94": (0.35, 0.60),
    "gfx95": (0.35, 0.70),
    "gfx": (0.35, 0.80),
    "": (0.65, 0.90),
}
_OF_ATTENTION: Final = {"gfx": (0.18, 0.45), "": (0.28, 0.75)}
_OF_BANDWIDTH: Final = {"gfx": (0.65, 0.88), "": (0.70, 0.93)}
# By how much the same work differs between cards of one architecture, between architectures, and
# between vendors: their libraries have other kernels.
_CARD, _ARCHITECTURE, _VENDOR = 1.1, 1.5, 1.75
_WAVES: Final = 4  # blocks by multiprocessors from which all of them work nearly all of the time
# The types in which a product runs where its own is missing, and how many times larger they are.
_INSTEAD: Final = {
    "fp4": (("fp8", 2), ("bf16", 4), ("fp32", 8)),
    "fp8": (("bf16", 2), ("fp32", 4)),
    "int8": (("fp32", 4),),
    "bf16": (("fp32", 1),),
    "fp16": (("fp32", 1),),
    "tf32": (("fp32", 1),),
    "fp64": (),
    "fp32": (),
}
_NO_BF16: Final = ("5.", "6.", "7.")  # compute capabilities without it; the table has fp16 there
_HAS_FP4: Final = ("10.", "12.")  # with it; NVIDIA's peaks are one to two times those of fp8


@dataclass(frozen=True, eq=False)
class PredictedSpans:
    """The times of cells on another GPU.

    Parameters
    ----------
    low, high : float64 [cells], factors of the recorded time
    rule : int32 [cells], index into RULES: what decides most of it
    missing : products in types that the GPU lacks, as (type, type instead)
    may_use_tf32 : whether convolutions of fp32 may run as TF32 there
    """

    low: Floats64
    high: Floats64
    rule: Int32
    missing: frozenset[tuple[str, str]]
    may_use_tf32: bool


class _Peaks(NamedTuple):
    """The peaks of the units of some rows.

    Parameters
    ----------
    old : float64 [rows], FLOP/s on the recorded GPU; NaN if unknown
    low, high : float64 [rows], FLOP/s on the other GPU, of the types that it may choose
    growth : float64 [rows], how many times larger the numbers are there
    has_cores : bool [rows], whether the unit is tensor cores
    """

    old: Floats64
    low: Floats64
    high: Floats64
    growth: Floats64
    has_cores: Bools


class _Roof(NamedTuple):
    """The time of rows at the peaks, a kernel.

    Parameters
    ----------
    ns : float64 [rows], on the recorded GPU; 0 without a known cost
    low, high : float64 [rows], on the other GPU, by that
    is_compute, will_compute : bool [rows], whether FLOPs bind; on the other GPU
    """

    ns: Floats64
    low: Floats64
    high: Floats64
    is_compute: Bools
    will_compute: Bools


class OtherGpu:
    """A GPU on which a run is predicted.

    Attributes
    ----------
    name : str
        As the user gives it.
    device : Device
        Its figures in the table.
    recorded : mapping of int to Device
        The recorded GPUs by number.
    """

    def __init__(self, name: str, recorded: Mapping[int, Device]) -> None:
        """Find the GPU in the table.

        Raises
        ------
        ReportError
            The table has no such GPU; the message names the nearest.
        """
        self.name, self.recorded = name, recorded
        device = with_figures(Device(None), name)
        sources = {key: text.removeprefix("--gpu: ") for key, text in device.sources.items()}
        self.device = replace(device, sources=sources)
        self._spans: tuple[ReportCells, PredictedSpans] | None = None

    def spans(self, cells: ReportCells) -> PredictedSpans:
        """The times of cells; those of the last cells are kept.

        Raises
        ------
        ReportError
            The bandwidth of a recorded GPU is unknown.
        """
        if self._spans is None or self._spans[0] is not cells:
            self._spans = cells, _spans_of(cells, self.recorded, self.device)
        return self._spans[1]


def _spans_of(cells: ReportCells, devices: Mapping[int, Device], new: Device) -> PredictedSpans:
    """devices : the recorded GPUs by number"""
    key, n = key_of(cells, "device"), len(cells)
    low, high, rule = np.ones(n), np.ones(n), np.full(n, _NO_COST, np.int32)
    missing, may_use_tf32 = set[tuple[str, str]](), False
    models: dict[int, list[int]] = {}
    for place, number in enumerate(key.values):
        models.setdefault(id(devices.get(number)), []).append(place)
    ideals = ideals_of(cells, devices)
    for places in models.values():
        rows = np.flatnonzero(np.isin(key.ids, places))
        old = devices.get(key.values[places[0]]) or Device(None)
        if len(rows) and not old.bandwidth:
            why = old.why or "the file does not name the GPU"
            raise ReportError(f"on: {why}; --gpu names the GPU of the trace")
        if len(rows) and not is_same(old, new):
            pair = _Pair(cells, rows, old, new)
            low[rows], high[rows], rule[rows] = pair.spans(ideals)
            missing |= pair.missing
            may_use_tf32 |= pair.may_use_tf32
    return PredictedSpans(low, high, rule, frozenset(missing), may_use_tf32)


def is_same(old: Device, new: Device) -> bool:
    """Whether two GPUs are of one row of the table."""
    rows = [find(gpu.name or "", gpu.memory) for gpu in (old, new)]
    return rows[0] is not None and rows[0] is rows[1] and old.flops == new.flops


def vendor(device: Device) -> str:
    """NVIDIA or AMD."""
    return "AMD" if (device.capability or "").startswith("gfx") else "NVIDIA"


def _share(shares: Mapping[str, tuple[float, float]], device: Device) -> tuple[float, float]:
    capability = device.capability or ""
    return next(pair for begin, pair in shares.items() if capability.startswith(begin))


class _Pair:
    """Cells of one recorded GPU, and another GPU.

    Attributes
    ----------
    missing, may_use_tf32 : see `Spans`; of the rows, after `spans`
    """

    def __init__(self, cells: ReportCells, rows: Int64, old: Device, new: Device) -> None:
        self._cells, self._rows, self._old, self._new = cells, rows, old, new
        self._count = np.maximum(cells.kernels[rows], 1)
        self._time = np.maximum(numbers(cells, "sil")[rows], 0) / self._count
        self._is_product = is_one_of(texts(cells, "class"), *PRODUCTS)[rows]
        self._is_attention = is_one_of(texts(cells, "class"), "attention")[rows]
        self._is_other_vendor = vendor(old) != vendor(new)
        self._has_tf32 = vendor(old) == "NVIDIA" and "tf32" in old.flops
        self.missing: set[tuple[str, str]] = set()
        self.may_use_tf32 = False
        is_card = old.capability == new.capability
        of_rest = _VENDOR if self._is_other_vendor else _CARD if is_card else _ARCHITECTURE
        self._of_rest, self._is_card = of_rest, is_card

    def spans(self, ideals: Ideals) -> tuple[Floats64, Floats64, Int32]:
        """[rows] The shortest and the longest time by the recorded one, and the rule.

        ideals : of all cells, on the recorded GPU
        """
        peaks = self._peaks()
        roof = self._roof(ideals, peaks)
        rest = self._rest(peaks, roof)
        time = np.maximum(self._time, 1.0)
        shortest, longest = np.full(len(time), np.inf), np.zeros(len(time))
        for corner in self._ends(roof, rest):
            np.minimum(shortest, corner, out=shortest)
            np.maximum(longest, corner, out=longest)
        low, high = shortest / time / _CARD, longest / time * _CARD
        has_no_work = self._time <= _FIXED_NS[vendor(self._old)][1]
        has_no_work &= roof.ns <= _IDLE * self._time
        fixed = self._of_fixed()
        low, high = np.where(has_no_work, fixed[0], low), np.where(has_no_work, fixed[1], high)
        explained = np.minimum(roof.ns, time) >= 0.5 * time
        bound = np.where(roof.is_compute, _COMPUTE, _BANDWIDTH)
        rule = np.where(roof.ns <= 0, _NO_COST, np.where(explained, bound, _MIXED))
        rule = np.where(has_no_work, _FIXED, rule)
        for is_link, ratio in self._links():
            low[is_link] = min(1.0, ratio) / self._of_rest
            high[is_link] = max(1.0, ratio) * self._of_rest
            rule[is_link] = _LINK
        return low, high, rule.astype(np.int32)

    def _ends(self, roof: _Roof, rest: tuple[Floats64, Floats64]) -> Iterator[Floats64]:
        """[rows] The times on the other GPU at each corner of what is uncertain, ns."""
        old_shares = [self._shares(self._old, roof.is_compute, end) for end in (0, 1)]
        new_shares = [self._shares(self._new, roof.will_compute, end) for end in (0, 1)]
        attained = np.clip(roof.ns / np.maximum(self._time, 1.0), *old_shares)
        old_shares[0] = attained
        both = [*zip(old_shares, new_shares, strict=True)]
        shares = product(old_shares, new_shares) if self._is_other_vendor else both
        for (old, new), fixed in product([*shares], self._fixed()):
            rested = self._time - fixed[0]
            bound = np.minimum(rested, roof.ns / old)
            for ratio, factor in product((roof.low, roof.high), rest):
                yield fixed[1] + bound * ratio * old / new + (rested - bound) * factor

    def _fixed(self) -> Iterator[tuple[Floats64, Floats64 | float]]:
        """[rows] The fixed time on both GPUs, ns: the same on those of one vendor."""
        for old in _FIXED_NS[vendor(self._old)]:
            own = np.minimum(self._time, old)
            if self._is_other_vendor:
                for new in _FIXED_NS[vendor(self._new)]:
                    yield own, new
            else:
                yield own, own

    def _of_fixed(self) -> tuple[Floats64 | float, Floats64 | float]:
        """[rows] The factors of kernels without work."""
        if self._is_other_vendor:
            time = np.maximum(self._time, 1.0)
            low, high = _FIXED_NS[vendor(self._new)]
            return low / _CARD / time, np.maximum(high, time) * _CARD / time
        factor = _CARD if self._is_card else _OF_FIXED
        return 1 / factor, factor

    def _shares(self, device: Device, is_compute: Bools, end: int) -> Floats64:
        """[rows] The share of the peak that kernels attain: end 0 the least, 1 the best."""
        tables = (_OF_ATTENTION, _OF_PEAK, _OF_BANDWIDTH)
        attention, others, bandwidth = (_share(table, device)[end] for table in tables)
        of_flops = np.where(self._is_attention, attention, others)
        result: Floats64 = np.where(is_compute, of_flops, bandwidth)
        return result

    def _roof(self, ideals: Ideals, peaks: _Peaks) -> _Roof:
        """The time at the peaks of both GPUs."""
        rows, count = self._rows, self._count
        flops = np.where(np.isnan(peaks.old), 0.0, ideals.at_peak[rows] / count)
        moved = np.maximum(numbers(self._cells, "bytes")[rows], 0) / count
        bytes_ = moved * peaks.growth / (self._new.bandwidth or np.nan) * 1e9
        ns = ideals.ideal[rows] / count
        known = np.maximum(ns, 1e-9)
        ends = [
            np.maximum(flops * np.nan_to_num(peaks.old / new, nan=1.0), bytes_) / known
            for new in (peaks.high, peaks.low)
        ]
        is_compute = ideals.bound[rows] == COMPUTE
        # Rates of data in the cache of the recorded GPU, of arithmetic without tensor cores, and of
        # fewer blocks than the other GPU has multiprocessors may grow with the instructions.
        issue = self._issue()
        by_issue = np.where(is_compute, ~peaks.has_cores, moved <= l2_bytes(self._old))
        by_issue |= self._blocks() < (self._new.sms or 0)
        ends[0] = np.where(by_issue, np.minimum(ends[0], issue), ends[0])
        ends[1] = np.where(by_issue, np.maximum(ends[1], issue), ends[1])
        will_compute = flops * np.nan_to_num(peaks.old / peaks.low, nan=1.0) > bytes_
        return _Roof(ns, ends[0], ends[1], is_compute, will_compute)

    def _issue(self) -> Floats64:
        """[rows] The ratio of instructions a second: of multiprocessors that blocks fill, and
        clocks; without a clock that of the peaks of fp32."""
        old, new, blocks = self._old, self._new, self._blocks()
        if not (old.sms and new.sms and old.clock and new.clock):
            peaks = old.peak("fp32", False), new.peak("fp32", False)
            return np.full(len(blocks), peaks[0] / peaks[1] if peaks[0] and peaks[1] else 1.0)
        filled = np.minimum(blocks, old.sms) / np.minimum(blocks, new.sms)
        result: Floats64 = filled * (old.clock / new.clock)
        return result

    def _blocks(self) -> Int64:
        """[rows] The number of blocks; large if unknown."""
        if "grid" not in self._cells.names:
            return np.full(len(self._rows), np.iinfo(np.int64).max)
        blocks = numbers(self._cells, "grid")[self._rows].astype(np.int64).prod(axis=1)
        return np.where(blocks <= 0, np.iinfo(np.int64).max, blocks)

    def _rest(self, peaks: _Peaks, roof: _Roof) -> tuple[Floats64, Floats64]:
        """[rows] The least and the largest factor of time that no roof explains."""
        old, new = self._old, self._new
        bandwidth = (old.bandwidth or np.nan) / (new.bandwidth or np.nan)
        blocks = self._blocks()
        # The rest of what tensor cores bind is to feed them.
        issue = np.where(roof.is_compute & peaks.has_cores, np.nan, self._issue())
        low, high = np.fmin(issue, bandwidth), np.fmax(issue, bandwidth)
        for peak in (peaks.low, peaks.high):
            ratio = np.where(self._is_product, peaks.old / peak, np.nan)
            low, high = np.fmin(low, ratio), np.fmax(high, ratio)
        most = _WAVES * max(old.sms or 0, new.sms or 0)
        may_stay = (blocks < most) | (blocks == np.iinfo(np.int64).max) | (roof.ns <= 0)
        low = np.where(may_stay, np.minimum(low, 1.0), low)
        high = np.where(may_stay, np.maximum(high, 1.0), high)
        wide = low / self._of_rest, high * self._of_rest
        if self._is_other_vendor:
            return wide
        # A GPU of the same vendor with no less of anything is not slower, nor the other faster.
        return (
            np.where(low >= 1, np.maximum(wide[0], 1.0), wide[0]),
            np.where(high <= 1, np.minimum(wide[1], 1.0), wide[1]),
        )

    def _links(self) -> Iterator[tuple[Bools, float]]:
        """[rows] Copies and communication over a link, and the ratio of its bandwidths."""
        cells, rows = self._cells, self._rows
        old, new = (find(gpu.name or "", gpu.memory) for gpu in (self._old, self._new))
        kinds = is_one_of(texts(cells, "class"), "communication")[rows]
        directions = [np.zeros(len(rows), bool), kinds]
        if "copy_direction" in cells.names:
            copies = texts(cells, "copy_direction")
            directions[0] = is_one_of(copies, "HtoD", "DtoH", "HtoA", "AtoH", "HtoH")[rows]
            directions[1] = kinds | is_one_of(copies, "PtoP")[rows]
        for is_link, rate in zip(directions, (to_host, to_gpus), strict=True):
            before, after = rate(old), rate(new)
            yield is_link, before / after if before and after else 1.0

    def _peaks(self) -> _Peaks:
        """The peaks of the unit of each row on both GPUs."""
        cells, rows = self._cells, self._rows
        types, cores = texts(cells, "compute_type").take(rows), texts(cells, "tc").take(rows)
        kind = self._is_product.astype(np.int64)
        kind += is_one_of(texts(cells, "class"), "convolution")[rows]
        code = ((types.ids.astype(np.int64) + 1) * 8 + cores.ids + 1) * 3 + kind
        distinct, place = np.unique(code, return_inverse=True)
        table = []
        for number in distinct.tolist():
            rest, of_kind = divmod(number, 3)
            type_, core = divmod(rest, 8)
            name = types.values[type_ - 1] if type_ else None
            unit = unit_of(name, cores.values[core - 1] if core else None, of_kind > 0)
            table.append(self._peaks_of(unit, of_kind == 2))
        columns = np.array(table, np.float64).reshape(-1, 5)[place].T
        old, low, high, growth, cores = columns
        return _Peaks(old, low, high, growth, cores > 0)

    def _peaks_of(
        self, unit: tuple[str, bool] | None, is_convolution: bool
    ) -> tuple[float, float, float, float, float]:
        """The fields of `_Peaks` of a type of arithmetic and a unit.

        By default, torch runs convolutions of fp32 as TF32 on GPUs of NVIDIA that have it: those
        from GPUs without it may run so. TF32 may run as fp32 on those of AMD.
        """
        if unit is None:  # a product of unknown type
            old, new = (gpu.peak("bf16", True) for gpu in (self._old, self._new))
            return old or np.nan, new or np.nan, new or np.nan, 1.0, 1.0
        name, uses_cores = unit
        old = self._old.peak(name, uses_cores)
        new, growth = self._peak_there(name, uses_cores)
        peaks = [new]
        is_amd = vendor(self._new) == "AMD"
        tf32 = None if is_amd or self._has_tf32 else self._new.peak("tf32", True)
        if name == "fp32" and is_convolution and tf32:
            peaks.append(tf32)
            self.may_use_tf32 = True
        if name == "fp4" and "fp4" not in self._new.flops and growth == 1:
            peaks.append(2 * new)
        if name == "tf32" and is_amd:
            peaks.append(self._new.peak("fp32", True) or new)
        return old or np.nan, min(peaks), max(peaks), growth, float(uses_cores)

    def _peak_there(self, name: str, uses_cores: bool) -> tuple[float, float]:
        """The peak of the other GPU for a type, or for the type instead, and how much larger its
        numbers are; NaN if no type stands for it."""
        new = self._new
        lacks = name == "bf16" and (new.capability or "").startswith(_NO_BF16)
        peak = None if lacks and uses_cores else new.peak(name, uses_cores)
        if name == "fp4" and (new.capability or "").startswith(_HAS_FP4):
            peak = peak or new.peak("fp8", uses_cores)
        if peak:
            return peak, 1.0
        for instead, growth in _INSTEAD[name]:
            peak = new.peak(instead, uses_cores and instead != "fp32")
            if peak:
                if name != "tf32":
                    self.missing.add((name, instead))
                return peak, float(growth)
        return np.nan, 1.0
