"""`fastprof batch`: many traces, one a rank, to tables over all ranks."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastprof._system.sizes import EXPECTED, parse_size
from fastprof.cli.output import OutputError, output
from fastprof.cli.progress import add_graph_capture, tell
from fastprof.errors import UnknownColumnError

if TYPE_CHECKING:
    from fastprof.ranks.batch import Done
    from fastprof.ranks.result import Batch
    from fastprof.ranks.table import Table

NAME = "batch"
HELP = "read the traces of many ranks, compare the ranks"
DESCRIPTION = """\
Read many traces, a file a rank, and compare the ranks: time by operator, layer, kernel class and
direction, its mean, least and most, and the slowest rank; how long ranks wait for each other in
collectives; what ranks lack that the others have. A file that cannot be read stops nothing.

  fastprof batch traces/ --store results/           # run it again: what is done is not done again
  fastprof batch rank*.json.gz --by op,dir --csv -o ops.csv
  fastprof batch traces/ --scheduler tcp://head:8786
"""
TABLES = ("totals", "collectives", "lacking", "ranks")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "paths", metavar="FILE|DIR", nargs="+", help="traces, and directories to search for them"
    )
    parser.add_argument(
        "--pattern", metavar="GLOB", help="what names in directories match: '*.pt.trace.json.gz'"
    )
    parser.add_argument(
        "--by",
        metavar="KEYS",
        default="op,layer,class,dir",
        help="what to add up by: mod, op, layer, class, dir (default: %(default)s)",
    )
    parser.add_argument(
        "--table", choices=TABLES, help="only this table (with --csv: totals without it)"
    )
    parser.add_argument(
        "--csv", action="store_true", help="one table as CSV, all rows, times in ns"
    )
    parser.add_argument(
        "--top", metavar="N", type=_count, default=20, help="rows of a table (default: 20; 0: all)"
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="write to a file, not to stdout")
    parser.add_argument(
        "--store",
        metavar="DIR",
        help="keep a Parquet file a trace there, and do not read again what is there and unchanged",
    )
    parser.add_argument(
        "-j", "--jobs", metavar="N", type=_count, help="processes (default: as many as cores)"
    )
    parser.add_argument(
        "--memory", metavar="SIZE", type=_size, help="what a process may have: 4G (Linux)"
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="on a Dask cluster instead: tcp://HOST:8786"
    )
    parser.add_argument("--all", action="store_true", help="memory copies and memsets count too")
    parser.add_argument(
        "--ops",
        metavar="FILE",
        action="append",
        default=[],
        help="run a Python file that registers costs of your own operators (fastprof.op)",
    )
    add_graph_capture(parser)
    parser.add_argument("--no-progress", action="store_true", help="no bar, and no line a file")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit code: 1 if any file could not be read."""
    from fastprof.ranks.batch import BatchError, batch
    from fastprof.ranks.cluster import connect
    from fastprof.ranks.totals import check

    by = arguments.by.split(",")
    try:
        check(by)
    except UnknownColumnError as error:
        arguments.error(str(error))
    if arguments.output is not None:
        _refuse_input(arguments.output, arguments.paths)
    client = None if arguments.scheduler is None else connect(arguments.scheduler)
    try:
        with _Files(quiet=arguments.no_progress) as files:
            found = batch(
                arguments.paths,
                jobs=arguments.jobs,
                memory=arguments.memory,
                client=client,
                store=arguments.store,
                progress=files,
                ops=arguments.ops,
                copies=arguments.all,
                pattern=arguments.pattern,
                graph_capture=arguments.graph_capture,
            )
    except BatchError as error:
        arguments.error(str(error))
    finally:
        if client is not None:
            client.close()
    with output(arguments.output, None) as file:
        file.write(_report(found, arguments, by).encode("utf-8", "surrogateescape"))
    if found.failures:
        total = len(found.failures) + len(found.summaries)
        tell(f"{len(found.failures)} of {total} files could not be read")
    return 1 if found.failures else 0


def _refuse_input(path: str, inputs: list[str]) -> None:
    for each in inputs:
        if os.path.exists(path) and os.path.exists(each) and os.path.samefile(path, each):
            raise OutputError(f"{path}: is an input; choose another name for -o")


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
    if arguments.table is not None:
        return makers[arguments.table]().text(most)
    parts = [f"{found.overview()}\n"]
    for name, title in (
        ("totals", f"time by {', '.join(by)}"),
        ("collectives", "waiting for other ranks"),
        ("lacking", "what ranks lack"),
    ):
        table = makers[name]()
        parts.append(f"{title}\n{table.text(most)}" if table.n_rows else f"{title}: nothing\n")
    return "\n".join(parts)


class _Files:
    """A line on stderr for each file that is done, and on a terminal a bar below them."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Any = None

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, done: Done) -> None:
        error = getattr(done.result, "error", None)
        if self._quiet and error is None:
            return
        if self._bar is None and not self._quiet and sys.stderr is not None:
            from tqdm import tqdm

            on_terminal = sys.stderr.isatty()
            self._bar = tqdm(total=done.total, unit=" files", leave=False, disable=not on_terminal)
        if self._bar is not None:
            self._bar.clear()
        tell(f"[{done.n}/{done.total}] {error or _line(done)}")
        if self._bar is not None:
            self._bar.update(done.n - self._bar.n)
            self._bar.refresh()


def _line(done: Done) -> str:
    summary: Any = done.result
    time = sum(process.time for process in summary.processes) / 1e6
    how = "done before" if done.stored else f"read in {summary.seconds:.2f} s"
    warned = f", {len(summary.warnings)} warnings" if summary.warnings else ""
    return f"{summary.path}: {summary.kernels} kernels, {time:.3f} ms on the GPU, {how}{warned}"


def _count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"expected a number, found {text!r}")
    return int(text)


def _size(text: str) -> int:
    size = parse_size(text)
    if size is None:
        raise argparse.ArgumentTypeError(f"{EXPECTED}, found {text!r}")
    return size
