"""Hardware counters of the kernels in the JSON of rocprofv3, read on request.

With `--pmc`, a kernel has a record of callback_records/counter_collection: its dispatch, and a list
of values, each with the handle of its counter. Counters that are counted for each part of the GPU
have several values.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core import _join
from fastprof.model.arrays import Int32, Int64
from fastprof.readers.rocpd import json_records
from fastprof.readers.rocpd.json_records import ROOT, Columns, handle_of, parsed
from fastprof.readers.rocpd.json_work import dispatches
from fastprof.readers.rocpd.work_columns import known

Floats = npt.NDArray[np.float64]


def read(path: str | os.PathLike[str], copies: bool) -> dict[str, Floats]:
    """The counters by name, [kernels]; NaN where a kernel has none. A value is the sum over parts.

    copies : whether copies were read, which then are rows like kernels

    Raises
    ------
    BadInputError
        The file is damaged before its first record.
    """
    file = json_records.read(path, os.fsdecode(path), counters=True)
    counted, kernels = file.tables["counted"], dispatches(file)
    works = [kernels, *([file.tables["copies"]] if copies else [])]
    start = np.concatenate([work["start"] for work in works])
    names = [_names(process.counters) for process in file.processes]
    result: dict[str, Floats] = {}
    columns = (_rows(counted, kernels, start), counted[ROOT], counted["text"])
    for row, process, text in zip(*(column.tolist() for column in columns), strict=True):
        if row < 0 or text < 0:
            continue
        for name, value in _values(parsed(file.texts[text]), names[process]).items():
            result.setdefault(name, np.full(len(start), np.nan))[row] = value
    return dict(sorted(result.items()))


def _rows(counted: Columns, kernels: Columns, start: Int64) -> Int32:
    """[counted] The row of each record with counters in `Recording.kernels`, -1 for none.

    start : [kernels and copies] in the order of the file, which those of a Recording keep that
        start at the same time
    """
    order = np.argsort(start, kind="stable")
    row = np.full(len(order) + 1, -1, np.int32)
    row[order] = np.arange(len(order), dtype=np.int32)
    of_kernels, of_counted = (
        (table[ROOT].astype(np.int32), known(table["dispatch"])) for table in (kernels, counted)
    )
    join = _join.Join(*of_kernels)
    join.offer(*of_kernels)
    place: Int32 = row[join.rows(*of_counted)]
    return place


def _names(counters: list[Any]) -> dict[int, str]:
    """The name of each counter by its handle."""
    return {
        handle_of(counter.get("id")): counter["name"]
        for counter in counters
        if isinstance(counter, dict) and isinstance(counter.get("name"), str)
    }


def _values(records: Any, names: dict[int, str]) -> dict[str, float]:
    """The value of each counter of a kernel."""
    result: dict[str, float] = {}
    for record in records if isinstance(records, list) else []:
        if not isinstance(record, dict):
            continue
        handle, value = handle_of(record.get("counter_id")), record.get("value")
        name = names.get(handle) if handle >= 0 else None
        if name is not None and isinstance(value, int | float):
            result[name] = result.get(name, 0.0) + value
    return result
