"""The table of known GPUs: `fastprof devices`."""

from __future__ import annotations

import numpy as np

from fastprof.model.columns import Ints
from fastprof.model.device_table import ROWS
from fastprof.model.devices import FIGURES
from fastprof.model.heading import Heading
from fastprof.model.table import ColumnData, Floats, Table, texts

_HEADERS = {"half": "fp16/bf16", "fp64_tc": "fp64 tc"}


def device_list() -> Table:
    """The known GPUs, in the units of --peak and --bandwidth: dense TFLOP/s and GB/s.

    Memory is in GB, clocks in MHz. Unsupported and unknown figures are NaN or masked.
    """
    columns: dict[str, ColumnData] = {
        "gpu": texts([row.words for row in ROWS]),
        "capability": texts([row.capability for row in ROWS]),
        **{key: _ints([getattr(row, key) for row in ROWS]) for key in ("sms", "clock", "memory")},
        "bandwidth": _floats([row.bandwidth for row in ROWS]),
        **{figure: _floats([getattr(row, figure) for row in ROWS]) for figure in FIGURES},
        "source": texts([row.source for row in ROWS]),
    }
    headings = (
        Heading("gpu", "gpu", "", "name for --gpu"),
        Heading("capability", "capability", "", "compute capability, or AMD architecture"),
        Heading("sms", "SMs", "", "multiprocessors or compute units"),
        Heading("clock", "MHz", "", "clock of the peaks"),
        Heading("memory", "GB", "", "memory, if it identifies the GPU"),
        Heading("bandwidth", "GB/s", "", "memory bandwidth", decimals=0),
        *(_of_figure(figure) for figure in FIGURES),
        Heading("source", "source", "", "document with the peaks"),
    )
    notes = ("Peaks are dense TFLOP/s (int8: TOP/s) with fp32 accumulation.",)
    return Table(columns, headings, notes=notes)


def _of_figure(figure: str) -> Heading:
    decimals = 2 if figure == "fp64" else 1
    return Heading(figure, _HEADERS.get(figure, figure), "", "dense TFLOP/s", decimals=decimals)


def _ints(values: list[int]) -> Ints:
    return Ints(np.array([value or -1 for value in values], np.int64))


def _floats(values: list[float]) -> Floats:
    found = np.array(values, np.float64)
    return Floats(np.where(found > 0, found, np.nan))
