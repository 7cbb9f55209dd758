"""The roofs of a chart of `roofline`: the bandwidth, and the peak of each compute type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fastprof.model.columns import Values
from fastprof.model.devices import Device
from fastprof.model.table import Table


class Roofs(NamedTuple):
    """The largest rates of the GPUs.

    Parameters
    ----------
    bandwidth : bytes/s; 0 if unknown
    peaks : FLOP/s by compute type, of the types that occur
    """

    bandwidth: float
    peaks: dict[str, float]


def roofs_of(table: Table, devices: Iterable[Device]) -> Roofs:
    """The roofs of a table of `roofline`."""
    peaks: dict[str, float] = {}
    types = table.columns["compute_type"]
    if isinstance(types, Values):
        for i, peak in enumerate(table["peak_flop_per_s"]):
            name = types.at(i)
            if name is not None and peak > peaks.get(name, 0.0):
                peaks[name] = float(peak)
    return Roofs(max((device.bandwidth or 0.0 for device in devices), default=0.0), peaks)
