"""Ideal times: how long kernels would take at the peak rates of their GPU.

The calls of a *call group* have the same GPU, direction, operator and shapes. Their ideal time is
max(FLOPs / peak, bytes / bandwidth), for each type of arithmetic separately. Each kernel has the
share of its FLOPs or bytes, so the sum over any grouping is the same. Helpers have no work of their
own: their time counts, their bytes do not.

A call group has an ideal time if the cost of nearly all of its work is known. FLOPs and bytes that
exceed what the GPU can do (`limits`) are no cost; nor are those of kernels shorter than the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import NamedTuple, dataclass
from fastprof.analysis.cells import ReportCells
from fastprof.analysis.grouping import Floats64, Grouping, group, numbers, texts
from fastprof.analysis.keys import key_of
from fastprof.analysis.roofline.limits import (
    LARGEST,
    clock_ns,
    fewer,
    is_one_of,
    least_ns_of_bytes,
    least_ns_of_flops,
)
from fastprof.model.arrays import Bools, Int32
from fastprof.model.columns import Values
from fastprof.model.devices import Device
from fastprof.ops.tensor_cores import COMPUTE_TYPES
from fastprof.profile.data import ProfileData

COMPUTE, BANDWIDTH = 0, 1
TOO_HIGH, TOO_SHORT = 1, 2
KNOWN: Final = 0.9
"""The least share of the time of a row, or of a call group, whose ideal time stands for all."""
PRODUCTS: Final = frozenset({"gemm", "convolution", "attention"})
PRACTICAL: Final = (0.80, 0.90)
"""The best shares of the tensor-core peak and of the bandwidth in real traces."""

# Copies that leave the memory of a GPU.
_LEAVES: Final = frozenset(
    {"HtoD", "DtoH", "HtoA", "AtoH", "HtoH", "PtoP", "unified HtoD", "unified DtoH"}
)
_OF_DRIVER: Final = frozenset({"memcpy", "memset"})
_CORES: Final = (None, "0", "1", "-")
_N_TYPES, _N_CORES = 1 + len(COMPUTE_TYPES), len(_CORES)
_HELPER: Final = 2 * _N_TYPES * _N_CORES
_NARROW: Final = frozenset({"fp16", "bf16", "fp8", "int8"})


@dataclass(frozen=True)
class Ideals:
    """The ideal time of each row, a kernel or a cell.

    Parameters
    ----------
    per_flop, per_byte : float64 [rows], ns; at most one is not 0
    ideal : float64 [rows], ns; 0 if unknown
    lost : float64 [rows], ns; of the time by which its call group exceeds its ideal time, the
        share of the row; 0 if unknown
    is_counted : bool [rows], whether the ideal time is known: the row's own, or for a helper that
        of its call group
    at_peak : float64 [rows], ns, FLOPs / peak; 0 if unknown
    bound : int8 [rows], COMPUTE, BANDWIDTH or -1
    has_roof : bool [rows], False for communication and copies to, from and between GPUs
    doubt : int8 [rows], 0, TOO_HIGH: the FLOPs or bytes of the model exceed what the GPU can do in
        the time, TOO_SHORT: the time is less than the resolution of the clock
    """

    per_flop: Floats64
    per_byte: Floats64
    ideal: Floats64
    lost: Floats64
    is_counted: Bools
    at_peak: Floats64
    bound: npt.NDArray[np.int8]
    has_roof: Bools
    doubt: npt.NDArray[np.int8]


class Roof(NamedTuple):
    """Groups of rows against their ideal times.

    Parameters
    ----------
    ideal, lost : float64 [groups], ns, of work with an ideal time; NaN without
    counted : float64 [groups], ns, the time of this work
    covered : float64 [groups], its share of the time of the group; NaN without time
    share : float64 [groups], ideal time by time; NaN if less than KNOWN of the time is covered
    doubt : int8 [groups], why the share is unknown: 0, TOO_HIGH or TOO_SHORT
    """

    ideal: Floats64
    lost: Floats64
    counted: Floats64
    covered: Floats64
    share: Floats64
    doubt: npt.NDArray[np.int8]

    @property
    def is_above(self) -> Bools:
        """[groups] Whether the work is faster than the roof."""
        return self.share > 1


def ideals_of(
    source: ReportCells | ProfileData, devices: Mapping[int, Device], roof: str = "peak"
) -> Ideals:
    """The ideal times of rows, kernels or cells, at the peaks of these GPUs.

    roof : "peak" or "practical"
    """
    return _ideals(source, devices, PRACTICAL if roof == "practical" else (1.0, 1.0))


def against_ideal(groups: Grouping, ideal: Ideals, time: npt.NDArray[Any]) -> Roof:
    """Groups of rows against their ideal times.

    time : [rows], ns
    """
    rows = groups.ids[ideal.is_counted]
    is_known = np.zeros(groups.n + 1, bool)  # the last for rows in no group
    is_known[rows] = True
    return roof_of(
        np.where(is_known[:-1], groups.sums(ideal.ideal), np.nan),
        np.where(is_known[:-1], groups.sums(ideal.lost), np.nan),
        groups.sums(time, ideal.is_counted),
        groups.sums(time),
        groups.sums(np.maximum(time, 1), ideal.doubt == TOO_HIGH),
        groups.sums(np.maximum(time, 1), ideal.doubt == TOO_SHORT),
    )


def roof_of(
    ideal: Floats64,
    lost: Floats64,
    counted: npt.NDArray[Any],
    time: npt.NDArray[Any],
    too_high: npt.NDArray[Any],
    too_short: npt.NDArray[Any],
) -> Roof:
    """The roof of groups by their sums in ns.

    ideal, lost : NaN where unknown
    counted, time : of work with an ideal time, and of all
    too_high, too_short : of work of this doubt, at least 1 ns of a row
    """
    covered, share = np.full(len(ideal), np.nan), np.full(len(ideal), np.nan)
    np.divide(counted, time, out=covered, where=time > 0)
    np.divide(ideal, counted, out=share, where=(counted > 0) & (covered >= KNOWN))
    doubts = [np.isnan(share) & (array > (1 - KNOWN) * time) for array in (too_high, too_short)]
    doubt = np.select(doubts, (TOO_HIGH, TOO_SHORT), 0).astype(np.int8)
    return Roof(ideal, lost, counted.astype(np.float64), covered, share, doubt)


def _ideals(
    source: ReportCells | ProfileData, devices: Mapping[int, Device], shares: tuple[float, float]
) -> Ideals:
    """Compute the ideal time of each row.

    devices : the GPUs by number
    shares : attainable shares of the tensor-core peak and of the bandwidth
    """
    has_roof, code, time = _has_roof(source), _codes(source), _time(source)
    keys = [key_of(source, name) for name in ("device", "dir", "op", "shape")]
    # Without an operator, kernels have nothing in common but their name.
    kernel, op = key_of(source, "kernel"), keys[2]
    named = Values(np.where(op.ids < 0, kernel.ids, np.int32(-1)), kernel.values)
    calls = group([*keys, named], len(source), has_roof)
    parts = _parts(calls, code)
    work = code < _HELPER
    doubt = _doubts(source, [*keys, kernel], code, devices)
    of_calls = calls.sums(time, work)
    is_wrong = calls.sums(time, work & (doubt == TOO_HIGH)) > (1 - KNOWN) * of_calls
    doubt[np.append(is_wrong, False)[calls.ids]] = TOO_HIGH
    trusted = work & (doubt == 0)
    flops, bytes_ = (np.where(trusted, numbers(source, name), -1) for name in ("flops", "bytes"))
    peak, bandwidth = _rates(keys[0], devices, shares, parts.first, code)
    is_product = is_one_of(texts(source, "class"), *PRODUCTS)[parts.first]
    per_flop, per_byte, known = _coefficients(parts, flops, bytes_, peak, bandwidth, is_product)
    has_ideal = np.append(known, False)[parts.ids] & ((flops >= 0) | (bytes_ >= 0))
    has_ideal &= np.append(calls.sums(time, has_ideal) >= KNOWN * of_calls, False)[calls.ids]
    of_group = np.zeros(calls.n + 1, bool)  # the last for rows without a roof
    # A memset alone does not do the work of an operator of unknown cost.
    of_group[calls.ids[has_ideal & ~is_one_of(texts(source, "class"), *_OF_DRIVER)]] = True
    of_compute, of_bytes = (
        np.where(has_ideal, np.append(array, 0.0)[parts.ids], 0.0) for array in (per_flop, per_byte)
    )
    ideal = np.maximum(flops, 0) * of_compute + np.maximum(bytes_, 0) * of_bytes
    is_counted = has_ideal | (of_group[calls.ids] & ~work)
    at_peak = np.maximum(flops, 0) * np.append(np.nan_to_num(1e9 / peak), 0.0)[parts.ids]
    return Ideals(
        of_compute,
        of_bytes,
        ideal,
        _lost(calls, np.where(is_counted, time - ideal, 0.0)),
        is_counted,
        np.where(has_ideal, at_peak, 0.0),
        np.where(of_compute > 0, COMPUTE, np.where(of_bytes > 0, BANDWIDTH, -1)).astype(np.int8),
        has_roof,
        doubt,
    )


def _time(source: ReportCells | ProfileData) -> npt.NDArray[np.int64]:
    """[rows] GPU time, 0 if unknown."""
    time: npt.NDArray[np.int64] = np.maximum(numbers(source, "sil"), 0)
    return time


def _lost(calls: Grouping, excess: Floats64) -> Floats64:
    """[rows] The lost time of call groups, on the rows that exceed their ideal time.

    excess : [rows], ns; negative for rows that are faster than ideal
    """
    above = np.maximum(excess, 0.0)
    of_calls, shared = np.maximum(calls.sums(excess), 0.0), calls.sums(above)
    factor = np.divide(of_calls, shared, out=np.zeros(calls.n), where=shared > 0)
    lost: Floats64 = above * np.append(factor, 0.0)[calls.ids]
    return lost


def _doubts(
    source: ReportCells | ProfileData,
    keys: list[Values],
    code: Int32,
    devices: Mapping[int, Device],
) -> npt.NDArray[np.int8]:
    """[rows] Whether the cost of a kernel in its calls is possible; see `Ideals`.

    keys : GPU, direction, operator, shape and kernel of each row
    """
    kernels = group([*keys, Values(code, [None] * (_HELPER + 1))], len(source))
    first = kernels.first
    op, kind, type_ = (
        values.take(first)
        for values in (keys[2], texts(source, "class"), texts(source, "compute_type"))
    )
    flops, moved = (
        kernels.sums(np.maximum(numbers(source, name), 0)) for name in ("flops", "bytes")
    )
    if isinstance(source, ReportCells):
        n, clock = kernels.sums(source.kernels), clock_ns(source.profile)
    else:
        n, clock = kernels.counts.astype(np.float64), clock_ns(source)
    time, tick = kernels.sums(_time(source)), clock * n
    gpus = _with_unknown(devices, keys[0])
    gpu = keys[0].ids[first]
    least = np.maximum(
        least_ns_of_flops(flops, _at(gpus, gpu, code[first], _most), fewer(op, kind, type_)),
        least_ns_of_bytes(moved / np.maximum(n, 1), gpu, gpus, is_one_of(kind, "index")) * n,
    )
    has_work = ((flops > 0) | (moved > 0)) & (code[first] < _HELPER)
    doubts = [has_work & (time < tick), has_work & (least > time + tick)]
    result = np.select(doubts, (TOO_SHORT, TOO_HIGH), 0).astype(np.int8)
    return np.append(result, np.int8(0))[kernels.ids]


def _has_roof(source: ReportCells | ProfileData) -> Bools:
    """False for communication, and for copies that leave the memory of a GPU."""
    result = ~is_one_of(texts(source, "class"), "communication")
    if "copy_direction" in source.names:
        result &= ~is_one_of(texts(source, "copy_direction"), *_LEAVES)
    return result


def _codes(source: ReportCells | ProfileData) -> Int32:
    """[rows] Class, compute type and tensor cores of each row; `_HELPER` for helpers."""
    kinds, types, cores = (texts(source, name) for name in ("class", "compute_type", "tc"))
    product = np.array([*(value in PRODUCTS for value in kinds.values), False], np.int32)[kinds.ids]
    code: Int32 = (product * np.int32(_N_TYPES) + types.ids + np.int32(1)) * np.int32(_N_CORES)
    core = np.array([*(_CORES.index(value) - 1 for value in cores.values), -1], np.int32)
    code += core[cores.ids] + np.int32(1)
    code[numbers(source, "helper") == 1] = _HELPER
    return code


def _parts(calls: Grouping, code: Int32) -> Grouping:
    """Call groups by type of arithmetic."""
    keys = [Values(ids, [None] * n) for ids, n in ((calls.ids, calls.n), (code, _HELPER + 1))]
    return group(keys, len(code), calls.ids >= 0)


def _rates(
    device: Values,
    devices: Mapping[int, Device],
    shares: tuple[float, float],
    first: npt.NDArray[np.intp],
    code: Int32,
) -> tuple[Floats64, Floats64]:
    """[parts] Peak FLOP/s and bytes/s; NaN if unknown."""
    used = _with_unknown(devices, device)
    bandwidths = np.array([(device.bandwidth or np.nan) * shares[1] for device in used])
    place = device.ids[first]
    peaks = _at(used, place, code[first], lambda gpu, number: _peak(gpu, number, shares[0]))
    return peaks, bandwidths[place]


def _with_unknown(devices: Mapping[int, Device], device: Values) -> list[Device]:
    """The GPU of each value of a key, and one of unknown figures, which is index -1."""
    unknown = Device(None)
    return [*(devices.get(number, unknown) for number in device.values), unknown]


def _at(
    gpus: Sequence[Device], place: Int32, code: Int32, rate: Callable[[Device, int], float]
) -> Floats64:
    """[rows] The rate of the GPU and the code of each row; equal GPUs share a row of the table.

    place : [rows], an index into `gpus`
    """
    models: dict[Hashable, int] = {}
    table, model = [], []
    for gpu in gpus:
        figures = gpu.capability, *gpu.flops.items()
        if figures not in models:
            models[figures] = len(models)
            table.append([rate(gpu, i) for i in range(_HELPER + 1)])
        model.append(models[figures])
    rates: Floats64 = np.array(table)[np.array(model)[place], code]
    return rates


def _peak(device: Device, code: int, share: float) -> float:
    """The peak of the unit that runs kernels of a code; NaN if unknown."""
    if code == _HELPER:
        return np.nan
    rest, core = divmod(code, _N_CORES)
    product, type_ = divmod(rest, _N_TYPES)
    unit = unit_of(COMPUTE_TYPES[type_ - 1] if type_ else None, _CORES[core], product == 1)
    peak = device.peak(*unit) if unit else None
    return np.nan if peak is None else peak * (share if unit and unit[1] else 1.0)


def unit_of(
    compute_type: str | None, cores: str | None, is_product: bool
) -> tuple[str, bool] | None:
    """The type of arithmetic, and whether tensor cores run it; None for products of unknown type.

    Work of unknown type other than products runs as fp32. Products of 16 bits and fewer with an
    inconclusive name are assumed to use tensor cores.

    cores : the column `tc`: "1", "0", "-", or None
    """
    name = compute_type or (None if is_product else "fp32")
    if name is None:
        return None
    is_narrow = cores is None and is_product and name in _NARROW
    return name, cores == "1" or is_narrow or name == "tf32"


def _most(device: Device, code: int) -> float:
    """The highest peak that a kernel of a code may have; of an unknown GPU, that of any."""
    if code == _HELPER:
        return np.inf
    rest, core = divmod(code, _N_CORES)
    product, type_ = divmod(rest, _N_TYPES)
    name = COMPUTE_TYPES[type_ - 1] if type_ else None if product else "fp32"
    units = (False, True) if core == 0 else (core == 2 or name == "tf32",)
    for gpu in (device, LARGEST):
        peaks = gpu.flops.values() if name is None else [gpu.peak(name, unit) for unit in units]
        if known := [peak for peak in peaks if peak]:
            return max(known)
    return np.inf


def _coefficients(
    parts: Grouping,
    flops: npt.NDArray[Any],
    bytes_: npt.NDArray[Any],
    peak: Floats64,
    bandwidth: Floats64,
    is_product: Bools,
) -> tuple[Floats64, Floats64, Bools]:
    """[parts] ns per FLOP and ns per byte, of which one is 0; whether the ideal time is known.

    It is that of FLOPs alone for products only: what else runs is bound by bytes.
    """
    terms = []
    for counts, rate in ((flops, peak), (bytes_, bandwidth)):
        stats = parts.stats(counts)
        known = (stats.count > 0) & ~np.isnan(rate)
        terms.append(np.where(known, stats.sum / rate, -1.0))
    is_known = (terms[1] >= 0) | (is_product & (terms[0] > 0))
    is_compute = is_known & (terms[0] > terms[1]) & (terms[0] > 0)
    is_bandwidth = ~is_compute & (terms[1] > 0)
    return (
        np.where(is_compute, 1e9 / peak, 0.0),
        np.where(is_bandwidth, 1e9 / bandwidth, 0.0),
        is_known,
    )
