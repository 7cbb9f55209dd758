"""The headings of measures, also the CPU's. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.model.heading import Heading

ABOVE_ROOF: Final = "above roof"
DOUBTS: Final = ("cost too high", "too short")
FLAG: Final = Heading(
    "flag",
    "flag",
    "",
    "above roof: data from a cache, or fewer operations than the formula. cost too high: the FLOPs "
    "or bytes of the model exceed what the GPU can do. too short: for the clock of the trace",
)
COVERED: Final = Heading(
    "covered_share", "covered", "share", "share of the GPU time with an ideal time", in_text=False
)

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
    Heading("peak_share", "roof", "share", "ideal time by GPU time, if known of 90 % of the time"),
    Heading("lost_ns", "lost", "ns", "GPU time of calls above their ideal time, if known"),
    Heading(
        "flop_per_s", "rate", "flop/s", "flops by GPU time, if known of 90 % of the time", rank=1
    ),
    Heading(
        "bytes_per_s",
        "memory",
        "bytes/s",
        "bytes by GPU time, if known of 90 % of the time",
        rank=1,
    ),
    Heading(
        "tc_share", "tc", "share", "time with tensor cores, of products that can use them", rank=1
    ),
    FLAG,
    Heading("mean_ns", "mean", "ns", "mean GPU time of a row", rank=1),
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
    COVERED,
)


CPU_MEASURES: Final = (
    Heading("cpu_calls", "cpu calls", "", "calls of operators, user ranges and API functions"),
    Heading("cpu_self_ns", "cpu self", "ns", "CPU time, without operators and API calls inside"),
    Heading("cpu_share", "cpu", "share", "share of the CPU time of all selected rows"),
    Heading(
        "cpu_ns",
        "cpu total",
        "ns",
        "CPU time, with operators and API calls inside; nested calls of one operator count twice",
    ),
    Heading("cpu_mean_ns", "cpu mean", "ns", "cpu_ns by call", rank=1),
    Heading("cpu_memory", "cpu memory", "bytes", "CPU memory, allocated less freed", rank=2),
    Heading("cpu_self_memory", "cpu self memory", "bytes", "the same without operators inside"),
    Heading("gpu_memory", "gpu memory", "bytes", "GPU memory, allocated less freed", rank=2),
    Heading("gpu_self_memory", "gpu self memory", "bytes", "the same without operators inside"),
)
