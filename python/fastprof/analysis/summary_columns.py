"""The headings of measures. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.model.heading import Heading

__all__ = ["ABOVE_ROOF", "MEASURES"]

ABOVE_ROOF: Final = "above roof"

MEASURES: Final = (
    Heading("calls", "calls", "", "calls of operators: distinct values of the column call"),
    Heading("kernels", "kernels", "", "rows: kernels, graphs, copies and memsets"),
    Heading("gpu_ns", "gpu", "ns", "GPU time"),
    Heading(
        "share",
        "time",
        "share",
        "share of gpu_ns of all selected rows; text shows step_share if known",
    ),
    Heading("step_ns", "step", "ns", "GPU time per counted step and GPU, if steps are known"),
    Heading("step_share", "time", "share", "share of step_ns of all selected rows"),
    Heading("peak_share", "roof", "share", "ideal time by GPU time, of rows with an ideal time"),
    Heading("lost_ns", "lost", "ns", "GPU time less ideal time, of rows with an ideal time"),
    Heading("flop_per_s", "rate", "flop/s", "flops by the time of these rows"),
    Heading("bytes_per_s", "memory", "bytes/s", "bytes by the time of these rows"),
    Heading("tc_share", "tc", "share", "time with tensor cores, of products that can use them"),
    Heading("flag", "flag", "", "above roof: data from a cache, or a cost that is too high"),
    Heading("mean_ns", "mean", "ns", "mean GPU time of a row"),
    Heading("median_ns", "median", "ns", "median GPU time of a row", in_text=False),
    Heading("min_ns", "min", "ns", "shortest row", in_text=False),
    Heading("max_ns", "max", "ns", "longest row", in_text=False),
    Heading("std_ns", "std", "ns", "standard deviation of the rows' GPU time", in_text=False),
    Heading(
        "flops",
        "work",
        "flop",
        "floating point operations of rows with a known cost",
        in_text=False,
    ),
    Heading(
        "bytes",
        "memory",
        "bytes",
        "bytes read and written by rows with a known cost",
        in_text=False,
    ),
    Heading("ideal_ns", "ideal", "ns", "time at peak rates; rows with a known cost", in_text=False),
)
