"""The built-in reports. Imports no numpy: the command line lists them for `--help`.

Each is described by a function of its name, which imports its columns and options.
"""

from __future__ import annotations

from collections.abc import Callable

from fastprof.analysis.options import CPU, DEPTH, STEPS, WHERE, by, choice
from fastprof.profile.reports import Option, Report, add_later


def built_in(make: Callable[[], Report]) -> Callable[[], Report]:
    """Add a report of the name of the function, which is called when the report is needed."""
    add_later(make.__name__, make)
    return make


@built_in
def overview() -> Report:
    from fastprof.analysis.overview_columns import COLUMNS, DESCRIPTION, ROWS
    from fastprof.analysis.roofline_columns import PEAKS

    return Report(
        name="overview",
        about="the first look, in one screen: fastprof FILE does the same",
        description=DESCRIPTION,
        function="fastprof.analysis.overview_report:overview",
        columns=COLUMNS,
        options=(STEPS, *PEAKS),
        limit=ROWS,
    )


@built_in
def summary() -> Report:
    from fastprof.analysis.cpu_columns import CPU_MEASURES
    from fastprof.analysis.descriptions import SUMMARY
    from fastprof.analysis.roofline_columns import PEAKS
    from fastprof.analysis.summary_columns import MEASURES

    return Report(
        name="summary",
        about="where the GPU time goes: by operator, layer, line, shape, phase, ...",
        description=SUMMARY,
        function="fastprof.analysis.summary:summary",
        columns=(*MEASURES, *CPU_MEASURES),
        options=(by("dir,op; range,kind without operators"), STEPS, WHERE, CPU, *PEAKS),
        limit=20,
    )


@built_in
def steps() -> Report:
    from fastprof.analysis import steps_columns
    from fastprof.analysis.roofline_columns import PEAKS

    return Report(
        name="steps",
        about="the length of each step, what the GPU does in it, and what differs in outliers",
        description=steps_columns.DESCRIPTION,
        function="fastprof.analysis.steps_report:steps",
        columns=steps_columns.COLUMNS,
        options=(STEPS, WHERE, *PEAKS),
        limit=20,
        uses_host=True,
    )


@built_in
def idle() -> Report:
    from fastprof.analysis import idle_columns

    return Report(
        name="idle",
        about="why the GPU waits: causes, where to look, the longest gaps",
        description=idle_columns.DESCRIPTION,
        function="fastprof.analysis.idle:idle",
        columns=idle_columns.ALL,
        options=idle_columns.OPTIONS,
        limit=20,
        uses_host=True,
    )


@built_in
def layers() -> Report:
    from fastprof.analysis import layers_columns
    from fastprof.analysis.descriptions import LAYERS
    from fastprof.analysis.roofline_columns import PEAKS

    return Report(
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


@built_in
def lines() -> Report:
    from fastprof.analysis import lines_columns
    from fastprof.analysis.descriptions import LINES
    from fastprof.analysis.roofline_columns import PEAKS

    return Report(
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


@built_in
def ranges() -> Report:
    from fastprof.analysis import ranges_columns
    from fastprof.analysis.descriptions import RANGES

    return Report(
        name="ranges",
        about="your own ranges: time on CPU and GPU, with backward, and idle inside",
        description=RANGES,
        function="fastprof.analysis.ranges_report:ranges_table",
        columns=ranges_columns.COLUMNS,
        options=(Option("flat", "in order of own GPU time, not as a tree"), WHERE),
        uses_host=True,
    )


@built_in
def roofline() -> Report:
    from fastprof.analysis.roofline_columns import DESCRIPTION, PEAKS, PLOT, ROOF, ROOFLINE

    return Report(
        name="roofline",
        about="GPU time against the time at the GPU's peak rates: what is lost, and where",
        function="fastprof.analysis.roofline:roofline",
        columns=ROOFLINE,
        options=(by("dir,op,shape"), STEPS, WHERE, ROOF, *PEAKS, PLOT),
        description=DESCRIPTION,
        limit=20,
    )


@built_in
def overlap() -> Report:
    from fastprof.analysis import overlap_columns

    return Report(
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


@built_in
def launches() -> Report:
    from fastprof.analysis import launches_columns

    return Report(
        name="launches",
        about="how launch-bound the work is: launch calls, latency and queue of the GPU",
        description=launches_columns.DESCRIPTION,
        function="fastprof.analysis.launches:launches",
        columns=launches_columns.COLUMNS,
        options=(by("op; kind without operators"), STEPS, WHERE),
        limit=20,
        uses_host=True,
    )


@built_in
def copies() -> Report:
    from fastprof.analysis import copies_columns

    return Report(
        name="copies",
        about="memory copies and memsets: rate against the bus, and what waits for them",
        description=copies_columns.DESCRIPTION,
        function="fastprof.analysis.copies:copies",
        columns=copies_columns.COLUMNS,
        options=(by("direction,memory,size_class"), STEPS, WHERE, copies_columns.BUS),
        limit=20,
        uses_host=True,
    )


@built_in
def memory() -> Report:
    from fastprof.analysis.memory import headings

    return Report(
        name="memory",
        about="peak memory, the blocks live at the peak and their code; also of torch snapshots",
        description=headings.DESCRIPTION,
        function="fastprof.analysis.memory.report:memory",
        of_snapshot="fastprof.analysis.memory.snapshot:memory_snapshot",
        columns=headings.COLUMNS,
        options=(headings.BY, headings.DEVICE, STEPS, WHERE),
        limit=20,
    )


@built_in
def advise() -> Report:
    from fastprof.analysis.advice import columns as advice_columns
    from fastprof.analysis.roofline_columns import PEAKS

    return Report(
        name="advise",
        about="what to change to make a step shorter, the largest saving first",
        description=advice_columns.DESCRIPTION,
        function="fastprof.analysis.advice.report:advise",
        columns=advice_columns.COLUMNS,
        options=(advice_columns.MIN, advice_columns.FAIL_ABOVE, STEPS, *PEAKS),
        limit=20,
        uses_host=True,
    )


@built_in
def whatif() -> Report:
    from fastprof.analysis.replay import options as replay_options

    return Report(
        name="whatif",
        about="what a step would take if some of it were faster or absent",
        description=replay_options.DESCRIPTION,
        function="fastprof.analysis.replay.report:whatif",
        columns=replay_options.COLUMNS,
        options=replay_options.OPTIONS,
        limit=40,
        uses_host=True,
    )


@built_in
def stats() -> Report:
    from fastprof.analysis.stats.headings import DESCRIPTION, TABLES, table_name

    return Report(
        name="stats",
        about="the tables of nsys stats, from any trace",
        description=DESCRIPTION,
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
