"""`fastprof history`: stored captures over many commits, and where a figure changes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fastprof.analysis.history.columns import COLUMNS, FIGURES, GROUPS
from fastprof.cli.diff import share
from fastprof.cli.options import add, tag
from fastprof.cli.output import log, output
from fastprof.cli.reports import add_table, columns_text, written
from fastprof.errors import ReportError, UnknownColumnError

if TYPE_CHECKING:
    from fastprof.api.history import History
    from fastprof.model.page import Page
    from fastprof.model.table import Table

NAME = "history"
HELP = "stored captures over many commits: where a figure changed, and why"
DESCRIPTION = """\
The captures that `fastprof diff --baseline STORE --save` has stored, the newest first: step, busy
and idle time, MFU and memory, and where the level of a figure changes, with what made the
difference. JSON and CSV also have the operators and layers that take the most time.

  fastprof diff --baseline perf.sqlite --save net.sqlite --tag commit=4f2a
  fastprof history perf.sqlite
  fastprof history perf.sqlite --since 2026-03-01 --tag branch=main --html history.html
  fastprof history perf.sqlite --explain 41     # what differs from the capture before

A change of level is a stretch of captures that differs from the rest more than in 99 % of random
orders of the values (circular binary segmentation on ranks). A figure that only varies has one in
at most 1 of 100 series. It takes about 5 captures after a change to find it.
"""
_LIMIT = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "store", metavar="STORE", help="file or directory that diff --baseline STORE --save wrote"
    )
    select = parser.add_argument_group("captures")
    select.add_argument(
        "--since",
        metavar="DATE|KEY=VALUE",
        help="from this date on (UTC), or from the first capture with this tag on",
    )
    select.add_argument(
        "--tag",
        metavar="KEY=VALUE",
        type=tag,
        action="append",
        default=[],
        help="only captures with this tag (repeatable)",
    )
    figures = parser.add_argument_group("figures")
    figures.add_argument(
        "--figure",
        metavar="NAME",
        action="append",
        default=[],
        help=f"{', '.join([*FIGURES, *GROUPS])}, op:NAME or layer:NAME (repeatable; default: the "
        f"first {len(FIGURES)})",
    )
    figures.add_argument(
        "--threshold",
        metavar="PERCENT",
        type=share,
        default=0.02,
        help="smaller changes are left out (default: 2)",
    )
    figures.add_argument(
        "--explain", metavar="ID", type=int, help="compare this capture with the one before"
    )
    add_table(parser, _LIMIT)
    add(parser, "--output")
    parser.add_argument("--html", metavar="OUT", help="also write an HTML page to OUT")
    parser.epilog = columns_text(COLUMNS)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fastprof.api.history import open_history

    try:
        history = open_history(arguments.store, arguments.since, dict(arguments.tag))
        table, page = _answer(history, arguments)
        text = written(table, arguments, _LIMIT)
    except (ReportError, UnknownColumnError) as error:
        arguments.error(str(error))
    with output(arguments.output) as file:
        for part in text:
            file.write(part.encode("utf-8", "surrogateescape"))
    if page is not None:
        with output(arguments.html) as file:
            file.write(page.html.encode())
        log(f"wrote {arguments.html}")
    return 0


def _answer(history: History, arguments: argparse.Namespace) -> tuple[Table, Page | None]:
    """The table to print, and the page that --html asks for."""
    if arguments.explain is None:
        table = history.table(arguments.figure, arguments.threshold)
        page = None if arguments.html is None else history.page(arguments.figure)
        return table, page
    numbers = [capture.id for capture in history.captures]
    if arguments.explain not in numbers[1:]:
        arguments.error(
            f"--explain {arguments.explain}: expected a capture with one before it, such as "
            f"{numbers[-1] if numbers[1:] else 'none'}"
        )
    at = numbers.index(arguments.explain)
    compared = history.diff(numbers[at - 1], numbers[at])
    return compared.table(), None if arguments.html is None else compared.page()
