"""`fastprof report`: write a page for a browser."""

from __future__ import annotations

import argparse
import os

from fastprof.analysis.roofline_columns import PEAKS
from fastprof.cli.options import add_graph_capture, add_mine, add_ops
from fastprof.cli.output import output
from fastprof.cli.progress import Bar, log
from fastprof.cli.reports import add_option
from fastprof.errors import ReportError

NAME = "report"
HELP = "write an HTML page with all reports and charts"
DESCRIPTION = """\
Write one HTML file with the answer, findings, charts and sortable tables. It opens from disk in any
current browser and loads nothing from the network.

  fastprof report net.sqlite                 # writes net.html
  fastprof report net.sqlite -o report.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="trace or dict lines")
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="HTML file to write (default: FILE with .html)"
    )
    for option in PEAKS:
        add_option(parser, option)
    add_mine(parser)
    add_ops(parser)
    add_graph_capture(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fastprof.ops.user import load_file
    from fastprof.page import page_of
    from fastprof.profile.load import open as open_trace

    for path in arguments.ops:
        load_file(path)
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
    try:
        page = page_of(profile, arguments.gpu, arguments.peak, arguments.bandwidth)
    except ReportError as error:
        arguments.error(str(error))
    path = arguments.output or _default_output(arguments.file)
    with output(path, arguments.file) as file:
        file.write(page.html.encode())
    log(f"wrote {path}")
    return 0


_SUFFIXES = (".gz", ".json", ".pt", ".trace")  # NAME.pt.trace.json.gz


def _default_output(path: str) -> str:
    """The name of the page: that of the file, in the current directory, with .html."""
    name = os.path.basename(path.rstrip(os.sep)) or "report"
    stem, suffix = os.path.splitext(name)
    while stem and suffix in _SUFFIXES:
        name, (stem, suffix) = stem, os.path.splitext(stem)
    return f"{stem if suffix and suffix not in _SUFFIXES else name}.html"
