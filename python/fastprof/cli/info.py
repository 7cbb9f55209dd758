"""`fastprof info`: summarize a trace and suggest what to record."""

from __future__ import annotations

import argparse

from fastprof.cli.options import add
from fastprof.cli.output import Bar, log, output, terminal_width

NAME = "info"
HELP = "summarize a trace and suggest what to record"
DESCRIPTION = """\
Summarize a trace or a file of dict lines: format, GPUs, rank, processes, steps, counts, and the
share of GPU time attributed at each level of detail, with advice on what to record for more.

  fastprof info net.sqlite
  fastprof info net.sqlite --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="trace or dict lines")
    add(parser, "--graph-capture")
    parser.add_argument("--json", action="store_true", help="print one JSON object; times in ns")
    add(parser, "--width")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import json

    from fastprof.api.open import open_trace
    from fastprof.writers.info import describe, info_text

    with Bar() as bar:
        profile = open_trace(
            arguments.file, bar, copies=True, graph_capture=arguments.graph_capture
        )
    for warning in profile.warnings:
        log(f"warning: {warning}")
    info = describe(profile)
    if arguments.json:
        text = json.dumps(info, indent=2) + "\n"
    else:
        text = info_text(info, arguments.width or terminal_width(None))
    with output(None) as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    return 0
