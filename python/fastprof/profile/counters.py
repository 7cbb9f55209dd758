"""Hardware counters of kernels, and each as a column `counter:NAME`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof.errors import ReportError
from fastprof.model.column_table import COUNTER
from fastprof.model.columns import Column, Ints, Values
from fastprof.model.heading import unknown_name

Counters = Mapping[str, npt.NDArray[np.float64]]

# Larger numbers need not be exact in float64.
_LARGEST: Final = 2.0**53
HOW: Final = "record with rocprofv3 --pmc NAME ..."


def column_of(counters: Counters, column: str) -> Column:
    """The column `counter:NAME`: integers if all values are, else numbers with fractions.

    Raises
    ------
    ReportError
        The file has no such counter.
    """
    name = column.removeprefix(COUNTER)
    if name not in counters:
        if not counters:
            raise ReportError(f"no counter {name}: the file has no counters; {HOW}")
        raise ReportError(unknown_name("counter", name, list(counters)))
    values = counters[name]
    known = ~np.isnan(values)
    numbers = values[known]
    if np.all((numbers == np.floor(numbers)) & (numbers >= 0) & (numbers < _LARGEST)):
        return Ints(np.where(known, values, -1).astype(np.int64))
    distinct, place = np.unique(numbers, return_inverse=True)
    ids = np.full(len(values), -1, np.int32)
    ids[known] = place
    return Values(ids, distinct.tolist())
