"""`fastprof explain`: what a word on a screen means."""

from __future__ import annotations

import argparse
import textwrap

from fastprof.cli.options import add
from fastprof.cli.output import output, terminal_width

NAME = "explain"
HELP = "explain a term, a column, a cause of idle time or a finding"
DESCRIPTION = """\
Explain a word that a report prints: a term, the heading or key of a column, a cause of idle time or
a finding. Without a word, list the terms.

  fastprof explain roof
  fastprof explain launch latency
  fastprof explain far-from-roof
"""
_WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("term", metavar="TERM", nargs="*", help="the word or words")
    add(parser, "--width")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fastprof.analysis.glossary import TERMS, causes, explain

    width = arguments.width or terminal_width(None) or _WIDTH
    if arguments.term:
        try:
            entries = explain(" ".join(arguments.term))
        except KeyError as error:
            arguments.error(error.args[0])
        lines = [
            line
            for what, text in entries
            for line in textwrap.wrap(f"{what}: {text}", width, subsequent_indent="  ")
        ]
    else:
        terms = ", ".join(sorted([*TERMS, *causes()], key=str.lower))
        lines = textwrap.wrap(terms, width, break_on_hyphens=False)
    with output(None) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
    return 0
