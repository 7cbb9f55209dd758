"""Headings of the tables over ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastprof.model.heading import Heading
from fastprof.model.table import Cells, Table

TIMES: Final = frozenset({"time", "mean", "min", "max", "wait", "longest", "span", "gpu_time"})
SHARES: Final = frozenset({"share", "busy", "last_share"})

_COUNTS: Final = {"flops": "flop", "bytes": "bytes"}


def table_of(
    columns: Mapping[str, Cells],
    times: frozenset[str] = TIMES,
    shares: frozenset[str] = SHARES,
) -> Table:
    """A table; columns named in `times` are ns, those in `shares` 0 to 1."""
    units = {**dict.fromkeys(times, "ns"), **dict.fromkeys(shares, "share"), **_COUNTS}
    headings = tuple(Heading(name, name, units.get(name, "")) for name in columns)
    return Table(dict(columns), headings)
