"""The options of the report methods of Profile, for type checkers: no program loads this module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from fastprof.analysis.registry import Where

ExportFormat = Literal[
    "perfetto",
    "chrome",
    "speedscope",
    "collapsed",
    "pstats",
    "csv",
    "parquet",
    "sqlite",
    "openmetrics",
]


class PeakOptions(TypedDict, total=False):
    """Rates of the GPU."""

    gpu: str | None
    peak: str | Mapping[str, float] | None
    bandwidth: float | None


class PartOptions(TypedDict, total=False):
    """Which work a report is about."""

    steps: str | None
    where: Where | None


class PageOptions(PeakOptions, total=False):
    """Options of the page of all reports."""

    where: Where | None


class OverviewOptions(PeakOptions, total=False):
    """Options of `overview`."""

    steps: str | None


class StepsOptions(PartOptions, PeakOptions, total=False):
    """Options of `steps`."""


class SummaryOptions(StepsOptions, total=False):
    """Options of `summary`."""

    cpu: bool


class RangesOptions(TypedDict, total=False):
    """Options of `ranges`."""

    flat: bool
    where: Where | None


class RooflineOptions(StepsOptions, total=False):
    """Options of `roofline`."""

    roof: Literal["peak", "practical"]
    plot: str | None


class RooflineChartOptions(RooflineOptions, total=False):
    """Options of `plot.roofline`."""

    by: str | Sequence[str] | None


class LayersOptions(StepsOptions, total=False):
    """Options of `layers`."""

    fold: bool
    flat: bool


class LinesOptions(StepsOptions, total=False):
    """Options of `lines`."""

    by: Literal["line", "function"]
    function: str | None
    source: str | None


class CopiesOptions(PartOptions, total=False):
    """Options of `copies`."""

    bus: float | None


class IdleOptions(TypedDict, total=False):
    """Options of `idle`."""

    min: float
    data: str | None
    by: Literal["cause", "step", "range", "line", "layer"]
    steps: str | None


class MemoryOptions(PartOptions, total=False):
    """Options of `memory`."""

    device: str | int | None


class AdviseOptions(OverviewOptions, total=False):
    """Options of `advise`."""

    fail_above: float | None


class FindOptions(TypedDict, total=False):
    """Options of `find`."""

    where: Where | None
    between: str | None
    longer: str | None
    shorter: str | None
    after: int | None
    before: int | None
    nth: str | int | None


class KernelOptions(PeakOptions, total=False):
    """Options of `kernel`."""

    neighbours: int


class WhatIfOptions(OverviewOptions, total=False):
    """Options of `whatif`."""

    scale: str | Sequence[str] | None
    ideal: str | Sequence[str] | None
    remove: str | Sequence[str] | None
    overlap: str | Sequence[str] | None
    fuse: str | Sequence[str] | None
    dtype: str | None
    pad: int | None
    graph: bool
    no_sync: bool
    no_data_loading: bool
    on: str | None
    by: str | Sequence[str] | None
    roof: Literal["peak", "practical"]


class ExportOptions(PartOptions, total=False):
    """Options of `export`; each format has some of them."""

    stack: Literal["layers", "path", "lines", "stack"]
    weight: Literal["ns", "flops", "bytes", "lost"]
    table: str | None
