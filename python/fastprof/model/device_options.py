"""Peaks and GPUs that the user gives: --gpu, --peak and --bandwidth."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace

from fastprof.errors import ReportError
from fastprof.model.device_table import ROWS
from fastprof.model.devices import FIGURES, Device, find, resolve, why_unknown
from fastprof.model.metadata import GpuFigures
from fastprof.model.names import unknown_name


def with_figures(
    device: Device,
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
) -> Device:
    """The GPU with the figures of the user, which take precedence.

    Parameters
    ----------
    gpu : name of a row of the table, such as "H100" or "A100 80GB"; replaces all figures but the
        multiprocessors in the file
    peak : TFLOP/s by figure, such as "bf16=312,fp32=19.5" or {"bf16": 312}; fp64, fp64_tc, fp32,
        tf32, fp16 (also bf16), fp8, int8; bw is the bandwidth
    bandwidth : GB/s

    Raises
    ------
    ReportError
        The GPU or a figure is unknown, or a number is not positive.
    """
    if gpu is not None:
        found = resolve(_row_name(gpu), GpuFigures(sms=device.sms, memory=_memory_of(gpu)))
        sources = {key: f"--gpu: {source}" for key, source in found.sources.items()}
        if device.sms:
            sources["sms"] = device.sources.get("sms", "the file")
        device = replace(found, name=gpu, sources=sources)
    flops, sources = dict(device.flops), dict(device.sources)
    memory_rate = device.bandwidth
    for key, value in _peaks(peak).items():
        if key == "bw":
            memory_rate, sources["bandwidth"] = value * 1e9, "--peak"
        else:
            flops[_FIGURE_OF.get(key, key)] = value * 1e12
            sources[_FIGURE_OF.get(key, key)] = "--peak"
    if bandwidth is not None:
        memory_rate = positive("bandwidth", bandwidth) * 1e9
        sources["bandwidth"] = "--bandwidth"
    why = why_unknown(device.name, flops, memory_rate) if device.why else ""
    return replace(device, flops=flops, bandwidth=memory_rate, sources=sources, why=why)


# The figures of --peak that have another name here.
_FIGURE_OF = {"fp16": "half", "bf16": "half"}
_PEAKS = [*(figure for figure in FIGURES if figure != "half"), *_FIGURE_OF, "bw"]


def _peaks(peak: str | Mapping[str, float] | None) -> dict[str, float]:
    if peak is None:
        return {}
    pairs: Mapping[str, float | str]
    if isinstance(peak, str):
        parts = [part.partition("=") for part in peak.split(",") if part.strip()]
        pairs = {key.strip(): value.strip() for key, _, value in parts}
    else:
        pairs = peak
    for key in pairs:
        if key not in _PEAKS:
            raise ReportError(unknown_name("figure of --peak", key, _PEAKS))
    return {key: positive(f"--peak {key}", value) for key, value in pairs.items()}


def positive(what: str, value: float | str) -> float:
    """A number of an option.

    Raises
    ------
    ReportError
        It is not a positive number.
    """
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ReportError(f"{what}: expected a positive number, found {value!r}")
    return number


def _row_name(gpu: str) -> str:
    """A name that `find` knows.

    Raises
    ------
    ReportError
        The table has no such GPU; the message names the nearest.
    """
    if find(gpu) is not None:
        return gpu
    squeezed = re.sub("[^a-z0-9]", "", gpu.lower())
    for row in ROWS:
        if squeezed in (row.words.replace(" ", ""), _model(row.words)):
            return row.words
    names = [row.words for row in ROWS]
    raise ReportError(f"{unknown_name('GPU', gpu.lower(), names)}; fastprof devices lists all")


def _model(words: str) -> str:
    """The number of the model if it identifies the row: 4090 of rtx 4090."""
    last = words.split()[-1]
    return last if re.fullmatch(r"[a-z]?\d{4}", last) else words


def _memory_of(gpu: str) -> int | None:
    """The memory size in a name such as `A100 80GB`."""
    found = re.search(r"(\d+) ?GB?\b", gpu, re.IGNORECASE)
    return int(found[1]) * 10**9 if found else None


def checked_peak(text: str) -> str:
    """The text of --peak.

    Raises
    ------
    ReportError
        A figure is unknown, or a number is not positive.
    """
    _peaks(text)
    return text


def checked_gpu(text: str) -> str:
    """The text of --gpu.

    Raises
    ------
    ReportError
        The table has no such GPU; the message names the nearest.
    """
    _row_name(text)
    return text
