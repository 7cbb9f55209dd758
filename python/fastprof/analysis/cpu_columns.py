"""The headings of CPU measures. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.model.heading import Heading

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
