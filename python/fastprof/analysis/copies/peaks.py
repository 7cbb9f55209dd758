"""The peak rate of each copy and memset: that of the bus or of the GPU's memory.

The bus between host and GPU, by the generation of the GPU.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.grouping import Floats64
from fastprof.analysis.roofline.limits import least_ns_of_bytes
from fastprof.analysis.stats.gpu import of_kinds
from fastprof.model.arrays import Int64
from fastprof.model.devices import Device
from fastprof.model.quantity import quantity
from fastprof.profile.data import ProfileData

# Directions over the bus, and within a GPU. Copies between GPUs take a bus that is not recorded.
_OVER_BUS: Final = frozenset({"HtoD", "DtoH", "HtoA", "AtoH"})
_WITHIN: Final = frozenset({"DtoD", "DtoA", "AtoD", "AtoA"})
_BUS_EXCESS: Final = 1.1  # of the vendor's clock


class CopyPeaks(NamedTuple):
    """Peaks of copies.

    Parameters
    ----------
    of_copy : float64 [copies], bytes per second; NaN if unknown
    least_ns : float64 [copies], the least time in which the GPU can do it
    buses : the bus of each GPU with copies over it, None if unknown
    is_given : whether the user gave the peak of the bus
    """

    of_copy: Floats64
    least_ns: Floats64
    buses: dict[int, Bus | None]
    is_given: bool

    def notes(self) -> list[str]:
        """What the peaks of buses assume."""
        found = [bus for bus in self.buses.values() if bus is not None]
        lines = []
        if found and not self.is_given:
            named = (f"{each.name}, {quantity(each.peak, 'bytes/s')}" for each in found)
            lines.append(
                f"peak of the bus: {'; '.join(dict.fromkeys(named))} in each direction, the most "
                "that the GPU supports; the machine may have less: --bus GB/s"
            )
        if None in self.buses.values():
            lines.append("peak of the bus unknown for this GPU: give it with --bus GB/s")
        return lines

    def facts(self) -> dict[str, Any]:
        """The values for JSON."""
        return {
            str(device): None if bus is None else {"name": bus.name, "bytes_per_s": bus.peak}
            for device, bus in self.buses.items()
        }


def copy_peaks(profile: ProfileData, rows: Int64, bus: float | None) -> CopyPeaks:
    """The peaks of some copies and memsets.

    bus : peak of the bus in GB/s, None for that of the GPU's generation
    """
    device = numbers(profile, "device")[rows]
    over_bus, within = (_has(profile, rows, names) for names in (_OVER_BUS, _WITHIN))
    sets = of_kinds(profile, "memset")[rows]
    of_copy, buses = np.full(len(rows), np.nan), {}
    for number, each in profile.devices.items():
        own = device == number
        if each.bandwidth is not None:
            of_copy[own & sets] = each.bandwidth
            of_copy[own & within] = each.bandwidth / 2  # reads and writes
        if np.any(own & over_bus):
            found = bus_of(each) if bus is None else Bus("--bus", bus * 1e9)
            buses[number] = found
            of_copy[own & over_bus] = np.nan if found is None else found.peak
    n_bytes = np.maximum(numbers(profile, "copied")[rows], 0)
    return CopyPeaks(
        of_copy,
        np.where(
            over_bus & ~np.isnan(of_copy),
            n_bytes / (of_copy * _BUS_EXCESS) * 1e9,
            _least_in_memory(profile, device, np.where(within, 2 * n_bytes, n_bytes)),
        ),
        buses,
        bus is not None,
    )


def _least_in_memory(profile: ProfileData, device: Int64, n_bytes: Int64) -> Floats64:
    """[copies] The least time for bytes read and written in the memory of a GPU."""
    gpus = [*profile.devices.values(), Device(None)]
    place = np.full(len(device), len(gpus) - 1)
    for i, number in enumerate(profile.devices):
        place[device == number] = i
    return least_ns_of_bytes(n_bytes, place, gpus, np.zeros(len(device), bool))


def _has(profile: ProfileData, rows: Int64, names: Sequence[str] | frozenset[str]) -> Any:
    return texts(profile, "copy_direction").fits(lambda direction: direction in names)[rows]


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
