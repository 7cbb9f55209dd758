"""Ideal times: how long kernels would take at the peak rates of their GPU.

The calls of a *call group* have the same GPU, direction, operator and shapes. Their ideal time is
max(FLOPs / peak, bytes / bandwidth), for each type of arithmetic separately. Each kernel has the
share of its FLOPs or bytes, so the sum over any grouping is the same. Helpers have no work of their
own: their time counts, their bytes do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof.analysis.columns import Columns, numbers, texts
from fastprof.analysis.grouping import Floats64, Grouping, group
from fastprof.analysis.keys import key_of
from fastprof.model.arrays import Bools, Int32
from fastprof.model.columns import Values
from fastprof.model.devices import Device
from fastprof.ops.compute_types import COMPUTE_TYPES

__all__ = [
    "BANDWIDTH",
    "COMPUTE",
    "PRACTICAL",
    "PRODUCTS",
    "Ideals",
    "against_ideal",
    "ideals_of",
]

COMPUTE, BANDWIDTH = 0, 1
PRODUCTS: Final = frozenset({"gemm", "convolution", "attention"})
PRACTICAL: Final = (0.80, 0.90)
"""The best shares of the tensor-core peak and of the bandwidth in real traces."""

# Copies that leave the memory of a GPU.
_LEAVES: Final = frozenset({"HtoD", "DtoH", "HtoA", "AtoH", "HtoH", "PtoP"})
_OF_DRIVER: Final = frozenset({"memcpy", "memset"})
_N_TYPES, _N_CORES = 1 + len(COMPUTE_TYPES), 4
_HELPER: Final = 2 * _N_TYPES * _N_CORES
_NARROW: Final = frozenset({"fp16", "bf16", "fp8", "int8"})


@dataclass(frozen=True)
class Ideals:
    """The ideal time of each row, a kernel or a cell.

    Parameters
    ----------
    per_flop, per_byte : float64 [rows], ns; at most one is not 0
    ideal : float64 [rows], ns; 0 if unknown
    is_counted : bool [rows], whether the ideal time is known: the row's own, or for a helper that
        of its call group
    at_peak : float64 [rows], ns, FLOPs / peak; 0 if unknown
    bound : int8 [rows], COMPUTE, BANDWIDTH or -1
    has_roof : bool [rows], False for communication and copies to, from and between GPUs
    """

    per_flop: Floats64
    per_byte: Floats64
    ideal: Floats64
    is_counted: Bools
    at_peak: Floats64
    bound: npt.NDArray[np.int8]
    has_roof: Bools


def ideals_of(source: Columns, devices: Mapping[int, Device], roof: str = "peak") -> Ideals:
    """The ideal times of rows, kernels or cells, at the peaks of these GPUs.

    roof : "peak" or "practical"
    """
    return _ideals(source, devices, PRACTICAL if roof == "practical" else (1.0, 1.0))


def against_ideal(
    groups: Grouping, ideal: Ideals, time: npt.NDArray[Any]
) -> tuple[Floats64, Floats64, Floats64]:
    """[groups] Ideal time, lost time, and ideal time by GPU time of work with an ideal time.

    NaN where no ideal time is known.

    time : [rows], ns
    """
    counted = groups.sums(time, ideal.is_counted)
    rows = groups.ids[ideal.is_counted]
    is_known = np.zeros(groups.n + 1, bool)  # the last for rows in no group
    is_known[rows] = True
    total = np.where(is_known[:-1], groups.sums(ideal.ideal), np.nan)
    share = np.full(groups.n, np.nan)
    np.divide(total, counted, out=share, where=counted > 0)
    return total, counted - total, share


def _ideals(source: Columns, devices: Mapping[int, Device], shares: tuple[float, float]) -> Ideals:
    """Compute the ideal time of each row.

    devices : the GPUs by number
    shares : attainable shares of the tensor-core peak and of the bandwidth
    """
    has_roof = _has_roof(source)
    device = key_of(source, "device")
    keys = [device, *(key_of(source, name) for name in ("dir", "op", "shape"))]
    calls = group(keys, len(source), has_roof)
    code = _codes(source)
    parts = _parts(calls, code)
    work = code < _HELPER
    flops, bytes_ = (np.where(work, numbers(source, name), -1) for name in ("flops", "bytes"))
    peak, bandwidth = _rates(device, devices, shares, parts.first, code)
    per_flop, per_byte, known = _coefficients(parts, flops, bytes_, peak, bandwidth)
    has_ideal = np.append(known, False)[parts.ids] & ((flops >= 0) | (bytes_ >= 0))
    of_group = np.zeros(calls.n + 1, bool)  # the last for rows without a roof
    # A memset alone does not do the work of an operator of unknown cost.
    of_group[calls.ids[has_ideal & ~_is_one_of(source, "class", _OF_DRIVER)]] = True
    of_compute, of_bytes = (np.append(each, 0.0)[parts.ids] for each in (per_flop, per_byte))
    return Ideals(
        of_compute,
        of_bytes,
        np.maximum(flops, 0) * of_compute + np.maximum(bytes_, 0) * of_bytes,
        has_ideal | (of_group[calls.ids] & ~work),
        np.maximum(flops, 0) * np.append(np.nan_to_num(1e9 / peak), 0.0)[parts.ids],
        np.where(of_compute > 0, COMPUTE, np.where(of_bytes > 0, BANDWIDTH, -1)).astype(np.int8),
        has_roof,
    )


def _has_roof(source: Columns) -> Bools:
    """False for communication, and for copies that leave the memory of a GPU."""
    found = ~_is_one_of(source, "class", frozenset({"communication"}))
    if "copy_direction" in source.names:
        found &= ~_is_one_of(source, "copy_direction", _LEAVES)
    return found


def _is_one_of(source: Columns, name: str, values: frozenset[str]) -> Bools:
    """[rows] Whether a column has one of these values."""
    column = texts(source, name)
    return column.fits(lambda each: each in values)


def _codes(source: Columns) -> Int32:
    """[rows] Class, compute type and tensor cores of each row; `_HELPER` for helpers."""
    kinds, types, cores = (texts(source, name) for name in ("class", "compute_type", "tc"))
    product = np.array([*(each in PRODUCTS for each in kinds.values), False], np.int32)[kinds.ids]
    code: Int32 = (product * np.int32(_N_TYPES) + types.ids + np.int32(1)) * np.int32(_N_CORES)
    core = np.array([*(("0", "1", "-").index(each) for each in cores.values), -1], np.int32)
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
    used = [devices.get(number, Device(None)) for number in device.values] + [Device(None)]
    peaks = np.array([[_peak(each, i, shares[0]) for i in range(_HELPER + 1)] for each in used])
    bandwidths = np.array([(each.bandwidth or np.nan) * shares[1] for each in used])
    place = device.ids[first]
    return peaks[place, code[first]], bandwidths[place]


def _peak(device: Device, code: int, share: float) -> float:
    """The peak of the unit that runs kernels of a code.

    Work of unknown type other than products runs as fp32. Products of 16 bits and fewer with an
    inconclusive name are assumed to use tensor cores.
    """
    if code == _HELPER:
        return np.nan
    rest, core = divmod(code, _N_CORES)
    product, type_ = divmod(rest, _N_TYPES)
    name = COMPUTE_TYPES[type_ - 1] if type_ else None if product else "fp32"
    if name is None:
        return np.nan
    uses_cores = core == 2 or (core == 0 and product == 1 and name in _NARROW) or name == "tf32"
    peak = device.peak(name, uses_cores)
    return np.nan if peak is None else peak * (share if uses_cores else 1.0)


def _coefficients(
    parts: Grouping,
    flops: npt.NDArray[Any],
    bytes_: npt.NDArray[Any],
    peak: Floats64,
    bandwidth: Floats64,
) -> tuple[Floats64, Floats64, Bools]:
    """[parts] ns per FLOP and ns per byte, of which one is 0; whether the ideal time is known."""
    terms = []
    for counts, rate in ((flops, peak), (bytes_, bandwidth)):
        stats = parts.stats(counts)
        known = (stats.count > 0) & ~np.isnan(rate)
        terms.append(np.where(known, stats.sum / rate, -1.0))
    is_compute = (terms[0] > terms[1]) & (terms[0] > 0)
    is_bandwidth = ~is_compute & (terms[1] > 0)
    return (
        np.where(is_compute, 1e9 / peak, 0.0),
        np.where(is_bandwidth, 1e9 / bandwidth, 0.0),
        np.maximum(*terms) >= 0,
    )
