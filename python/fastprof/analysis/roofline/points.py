"""The rows of `roofline` as points of a chart, with its roofs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.analysis.cells import cells_of
from fastprof.analysis.grouping import group, numbers
from fastprof.analysis.idle.report import heaviest
from fastprof.analysis.keys import key_of
from fastprof.model.arrays import Int32
from fastprof.model.columns import Values
from fastprof.model.devices import Device
from fastprof.model.table import Table
from fastprof.profile.data import ProfileData

BY: Final = ("dir", "op", "shape")

PLACES: Final = ("layer", "line", "kind")


def places_of(profile: ProfileData, table: Table) -> dict[str, Values]:
    """The layer, line and kind that take most of the time of each row of `roofline`, by name.

    table : rows by BY, in any order
    """
    cells = cells_of(profile, BY)
    keys = [key_of(cells, name) for name in BY]
    groups = group(keys, len(cells))
    time = np.maximum(numbers(cells, "sil"), 0).astype(np.int64)
    columns = [
        _in_key(cast(Values, table.columns[name]), key) for name, key in zip(BY, keys, strict=True)
    ]
    own = [key.ids[groups.first] for key in keys]
    # Each group first: its rows of the table have its number.
    rows = alike([np.concatenate(ids) for ids in zip(own, columns, strict=True)])[0][groups.n :]
    places = {}
    for name in PLACES:
        most = heaviest(key_of(cells, name), groups, time)
        places[name] = Values(most.ids[rows], most.values)
    return places


def _in_key(column: Values, key: Values) -> Int32:
    """[rows] The ids of a column's values in a key."""
    if column.values == key.values:
        return column.ids
    number = {value: i for i, value in enumerate(key.values)}
    return take(np.array([number.get(value, -1) for value in column.values], np.int32), column.ids)


def points_of(table: Table, most: int) -> np.ndarray:
    """int64 [points] The rows that a logarithmic chart can show, the longest first, at most `most`.

    A point needs FLOPs, bytes and time.
    """
    time = np.ma.filled(table["gpu_ns"], 0)
    shown = (table["intensity"] > 0) & (table["flop_per_s"] > 0) & (time > 0)
    rows = np.flatnonzero(shown)
    points: np.ndarray = rows[np.argsort(-time[rows], kind="stable")][:most]
    return points


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
