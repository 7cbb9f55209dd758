"""`fastprof batch`: read the traces of many ranks and print tables that compare them."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fastprof._system.memory import EXPECTED, parse_size
from fastprof.cli.options import add, colours_of, count
from fastprof.cli.output import log, output, terminal_width
from fastprof.errors import UnknownColumnError

if TYPE_CHECKING:
    from fastprof.api.batch import Batch, Done
    from fastprof.model.table import Table

NAME = "batch"
HELP = "compare the traces of many ranks"
DESCRIPTION = """\
Read many traces, one per rank, and compare the ranks: time by operator, layer, kernel class and
direction, with mean, minimum, maximum and slowest rank; time spent in collectives waiting for other
ranks; work that some ranks lack. Unreadable files are reported and skipped; the exit code is 1.

  fastprof batch traces/ --store results/           # run again: reads only new and changed files
  fastprof batch rank*.json.gz --by op,dir --csv -o ops.csv
  fastprof batch traces/ --scheduler tcp://head:8786
"""
TABLES = ("totals", "collectives", "lacking", "ranks")


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
        "--by",
        metavar="KEYS",
        default="op,layer,class,dir",
        help="comma-separated keys to group by: mod, op, layer, class, dir (default: %(default)s)",
    )
    parser.add_argument(
        "--table", choices=TABLES, help="print only this table (default with --csv: totals)"
    )
    parser.add_argument(
        "--csv", action="store_true", help="print one table as CSV: all rows, times in ns"
    )
    parser.add_argument(
        "--top", metavar="N", type=count, default=20, help="rows per table (default: 20; 0: all)"
    )
    add(parser, "--width", "--color", "--output")
    add_workers(parser)
    add(parser, "--ops", "--graph-capture", "--trim")


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that read many files in worker processes."""
    parser.add_argument(
        "--store",
        metavar="DIR",
        help="keep results in DIR, one file per trace; unchanged traces are not read again",
    )
    parser.add_argument(
        "-j", "--jobs", metavar="N", type=count, help="worker processes (default: number of cores)"
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        type=_size,
        help="memory limit of each process, e.g. 4G (Linux only)",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="run on the Dask cluster with this scheduler, e.g. tcp://HOST:8786",
    )
    parser.add_argument(
        "--no-progress", action="store_true", help="no progress bar; print only failed files"
    )


@contextmanager
def client_of(arguments: argparse.Namespace) -> Iterator[Any]:
    """The client of the Dask cluster of --scheduler; None without one."""
    if arguments.scheduler is None:
        yield None
        return
    from fastprof.ranks.local import connect

    client = connect(arguments.scheduler)
    try:
        yield client
    finally:
        client.close()


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code, 1 if any file could not be read."""
    from fastprof.api.batch import BatchError, batch
    from fastprof.ranks.totals import check

    by = arguments.by.split(",")
    try:
        check(by)
    except UnknownColumnError as error:
        arguments.error(str(error))
    with client_of(arguments) as client:
        try:
            with Files(quiet=arguments.no_progress) as files:
                result = batch(
                    arguments.paths,
                    jobs=arguments.jobs,
                    memory=arguments.memory,
                    client=client,
                    store=arguments.store,
                    progress=files,
                    ops=arguments.ops,
                    pattern=arguments.pattern,
                    graph_capture=arguments.graph_capture,
                    trim=arguments.trim,
                )
        except BatchError as error:
            arguments.error(str(error))
    with output(arguments.output) as file:
        file.write(_report(result, arguments, by).encode("utf-8", "surrogateescape"))
    if result.failures:
        total = len(result.failures) + len(result.summaries)
        log(f"{len(result.failures)} of {total} files could not be read")
    return 1 if result.failures else 0


def _report(found: Batch, arguments: argparse.Namespace, by: list[str]) -> str:
    makers: dict[str, Callable[[], Table]] = {
        "totals": lambda: found.table(by),
        "collectives": found.collectives,
        "lacking": found.lacking,
        "ranks": lambda: found.ranks,
    }
    most = arguments.top or None
    if arguments.csv:
        file = io.StringIO()
        makers[arguments.table or "totals"]().write_csv(file)
        return file.getvalue()

    def text_of(table: Table) -> str:
        width = arguments.width or terminal_width(arguments.output)
        return table.text(most, width=width, colours=colours_of(arguments))

    if arguments.table is not None:
        return text_of(makers[arguments.table]())
    parts = [f"{found.overview()}\n"]
    for name, title in (
        ("totals", f"time by {', '.join(by)}"),
        ("collectives", "waiting for other ranks"),
        ("lacking", "work that some ranks lack"),
    ):
        table = makers[name]()
        parts.append(f"{title}\n{text_of(table)}" if table.n_rows else f"{title}: none\n")
    return "\n".join(parts)


class Files:
    """Progress on stderr: one line per finished file, and a bar if stderr is a terminal."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Any = None

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, done: Done) -> None:
        if done.problem:
            log(f"warning: {done.problem}")
        error = getattr(done.result, "error", None)
        if self._quiet and error is None:
            return
        if self._bar is None and not self._quiet and sys.stderr is not None:
            from tqdm import tqdm

            on_terminal = sys.stderr.isatty()
            self._bar = tqdm(total=done.total, unit=" files", leave=False, disable=not on_terminal)
        if self._bar is not None:
            self._bar.clear()
        log(f"[{done.n}/{done.total}] {error or _line(done)}")
        if self._bar is not None:
            self._bar.update(done.n - self._bar.n)
            self._bar.refresh()


def _line(done: Done) -> str:
    summary: Any = done.result
    how = "unchanged in the store" if done.stored else f"read in {summary.seconds:.2f} s"
    if hasattr(summary, "ranks"):
        calls = sum(len(rank.calls) for rank in summary.ranks)
        n = len(summary.ranks)
        what = f"{n} {'rank' if n == 1 else 'ranks'}, {calls} collectives"
        n_warnings = sum(len(rank.warnings) for rank in summary.ranks)
    else:
        time = sum(process.time for process in summary.processes) / 1e6
        what = f"{summary.kernels} kernels, {time:.3f} ms on the GPU"
        n_warnings = len(summary.warnings)
    warned = f", {n_warnings} warnings" if n_warnings else ""
    return f"{summary.path}: {what}, {how}{warned}"


def _size(text: str) -> int:
    size = parse_size(text)
    if size is None:
        raise argparse.ArgumentTypeError(f"{EXPECTED}, found {text!r}")
    return size
