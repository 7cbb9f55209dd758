"""The built-in reports. Imports no numpy: the command line lists them for `--help`."""

from __future__ import annotations

from fastprof.analysis import layers_columns, ranges_columns
from fastprof.analysis.cpu_columns import CPU_MEASURES
from fastprof.analysis.options import CPU, DEPTH, STEPS, WHERE, by
from fastprof.analysis.stats.headings import TABLES, table_name
from fastprof.analysis.summary_columns import MEASURES
from fastprof.profile.reports import Option, Report, add

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
add(
    Report(
        name="layers",
        about="the module tree with GPU time, forward and backward",
        description="",
        function="fastprof.analysis.layers:layers",
        columns=layers_columns.COLUMNS,
        options=(
            DEPTH,
            Option("fold", "repeated layers, such as layers.0 to layers.31, are one row"),
            Option("flat", "in order of own time, not as a tree"),
            WHERE,
        ),
    )
)
add(
    Report(
        name="ranges",
        about="your own ranges: time on CPU and GPU, with backward, and idle inside",
        description=ranges_columns.DESCRIPTION,
        function="fastprof.analysis.ranges_report:ranges_report",
        columns=ranges_columns.COLUMNS,
        options=(Option("flat", "in order of own GPU time, not as a tree"), WHERE),
    )
)
add(
    Report(
        name="stats",
        about="the tables of nsys stats, from any trace",
        function="fastprof.analysis.stats.report:stats",
        options=(
            Option(
                "names",
                f"tables: {', '.join(TABLES)} (default: the first five)",
                "NAME",
                table_name,
                default=(),
                is_positional=True,
            ),
        ),
        limit=20,
    )
)
