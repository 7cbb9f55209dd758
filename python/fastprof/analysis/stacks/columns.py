"""The headings of measures that `layers` and `lines` share. Imports no numpy, for `--help`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fastprof.analysis.summary.columns import COVERED, FLAG
from fastprof.model.heading import Heading


def time_heading(key: str, header: str, about: str, rank: int = 0) -> Heading:
    """The heading of a GPU time, in the unit of the column gpu_ns."""
    return Heading(key, header, "ns", about, digits=5, same_unit="gpu_ns", rank=rank)


TIMES: Final = (
    time_heading("forward_ns", "forward", "GPU time of forward work"),
    time_heading("backward_ns", "backward", "GPU time of its backward work"),
    time_heading(
        "other_ns",
        "other",
        "rest of the GPU time: recomputation, optimizer, communication, copies to the GPU",
        rank=2,
    ),
    time_heading("gpu_ns", "gpu", "GPU time: forward + backward + other"),
)
SHARE: Final = Heading("share", "time", "share", "share of gpu_ns of all selected work")
STEP: Final = (
    Heading(
        "step_ns",
        "step",
        "ns",
        "GPU time per counted step and GPU, if steps are known",
        digits=5,
        rank=2,
    ),
    Heading(
        "step_share", "of step", "share", "share of step_ns of all selected work", in_text=False
    ),
)
COUNTS: Final = (
    Heading("calls", "calls", "", "calls of operators: distinct values of the column call", rank=4),
    Heading("kernels", "kernels", "", "kernels, graphs, copies and memsets", rank=3),
)
WORK: Final = (
    Heading(
        "flops",
        "work",
        "flop",
        "floating point operations of kernels with a known cost",
        in_text=False,
    ),
    Heading(
        "peak_share",
        "roof",
        "share",
        "ideal time by GPU time, if known of 90 % of the time",
        rank=1,
    ),
    Heading(
        "flop_per_s", "rate", "flop/s", "flops by GPU time, if known of 90 % of the time", rank=4
    ),
    Heading(
        "bytes",
        "memory",
        "bytes",
        "bytes read and written by kernels with a known cost",
        in_text=False,
    ),
    Heading("ideal_ns", "ideal", "ns", "time at peak rates; work with a known cost", in_text=False),
    Heading(
        "lost_ns",
        "lost",
        "ns",
        "GPU time of calls above their ideal time, if known",
        in_text=False,
    ),
    COVERED,
    replace(FLAG, rank=1),
)
