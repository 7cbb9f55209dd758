"""The headings, help and options of `overview`. Imports no numpy."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.summary.columns import COVERED, FLAG
from fastprof.model.heading import Heading

ROWS: Final = 5  # of each table in text

DESCRIPTION: Final = """\
The first look at a trace, in one screen: the answer in one or two sentences, what the trace is, how
much of it is known, the step and MFU, the operators, layers, source lines and causes of idle time
that take the most time, what to change, and what to run next. Without a command, fastprof runs
overview: fastprof net.sqlite.

Times are per counted step and GPU if steps are known, else of the capture and all GPUs. Layers and
lines have their own work only, including its backward pass. The step, its causes of idle time and
the findings are means over steps and GPUs: all complete steps with GPU work but a warm-up; see
fastprof steps --help.

  fastprof net.sqlite
  fastprof net.sqlite --limit 10 --gpu H100
  fastprof net.sqlite --json
"""

OF_WORK: Final = (
    Heading("step_ns", "step", "ns", "GPU time per counted step and GPU, if steps are known"),
    Heading("step_share", "time", "share", "share of step_ns of all rows"),
    Heading("gpu_ns", "gpu", "ns", "GPU time", in_text=False),
    Heading(
        "share", "time", "share", "share of gpu_ns of all rows; text shows step_share if known"
    ),
    Heading("peak_share", "roof", "share", "ideal time by GPU time, if known of 90 % of the time"),
    FLAG,
    Heading("lost_ns", "lost", "ns", "lost time of the capture, see roofline", in_text=False),
    COVERED,
    Heading("kernels", "kernels", "", "kernels, copies and memsets", in_text=False),
)
LAYERS: Final = Heading(
    "layer", "layer", "", "layer, repeated ones folded: blocks.* for blocks.0, ...", keeps_end=True
)
LINES: Final = Heading("line", "line", "", "innermost source line of your own code", keeps_end=True)
CAUSES_OF_IDLE: Final = (
    Heading("cause", "idle", "", "why the GPU has no work"),
    Heading("ns", "time", "ns", "idle time of the mean step"),
    Heading("share", "step", "share", "share of the mean step"),
    Heading("where", "where", "", "line, operator, layer or range with most of it", keeps_end=True),
)
COLUMNS: Final = (LAYERS, LINES, *OF_WORK, *CAUSES_OF_IDLE[:2], CAUSES_OF_IDLE[3])
