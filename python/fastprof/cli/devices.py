"""`fastprof devices`: print the table of known GPUs."""

from __future__ import annotations

import argparse

from fastprof.cli.output import output

NAME = "devices"
HELP = "list the known GPUs and their peak rates"
DESCRIPTION = """\
List the known GPUs with their peak rates (dense, fp32 accumulation) and memory bandwidth. Reports
compare rates with these peaks; --gpu NAME, --peak and --bandwidth of a report replace them.

  fastprof devices
  fastprof devices --csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    style = parser.add_mutually_exclusive_group()
    style.add_argument("--csv", action="store_true", help="CSV")
    style.add_argument("--json", action="store_true", help="one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fastprof.analysis.notes import device_list

    table = device_list()
    text = table.csv() if arguments.csv else table.to_json() if arguments.json else table.text()
    with output(None) as file:
        file.write(text.encode())
    return 0
