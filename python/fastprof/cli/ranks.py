"""`fastprof ranks`: the traces of all ranks of a run: who waits for whom, and why."""

from __future__ import annotations

import argparse
import io
import json
import shlex
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING

from fastprof.cli.batch import Files, add_workers, client_of
from fastprof.cli.options import add, colours_of, count
from fastprof.cli.output import log, output, terminal_width
from fastprof.model.heading import printable

if TYPE_CHECKING:
    from fastprof.api.ranks import Ranks
    from fastprof.model.table import Table

NAME = "ranks"
HELP = "many ranks, one run: who waits for whom, and why"
DESCRIPTION = """\
Read the traces of all ranks of a run. Collectives are matched, clocks aligned by their ends, and
the waits of each rank divided by the rank that arrives last and by the reason why it is late; the
replays of all ranks, joined at the collectives, tell what each reason costs. Unreadable files are
reported and skipped; the exit code is 1.

  fastprof ranks traces/                            # also: fastprof traces/
  fastprof ranks rank*.json.gz --what-if no-stragglers --what-if communication:0.5
  fastprof ranks traces/ --table waits --csv -o waits.csv
"""
_PROSE = 120  # characters a line
TABLES = ("ranks", "groups", "causes", "waits", "steps", "calls", "stages", "path", "unmatched")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "paths", metavar="FILE|DIR", nargs="+", help="traces, or directories to search for traces"
    )
    parser.add_argument(
        "--pattern",
        metavar="GLOB",
        help="file names to match in directories, e.g. '*.pt.trace.json.gz' (default: names with "
        "the suffix of a trace)",
    )
    parser.add_argument(
        "--table", choices=TABLES, help="print only this table (default with --csv: causes)"
    )
    parser.add_argument(
        "--what-if",
        metavar="CHANGE",
        action="append",
        default=[],
        help="replay the run with a change: median:RANK, no-data-loading, no-data-loading:RANK, "
        "communication:FACTOR (0.5: twice as fast), equal-work, no-stragglers (repeatable)",
    )
    parser.add_argument(
        "--clock",
        choices=("estimated", "recorded"),
        default="estimated",
        help="clocks of ranks: aligned by the ends of collectives, or as recorded (default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--steps", metavar="SOURCE", help="what marks the steps; see fastprof steps --help"
    )
    parser.add_argument(
        "--csv", action="store_true", help="print one table as CSV: all rows, times in ns"
    )
    parser.add_argument(
        "--json", action="store_true", help="print all tables of the first screen as JSON"
    )
    parser.add_argument(
        "--top", metavar="N", type=count, default=8, help="rows per table (default: 8; 0: all)"
    )
    add(parser, "--width", "--color", "--output")
    add_workers(parser)
    add(parser, "--ops", "--graph-capture")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code, 1 if any file could not be read."""
    from fastprof.api.batch import BatchError
    from fastprof.api.ranks import open_ranks

    if arguments.csv and arguments.json:
        arguments.error("--csv and --json: expected one of them")
    with client_of(arguments) as client:
        try:
            with Files(quiet=arguments.no_progress) as files:
                result = open_ranks(
                    arguments.paths,
                    jobs=arguments.jobs,
                    memory=arguments.memory,
                    client=client,
                    store=arguments.store,
                    progress=files,
                    pattern=arguments.pattern,
                    graph_capture=arguments.graph_capture,
                    ops=arguments.ops,
                    steps=arguments.steps,
                    clock=arguments.clock,
                )
        except BatchError as error:
            arguments.error(str(error))
    with output(arguments.output) as file:
        file.write(_report(result, arguments).encode("utf-8", "surrogateescape"))
    failed = len(result.failures) + len(result.empty)
    if failed:
        total = len(result.failures) + len(result.files)
        log(f"{failed} of {total} files could not be read or have no GPU work")
    return 1 if failed else 0


def _report(ranks: Ranks, arguments: argparse.Namespace) -> str:
    makers: dict[str, Callable[[], Table]] = {
        "ranks": lambda: ranks.ranks,
        "groups": lambda: ranks.groups,
        "causes": lambda: ranks.causes,
        "waits": ranks.waiting,
        "steps": ranks.steps,
        "calls": ranks.calls,
        "stages": ranks.stages,
        "path": lambda: ranks.path(_first_change(ranks, arguments)),
        "unmatched": ranks.unmatched,
    }
    if arguments.csv:
        file = io.StringIO()
        is_path = arguments.table == "path"
        table = _changes(ranks, arguments) if arguments.what_if and not is_path else None
        (table or makers[arguments.table or "causes"]()).write_csv(file)
        return file.getvalue()
    if arguments.json:
        return json.dumps(ranks.facts(arguments.what_if), indent=1) + "\n"

    width = arguments.width or terminal_width(arguments.output)

    def text_of(table: Table) -> str:
        return table.text(arguments.top or None, width=width, colours=colours_of(arguments))

    if arguments.table is not None:
        return text_of(makers[arguments.table]())
    if arguments.what_if:
        return text_of(_changes(ranks, arguments))
    prose = min(width or _PROSE, _PROSE)
    wrap = textwrap.TextWrapper(prose, break_long_words=False, break_on_hyphens=False)
    lines = []
    for line in ranks.lines():
        wrap.subsequent_indent = "     " if line[:1] == " " else "  "
        lines += wrap.wrap(line) or [""]
    parts = ["\n".join(lines) + "\n"]
    parts += [f"{title}\n{text_of(table)}" for title, table in ranks.tables()]
    given = "FILE..."
    if len(arguments.paths) == 1:
        given = printable(shlex.quote(arguments.paths[0]))
    parts.append(
        f"next: fastprof report {given} -o run.html --each    ranks on one time line, a page each\n"
        f"      fastprof ranks {given} --what-if no-stragglers --what-if communication:0.5\n"
    )
    return "\n".join(parts)


def _first_change(ranks: Ranks, arguments: argparse.Namespace) -> str | None:
    """The change of --what-if whose critical path is asked for."""
    if arguments.what_if:
        _changes(ranks, arguments)  # a usage error if one is unknown
    return arguments.what_if[0] if arguments.what_if else None


def _changes(ranks: Ranks, arguments: argparse.Namespace) -> Table:
    from fastprof.api.ranks import RanksError

    try:
        return ranks.what_if(arguments.what_if)
    except RanksError as error:
        arguments.error(str(error))
        raise AssertionError from error  # `error` exits
