"""`fastprof report`: write a page for a browser."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from fastprof.analysis.options import STEPS, WHERE
from fastprof.analysis.roofline.columns import PEAKS
from fastprof.cli.batch import Files
from fastprof.cli.options import add, trimmed
from fastprof.cli.output import Bar, log, output
from fastprof.cli.reports import add_option, is_of_ranks, log_unmatched
from fastprof.errors import ReportError
from fastprof.runs.directory import is_run

if TYPE_CHECKING:
    from fastprof.model.page import Page

NAME = "report"
HELP = "write an HTML page with all reports and charts"
DESCRIPTION = """\
Write one HTML file with the answer, findings, charts and sortable tables. It opens from disk in any
current browser and loads nothing from the network. Several files, or a directory, are the ranks of
a run: who waits for whom, on one time line (see fastprof ranks). Traces without a collective in
common are compared by their sums, as by fastprof batch. Unreadable files are reported and skipped;
the exit code is 1.

  fastprof report net.sqlite                  # writes net.html
  fastprof report net.sqlite -o report.html
  fastprof report traces/ -o ranks.html --each
"""
_OF_ONE_FILE = ("gpu", "peak", "bandwidth", "mine", "where", "compiled", "graph_annotations")
_RANKS = "ranks.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "paths",
        metavar="FILE|DIR",
        nargs="+",
        help="trace or dict lines; several traces, or a directory of them, are ranks",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help=f"HTML file to write (default: name of FILE or run with .html; {_RANKS} for ranks)",
    )
    parser.add_argument(
        "--each",
        action="store_true",
        help="of ranks, also write a page for each, into the directory OUT_ranks, with links",
    )
    for option in (STEPS, WHERE, *PEAKS):
        add_option(parser, option)
    add(parser, "--mine", "--ops", "--graph-capture", "--graph-annotations", "--compiled")
    add(parser, "--trim")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code, 1 if any file could not be read."""
    paths = arguments.paths
    of_ranks = len(paths) > 1 or is_of_ranks(paths[0])
    path = arguments.output or default_output(paths[0], of_ranks)
    if arguments.each and not of_ranks:
        arguments.error("--each: expected the files of several ranks, or a directory")
    page, n_failed = _page_of_ranks(arguments, path) if of_ranks else (_page_of_file(arguments), 0)
    with output(path) as file:
        file.write(page.html.encode())
    log(f"wrote {path}, {os.path.getsize(path) / 1e6:.1f} MB")
    if n_failed:
        log(f"{n_failed} files could not be read")
    return 1 if n_failed else 0


def _page_of_file(arguments: argparse.Namespace) -> Page:
    from fastprof.api.open import open_trace
    from fastprof.ops.user import load_file
    from fastprof.page import page_of
    from fastprof.page.section import open_for_page

    for path in arguments.ops:
        load_file(path)
    with Bar() as bar:
        profile = open_for_page(
            arguments.paths[0],
            open_trace,
            bar,
            mine=arguments.mine,
            graph_capture=arguments.graph_capture,
            compiled=arguments.compiled,
            graph_annotations=arguments.graph_annotations,
        )
    for warning in filter(None, (*profile.warnings, profile.source.host_omitted)):
        log(f"warning: {warning}")
    profile = trimmed(profile, arguments.trim)
    if arguments.steps is not None:
        profile = profile.with_steps(arguments.steps)
    try:
        peaks = arguments.gpu, arguments.peak, arguments.bandwidth
        page = page_of(profile, *peaks, arguments.where)
    except ReportError as error:
        arguments.error(str(error))
        raise
    log_unmatched(profile, arguments.where)
    return page


def _page_of_ranks(arguments: argparse.Namespace, path: str) -> tuple[Page, int]:
    """The page, and the number of unreadable files; with --each, writes those of the ranks."""
    from fastprof.api.ranks import RanksError, open_ranks
    from fastprof.page.run import page_of_run
    from fastprof.page.run.each import write_pages

    given = [f"--{name}" for name in _OF_ONE_FILE if getattr(arguments, name)]
    if given:
        arguments.error(f"{', '.join(given)}: only for one trace, not for ranks")
    if arguments.trim is not None:
        return _page_of_sums(arguments)
    try:
        with Files(quiet=False) as files:
            run = open_ranks(
                arguments.paths,
                progress=files,
                ops=arguments.ops,
                graph_capture=arguments.graph_capture,
                steps=arguments.steps,
            )
    except RanksError as error:
        log(f"{error}; the page compares sums of the files")
        return _page_of_sums(arguments)
    if not run.waits.is_shared.any():
        return _page_of_sums(arguments)
    each = {}
    if arguments.each:
        each = write_pages(
            run,
            path,
            graph_capture=arguments.graph_capture,
            progress=lambda name: log(f"wrote {name}"),
        )
    return page_of_run(run, each=each), len(run.failures) + len(run.empty)


def _page_of_sums(arguments: argparse.Namespace) -> tuple[Page, int]:
    """The page of `fastprof batch`, and the number of unreadable files."""
    from fastprof.api.batch import batch
    from fastprof.page.ranks import page_of_ranks

    if arguments.each or arguments.steps is not None:
        name = "--each" if arguments.each else "--steps"
        arguments.error(f"{name}: expected the ranks of one run; these files are compared by sums")
    with Files(quiet=False) as files:
        result = batch(
            arguments.paths,
            progress=files,
            ops=arguments.ops,
            copies=True,
            graph_capture=arguments.graph_capture,
            trim=arguments.trim,
        )
    return page_of_ranks(result), len(result.failures)


_SUFFIXES = (".gz", ".json", ".pt", ".trace")  # NAME.pt.trace.json.gz


def default_output(path: str, of_ranks: bool = False) -> str:
    """The name of the page, in the current directory: that of the run or trace with .html."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    if is_run(folder):
        return f"{os.path.basename(os.path.abspath(folder))}.html"
    if of_ranks:
        return _RANKS
    name = os.path.basename(path)
    stem, suffix = os.path.splitext(name)
    while stem and suffix in _SUFFIXES:
        name = stem
        stem, suffix = os.path.splitext(name)
    is_known = suffix in (".sqlite", ".db", ".rpd", ".nvvp", ".dict", ".sql", ".jsonl", ".nsys-rep")
    return f"{stem if is_known else name}.html"
