"""The peaks that a report compares with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fastprof.analysis.summary.columns import ABOVE_ROOF, DOUBTS
from fastprof.model.device_options import with_figures
from fastprof.model.devices import CLOCKS, Device, peaks_text
from fastprof.model.table import ColumnData
from fastprof.profile.data import ProfileData


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
    figures = {key: with_figures(each, gpu, peak, bandwidth) for key, each in models.items()}
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
