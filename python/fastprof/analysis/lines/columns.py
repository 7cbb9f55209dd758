"""The headings of `lines`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.stacks.columns import COUNTS, SHARE, STEP, TIMES, WORK, time_heading
from fastprof.model.heading import Heading

COLUMNS: Final = (
    Heading(
        "frame",
        "line",
        "",
        "file:line, and the function if the trace names it",
        keeps_end=True,
        min_width=18,
    ),
    Heading("file", "file", "", "file", in_text=False),
    Heading("line", "number", "", "number of the line, counted from 1", in_text=False),
    Heading("function", "function", "", "function, from the trace or the source", in_text=False),
    *COUNTS,
    *TIMES,
    time_heading("own_ns", "own", "gpu without your own lines that this line calls", rank=1),
    SHARE,
    *STEP,
    *WORK,
    Heading("code", "code", "", "text of the line, if the source file is found", min_width=32),
)
