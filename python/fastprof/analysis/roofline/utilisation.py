"""Model FLOPs utilisation (MFU), and the peaks that a report compares with.

The model's FLOPs are those of products, convolutions and attention in forward and backward passes.
Hardware FLOPs utilisation (HFU) includes recomputed forward passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from fastprof._core._groups import sum_where
from fastprof._core._take import distinct, take
from fastprof._system.classes import NamedTuple
from fastprof.analysis.cells import ReportCells, cells_of
from fastprof.analysis.gpu_work import busy_by_device
from fastprof.analysis.grouping import Floats64, numbers, texts
from fastprof.analysis.roofline.ideal import PRODUCTS
from fastprof.analysis.summary.columns import ABOVE_ROOF, DOUBTS
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Values
from fastprof.model.devices import CLOCKS, Device, peaks_text, with_figures
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData
from fastprof.ops.tensor_cores import COMPUTE_TYPES
from fastprof.profile.data import ProfileData, kept
from fastprof.profile.steps.kernel_steps import StepsOfKernels

_MODEL: Final = ("forward", "backward")
_RECOMPUTED: Final = "recompute"
_COPIES: Final = ("memcpy", "memset")


class _Products(NamedTuple):
    """Products of a profile.

    Parameters
    ----------
    is_product : bool [kernels], all kernels of calls with at least one product by its name
    flops : int64 [cells], their FLOPs
    in_model, in_hardware : bool [cells], whether the FLOPs are those of the model; with
        recomputation
    """

    is_product: Bools
    flops: Int64
    in_model: Bools
    in_hardware: Bools


def utilisation(
    profile: ProfileData, steps: StepsOfKernels, devices: Mapping[int, Device]
) -> dict[str, Any] | None:
    """MFU and HFU of the steps; None without model FLOPs, their peak or times.

    Returns
    -------
    dict
        - compute_type: the type with the most model FLOPs
        - peak_flop_per_s: its peak, summed over GPUs
        - model_flops, hardware_flops: mean per counted step
        - step_ns: mean length of the counted steps
        - mfu, hfu: by that length; mfu_busy: by the time during which kernels run
        - unknown_share: share of the GPU time of products whose cost is unknown; if not 0, the
          above are lower bounds
        - steps: number, mfu and hfu of each step
    """
    results = kept(profile, _results)
    gpus = [*devices.values()]
    for of_steps, of_gpus, known in results:
        if of_steps is steps and of_gpus == gpus:
            return _copy(known)
    result = _utilisation(profile, steps, devices)
    results.append((steps, gpus, result))
    return _copy(result)


def _copy(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """A copy that its reader may change."""
    return found and {**found, "steps": [dict(step) for step in found["steps"]]}


def _results(_: ProfileData) -> list[tuple[StepsOfKernels, list[Device], dict[str, Any] | None]]:
    """Where several reports find what one of them has computed."""
    return []


def _utilisation(
    profile: ProfileData, steps: StepsOfKernels, devices: Mapping[int, Device]
) -> dict[str, Any] | None:
    cells = cells_of(profile)
    work = _products(cells)
    result = _peaks(cells, devices, np.where(work.in_model, work.flops, 0))
    if result is None or "start" not in profile.names:
        return None
    name, peaks = result
    length = steps.length.astype(np.float64)
    capacity = _peak_of_steps(cells, steps, peaks) * length * 1e-9
    capacity[capacity <= 0] = np.nan
    model, hardware = _by_step(cells, steps, work)
    rows = np.flatnonzero(steps.is_counted & (capacity > 0))
    if not len(rows):
        return None
    busy = busy_by_device(profile, cells.flags(~_is_one_of(texts(cells, "class"), _COPIES)))
    at_work = sum(each.busy * 1e-9 * peaks[number] for number, each in busy.items())
    of_products = int(cells.sum_where(numbers(profile, "sil"), work.is_product).sum())
    return {
        "compute_type": name,
        "peak_flop_per_s": sum(peaks.values()),
        "model_flops": float(model[rows].mean()),
        "hardware_flops": float(hardware[rows].mean()),
        "step_ns": float(length[rows].mean()),
        "mfu": float(model[rows].sum() / capacity[rows].sum()),
        "hfu": float(hardware[rows].sum() / capacity[rows].sum()),
        "mfu_busy": float(work.flops[work.in_model].sum()) / at_work if at_work else None,
        "unknown_share": _unknown(cells) / of_products if of_products else 0.0,
        "steps": [
            {"number": number, "mfu": _known(m), "hfu": _known(h)}
            for number, m, h in zip(
                steps.number.tolist(), model / capacity, hardware / capacity, strict=True
            )
        ],
    }


def model_products(
    profile: ProfileData, devices: Mapping[int, Device]
) -> tuple[Bools, dict[int, float]] | None:
    """Whether the FLOPs of each kernel are those of the model, and the peak of each GPU in FLOP/s.

    The peak is that of the type with the most of these FLOPs. None without FLOPs or their peak.
    """
    cells = cells_of(profile)
    work = _products(cells)
    peaks = _peaks(cells, devices, np.where(work.in_model, work.flops, 0))
    return None if peaks is None else (work.is_product & cells.flags(work.in_model), peaks[1])


def utilisation_text(found: dict[str, Any] | None) -> str:
    """One line; empty without figures."""
    if found is None:
        return ""
    is_bound = found["unknown_share"] >= _NEGLIGIBLE
    at_least = ">= " if is_bound else ""
    text = f"MFU {at_least}{found['mfu']:.1%} of {found['compute_type']} peak"
    if found["mfu_busy"] is not None:
        text += f", {found['mfu_busy']:.1%} of the time with kernels"
    if found["hardware_flops"] > found["model_flops"]:
        text += f"; HFU {at_least}{found['hfu']:.1%}"
    per = "per step of" if len(found["steps"]) > 1 else "in"
    text += f" ({quantity(found['model_flops'], 'flop')} {per} {quantity(found['step_ns'], 'ns')}"
    if is_bound:
        text += f"; {found['unknown_share']:.1%} of the time of products has no cost"
    return f"{text})"


_NEGLIGIBLE: Final = 0.001


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _is_one_of(column: Values, names: tuple[str, ...] | frozenset[str]) -> Bools:
    return column.fits(lambda each: each in names)


def _by_name(cells: ReportCells) -> Bools:
    """[cells] Whether the kernels are products by their name."""
    return _is_one_of(texts(cells, "class"), PRODUCTS)


def _unknown(cells: ReportCells) -> int:
    """The GPU time of products of unknown cost, ns."""
    unknown = _by_name(cells) & (numbers(cells, "flops") < 0)
    return int(np.maximum(numbers(cells, "sil")[unknown], 0).sum())


def _products(cells: ReportCells) -> _Products:
    by_name = cells.flags(_by_name(cells))
    call = numbers(cells.profile, "call")
    of_call = np.zeros(int(call.max(initial=-1)) + 1, bool)
    of_call[call[by_name & (call >= 0)]] = True
    is_product = take(of_call, call, False) | by_name
    flops = cells.sum_where(numbers(cells.profile, "flops"), is_product)
    if "phase" not in cells.names:
        every = np.ones(len(cells), bool)
        return _Products(is_product, flops, every, every)
    phases = texts(cells, "phase")
    in_model = _is_one_of(phases, _MODEL)
    in_hardware = in_model | _is_one_of(phases, (_RECOMPUTED,))
    return _Products(is_product, flops, in_model, in_hardware)


def _peaks(
    cells: ReportCells, devices: Mapping[int, Device], flops: Int64
) -> tuple[str, dict[int, float]] | None:
    """The compute type with the most FLOPs, and its peak on each GPU."""
    types, cores = texts(cells, "compute_type"), texts(cells, "tc")
    uses_cores = _is_one_of(cores, ("1",))
    n = len(COMPUTE_TYPES)
    sums = np.bincount(2 * types.ids + 2 + uses_cores, flops, 2 * n + 2)[2:].reshape(n, 2)
    best = int(sums.sum(axis=1).argmax())
    if not sums[best].any():
        return None
    name = COMPUTE_TYPES[best]
    peaks, by_cores = {}, bool(sums[best, 1] > sums[best, 0])
    for number, device in devices.items():
        peak = device.peak(name, by_cores)
        if peak is None:
            return None
        peaks[number] = peak
    return name, peaks


def _peak_of_steps(
    cells: ReportCells, steps: StepsOfKernels, peaks: Mapping[int, float]
) -> Floats64:
    """[steps] The sum of the peaks of the GPUs that work in each step."""
    device = numbers(cells, "device")
    result = np.zeros(len(steps) + 1)  # the last for kernels outside of all steps
    for number, peak in peaks.items():
        own = device == number
        step = steps.of_kernel if own.all() else steps.of_kernel[cells.flags(own)]
        used, _ = distinct(step, len(steps))
        result[used] += peak
    return result[:-1]


def _by_step(
    cells: ReportCells, steps: StepsOfKernels, work: _Products
) -> tuple[Floats64, Floats64]:
    """[steps] The FLOPs of the model, and those with recomputation."""

    def sums(wanted: Bools) -> Floats64:
        rows = (work.is_product & cells.flags(wanted)).view(np.uint8)
        flops = numbers(cells.profile, "flops")
        return sum_where(steps.of_kernel, flops, rows, len(steps)).astype(np.float64)

    model = sums(work.in_model)
    is_recomputed = work.flops[work.in_hardware & ~work.in_model].any()
    return model, sums(work.in_hardware) if is_recomputed else model


def devices_with(
    profile: ProfileData,
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
) -> Mapping[int, Device]:
    """The GPUs of a profile by number, with the user's figures; see `with_figures`.

    Raises
    ------
    ReportError
        The GPU or a figure is unknown.
    """
    devices = profile.devices
    if gpu is None and peak is None and bandwidth is None:
        return devices
    models = {id(device): device for device in devices.values()}
    figures = {key: with_figures(model, gpu, peak, bandwidth) for key, model in models.items()}
    return {number: figures[id(device)] for number, device in devices.items()}


def peaks_lines(devices: Mapping[int, Device]) -> list[str]:
    """The peaks and their sources, one line for each model."""
    lines = list(dict.fromkeys(filter(None, map(peaks_text, devices.values()))))
    if any(device.why for device in devices.values()):
        lines.append("--gpu NAME, or --peak and --bandwidth, give the peaks")
    return lines


def roof_notes(devices: Mapping[int, Device], columns: Mapping[str, ColumnData]) -> tuple[str, ...]:
    """The notes of a table with the column `peak_share`: its flags, and the peaks if known."""
    if np.isnan(columns["peak_share"].array()).all():
        return flag_notes(columns)
    return (*flag_notes(columns), *peaks_lines(devices), CLOCKS)


def flag_notes(columns: Mapping[str, ColumnData]) -> tuple[str, ...]:
    """How many rows have a flag: text may be too narrow for the column."""
    flags = columns["flag"].array().tolist()
    counts = {flag: flags.count(flag) for flag in (*DOUBTS, ABOVE_ROOF)}
    return tuple(f"{flag}: {n} of {len(flags)} rows" for flag, n in counts.items() if n)
