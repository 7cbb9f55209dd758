"""`fastprof parse`: convert a trace to one line per kernel."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fastprof.cli.options import add_check, add_graph_capture, add_mine, add_output
from fastprof.cli.output import output
from fastprof.cli.progress import Bar, log, log_profile

if TYPE_CHECKING:
    from fastprof.profile.profile import Profile

NAME = "parse"
HELP = "convert a trace to one line per kernel"
DESCRIPTION = """\
Convert a trace to one line per kernel. Each line is a Python dict literal; read it with `fastprof
prof` or with ast.literal_eval. FILE is an Nsight Systems report or SQLite export, an NVProf file, a
torch.profiler trace (.json or .json.gz) or a file of dict lines.

  fastprof parse net.sqlite > net.dict
  fastprof parse net.sqlite -o net.parquet --format parquet
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="trace or dict lines")
    add_output(parser)
    parser.add_argument(
        "--format",
        choices=["dict", "jsonl", "parquet"],
        default="dict",
        help="dict: Python literals (default); jsonl: the same keys as JSON; parquet: all columns",
    )
    add_mine(parser)
    add_graph_capture(parser)
    add_check(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fastprof._system.threads import SecondThread
    from fastprof.profile.load import open as open_trace
    from fastprof.profile.profile import dict_line_columns
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
    if arguments.format == "parquet" or not len(profile):
        _log(profile, arguments.check)
        with output(arguments.output) as file:
            if arguments.format == "parquet":
                write_columns({name: profile.column(name) for name in profile.names}, file)
        return 0
    with SecondThread() as second:
        # The summary takes longer than the columns: rows are written to a file meanwhile.
        logged = second.submit(_log_once, profile, arguments.check)
        columns = dict_line_columns(profile)
        if arguments.output is None:
            logged.result()
        with output(arguments.output) as file:
            write_rows(columns, arguments.format, file)
            logged.result()
    return 0


def _log_once(profile: Profile, check: bool) -> None:
    """`_log`; the arrays that the summary needs are released."""
    from fastprof.profile.profile import coverage_once

    coverage_once(profile)
    _log(profile, check)


def _log(profile: Profile, check: bool) -> None:
    """Print the summary of a profile on stderr, and with `check` that its sums agree."""
    log_profile(profile)
    if check:
        log(f"checked: {profile.check()}")
