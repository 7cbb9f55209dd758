"""The methods of Profile that make a report or a file for another tool."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from fastprof.model.page import Page
    from fastprof.model.table import Table
    from fastprof.profile import report_options


class ReportMethods(ABC):
    """A method for each built-in report."""

    @overload
    def report(self, name: None = None, **options: Unpack[report_options.PeakOptions]) -> Page: ...
    @overload
    def report(self, name: str, **options: Any) -> Table: ...
    @abstractmethod
    def report(self, name: str | None = None, **options: Any) -> Table | Page:
        """A report as a table, or the page of all reports."""

    def overview(self, **options: Unpack[report_options.OverviewOptions]) -> Table:
        """The first look, in one screen: `print(profile.overview().text())`; see `report`."""
        return self.report("overview", **options)

    def summary(
        self,
        by: str | Sequence[str] | None = None,
        **options: Unpack[report_options.SummaryOptions],
    ) -> Table:
        """Time and work by any keys: `profile.summary(by=["layer", "dir"])`; see `report`."""
        return self.report("summary", by=by, **options)

    def ranges_table(self, **options: Unpack[report_options.RangesOptions]) -> Table:
        """Time of your own ranges: `profile.ranges_table(flat=True)`; see `report`."""
        return self.report("ranges", **options)

    def roofline(
        self,
        by: str | Sequence[str] | None = None,
        **options: Unpack[report_options.RooflineOptions],
    ) -> Table:
        """Time against ideal time: `profile.roofline(by="layer", gpu="H100")`; see `report`."""
        return self.report("roofline", by=by, **options)

    def layers(
        self, depth: int | None = None, **options: Unpack[report_options.LayersOptions]
    ) -> Table:
        """Time and work of each layer: `profile.layers(depth=2, fold=True)`; see `report`."""
        return self.report("layers", depth=depth, **options)

    def lines(
        self, files: str | Sequence[str] = (), **options: Unpack[report_options.LinesOptions]
    ) -> Table:
        """Time and work of each source line: `profile.lines(by="function")`; see `report`."""
        return self.report("lines", files=files, **options)

    def steps(self, **options: Unpack[report_options.StepsOptions]) -> Table:
        """Length of each step and how the GPU spends it: `profile.steps()`; see `report`."""
        return self.report("steps", **options)

    def copies(
        self, by: str | Sequence[str] | None = None, **options: Unpack[report_options.CopiesOptions]
    ) -> Table:
        """Copies and memsets: `profile.copies(by=["direction", "size"])`; see `report`."""
        return self.report("copies", by=by, **options)

    def overlap(
        self, by: str | Sequence[str] | None = None, **options: Unpack[report_options.PartOptions]
    ) -> Table:
        """Communication hidden and exposed: `profile.overlap(by="op")`; see `report`."""
        return self.report("overlap", by=by, **options)

    def launches(
        self, by: str | Sequence[str] | None = None, **options: Unpack[report_options.PartOptions]
    ) -> Table:
        """Host time of launches, latency and queue: `profile.launches(by="op")`; see `report`."""
        return self.report("launches", by=by, **options)

    def idle(self, gaps: int | None = None, **options: Unpack[report_options.IdleOptions]) -> Table:
        """Why the GPU has no work: `profile.idle(by="line")`; see `report`."""
        return self.report("idle", gaps=gaps, **options)

    def memory(
        self, by: str | Sequence[str] | None = None, **options: Unpack[report_options.MemoryOptions]
    ) -> Table:
        """Allocations and the peak: `profile.memory(by="layer", device="cpu")`; see `report`."""
        return self.report("memory", by=by, **options)

    def advise(
        self,
        min: float | None = None,  # noqa: A002
        **options: Unpack[report_options.AdviseOptions],
    ) -> Table:
        """What to change to make a step shorter: `profile.advise(min=1.0)`; see `report`."""
        return self.report("advise", min=min, **options)

    def export(
        self,
        path: str | os.PathLike[str],
        to: report_options.ExportFormat,
        **options: Unpack[report_options.ExportOptions],
    ) -> None:
        """Write the profile for another tool: `profile.export("net.pftrace", to="perfetto")`.

        docs/exports.md lists the formats and their options. The file is compressed if its name
        ends with .gz.

        Raises
        ------
        ReportError
            There is no such format or option.
        OSError
            The file cannot be written.
        """
        # The formats are above this module, as the reports are.
        import_module("fastprof.exports.export").export(self, path, to, **options)

    def whatif(self, **options: Unpack[report_options.WhatIfOptions]) -> Table:
        """What a step would take: `profile.whatif(scale=["op=linear:0.5"])`; see `report`."""
        return self.report("whatif", **options)
