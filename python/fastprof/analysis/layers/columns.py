"""The headings of `layers`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.stacks.columns import COUNTS, SHARE, STEP, TIMES, WORK, time_heading
from fastprof.model.heading import Heading

COLUMNS: Final = (
    Heading(
        "layer",
        "layer",
        "",
        "names of the layer and those around it, joined by `:`; text indents the last name",
        keeps_end=True,
        min_width=24,
    ),
    Heading("name", "name", "", "last name", in_text=False),
    Heading("depth", "depth", "", "1 for an outermost layer, 0 for `(no layer)`", in_text=False),
    *TIMES,
    Heading("with_backward_ns", "with backward", "ns", "forward + backward", in_text=False),
    time_heading("own_ns", "own", "gpu without inner layers", rank=3),
    SHARE,
    *STEP,
    Heading("instances", "count", "", "--fold: number of layers in the row"),
    time_heading("mean_ns", "mean", "--fold: mean GPU time of a layer", rank=1),
    time_heading("min_ns", "min", "--fold: shortest GPU time of a layer", rank=1),
    time_heading("max_ns", "max", "--fold: longest GPU time of a layer", rank=1),
    time_heading("std_ns", "std", "--fold: standard deviation of the layers' GPU time", rank=1),
    *COUNTS,
    *WORK,
)
