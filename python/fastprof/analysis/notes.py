"""Footers of reports: what the file does not record, defects of times; `fastprof devices`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from fastprof._core._cells import overlaps
from fastprof.analysis import keys
from fastprof.analysis.grouping import group, numbers
from fastprof.model.columns import Ints
from fastprof.model.device_table import ROWS
from fastprof.model.devices import FIGURES
from fastprof.model.heading import Heading
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Floats, Table, text_column
from fastprof.model.trace import NO_TIME
from fastprof.profile.data import ProfileData
from fastprof.profile.recording_hints import advice

NO_GPU_WORK: Final = "no GPU work in this capture: CPU time only"
NOTHING_SELECTED: Final = "--where selects no GPU work"

_ENOUGH: Final = 0.95
_MOST: Final = 2


def missing(profile: ProfileData, depths: Collection[str]) -> tuple[str, ...]:
    """A line for each of the first two depths that less than 95 % of the GPU time has.

    depths : of `profile.coverage`: launch, range, op, shapes, cost, source line
    """
    coverage = profile.coverage_of_kernels
    if not coverage.total:
        return ()
    low = {
        depth: time / coverage.total
        for depth, time in coverage.known.items()
        if depth in depths and time < _ENOUGH * coverage.total
    }
    if not low:
        return ()
    shares = ", ".join(f"{depth} {share:.1%}" for depth, share in low.items())
    gaps = advice(profile.about, profile.contents, coverage)
    remedies = [line for depth in low for line in gaps.get(depth, [])[:1]]
    return (f"known of the GPU time: {shares}", *remedies[:_MOST])


_STREAM = ("process", "device", "context", "stream")


def timeline_notes(profile: ProfileData) -> tuple[str, ...]:
    """A line per kind of defect: missing launches, clocks that differ, overlaps on a stream."""
    if "start" not in profile.names or not len(profile):
        return ()
    start, launched = numbers(profile, "start"), numbers(profile, "launch_start")
    early = np.flatnonzero(launched > start)  # without a launch, it is the least number
    longest = int((launched[early] - start[early]).max(initial=0))
    n_unknown = int(np.count_nonzero(launched == NO_TIME))
    counts = [(n_unknown, 0), (len(early), longest), _overlaps(profile)]
    return tuple(
        text.format(n, quantity(longest, "ns"))
        for text, (n, longest) in zip(_TEXTS, counts, strict=True)
        if n
    )


_TEXTS = (
    "launch not recorded: {} kernels and copies",
    "clocks differ: {} kernels and copies start before their launch, by up to {}; host times are "
    "shifted against GPU times",
    "overlap on one stream: {} kernels and copies start before the preceding one ends, by up to "
    "{}; time in which several run counts once",
)


def _overlaps(profile: ProfileData) -> tuple[int, int]:
    """How much work starts before the preceding one of its stream ends, and by how much at most."""
    streams = group([keys.key_of(profile, name) for name in _STREAM], len(profile))
    start, length = (
        np.ascontiguousarray(numbers(profile, name), np.int64) for name in ("start", "sil")
    )
    return overlaps(start, length, streams.ids, streams.n)


_HEADERS = {"half": "fp16/bf16", "fp64_tc": "fp64 tc"}


def device_list() -> Table:
    """The known GPUs, in the units of --peak and --bandwidth: dense TFLOP/s and GB/s.

    Memory is in GB, clocks in MHz. Unsupported and unknown figures are NaN or masked.
    """
    columns: dict[str, ColumnData] = {
        "gpu": text_column([row.words for row in ROWS]),
        "capability": text_column([row.capability for row in ROWS]),
        **{key: _ints([getattr(row, key) for row in ROWS]) for key in ("sms", "clock", "memory")},
        "bandwidth": _floats([row.bandwidth for row in ROWS]),
        **{figure: _floats([getattr(row, figure) for row in ROWS]) for figure in FIGURES},
        "source": text_column([row.source for row in ROWS]),
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
    result = np.array(values, np.float64)
    return Floats(np.where(result > 0, result, np.nan))
