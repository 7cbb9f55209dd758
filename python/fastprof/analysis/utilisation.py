"""Model FLOPs utilisation (MFU): the FLOPs of the model by those that the GPUs could run.

The model's FLOPs are those of products, convolutions and attention in forward and backward passes.
Hardware FLOPs utilisation (HFU) includes recomputed forward passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.grouping import Floats64
from fastprof.analysis.ideal import PRODUCTS
from fastprof.analysis.intervals import busy_by_device
from fastprof.model.arrays import Bools
from fastprof.model.columns import Values
from fastprof.model.devices import Device
from fastprof.model.quantity import quantity
from fastprof.ops.compute_types import COMPUTE_TYPES
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

__all__ = ["model_flops", "utilisation", "utilisation_text"]

_MODEL: Final = ("forward", "backward")
_RECOMPUTED: Final = "recompute"
_COPIES: Final = ("memcpy", "memset")


class _Work(NamedTuple):
    """Products of a profile.

    Parameters
    ----------
    model, hardware : float64 [kernels], FLOPs of the model; with recomputation
    unknown : bool [kernels], products of unknown cost
    products : bool [kernels], all kernels of products
    """

    model: Floats64
    hardware: Floats64
    unknown: Bools
    products: Bools


def utilisation(
    profile: Profile, steps: StepsOfKernels, devices: Mapping[int, Device]
) -> dict[str, Any] | None:
    """MFU and HFU of the steps; None without model FLOPs, their peak or times.

    Returns
    -------
    dict
        - compute_type: the type with the most model FLOPs
        - peak_flop_per_s: its peak, summed over GPUs
        - model_flops, hardware_flops: mean per counted step
        - step_ns: median length of the counted steps
        - mfu, hfu: by that length; mfu_busy: by the time during which kernels run
        - unknown_share: share of the GPU time of products whose cost is unknown; if not 0, the
          above are lower bounds
        - steps: number, mfu and hfu of each step
    """
    work = _work(profile)
    found = _peaks(profile, devices, work.model)
    if found is None or "start" not in profile.names:
        return None
    name, peaks = found
    length = steps.length.astype(np.float64)
    capacity = _peak_of_steps(profile, steps, peaks) * np.where(length > 0, length, np.nan) * 1e-9
    model, hardware = (_by_step(steps, each) for each in (work.model, work.hardware))
    rows = np.flatnonzero(steps.is_counted & ~np.isnan(capacity))
    if not len(rows):
        return None
    # Capacity of a step of median length.
    typical = float(np.median(length[rows]) * np.mean(capacity[rows] / length[rows]))
    kernels = ~_is_one_of(texts(profile, "class"), _COPIES)
    busy = busy_by_device(profile, kernels)
    at_work = sum(each.busy * 1e-9 * peaks[number] for number, each in busy.items())
    time = np.maximum(numbers(profile, "sil"), 0)
    of_products = float(time[work.products].sum())
    return {
        "compute_type": name,
        "peak_flop_per_s": sum(peaks.values()),
        "model_flops": float(model[rows].mean()),
        "hardware_flops": float(hardware[rows].mean()),
        "step_ns": float(np.median(length[rows])),
        "mfu": float(model[rows].mean()) / typical,
        "hfu": float(hardware[rows].mean()) / typical,
        "mfu_busy": float(work.model.sum()) / at_work if at_work else None,
        "unknown_share": float(time[work.unknown].sum()) / of_products if of_products else 0.0,
        "steps": [
            {"number": number, "mfu": _known(m), "hfu": _known(h)}
            for number, m, h in zip(
                steps.number.tolist(), model / capacity, hardware / capacity, strict=True
            )
        ],
    }


def model_flops(
    profile: Profile, devices: Mapping[int, Device]
) -> tuple[Floats64, dict[int, float]] | None:
    """FLOPs of the model, float64 [kernels], and the peak of each GPU in FLOP/s.

    The peak is that of the type with the most of these FLOPs. None without FLOPs or their peak.
    """
    work = _work(profile)
    found = _peaks(profile, devices, work.model)
    return None if found is None else (work.model, found[1])


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
    found: Bools = np.array([*(each in names for each in column.values), False])[column.ids]
    return found


def _work(profile: Profile) -> _Work:
    """The kernels of all calls with at least one kernel that is a product by its name."""
    flops, call = numbers(profile, "flops"), numbers(profile, "call")
    by_name = _is_one_of(texts(profile, "class"), PRODUCTS)
    of_call = np.zeros(int(call.max(initial=-1)) + 2, bool)  # the last for -1
    of_call[call[by_name]] = True
    of_call[-1] = False
    products = of_call[call] | by_name
    counts = np.where(products, np.maximum(flops, 0), 0).astype(np.float64)
    model, hardware = counts, counts
    if "phase" in profile.names:
        phases = texts(profile, "phase")
        in_model = _is_one_of(phases, _MODEL)
        model = np.where(in_model, counts, 0.0)
        hardware = np.where(in_model | _is_one_of(phases, (_RECOMPUTED,)), counts, 0.0)
    return _Work(model, hardware, by_name & (flops < 0), products)


def _peaks(
    profile: Profile, devices: Mapping[int, Device], flops: Floats64
) -> tuple[str, dict[int, float]] | None:
    """The compute type with the most FLOPs, and its peak on each GPU."""
    types, cores = texts(profile, "compute_type"), texts(profile, "tc")
    uses_cores = _is_one_of(cores, ("1",))
    n = len(COMPUTE_TYPES)
    sums = np.bincount(2 * types.ids + 2 + uses_cores, flops, 2 * n + 2)[2:].reshape(n, 2)
    best = int(sums.sum(axis=1).argmax())
    if not sums[best].any():
        return None
    name = COMPUTE_TYPES[best]
    peaks = {
        number: device.peak(name, bool(sums[best, 1] > sums[best, 0]))
        for number, device in devices.items()
    }
    known = {number: peak for number, peak in peaks.items() if peak is not None}
    return (name, known) if len(known) == len(peaks) else None


def _peak_of_steps(profile: Profile, steps: StepsOfKernels, peaks: Mapping[int, float]) -> Floats64:
    """[steps] The sum of the peaks of the GPUs that work in each step."""
    device = numbers(profile, "device")
    found = np.zeros(len(steps))
    for number, peak in peaks.items():
        found += peak * (_by_step(steps, (device == number).astype(np.float64)) > 0)
    return found


def _by_step(steps: StepsOfKernels, values: npt.NDArray[np.float64]) -> Floats64:
    return np.bincount(steps.of_kernel + 1, values, len(steps) + 1)[1:].astype(np.float64)
