"""The bus between host and GPU, by the generation of the GPU."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from fastprof.model.devices import Device


class Bus(NamedTuple):
    """A bus: its name, and its peak in bytes per second and direction."""

    name: str
    peak: float


def _pcie(generation: int, gigatransfers: float) -> Bus:
    """16 lanes; of 130 bits, 128 are data."""
    return Bus(f"PCIe {generation}.0 x16", gigatransfers * 1e9 * 16 / 8 * 128 / 130)


_PCIE_3, _PCIE_4, _PCIE_5 = _pcie(3, 8), _pcie(4, 16), _pcie(5, 32)
# By the begin of the compute capability or, for AMD, the architecture.
_OF_CAPABILITY: Final = (
    (re.compile(r"[3567]\."), _PCIE_3),
    (re.compile(r"8\.|gfx90[68a]"), _PCIE_4),
    (re.compile(r"(?:9|10|12)\.|gfx9[45]"), _PCIE_5),
)
# Their GPU shares a chip or a package with the CPU.
_OTHER_BUS: Final = re.compile(r"GH200|GB\d+|Grace|Orin|Thor|Xavier|Jetson|MI300A", re.IGNORECASE)


def bus_of(device: Device) -> Bus | None:
    """The fastest PCIe bus that the GPU supports; None if unknown, or if it has another bus."""
    if _OTHER_BUS.search(device.name or ""):
        return None
    capability = device.capability or ""
    return next((bus for pattern, bus in _OF_CAPABILITY if pattern.match(capability)), None)
