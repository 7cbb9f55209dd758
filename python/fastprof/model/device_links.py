"""Bandwidth of the links of a GPU: to the host, and to the other GPUs of its machine.

Sources: the data sheets of the table of GPUs. PCIe: 16 lanes in one direction, 1 GB/s a lane of
generation 3, twice as much with each later one. GH200 and GB200: NVLink-C2C, half of 900 GB/s.
"""

from __future__ import annotations

from typing import Final

from fastprof.model.device_table import DeviceRow

# GB/s in one direction by the begin of the compute capability, and of GPUs with another link.
_TO_HOST: Final = {
    "6.": 16, "7.": 16, "8.": 32, "9.": 64, "10.": 64, "12.": 64,
    "gfx90a": 32, "gfx94": 64, "gfx95": 64, "gfx11": 32, "gfx12": 64,
}  # fmt: skip
_C2C: Final = {"gh200": 450, "gh200 144g": 450, "gb200": 450}
# GB/s in both directions together: NVLink, Infinity Fabric. GPUs without a row use PCIe.
_TO_GPUS: Final = {
    "v100 sxm": 300, "a100": 600, "a100 sxm 80gb": 600, "a100 pcie 80gb": 600, "a800 sxm": 400,
    "a800 pcie": 400, "a30": 200, "h100": 900, "h100 pcie": 600, "h100 nvl": 600, "h800": 400,
    "h200": 900, "h200 nvl": 900, "gh200": 900, "gh200 144g": 900, "h20": 900, "b200": 1800,
    "gb200": 1800, "mi210": 300, "mi250": 800, "mi250x": 800, "mi300x": 896, "mi325x": 896,
    "mi350x": 1075, "mi355x": 1075,
}  # fmt: skip


def to_host(row: DeviceRow | None) -> float | None:
    """GB/s between host and GPU in one direction; None if unknown."""
    if row is None:
        return None
    begins = (rate for begin, rate in _TO_HOST.items() if row.capability.startswith(begin))
    return _C2C.get(row.words) or next(begins, None)


def to_gpus(row: DeviceRow | None) -> float | None:
    """GB/s to other GPUs of the machine in both directions; that of PCIe without a link."""
    lanes = to_host(row)
    if row is None or lanes is None:
        return None
    return _TO_GPUS.get(row.words, 2.0 * lanes)
