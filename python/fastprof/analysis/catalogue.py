"""The built-in reports. Imports no numpy: the command line lists them for `--help`."""

from __future__ import annotations

from fastprof.analysis.options import STEPS, WHERE, by
from fastprof.analysis.roofline_columns import DESCRIPTION, PEAKS, PLOT, ROOF, ROOFLINE
from fastprof.analysis.summary_columns import MEASURES
from fastprof.profile.reports import Report, add

add(
    Report(
        name="summary",
        about="where the GPU time goes: by operator, layer, line, shape, phase, ...",
        function="fastprof.analysis.summary:summary",
        columns=MEASURES,
        options=(by("dir,op; range,kind without operators"), STEPS, WHERE),
        limit=20,
    )
)
add(
    Report(
        name="roofline",
        about="GPU time against the time at the GPU's peak rates: what is lost, and where",
        function="fastprof.analysis.roofline:roofline",
        columns=ROOFLINE,
        options=(by("dir,op,shape"), STEPS, WHERE, ROOF, *PEAKS, PLOT),
        description=DESCRIPTION,
        limit=20,
    )
)
