"""Hardware counters of the kernels of a rocpd database, read on request."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _column, _pools
from fastprof._core._take import take
from fastprof.model.arrays import Int64
from fastprof.readers.rocpd import schema
from fastprof.readers.rocpd.schema import Run
from fastprof.readers.sqlite.database import Database, Field

I64, KEY = _column.I64, _column.KEY
Floats = npt.NDArray[np.float64]

_VALUES: Final = "rocpd_pmc_event"
_NAMES: Final = "rocpd_info_pmc"
_PARTS: Final = 1_000_000_000  # of 1, of values that are no integers


def read(database: Database, copies: bool) -> dict[str, Floats]:
    """The counters by name, [kernels]; NaN where a kernel has none.

    A value is the sum over the parts of the GPU that counted, as rocprofv3 reports it. Samples
    within a kernel (sample_id, since 3.0.3) are left out.

    copies : whether copies were read, which then are rows like kernels

    Raises
    ------
    BadInputError
        The file is damaged.
    """
    runs = schema.runs_of(database.tables)
    event, owner = _events(database, runs, copies)
    result: dict[str, Floats] = {}
    for run in runs:
        for name, rows, values in _of_run(database, run, np.where(owner == run.number, event, -1)):
            counter = result.setdefault(name, np.full(len(event), np.nan))
            counter[rows] = values
    return dict(sorted(result.items()))


def _events(database: Database, runs: list[Run], copies: bool) -> tuple[Int64, Int64]:
    """[kernels] The event and the run of each kernel, in the order of `Recording.kernels`."""
    parts = []
    for base in (schema.DISPATCHES, schema.COPIES)[: 1 + copies]:
        for run in runs:
            fields = [Field("start", I64, needed=True), Field("event_id", I64)]
            columns = database.scan(run.table(base), fields)
            number = np.full(len(columns["start"]), run.number)
            parts.append((columns["start"], columns["event_id"], number))
    start, event, owner = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(start, kind="stable")
    return event[order], owner[order]


def _of_run(
    database: Database, run: Run, event: Int64
) -> list[tuple[str, npt.NDArray[np.intp], Floats]]:
    """Name, kernels and values of each counter.

    event : [kernels] -1 for kernels of other runs
    """
    counters = _pools.Keys()
    columns = database.scan(run.table(_VALUES), _fields(counters))
    names = dict(schema.rows(database, run, _NAMES, "id", "name"))
    of_counter = [names.get(number) for number in counters.values().tolist()]
    texts = [name for name in dict.fromkeys(of_counter) if name]
    numbers = {name: i for i, name in enumerate(texts)}
    known = np.array([numbers.get(name or "", -1) for name in of_counter], np.int32)
    name = take(known, columns["pmc_id"])
    row = _rows(event, columns["event_id"])
    value = columns["whole"] + columns["part"] / _PARTS
    value[columns["is_known"] == 0] = np.nan
    result: list[tuple[str, npt.NDArray[np.intp], Floats]] = []
    for text, number in numbers.items():
        chosen = (name == number) & (row >= 0) & (columns["sample_id"] < 0)
        rows, place = np.unique(row[chosen], return_inverse=True)
        if len(rows):
            sums = np.bincount(place, value[chosen], len(rows)).astype(np.float64)
            result.append((text, rows, sums))
    return result


def _fields(counters: _pools.Keys) -> list[Field]:
    """Of values. SQLite splits them, since columns are integers."""
    whole = "CAST(value AS INTEGER)"
    return [
        Field("event_id", I64, needed=True),
        Field("pmc_id", KEY, pool=counters, needed=True),
        Field("whole", I64, sql=whole),
        Field("part", I64, sql=f"CAST((value - {whole}) * {_PARTS} AS INTEGER)"),
        Field("is_known", I64, sql="typeof(value) IN ('real', 'integer')"),
        Field("sample_id", I64),
    ]


def _rows(event: Int64, wanted: Int64) -> Int64:
    """The kernel of each event; -1 for none."""
    if not len(event):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(event, kind="stable")
    place = np.minimum(np.searchsorted(event, wanted, sorter=order), len(event) - 1)
    row = order[place]
    return np.where((event[row] == wanted) & (wanted >= 0), row, -1)
