"""`fastprof prof`: dict lines or a trace to the report."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from fastprof.cli.output import output
from fastprof.cli.progress import Bar, add_check, add_graph_capture, add_mine, say, tell
from fastprof.errors import UnknownColumnError
from fastprof.report import Style
from fastprof.report.columns import COLUMNS, DEFAULT_KEYS, TRACE_COLUMNS, ReportColumn

if TYPE_CHECKING:
    from fastprof.model.columns import Column
    from fastprof.profile.profile import Profile

NAME = "prof"
HELP = "print the report, one row a kernel"
DESCRIPTION = """\
Print the report, one row a kernel. FILE is a trace or what `fastprof parse` wrote (PyProf's own
dict files too); without FILE, dict lines come from standard input.

  fastprof prof net.sqlite -w 150
  fastprof parse net.sqlite | fastprof prof --csv -c idx,layer,op,params,sil,flops

columns:
""" + "\n".join(
    [f"  {column.key:14} {column.about}" for column in COLUMNS]
    + ["", "columns that only a trace tells:"]
    + [f"  {column.key:14} {column.about}" for column in TRACE_COLUMNS]
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("file", metavar="FILE", nargs="?", help="a trace or dict lines")
    add_style(parser)
    parser.add_argument(
        "--all", action="store_true", help="rows for memory copies and memsets too, from a trace"
    )
    parser.add_argument(
        "--unknown",
        action="store_true",
        help="list the operators without a known cost, and why, on stderr",
    )
    parser.add_argument(
        "--ops",
        metavar="FILE",
        action="append",
        default=[],
        help="run a Python file that registers costs of your own operators (fastprof.op)",
    )
    add_graph_capture(parser)
    parser.add_argument("-o", "--output", metavar="OUT", help="write to a file, not to stdout")
    add_check(parser)


def add_style(parser: argparse.ArgumentParser) -> None:
    """The options that say what the report looks like."""
    parser.add_argument(
        "-c",
        "--columns",
        metavar="COLS",
        default=DEFAULT_KEYS,
        help="columns to print, separated by commas (default: %(default)s)",
    )
    add_mine(parser)
    style = parser.add_mutually_exclusive_group()
    style.add_argument("--csv", action="store_true", help="comma separated, every field quoted")
    style.add_argument("--json", action="store_true", help="one JSON object a line")
    style.add_argument(
        "-w", "--width", metavar="N", type=int, help="aligned columns, N characters wide"
    )


def chosen_columns(arguments: argparse.Namespace) -> list[ReportColumn]:
    """The columns of the options that `add_style` made; what is wrong there is a usage error."""
    from fastprof.report import select
    from fastprof.report.width import WidthError, share_width

    try:
        chosen = select(arguments.columns)
        if arguments.width is not None:
            share_width(chosen, arguments.width)
    except (UnknownColumnError, WidthError) as error:
        arguments.error(str(error))
    return chosen


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit code."""
    from fastprof.ops.user import load_file
    from fastprof.report import write_report

    chosen = chosen_columns(arguments)
    if arguments.file is None and (sys.stdin is None or sys.stdin.isatty()):
        arguments.error("no FILE, and nothing on standard input: give a trace or dict lines")
    if arguments.file is None and arguments.graph_capture:
        arguments.error("--graph-capture needs a trace as FILE: dict lines have no graphs")
    for path in arguments.ops:
        load_file(path)
    with Bar() as bar:
        if arguments.file is None:
            from fastprof.profile.load import read_dict_lines

            profile = read_dict_lines(sys.stdin.buffer, "standard input", mine=arguments.mine)
        else:
            from fastprof.profile.load import open as open_trace

            profile = open_trace(
                arguments.file,
                bar,
                copies=arguments.all,
                mine=arguments.mine,
                graph_capture=arguments.graph_capture,
            )
    say(profile)
    if arguments.check:
        tell(f"checked: {profile.check()}")
    if arguments.unknown:
        for line in profile.coverage.unknown_text().splitlines():
            tell(line)
    style: Style = "csv" if arguments.csv else "json" if arguments.json else "spaces"
    if arguments.width is not None:
        style = "width"
    with output(arguments.output, arguments.file) as file:
        keys = [column.key for column in chosen]
        write_report(_columns(profile, keys), keys, style, file, arguments.width)
    return 0


def _columns(profile: Profile, keys: list[str]) -> dict[str, Column]:
    """The columns of these keys; those that only a trace tells are not known of dict lines."""
    from fastprof.model.columns import unknown

    there = set(profile.names)
    lacking = [key for key in dict.fromkeys(keys) if key not in there]
    if lacking:
        tell(
            f"warning: {profile.name}: dict lines do not tell {','.join(lacking)}: na; give prof "
            "the trace that they were made from"
        )
    return {key: profile.column(key) if key in there else unknown(len(profile)) for key in keys}
