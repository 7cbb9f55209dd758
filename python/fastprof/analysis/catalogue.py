"""The built-in reports. Imports no numpy: the command line lists them for `--help`."""

from __future__ import annotations

from fastprof.analysis.cpu_columns import CPU_MEASURES
from fastprof.analysis.options import CPU, STEPS, WHERE, by
from fastprof.analysis.summary_columns import MEASURES
from fastprof.profile.reports import Report, add

add(
    Report(
        name="summary",
        about="where the GPU time goes: by operator, layer, line, shape, phase, ...",
        function="fastprof.analysis.summary:summary",
        columns=(*MEASURES, *CPU_MEASURES),
        options=(by("dir,op; range,kind without operators"), STEPS, WHERE, CPU),
        limit=20,
    )
)
