"""The headings of `ranges`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.stacks.columns import time_heading
from fastprof.model.heading import Heading

COLUMNS: Final = (
    Heading(
        "range",
        "range",
        "",
        "names of the range and those around it, joined by `:`, `*` for numbers; text indents the "
        "last name",
        keeps_end=True,
        min_width=24,
    ),
    Heading("name", "name", "", "last name", in_text=False),
    Heading("level", "level", "", "0 for an outermost range, na for `(no range)`", in_text=False),
    Heading("count", "count", "", "number of ranges in the row"),
    Heading("wall_ns", "wall", "ns", "sum of the ranges' durations", digits=5),
    Heading("wall_median_ns", "median", "ns", "median duration", rank=3),
    time_heading("gpu_ns", "gpu", "GPU time of work launched inside, also in nested ranges"),
    Heading(
        "with_backward_ns",
        "with backward",
        "ns",
        "GPU time of work launched inside, and of the backward pass of calls inside: forward + "
        "backward + other",
        digits=5,
        same_unit="gpu_ns",
    ),
    time_heading("forward_ns", "forward", "of with backward: forward work", rank=2),
    time_heading("backward_ns", "backward", "of with backward: backward work", rank=2),
    time_heading("other_ns", "other", "of with backward: the rest", rank=4),
    time_heading("own_ns", "own", "gpu without nested ranges", rank=1),
    time_heading(
        "projected_ns",
        "projected",
        "from the start of the first to the end of the last work launched inside: sum over ranges "
        "and GPUs",
        rank=1,
    ),
    time_heading("idle_ns", "idle", "part of projected during which the GPU has no work", rank=1),
    Heading("kernels", "kernels", "", "kernels, graphs, copies and memsets launched inside"),
)
