"""`fastprof export`: write a capture, or all ranks of a run, in the format of another tool."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from fastprof.cli.options import add, trimmed
from fastprof.cli.output import Bar, log, output
from fastprof.cli.reports import add_option, is_of_ranks
from fastprof.errors import ReportError
from fastprof.exports.export import is_compressed, write_to
from fastprof.exports.registry import FORMATS, RUNS, Exporter, find
from fastprof.runs.directory import resolved

if TYPE_CHECKING:
    from fastprof.api.profile import Profile

NAME = "export"
HELP = "write a capture in the format of another tool"
DESCRIPTION = """\
Write a capture in the format of another tool. FILE is a trace of any format or dict lines. OUT is
compressed if its name ends with .gz. Several FILEs, or a directory of traces, are the ranks of a
run: perfetto has them all on one clock, with a flow from each wait to the rank that arrives last.

  fastprof export net.sqlite --to perfetto -o net.pftrace      # open it in ui.perfetto.dev
  fastprof export traces/ --to perfetto -o run.pftrace.gz      # all ranks of a run
  fastprof export net.sqlite --to perfetto --where step=5 -o step5.pftrace.gz

formats (--to):
""" + "\n".join(
    f"  {exporter.name:11} {exporter.about}; {exporter.suffix}" for exporter in FORMATS.values()
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "paths",
        metavar="FILE|DIR",
        nargs="+",
        help="trace or dict lines; several, or a directory: the ranks of a run",
    )
    parser.add_argument(
        "--to", metavar="FORMAT", required=True, type=_format, help=", ".join(FORMATS)
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="output file (default: -, stdout)")
    for option in {
        option.name: option for exporter in FORMATS.values() for option in exporter.options
    }.values():
        add_option(parser, option)
    parser.add_argument(
        "--no-kernels",
        action="store_true",
        help="of a run: only the time line and the collectives of each rank",
    )
    add(parser, "--mine", "--ops", "--graph-capture", "--trim")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fastprof.ops.user import load_file

    to: Exporter = arguments.to
    path = None if arguments.output == "-" else arguments.output
    if path is None and not to.is_text and sys.stdout is not None and sys.stdout.isatty():
        arguments.error(f"{to.name} is binary; give -o, such as -o net{to.suffix}")
    options = _options(arguments, to)
    for op in arguments.ops:
        load_file(op)
    if _is_run(arguments, to):
        return _write_run(arguments, path, options)
    if arguments.no_kernels:
        arguments.error("--no-kernels needs a run: several FILEs, or a directory")
    profile = _opened(arguments)
    try:
        with output(path) as file:
            write_to(to, profile, file, path is not None and is_compressed(path), **options)
    except ReportError as error:
        arguments.error(str(error))
    return 0


def _is_run(arguments: argparse.Namespace, to: Exporter) -> bool:
    """Whether to export all ranks; formats without them get the first trace of `fastprof run`."""
    paths = arguments.paths
    if len(paths) == 1 and not is_of_ranks(paths[0]):
        return False
    if to.name == RUNS:
        if arguments.trim is not None:
            arguments.error("--trim needs one FILE, not the ranks of a run")
        return True
    first = resolved(paths[0], one=True)
    if len(paths) > 1 or first == paths[0]:
        arguments.error(f"only {RUNS} has the ranks of a run; give one FILE for {to.name}")
    log(f"reads {first}; all ranks: --to {RUNS}")
    arguments.paths = [first]
    return False


def _write_run(arguments: argparse.Namespace, path: str | None, options: dict[str, Any]) -> int:
    """Write all ranks; returns the exit code, 1 if any file could not be read."""
    from fastprof.api.open import open_trace
    from fastprof.api.ranks import open_ranks
    from fastprof.cli.batch import Files
    from fastprof.exports.export import compressed_to
    from fastprof.exports.perfetto.run import write_run

    is_quiet = sys.stderr is None or not sys.stderr.isatty()
    with Files(quiet=is_quiet) as files:
        run = open_ranks(
            arguments.paths,
            progress=files,
            graph_capture=arguments.graph_capture,
            ops=arguments.ops,
            steps=options.get("steps"),
        )
    loaded = {"mine": arguments.mine, "graph_capture": arguments.graph_capture}
    try:
        with output(path) as file, compressed_to(file, path or "") as target:
            write_run(
                run,
                target,
                kernels=not arguments.no_kernels,
                where=options.get("where"),
                opened=lambda each: open_trace(each, copies=True, **loaded),
            )
    except ReportError as error:
        arguments.error(str(error))
    return 1 if run.failures else 0


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
            arguments.paths[0],
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
