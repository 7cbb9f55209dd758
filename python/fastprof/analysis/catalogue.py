"""The built-in reports. Imports no numpy: the command line lists them for `--help`."""

from __future__ import annotations

from fastprof.analysis import (
    copies_columns,
    idle_columns,
    launches_columns,
    layers_columns,
    lines_columns,
    overlap_columns,
    ranges_columns,
    steps_columns,
)
from fastprof.analysis.advice import columns as advice_columns
from fastprof.analysis.cpu_columns import CPU_MEASURES
from fastprof.analysis.descriptions import LAYERS, LINES, RANGES, SUMMARY
from fastprof.analysis.memory import headings as memory_headings
from fastprof.analysis.options import CPU, DEPTH, STEPS, WHERE, by, choice
from fastprof.analysis.overview_columns import COLUMNS as OVERVIEW
from fastprof.analysis.overview_columns import DESCRIPTION as ABOUT_OVERVIEW
from fastprof.analysis.overview_columns import ROWS
from fastprof.analysis.replay import options as replay_options
from fastprof.analysis.roofline_columns import DESCRIPTION, PEAKS, PLOT, ROOF, ROOFLINE
from fastprof.analysis.stats import headings as stats_headings
from fastprof.analysis.stats.headings import TABLES, table_name
from fastprof.analysis.summary_columns import MEASURES
from fastprof.profile.reports import Option, Report, add

add(
    Report(
        name="overview",
        about="the first look, in one screen: fastprof FILE does the same",
        description=ABOUT_OVERVIEW,
        function="fastprof.analysis.overview_report:overview",
        columns=OVERVIEW,
        options=(STEPS, *PEAKS),
        limit=ROWS,
    )
)
add(
    Report(
        name="summary",
        about="where the GPU time goes: by operator, layer, line, shape, phase, ...",
        description=SUMMARY,
        function="fastprof.analysis.summary:summary",
        columns=(*MEASURES, *CPU_MEASURES),
        options=(by("dir,op; range,kind without operators"), STEPS, WHERE, CPU, *PEAKS),
        limit=20,
    )
)
add(
    Report(
        name="steps",
        about="the length of each step, what the GPU does in it, and what differs in outliers",
        description=steps_columns.DESCRIPTION,
        function="fastprof.analysis.steps_report:steps",
        columns=steps_columns.COLUMNS,
        options=(STEPS, WHERE, *PEAKS),
        limit=20,
        uses_host=True,
    )
)
add(
    Report(
        name="idle",
        about="why the GPU waits: causes, where to look, the longest gaps",
        description=idle_columns.DESCRIPTION,
        function="fastprof.analysis.idle:idle",
        columns=idle_columns.ALL,
        options=idle_columns.OPTIONS,
        limit=20,
        uses_host=True,
    )
)
add(
    Report(
        name="layers",
        about="the module tree with GPU time, forward and backward",
        description=LAYERS,
        function="fastprof.analysis.layers:layers",
        columns=layers_columns.COLUMNS,
        options=(
            DEPTH,
            Option("fold", "repeated layers, such as layers.0 to layers.31, are one row"),
            Option("flat", "in order of own time, not as a tree"),
            STEPS,
            WHERE,
            *PEAKS,
        ),
    )
)
add(
    Report(
        name="lines",
        about="your source lines with the GPU time that they launch, forward and backward",
        description=LINES,
        function="fastprof.analysis.lines:lines",
        columns=lines_columns.COLUMNS,
        options=(
            Option(
                "files",
                "source files to list, your own or not; glob patterns of the end of the path",
                "SOURCE",
                is_positional=True,
            ),
            choice("by", "a row per source line or per function", ("line", "function")),
            Option("function", "only functions whose name matches a glob pattern", "NAME"),
            Option("source", "folder with the source files, for the text of the lines", "DIR"),
            STEPS,
            WHERE,
            *PEAKS,
        ),
    )
)
add(
    Report(
        name="ranges",
        about="your own ranges: time on CPU and GPU, with backward, and idle inside",
        description=RANGES,
        function="fastprof.analysis.ranges_report:ranges_table",
        columns=ranges_columns.COLUMNS,
        options=(Option("flat", "in order of own GPU time, not as a tree"), WHERE),
        uses_host=True,
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
add(
    Report(
        name="overlap",
        about="communication hidden behind compute and exposed, bandwidth of collectives",
        description=overlap_columns.DESCRIPTION,
        function="fastprof.analysis.overlap:overlap",
        columns=overlap_columns.COLUMNS,
        options=(
            by("device,collective,process_group,group_size,message_bytes,message_type,stream"),
            STEPS,
            WHERE,
        ),
        limit=20,
    )
)
add(
    Report(
        name="launches",
        about="how launch-bound the work is: launch calls, latency and queue of the GPU",
        description=launches_columns.DESCRIPTION,
        function="fastprof.analysis.launches:launches",
        columns=launches_columns.COLUMNS,
        options=(by("op; kind without operators"), STEPS, WHERE),
        limit=20,
        uses_host=True,
    )
)
add(
    Report(
        name="copies",
        about="memory copies and memsets: rate against the bus, and what waits for them",
        description=copies_columns.DESCRIPTION,
        function="fastprof.analysis.copies:copies",
        columns=copies_columns.COLUMNS,
        options=(by("direction,memory,size_class"), STEPS, WHERE, copies_columns.BUS),
        limit=20,
        uses_host=True,
    )
)
add(
    Report(
        name="memory",
        about="peak memory, the blocks live at the peak and their code; also of torch snapshots",
        description=memory_headings.DESCRIPTION,
        function="fastprof.analysis.memory.report:memory",
        of_snapshot="fastprof.analysis.memory.snapshot:memory_snapshot",
        columns=memory_headings.COLUMNS,
        options=(memory_headings.BY, memory_headings.DEVICE, STEPS, WHERE),
        limit=20,
    )
)
add(
    Report(
        name="advise",
        about="what to change to make a step shorter, the largest saving first",
        description=advice_columns.DESCRIPTION,
        function="fastprof.analysis.advice.report:advise",
        columns=advice_columns.COLUMNS,
        options=(advice_columns.MIN, advice_columns.FAIL_ABOVE, STEPS, *PEAKS),
        limit=20,
        uses_host=True,
    )
)
add(
    Report(
        name="whatif",
        about="what a step would take if some of it were faster or absent",
        description=replay_options.DESCRIPTION,
        function="fastprof.analysis.replay.report:whatif",
        columns=replay_options.COLUMNS,
        options=replay_options.OPTIONS,
        limit=40,
        uses_host=True,
    )
)
add(
    Report(
        name="stats",
        about="the tables of nsys stats, from any trace",
        description=stats_headings.DESCRIPTION,
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
