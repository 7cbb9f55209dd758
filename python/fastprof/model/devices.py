"""Peak FLOP/s and memory bandwidth of a GPU, by its name and properties, or as the user gives.

The file's bandwidth takes precedence over the table's, because cards of one name differ in memory.
The table's FLOP/s take precedence over values derived from multiprocessors and clock, because
vendors quote them at other clocks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import field, replace

from fastprof._system.classes import dataclass
from fastprof.errors import ReportError
from fastprof.model.device_table import FMA, HALVED, ROWS, DeviceRow
from fastprof.model.heading import unknown_name
from fastprof.model.metadata import GpuFigures

CLOCKS = "peaks are at the vendor's clock: the actual and boost clocks are not recorded"

FIGURES = ("fp64", "fp64_tc", "fp32", "tf32", "half", "fp8", "int8", "fp4")
# The figure of each compute type with tensor cores, and without.
_TYPES = {
    "fp64": ("fp64_tc", "fp64"),
    "fp32": ("tf32", "fp32"),
    "tf32": ("tf32", "fp32"),
    "fp16": ("half", "fp32"),
    "bf16": ("half", "fp32"),
    "fp8": ("fp8", "fp32"),
    "fp4": ("fp4", "fp32"),
    "int8": ("int8", "fp32"),
}
# A card with one of these words is a different model from the card without.
_OTHER_CARD = {
    *("ti", "super", "laptop", "mobile", "max", "ada", "blackwell", "pro", "nvl", "d"),
    *("xt", "xtx", "gre"),
}
# First words of rows of which each is another model.
_SERIES = ("rtx", "rx", "pro")
# A GPU of AMD with at most this share of the compute units is a partition of the whole.
_PARTITION = 0.5
# Allowed ratio of the recorded size to the nominal size: the GPU reserves some memory.
_SAME_MEMORY = (0.9, 1.15)


@dataclass(frozen=True)
class Device:
    """A GPU's peaks.

    Attributes
    ----------
    name : str or None
        As given by the file or the user.
    flops : dict of str to float
        Dense FLOP/s by figure: fp64, fp64_tc, fp32, tf32, half, fp8, int8, fp4. Unsupported and
        unknown figures are absent.
    bandwidth : float or None
        Memory bandwidth in bytes per second.
    capability : str or None
        Compute capability; for AMD, the architecture.
    sms : int or None
        Multiprocessors; for AMD, compute units.
    clock : int or None
        Clock of the peaks in Hz.
    memory : int or None
        Memory size in bytes.
    sources : dict of str to str
        The source of `flops`, `bandwidth`, `sms`, `clock` and `memory`: a document, "the file" or
        an option. A figure with a source of its own has a key of its own (`half`: `--peak`).
    why : str
        Why a figure is unknown; empty if none is.
    """

    name: str | None
    flops: dict[str, float] = field(default_factory=dict)
    bandwidth: float | None = None
    capability: str | None = None
    sms: int | None = None
    clock: int | None = None
    memory: int | None = None
    sources: dict[str, str] = field(default_factory=dict)
    why: str = ""

    def peak(self, compute_type: str, tensor_cores: bool) -> float | None:
        """FLOP/s of fp64, fp32, tf32, fp16, bf16, fp8, fp4 or int8, None if unknown.

        With tensor cores, fp32 runs as tf32; without them, 16 bits and fewer run as fp32. AMD's
        matrix cores run fp32 as it is, on CDNA 1 and 2 at the rate of fp64.
        """
        if compute_type == "fp32" and tensor_cores and (self.capability or "").startswith("gfx"):
            rates = [self.flops[name] for name in ("fp32", "fp64_tc") if name in self.flops]
            return max(rates, default=None)
        with_cores, without = _TYPES[compute_type]
        return self.flops.get(with_cores if tensor_cores else without)


def find(name: str, memory: int | None = None) -> DeviceRow | None:
    """The table row of a GPU's name, or None.

    The name must contain all words of the row; the row with the longest words wins: `NVIDIA
    A100-SXM4-80GB` matches "a100 sxm 80gb" rather than "a100". A name with a word that denotes a
    different model (Ti, Laptop) does not match a row without it.

    memory : recorded size in bytes; selects among the rows of one model
    """
    words = _words(name)
    fitting = [row for row in ROWS if _fits(set(row.words.split()), words)]
    if not fitting:
        return None
    best = max(fitting, key=lambda row: len(row.words))
    if memory is None or _has(best, memory):
        return best
    model = best.words.split()[0]
    same = [row for row in ROWS if row.words.split()[0] == model and _has(row, memory)]
    return same[0] if same and model not in _SERIES else best


def find_architecture(told: GpuFigures) -> DeviceRow | None:
    """The row of a GPU of AMD whose product the file does not name, or None.

    gfx942 is the architecture of MI300A, MI300X, MI308X and MI325X: the only row with the recorded
    number of compute units and the memory size is taken.
    """
    if not told.sms or not told.memory:
        return None
    rows = [
        row
        for row in ROWS
        if row.capability == told.capability and row.sms == told.sms and row.memory
    ]
    fitting = [row for row in rows if _has(row, told.memory)]
    return fitting[0] if len(fitting) == 1 else None


def resolve(name: str | None, told: GpuFigures | None = None) -> Device:
    """The peaks of a GPU.

    Parameters
    ----------
    name : from the file or the user; None if unknown
    told : the GPU's other properties in the file
    """
    told = told or GpuFigures()
    row = find(name, told.memory) if name else None
    if row is None and (told.capability or "").startswith("gfx"):
        row = find_architecture(told)
    if row is not None:
        share, source = _share(row, told), row.source
        if share < 1:
            source = f"{source}, for {told.sms} of {row.sms} compute units"
        flops = {
            figure: round(getattr(row, figure) * share * 1e12)
            for figure in FIGURES
            if getattr(row, figure)
        }
    else:
        flops, source = _derived(name or "", told), "the file's multiprocessors and clock"
    bandwidth: float | None = told.bandwidth or None
    sources = {"flops": source} if flops else {}
    if bandwidth is not None:
        sources["bandwidth"] = "the file"
    elif row is not None and (told.memory is None or _has(row, told.memory)):
        bandwidth, sources["bandwidth"] = row.bandwidth * 1e9, row.source
    capability = told.capability or (row.capability if row else None)
    others = _others(told, row, sources)
    why = why_unknown(name, flops, bandwidth)
    return Device(name, flops, bandwidth, capability, **others, sources=sources, why=why)


def _others(
    told: GpuFigures, row: DeviceRow | None, sources: dict[str, str]
) -> dict[str, int | None]:
    """Multiprocessors, clock and memory, from the file or else the table; adds their sources."""
    of_row = (
        {"sms": row.sms, "clock": row.clock * 10**6, "memory": row.memory * 10**9} if row else {}
    )
    others: dict[str, int | None] = {}
    for key in ("sms", "clock", "memory"):
        recorded = getattr(told, key)
        others[key] = recorded or of_row.get(key) or None
        if others[key]:
            sources[key] = "the file" if recorded else row.source if row else ""
    return others


def peaks_text(device: Device) -> str:
    """One line: the GPU, its peaks and bandwidth, and their sources."""
    shown = {"fp32": "fp32", "tf32": "tf32", "half": "fp16 and bf16", "fp8": "fp8", "fp4": "fp4"}
    parts: dict[str, list[str]] = {}
    for figure, name in shown.items():
        if figure in device.flops:
            source = device.sources.get(figure, device.sources.get("flops", ""))
            text = f"{name} {device.flops[figure] / 1e12:.4g} TFLOP/s"
            parts.setdefault(source, []).append(text)
    if device.bandwidth is not None:
        source = device.sources.get("bandwidth", "")
        parts.setdefault(source, []).append(f"{device.bandwidth / 1e9:.4g} GB/s")
    peaks = "; ".join(f"{', '.join(values)} ({source})" for source, values in parts.items())
    text = f"{device.name or 'GPU'}: {peaks}" if peaks else ""
    return "; ".join(part for part in (text, device.why) if part)


def _words(name: str) -> set[str]:
    words = set(re.findall(r"[a-z0-9]+", name.lower()))
    return words | {"sxm" for word in words if re.fullmatch(r"sxm\d", word)}


def _fits(row: set[str], words: set[str]) -> bool:
    return row <= words and not (words - row) & _OTHER_CARD


def _has(row: DeviceRow, memory: int) -> bool:
    low, high = _SAME_MEMORY
    return not row.memory or low <= memory / (row.memory * 1e9) <= high


def _share(row: DeviceRow, told: GpuFigures) -> float:
    """The share of the compute units of AMD's whole GPU that a partition of it has."""
    share = (told.sms or row.sms) / row.sms
    return share if row.capability.startswith("gfx") and share <= _PARTITION else 1.0


def _derived(name: str, told: GpuFigures) -> dict[str, float]:
    """FLOP/s from multiprocessors, clock and compute capability; empty if one is unknown."""
    rates = FMA.get(told.capability or "")
    if not rates or not told.sms or not told.clock:
        return {}
    flops = {
        figure: 2.0 * rate * told.sms * told.clock
        for figure, rate in zip(FIGURES, rates, strict=False)
        if rate
    }
    if "geforce" in name.lower():
        for figure in HALVED.get(told.capability or "", ()):
            flops[figure] /= 2
    return flops


def why_unknown(name: str | None, flops: dict[str, float], bandwidth: float | None) -> str:
    """Which figures of a GPU are unknown, and why; empty if none is."""
    missing = [what for what, known in (("FLOP/s", flops), ("bandwidth", bandwidth)) if not known]
    if not missing:
        return ""
    cause = f"the GPU table has no {name!r}" if name else "the file does not name the GPU"
    of_this = " with this memory size" if name and flops else ""
    return f"{' and '.join(missing)} unknown: {cause}{of_this}, and the file lacks the properties"


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
        tf32, fp16 (also bf16), fp8, int8, fp4; bw is the bandwidth
    bandwidth : GB/s

    Raises
    ------
    ReportError
        The GPU or a figure is unknown, or a number is not positive.
    """
    if gpu is not None:
        result = resolve(_row_name(gpu), GpuFigures(sms=device.sms, memory=_memory_of(gpu)))
        sources = {key: f"--gpu: {source}" for key, source in result.sources.items()}
        if device.sms:
            sources["sms"] = device.sources.get("sms", "the file")
        device = replace(result, name=gpu, sources=sources)
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
    result = re.search(r"\b(\d+) ?GB?\b", gpu, re.IGNORECASE)
    return int(result[1]) * 10**9 if result else None


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
