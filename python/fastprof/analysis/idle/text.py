"""The lines around the table of `idle`: what each GPU does, and what is not known."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fastprof.analysis.gpu_work import TimeLine, time_lines
from fastprof.analysis.grouping import numbers, texts
from fastprof.analysis.steps.windows import OTHER_CLOCK, gpu_counters, windows_of
from fastprof.model.arrays import unique
from fastprof.model.numbers import quantity
from fastprof.model.trace import NO_TIME
from fastprof.profile.api_classes import COPY_CALL
from fastprof.profile.data import ProfileData
from fastprof.profile.recording_hints import advice_on, recorder_of_calls

_STARVED_NS: Final = 10_000  # a launch that the GPU begins sooner was not queued ahead of time

_MOST_GPUS: Final = 8
_FEWEST_STEPS: Final = 3  # of which one can differ from the others
_MOST_STEPS: Final = 4  # that a line names


def overview(profile: ProfileData) -> tuple[tuple[str, ...], dict[str, Any]]:
    """A line for each GPU and one on the queue, and the values in them for JSON."""
    every = time_lines(profile)
    of_devices = {device: _facts(line) for device, line in every.largest().items()}
    starved = starved_share(profile)
    lines = [_line(device, found) for device, found in list(of_devices.items())[:_MOST_GPUS]]
    if len(every) > _MOST_GPUS:
        lines.append(f"... {len(every) - _MOST_GPUS} more GPUs")
    if starved is not None:
        lines.append(f"{starved:.1%} of the kernels start within 10 us of their launch (starved)")
    facts = {
        "gpus": [{"device": device, **found} for device, found in of_devices.items()],
        **every.rest(),
        "starved": starved,
    }
    return (*lines, ""), facts


def _facts(line: TimeLine) -> dict[str, Any]:
    return {
        "span_ns": line.span,
        "busy_ns": line.span - line.idle,
        "idle_ns": line.idle,
        "compute_ns": line.compute,
        "communication_ns": line.communication,
        "exposed_communication_ns": line.exposed_communication,
        "exposed_copy_ns": line.exposed_copy,
        "overlap": line.hidden_share,
    }


def _line(device: int, found: dict[str, Any]) -> str:
    """The time line in parts that add up."""
    span = found["span_ns"]
    hidden = "" if found["overlap"] is None else f" ({found['overlap']:.0%} hidden)"
    parts = {
        "compute": found["compute_ns"],
        f"exposed communication{hidden}": found["exposed_communication_ns"],
        "exposed copies": found["exposed_copy_ns"],
    }
    shown = [f"{name} {quantity(ns, 'ns')}" for name, ns in parts.items() if ns]
    gpu = f"GPU {device}" if device >= 0 else "GPU not recorded"
    idle = f"idle {quantity(found['idle_ns'], 'ns')}, {found['idle_ns'] / max(span, 1):.1%}"
    return f"{gpu}, {quantity(span, 'ns')}: {', '.join([*shown, idle])}"


def clock_lines(profile: ProfileData, steps: str | None) -> tuple[str, ...]:
    """A line on steps in which the SMs ran slower: their kernels take longer, not their gaps.

    Empty without samples of the clock (nsys --gpu-metrics-devices).
    """
    if profile.about.format != "nsys" or profile.source.gpu_samples() is None:
        return ()
    kernel_steps = profile.find_steps(steps)
    windows = windows_of(profile, kernel_steps)
    clocks = gpu_counters(profile, windows)["sm_clock_hz"]
    known = windows.is_known & ~np.isnan(clocks)
    if kernel_steps.unit != "step" or np.count_nonzero(known) < _FEWEST_STEPS:
        return ()
    usual = np.median(clocks[known])
    slow = known & (clocks < (1 - OTHER_CLOCK) * usual)
    if not slow.any():
        return ()
    numbers_of_slow = unique(kernel_steps.number[windows.step[slow]]).tolist()
    few = len(numbers_of_slow) <= _MOST_STEPS
    named = ", ".join(map(str, numbers_of_slow)) if few else f"{len(numbers_of_slow)} steps"
    where = f"step{'s' * (len(numbers_of_slow) > 1)} {named}" if few else named
    return (
        f"the SM clock is {quantity(float(clocks[slow].mean()), 'hz')} in {where}, usually "
        f"{quantity(float(usual), 'hz')}: kernels take longer there, which is no idle time",
    )


def starved_share(profile: ProfileData) -> float | None:
    """The share of kernels that start right after their launch; None without launches."""
    start, returned = numbers(profile, "start"), numbers(profile, "launch_end")
    kind = texts(profile, "kind")
    is_kernel = kind.fits(lambda each: each in ("kernel", "graph"))
    known = (returned != NO_TIME) & is_kernel
    n = np.count_nonzero(known)
    return float(np.count_nonzero(start[known] - returned[known] < _STARVED_NS) / n) if n else None


def notes(profile: ProfileData, n_late: int) -> tuple[str, ...]:
    """What is missing or inconsistent, a line each.

    n_late : gaps whose next work starts before its launch
    """
    if "start" not in profile.names:
        return ("dict lines contain no times: use the original trace",)
    if not len(profile):
        return (advice_on(profile.about, profile.contents, "range"),)
    results = []
    launched = numbers(profile, "launch_start") != NO_TIME
    if not launched.any():
        how = recorder_of_calls(profile.about)
        results.append(f"causes unknown: no API calls in the file; record with {how}")
    is_copy = texts(profile, "kind").fits(lambda kind: kind in ("memcpy", "memset"))
    if not is_copy.any() and COPY_CALL in profile.api.call_class.values:
        results.append(
            "copies and memsets are missing: their time counts as idle; in Python, open the trace "
            "with copies=True"
        )
    if n_late:
        results.append(
            f"{n_late} launches start after their work: the clocks of host and GPU differ"
        )
    return tuple(results)
