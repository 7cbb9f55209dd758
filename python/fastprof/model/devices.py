"""What a GPU computes and moves in a second, by its name and by what the file says of it.

The file's bandwidth comes before the table's, for memory differs among cards of one name; the
table's FLOP/s come before those that follow from multiprocessors and clock, for vendors quote
figures at clocks of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fastprof.model.device_table import FMA, HALVED, ROWS, Row
from fastprof.model.metadata import GpuFigures

__all__ = ["Device", "find", "resolve"]

FIGURES = ("fp64", "fp64_tc", "fp32", "tf32", "half", "fp8", "int8")
# Which figure a compute type has with tensor cores, and which without.
_TYPES = {
    "fp64": ("fp64_tc", "fp64"),
    "fp32": ("tf32", "fp32"),
    "tf32": ("tf32", "fp32"),
    "fp16": ("half", "fp32"),
    "bf16": ("half", "fp32"),
    "fp8": ("fp8", "fp32"),
    "int8": ("int8", "fp32"),
}
# A card with one of these words is another card than the one without.
_OTHER_CARD = {"ti", "super", "laptop", "mobile", "max", "ada", "blackwell", "pro", "nvl", "d"}
# Memory is quoted in GB and told in bytes, some of which the GPU keeps to itself.
_SAME_MEMORY = (0.9, 1.15)


@dataclass(frozen=True)
class Device:
    """A GPU's peaks.

    Attributes
    ----------
    name : str or None
        As the file or the user says it.
    flops : dict of str to float
        FLOP/s by figure: fp64, fp64_tc, fp32, tf32, half, fp8, int8, dense; what the GPU cannot,
        or what is not known, is not in it.
    bandwidth : float or None
        Bytes a second of its memory.
    capability : str or None
        Compute capability; of AMD the architecture.
    sources : dict of str to str
        Where `flops` and `bandwidth` are from: a document, or "the file".
    why : str
        Why something is not known; empty where all is.
    """

    name: str | None
    flops: dict[str, float] = field(default_factory=dict)
    bandwidth: float | None = None
    capability: str | None = None
    sources: dict[str, str] = field(default_factory=dict)
    why: str = ""

    def peak(self, compute_type: str, tensor_cores: bool) -> float | None:
        """FLOP/s of a compute type (fp64, fp32, tf32, fp16, bf16, fp8, int8), None if not known.

        With tensor cores fp32 is computed as tf32; without them 16 bits and fewer as fp32.
        """
        with_cores, without = _TYPES[compute_type]
        return self.flops.get(with_cores if tensor_cores else without)


def find(name: str, memory: int | None = None) -> Row | None:
    """The row of the table for a GPU's name, None for a GPU that has none.

    All words of the row are in the name, and the row with the longest words wins: `NVIDIA
    A100-SXM4-80GB` is "a100 sxm 80gb" rather than "a100". A name with a word that makes it another
    card (Ti, Laptop) is not the row without it.

    memory : bytes, as the file says; of several rows of one model the one that has as much
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
    return same[0] if same and model != "rtx" else best


def resolve(name: str | None, told: GpuFigures | None = None) -> Device:
    """The peaks of a GPU.

    Parameters
    ----------
    name : as the file says it, or the user; None where nobody does
    told : what the file says besides
    """
    told = told or GpuFigures()
    row = find(name, told.memory) if name else None
    if row is not None:
        flops = {
            figure: round(getattr(row, figure) * 1e12) for figure in FIGURES if getattr(row, figure)
        }
        source = row.source
    else:
        flops, source = _derived(name or "", told), "the file's multiprocessors and clock"
    bandwidth: float | None = told.bandwidth or None
    sources = {"flops": source} if flops else {}
    if bandwidth is not None:
        sources["bandwidth"] = "the file"
    elif row is not None and (told.memory is None or _has(row, told.memory)):
        bandwidth, sources["bandwidth"] = row.bandwidth * 1e9, row.source
    capability = told.capability or (row.capability if row else None)
    return Device(name, flops, bandwidth, capability, sources, _why(name, flops, bandwidth))


def _words(name: str) -> set[str]:
    words = set(re.findall(r"[a-z0-9]+", name.lower()))
    return words | {"sxm" for word in words if re.fullmatch(r"sxm\d", word)}


def _fits(row: set[str], words: set[str]) -> bool:
    return row <= words and not (words - row) & _OTHER_CARD


def _has(row: Row, memory: int) -> bool:
    low, high = _SAME_MEMORY
    return not row.memory or low <= memory / (row.memory * 1e9) <= high


def _derived(name: str, told: GpuFigures) -> dict[str, float]:
    """FLOP/s from multiprocessors, clock and compute capability; empty where one is not known."""
    rates = FMA.get(told.capability or "")
    if not rates or not told.sms or not told.clock:
        return {}
    flops = {
        figure: 2.0 * rate * told.sms * told.clock
        for figure, rate in zip(FIGURES, rates, strict=True)
        if rate
    }
    if "geforce" in name.lower():
        for figure in HALVED.get(told.capability or "", ()):
            flops[figure] /= 2
    return flops


def _why(name: str | None, flops: dict[str, float], bandwidth: float | None) -> str:
    lacking = [what for what, known in (("FLOP/s", flops), ("bandwidth", bandwidth)) if not known]
    if not lacking:
        return ""
    of = "the file does not name the GPU" if not name else f"no table has {name!r}"
    return f"{' and '.join(lacking)} not known: {of}, and the file does not tell enough of it"
