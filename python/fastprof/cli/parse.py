"""`fastprof parse`: a trace to one line a kernel."""

from __future__ import annotations

import argparse

from fastprof.cli.output import output
from fastprof.cli.progress import Bar, add_check, add_graph_capture, add_mine, say, tell

NAME = "parse"
HELP = "read a trace, write one line a kernel"
DESCRIPTION = """\
Read an Nsight Systems SQLite export and write one line a kernel, each a Python dict literal, for
`fastprof prof` or for scripts of your own.

  fastprof parse net.sqlite > net.dict
  fastprof parse net.sqlite -o net.parquet --format parquet
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("file", metavar="FILE", help="the trace")
    parser.add_argument("-o", "--output", metavar="OUT", help="write to a file, not to stdout")
    parser.add_argument(
        "--format",
        choices=["dict", "jsonl", "parquet"],
        default="dict",
        help="dict: Python literals (default); jsonl: the same keys in JSON; parquet: all columns",
    )
    add_mine(parser)
    add_graph_capture(parser)
    add_check(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit code."""
    from fastprof.profile.load import open as open_trace
    from fastprof.report import write_rows
    from fastprof.report.parquet import write_columns

    with Bar() as bar:
        profile = open_trace(
            arguments.file, bar, mine=arguments.mine, graph_capture=arguments.graph_capture
        )
    columns = None
    if arguments.format != "parquet" and len(profile):
        columns = profile.dict_columns()
    say(profile)
    if arguments.check:
        tell(f"checked: {profile.check()}")
    with output(arguments.output, arguments.file) as file:
        if arguments.format == "parquet":
            write_columns({name: profile.column(name) for name in profile.names}, file)
        elif columns:
            write_rows(columns, arguments.format, file)
    return 0
