"""What a GPU can do at most. FLOPs and bytes above it in the measured time are not what ran.

Work may be faster than the peaks, for known reasons:

- The clock exceeds the vendor's by up to `BOOST`.
- Convolutions need down to a quarter of the multiplications of the formula: Winograd's F(4x4, 3x3)
  (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015). Causal and padded
  attention needs half of them or less. Arithmetic in fp16 with sums in fp16, and outside of
  products, runs at twice the rate.
- Data come from the L2 cache, which no GPU of the table reads over `L2_RATE` times as fast as its
  memory, as far as they fit into it. Gathers read a row many times: theirs always fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof.analysis.grouping import numbers
from fastprof.model.arrays import Bools
from fastprof.model.columns import Values
from fastprof.model.device_table import ROWS
from fastprof.model.devices import FIGURES, Device
from fastprof.profile.data import ProfileData, kept

Numbers = npt.NDArray[Any]
Floats64 = npt.NDArray[np.float64]

BOOST: Final = 1.3
L2_RATE: Final = 8.0
_MICROSECOND: Final = 1000

# L2 caches in MB by the begin of the compute capability, the largest of the family; AMD's with
# the Infinity Cache. Sources: the white papers of the architectures.
_L2: Final = {
    "6.": 4,
    "7.": 6,
    "8.0": 40,
    "8.6": 6,
    "8.7": 4,
    "8.9": 96,
    "9.": 60,
    "10.": 126,
    "12.": 128,
    "gfx906": 4,
    "gfx908": 8,
    "gfx90a": 16,
    "gfx94": 260,
    "gfx95": 260,
}
_UNKNOWN_L2: Final = max(_L2.values())

LARGEST: Final = Device(
    None,
    {figure: max(getattr(row, figure) for row in ROWS) * 1e12 for figure in FIGURES},
    max(row.bandwidth for row in ROWS) * 1e9,
)
"""A GPU with the largest rates of the table: what an unknown one can do at most."""


def is_one_of(column: Values, *wanted: str) -> Bools:
    """[rows] Whether a column has one of these values."""
    return column.fits(lambda value: value in wanted)


def fewer(op: Values, kind: Values, compute_type: Values) -> Floats64:
    """[rows] How many times fewer operations than in the formula a kernel may need.

    op, kind, compute_type : [rows], operator, class and type of arithmetic of each kernel
    """
    is_convolution = op.fits(lambda name: "conv" in name) | is_one_of(kind, "convolution")
    is_attention = op.fits(lambda name: "att" in name) | is_one_of(kind, "attention")
    is_exact = is_one_of(kind, "gemm") & ~is_one_of(compute_type, "fp16")
    conditions = [is_convolution, is_attention, is_exact]
    return np.select(conditions, (4.0, 2.0, 1.0), 2.0)


def least_ns_of_flops(flops: Numbers, peak: Floats64, times_fewer: Floats64) -> Floats64:
    """[rows] The least time for so many FLOPs; `times_fewer` as of `fewer`."""
    result: Floats64 = flops / (peak * times_fewer * BOOST) * 1e9
    return result


def least_ns_of_bytes(
    bytes_: Numbers, gpu: Numbers, gpus: Sequence[Device], is_gather: Bools
) -> Floats64:
    """[rows] The least time in which a kernel or copy reads and writes so many bytes.

    gpu : [rows], place in `gpus`
    is_gather : bool [rows], whether it may read the same bytes many times
    """
    cache = np.array([l2_bytes(device) for device in gpus])[gpu]
    rate = np.array([device.bandwidth or LARGEST.bandwidth for device in gpus], np.float64)[gpu]
    cached = np.where(is_gather, bytes_, np.minimum(bytes_, cache))
    result: Floats64 = (cached / L2_RATE + (bytes_ - cached) / BOOST) / rate * 1e9
    return result


def l2_bytes(gpu: Device) -> float:
    """The size of the L2 cache in bytes, at most."""
    capability = gpu.capability or ""
    sizes = (size for begin, size in _L2.items() if capability.startswith(begin))
    return next(sizes, _UNKNOWN_L2) * 1e6


def clock_ns(profile: ProfileData) -> int:
    """The resolution of the times of kernels: 1000 ns if all are whole microseconds, else 1."""
    return kept(profile, _clock_ns)


def _clock_ns(profile: ProfileData) -> int:
    time = numbers(profile, "sil")
    is_fine = any((part % _MICROSECOND).any() for part in (time[:1000], time))
    return 1 if is_fine else _MICROSECOND
