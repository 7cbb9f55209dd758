"""`fastprof parse`: convert a trace to one line per kernel."""

from __future__ import annotations

import argparse

from fastprof.cli.options import add
from fastprof.cli.output import Bar, log, log_profile, output

NAME = "parse"
HELP = "convert a trace to one line per kernel"
DESCRIPTION = """\
Convert a trace to one line per kernel. Each line is a Python dict literal; read it with `fastprof
prof` or with ast.literal_eval. FILE is an Nsight Systems report or SQLite export, a torch.profiler
trace (.json or .json.gz), a recording of AMD's profilers, an NVProf file or a file of dict lines.

  fastprof parse net.sqlite > net.dict
  fastprof parse net.sqlite -o net.parquet --format parquet
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="trace or dict lines")
    add(parser, "--output")
    parser.add_argument(
        "--format",
        choices=["dict", "jsonl", "parquet"],
        default="dict",
        help="dict: Python literals (default); jsonl: the same keys as JSON; parquet: all columns",
    )
    add(parser, "--mine", "--graph-capture", "--check")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fastprof.api.open import open_trace
    from fastprof.writers import write_rows
    from fastprof.writers.parquet import write_columns

    with Bar() as bar:
        profile = open_trace(
            arguments.file,
            bar,
            copies=False,
            mine=arguments.mine,
            graph_capture=arguments.graph_capture,
        )
    columns = None
    if arguments.format != "parquet" and len(profile):
        columns = profile.source.dict_line_columns()
    log_profile(profile)
    if arguments.check:
        log(f"checked: {profile.check()}")
    with output(arguments.output) as file:
        if arguments.format == "parquet":
            write_columns({name: profile.column(name) for name in profile.names}, file)
        elif columns:
            write_rows(columns, arguments.format, file)
    return 0
