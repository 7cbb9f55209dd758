"""`fastprof export`: write a capture in the format of another tool."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from fastprof.cli.options import add, trimmed
from fastprof.cli.output import Bar, log, output
from fastprof.cli.reports import add_option
from fastprof.errors import ReportError
from fastprof.exports.export import is_compressed, write_to
from fastprof.exports.registry import FORMATS, Exporter, find

if TYPE_CHECKING:
    from fastprof.api.profile import Profile

NAME = "export"
HELP = "write a capture in the format of another tool"
DESCRIPTION = """\
Write a capture in the format of another tool. FILE is a trace of any format or dict lines. OUT is
compressed if its name ends with .gz.

  fastprof export net.sqlite --to perfetto -o net.pftrace      # open it in ui.perfetto.dev
  fastprof export net.sqlite --to perfetto --where step=5 -o step5.pftrace.gz

formats (--to):
""" + "\n".join(
    f"  {exporter.name:11} {exporter.about}; {exporter.suffix}" for exporter in FORMATS.values()
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="trace or dict lines")
    parser.add_argument(
        "--to", metavar="FORMAT", required=True, type=_format, help=", ".join(FORMATS)
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="output file (default: -, stdout)")
    for option in {
        option.name: option for exporter in FORMATS.values() for option in exporter.options
    }.values():
        add_option(parser, option)
    add(parser, "--mine", "--ops", "--graph-capture", "--trim")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fastprof.ops.user import load_file

    to: Exporter = arguments.to
    path = None if arguments.output == "-" else arguments.output
    if path is None and not to.is_text and sys.stdout is not None and sys.stdout.isatty():
        arguments.error(f"{to.name} is binary; give -o, such as -o net{to.suffix}")
    options = _options(arguments, to)
    for each in arguments.ops:
        load_file(each)
    profile = _opened(arguments)
    try:
        with output(path) as file:
            write_to(to, profile, file, path is not None and is_compressed(path), **options)
    except ReportError as error:
        arguments.error(str(error))
    return 0


def _options(arguments: argparse.Namespace, to: Exporter) -> dict[str, Any]:
    """The options of the format; those of other formats are usage errors."""
    known = {option.name for option in to.options}
    for exporter in FORMATS.values():
        for option in exporter.options:
            if option.name not in known and getattr(arguments, option.name) != option.default:
                arguments.error(
                    f"--{option.name.replace('_', '-')} does not apply to {to.name}; its options: "
                    f"{', '.join(sorted(f'--{name}' for name in known)) or 'none'}"
                )
    given = {name: getattr(arguments, name) for name in known}
    return {name: value for name, value in given.items() if value is not None}


def _opened(arguments: argparse.Namespace) -> Profile:
    from fastprof.api.open import open_trace

    with Bar() as bar:
        profile = open_trace(
            arguments.file,
            bar,
            copies=True,
            mine=arguments.mine,
            graph_capture=arguments.graph_capture,
        )
    for warning in profile.warnings:
        log(f"warning: {warning}")
    return trimmed(profile, arguments.trim)


def _format(text: str) -> Exporter:
    try:
        return find(text)
    except ReportError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
