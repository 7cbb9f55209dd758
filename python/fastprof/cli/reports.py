"""The commands of reports: `fastprof summary`, `fastprof roofline`, ... and those of users."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

from fastprof.analysis.key_names import KEY_NAMES
from fastprof.analysis.registry import ENTRY_POINTS, Option, Report, imported
from fastprof.analysis.reports import names
from fastprof.cli.options import add, colours_of, count, trimmed
from fastprof.cli.output import Bar, log, output, terminal_width
from fastprof.errors import ReportError, UnknownColumnError
from fastprof.model.heading import column_key, headed
from fastprof.runs.directory import resolved

if TYPE_CHECKING:
    from fastprof.analysis.registry import Where
    from fastprof.api.profile import Profile
    from fastprof.model.heading import Heading
    from fastprof.model.table import Table

FAILED = 4  # --fail-above


class ReportCommand:
    """The command of a report."""

    def __init__(self, report: Report) -> None:
        self.NAME, self.HELP = report.name, report.about
        self.DESCRIPTION = report.description or report.about
        self._report = report

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the report, and those of all reports."""
        parser.add_argument("file", metavar="FILE", help="trace or dict lines")
        for option in self._report.options:
            add_option(parser, option)
        add_table(parser, self._report.limit)
        add(
            parser,
            "--output",
            "--mine",
            "--ops",
            "--graph-capture",
            "--graph-annotations",
            "--compiled",
        )
        add(parser, "--trim")
        parser.epilog = columns_text(self._report.columns)

    def run(self, arguments: argparse.Namespace) -> int:
        """Run the command and return its exit code."""
        from fastprof.ops.user import load_file

        self._check(arguments)
        for path in arguments.ops:
            load_file(path)
        try:
            table = self._table(arguments)
            text = written(table, arguments, self._report.limit)
        except (ReportError, UnknownColumnError) as error:
            arguments.error(str(error))
        with output(arguments.output) as file:
            for part in text:
                file.write(part.encode("utf-8", "surrogateescape"))
        has_limit = getattr(arguments, "fail_above", None) is not None
        return FAILED if has_limit and table.facts["failed"] else 0

    def _table(self, arguments: argparse.Namespace) -> Table:
        from fastprof.api.open import open_trace

        options = {option.name: getattr(arguments, option.name) for option in self._report.options}
        of_snapshot = self._report.of_snapshot
        if of_snapshot is not None:
            from fastprof.readers.torch_snapshot import is_snapshot

            if is_snapshot(arguments.file):
                if arguments.trim is not None:
                    raise ReportError("--trim: expected a trace, found a memory snapshot")
                return imported(of_snapshot)(arguments.file, mine=arguments.mine, **options)
        with Bar() as bar:
            profile = open_trace(
                arguments.file,
                bar,
                mine=arguments.mine,
                graph_capture=arguments.graph_capture,
                compiled=arguments.compiled,
                graph_annotations=arguments.graph_annotations,
                host="host" in self._report.needs,
            )
        for warning in profile.warnings:
            log(f"warning: {warning}")
        profile = trimmed(profile, arguments.trim)
        table = profile.report(self._report.name, **options)
        if "of" not in options:  # find has a note on it, of what else it finds too
            log_unmatched(profile, options.get("where"))
        return table

    def _check(self, arguments: argparse.Namespace) -> None:
        """Check names of columns before reading the trace, if the report declares its columns."""
        if arguments.ascending and arguments.sort is None:
            arguments.error("--ascending needs --sort COLUMN")
        by = getattr(arguments, "by", None)
        keys = by if isinstance(by, tuple) else tuple(KEY_NAMES)
        given = [arguments.sort] if arguments.sort else []
        given += [part.strip() for part in (arguments.columns or "").split(",") if part.strip()]
        headings = self._report.columns
        for name in given if headings else []:
            if name not in keys and not headed(name, headings):
                try:
                    column_key(name, headings, keys)
                except UnknownColumnError as error:
                    arguments.error(str(error))


def log_unmatched(profile: Profile, where: Where | None) -> None:
    """Say which conditions select nothing, and what values their keys have."""
    if where:
        from fastprof.analysis.cells import cells_of
        from fastprof.analysis.selection import unmatched

        for line in unmatched(cells_of(profile, where=where), where):
            log(line)


def first_word(argv: Sequence[str]) -> str:
    """The first argument other than an option, the command or a file; "" if there is none."""
    return next((text for text in argv if not text.startswith("-")), "")


def command_first(argv: Sequence[str], known: Collection[str]) -> list[str]:
    """The arguments with the options before the command, or before files, after it.

    As options may take values, the command or file is then the first name of a command or path that
    exists, else the last argument.

    known : commands other than reports
    """
    words = [text for text in argv if not text.startswith("-")]
    if not words or argv[0] == words[0]:
        return [*argv]
    named = (*known, *names())
    likely = (text for text in words if text in named or os.path.exists(text))
    begin = argv.index(next(likely, words[-1]))
    end = begin + len([*takewhile(lambda text: not text.startswith("-"), argv[begin:])])
    return [*argv[begin:end], *argv[:begin], *argv[end:]]


def load_reports(argv: list[str], known: Collection[str]) -> None:
    """Load the reports of --ops files and of installed packages if the command may be one."""
    command = first_word(argv)
    if not command or command in known or command in names():
        return
    from fastprof.ops.user import load_file, load_packages

    for before, text in pairwise(["", *argv]):
        if before == "--ops" or text.startswith("--ops="):
            load_file(text.removeprefix("--ops="))
    for problem in load_packages(ENTRY_POINTS, "reports"):
        log(f"warning: {problem}")


def names_file(argv: Sequence[str], known: Collection[str]) -> bool:
    """Whether the first argument other than an option is a path in place of a command.

    known : commands other than reports
    """
    word = first_word(argv)
    if word in known or word in names():
        return False
    return os.path.exists(word) or any(text in word for text in (".", os.sep))


def names_ranks(argv: Sequence[str]) -> bool:
    """Whether the arguments in place of a command are a directory of traces, or several files."""
    words = [*takewhile(lambda word: not word.startswith("-"), argv)]
    path = resolved(words[0]) if words else ""
    if os.path.isdir(path):
        return is_of_ranks(path)
    return len(words) > 1 and all(map(os.path.isfile, words))


def is_of_ranks(path: str) -> bool:
    """Whether a path is a directory of traces, and not of the tables of one export of nsys."""
    if not os.path.isdir(path):
        return False
    from fastprof.readers.nsys.schema import is_export_directory

    return not is_export_directory(path)


def add_table(parser: argparse.ArgumentParser, limit: int | None) -> None:
    """Add the options of tables, see `written`; by default, text shows `limit` rows."""
    table = parser.add_argument_group("table")
    table.add_argument(
        "--sort",
        metavar="COLUMN",
        help="sort by this column, largest first: its key, or its heading in the table",
    )
    table.add_argument(
        "--ascending", action="store_true", help="with --sort: smallest first, unknown values last"
    )
    default = "all" if limit is None else str(limit)
    table.add_argument(
        "--limit",
        metavar="N",
        type=count,
        help=f"rows to print, 0 for all (default: {default}; all with --csv and --json)",
    )
    table.add_argument(
        "-c", "--columns", metavar="NAMES", help="columns to print, separated by commas"
    )
    style = table.add_mutually_exclusive_group()
    style.add_argument("--csv", action="store_true", help="CSV, in ns, bytes and FLOP")
    style.add_argument("--json", action="store_true", help="one JSON object, raw units")
    style.add_argument("--markdown", action="store_true", help="a Markdown table")
    add(style, "--width")
    add(table, "--color")


def add_option(parser: argparse.ArgumentParser, option: Option) -> None:
    """Add an option and its shorthand, of which a command takes one."""
    if option.shorthand is None:
        _add_one(parser, option, option.name)
        return
    either = parser.add_mutually_exclusive_group()
    _add_one(either, option, option.name)
    _add_one(either, option.shorthand, option.name)


def _add_one(parser: argparse._ActionsContainer, option: Option, keyword: str) -> None:
    flag = "--" + option.name.replace("_", "-")
    about = option.about.replace("%", "%%")
    if option.is_positional:
        parser.add_argument(
            keyword,
            metavar=option.metavar,
            nargs="*",
            type=_typed(option.type),
            help=about,
        )
    elif option.metavar is None:
        parser.add_argument(flag, dest=keyword, action="store_true", help=about)
    else:
        further: dict[str, Any] = {"action": "append"} if option.is_repeatable else {}
        parser.add_argument(
            flag,
            dest=keyword,
            metavar=option.metavar,
            type=_typed(option.type),
            default=option.default,
            help=about,
            **further,
        )


def _typed(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """The conversion with its own message in usage errors."""

    def typed(text: str) -> Any:
        try:
            return convert(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return typed


def columns_text(columns: Sequence[Heading]) -> str:
    """The columns of a table, for help."""
    if not columns:
        return ""
    width = max(len(heading.key) for heading in columns)
    titles = [heading.header * heading.in_text for heading in columns]
    of_titles = max(map(len, titles))
    lines = [
        f"  {heading.key.ljust(width)}  {title.ljust(of_titles)}  {heading.about}"
        + (f" ({heading.unit})" if heading.unit else "")
        for heading, title in zip(columns, titles, strict=True)
    ]
    return "\n".join(["columns (-c, --sort: key or heading; --json: key):", *lines])


def written(table: Table, arguments: argparse.Namespace, limit: int | None) -> list[str]:
    """A table as the options of `add_table` request, in parts.

    Raises
    ------
    UnknownColumnError
    """
    from fastprof.model.table import json_parts

    if arguments.sort is not None:
        table = table.sort(arguments.sort, arguments.ascending or None)
    if arguments.columns is not None:
        table = table.select([name.strip() for name in arguments.columns.split(",")])
    if arguments.csv or arguments.json:
        if arguments.limit:
            table = table.head(arguments.limit)
        return [table.csv()] if arguments.csv else [*json_parts(table), "\n"]
    most = (limit if arguments.limit is None else arguments.limit) or None
    if arguments.markdown:
        return [table.markdown(most)]
    width = arguments.width or terminal_width(arguments.output)
    return [table.text(most, width=width, colours=colours_of(arguments))]
