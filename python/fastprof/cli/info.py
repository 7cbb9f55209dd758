"""`fastprof info`: what a file holds, and what to record next time."""

from __future__ import annotations

import argparse

from fastprof.cli.output import output
from fastprof.cli.progress import Bar, add_graph_capture, tell

NAME = "info"
HELP = "say what a trace holds, and how to record more"
DESCRIPTION = """\
Say what a trace or a file of dict lines holds: format, GPUs, ranks, processes, steps, counts, how
much of the GPU time is known to which depth, and what to record next time to know more.

  fastprof info net.sqlite
  fastprof info net.sqlite --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("file", metavar="FILE", help="a trace or dict lines")
    add_graph_capture(parser)
    parser.add_argument("--json", action="store_true", help="as one JSON object; times are ns")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit code."""
    import json

    from fastprof.profile.load import open as open_trace
    from fastprof.report.info import describe, info_text

    with Bar() as bar:
        profile = open_trace(
            arguments.file, bar, copies=True, graph_capture=arguments.graph_capture
        )
    for warning in profile.warnings:
        tell(f"warning: {warning}")
    info = describe(profile)
    text = json.dumps(info, indent=2) + "\n" if arguments.json else info_text(info)
    with output(None, None) as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    return 0
