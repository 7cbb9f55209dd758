"""`fastprof prof`: print the report on a trace or on dict lines."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from fastprof.cli.options import add
from fastprof.cli.output import Bar, log, log_profile, output
from fastprof.errors import UnknownColumnError
from fastprof.model.column_table import COLUMNS, COUNTER, TRACE_COLUMNS, ColumnInfo
from fastprof.writers import Style
from fastprof.writers.columns import DEFAULT_KEYS

if TYPE_CHECKING:
    from fastprof.api.profile import Profile
    from fastprof.model.columns import Column

NAME = "prof"
HELP = "print a report with one row per kernel"
DESCRIPTION = """\
Print a report with one row per kernel. FILE is an Nsight Systems report or SQLite export, a
torch.profiler trace (.json or .json.gz), a recording of AMD's profilers, an NVProf file, or the
output of `fastprof parse` or PyProf.
Without FILE, dict lines are read from standard input.

  fastprof prof net.sqlite -w 150
  fastprof parse net.sqlite | fastprof prof --csv -c idx,layer,op,params,sil,flops

columns:
""" + "\n".join(
    [f"  {column.key:14} {column.about}" for column in COLUMNS]
    + ["", "columns available from traces only:"]
    + [f"  {column.key:14} {column.about}" for column in TRACE_COLUMNS]
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="FILE", nargs="?", help="trace or dict lines")
    add_style(parser)
    parser.add_argument(
        "--all", action="store_true", help="include memory copies and memsets (traces only)"
    )
    parser.add_argument(
        "--unknown",
        action="store_true",
        help="list operators whose cost is unknown, with reasons, on stderr",
    )
    add(parser, "--ops", "--graph-capture", "--output", "--check")


def add_style(parser: argparse.ArgumentParser) -> None:
    """Add the options that select the columns and layout of the report."""
    parser.add_argument(
        "-c",
        "--columns",
        metavar="COLS",
        default=DEFAULT_KEYS,
        help="comma-separated columns (default: %(default)s)",
    )
    add(parser, "--mine")
    style = parser.add_mutually_exclusive_group()
    style.add_argument("--csv", action="store_true", help="CSV with every field quoted")
    style.add_argument("--json", action="store_true", help="one JSON object per row")
    style.add_argument(
        "-w", "--width", metavar="N", type=int, help="aligned columns, N characters wide in total"
    )


def chosen_columns(arguments: argparse.Namespace) -> list[ColumnInfo]:
    """Return the columns selected by the options of `add_style`; errors there are usage errors."""
    from fastprof.writers import select
    from fastprof.writers.width import WidthError, share_width

    try:
        chosen = select(arguments.columns)
        if arguments.width is not None:
            share_width(chosen, arguments.width)
    except (UnknownColumnError, WidthError) as error:
        arguments.error(str(error))
    return chosen


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fastprof.ops.user import load_file
    from fastprof.writers import write_report

    chosen = chosen_columns(arguments)
    if arguments.file is None and (sys.stdin is None or sys.stdin.isatty()):
        arguments.error("no FILE and no piped input; give a trace or dict lines")
    if arguments.file is None and arguments.graph_capture:
        arguments.error("--graph-capture needs a trace as FILE; dict lines do not contain graphs")
    for path in arguments.ops:
        load_file(path)
    with Bar() as bar:
        if arguments.file is None:
            from fastprof.api.open import open_dict_lines

            profile = open_dict_lines(sys.stdin.buffer, "standard input", mine=arguments.mine)
        else:
            from fastprof.api.open import open_trace

            profile = open_trace(
                arguments.file,
                bar,
                copies=arguments.all,
                mine=arguments.mine,
                graph_capture=arguments.graph_capture,
            )
    keys = [column.key for column in chosen]
    columns = _columns(profile, keys)  # may read the file again: an error is the only line
    log_profile(profile)
    _log_lacking(profile, keys)
    if arguments.check:
        log(f"checked: {profile.check()}")
    if arguments.unknown:
        for line in profile.coverage.unknown_text().splitlines():
            log(line)
    style: Style = "csv" if arguments.csv else "json" if arguments.json else "spaces"
    if arguments.width is not None:
        style = "width"
    with output(arguments.output) as file:
        write_report(columns, keys, style, file, arguments.width)
    return 0


def _columns(profile: Profile, keys: list[str]) -> dict[str, Column]:
    """The columns of these keys; of dict lines, columns available from traces only are unknown."""
    from fastprof.model.columns import unknown

    there, no_values = profile.available, unknown(len(profile))
    return {
        key: profile.column(key) if key in there or key.startswith(COUNTER) else no_values
        for key in keys
    }


def _log_lacking(profile: Profile, keys: list[str]) -> None:
    there = profile.available
    lacking = [key for key in dict.fromkeys(keys) if key not in there and COUNTER not in key]
    if lacking:
        log(
            f"warning: {profile.name}: dict lines do not contain {','.join(lacking)}, shown as na; "
            "run prof on the original trace"
        )
