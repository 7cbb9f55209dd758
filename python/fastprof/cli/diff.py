"""`fastprof diff`: what changed between two captures, and whether it is more than noise."""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from fastprof.analysis.diff.columns import COLUMNS, DEFAULT_BY, DIFF_KEYS, diff_keys
from fastprof.analysis.options import STEPS, WHERE
from fastprof.cli.options import add, tag, trimmed
from fastprof.cli.output import Bar, log, output
from fastprof.cli.reports import add_option, add_table, columns_text, is_of_ranks, written
from fastprof.errors import ReportError, UnknownColumnError
from fastprof.model.heading import column_key

if TYPE_CHECKING:
    from fastprof.analysis.diff.captures import Captures, Opener
    from fastprof.analysis.diff.side import Side
    from fastprof.api.diff import Diff
    from fastprof.model.table import Table

NAME = "diff"
HELP = "compare two captures: did the change help, and why"
DESCRIPTION = """\
Compare two captures of any formats, or of all ranks of two runs: the step before and after with
a 95 % confidence interval, then what made the change. Work is matched by layer, operator, shapes
and line; the rest of a step is idle time by cause. The changes of all rows add up to that of the
step.

  fastprof diff before.sqlite after.sqlite --by op --fail-above 3     # exit code 4 if slower
  fastprof diff before.sqlite after.sqlite --markdown -o comment.md
  fastprof diff before.sqlite after.sqlite --html change.html
  fastprof diff --baseline perf.sqlite --save before.sqlite --tag commit=4f2a
  fastprof diff --baseline perf.sqlite after.sqlite

The interval is Welch's, from the spread of the steps of both captures; with --runs, of the runs. It
assumes that both ran under the same conditions. Fewer than 3 steps are not judged. Where findings
of `fastprof advise BEFORE` are gone, the last lines compare what it predicted with what was
measured.

$ fastprof diff before.sqlite after.sqlite --by op --limit 5 -w 80 \\
    --steps 'anchor:flash_fwd_kernel>5ms'
step 17.57 -> 19.95 ms, +13.6% (95% interval +3.9% to +24.2% from 15 and 14
  steps): slower; medians 16.68 -> 18.9 ms
before: before.sqlite, 32 steps in 2 processes, each from a launch of
  'flash_fwd_kernel>5ms'
after: after.sqlite, 30 steps in 2 processes, each from a launch of
  'flash_fwd_kernel>5ms'
same work: 157 kernels a step and GPU
GPU busy                 16.05 -> 16.43 ms (+2.4%)
idle                     1.518 -> 3.521 ms (+132.0%)
exposed communication    0.7985 -> 1.123 ms (+40.7%)
exposed copies           173.7 -> 173.7 us (+0.0%)
host in synchronisation  9.825 -> 9.713 ms (-1.1%)
launch call              8.006 -> 11.16 us (+39.4%)
starved kernels          8.0% -> 33.0%

part                  op              before(ms)  after(ms)  change(ms)  why
idle: launch-bound    na                   0.113      0.901       0.788  more
idle: launch latency  na                   0.487      1.194       0.707  more
idle: host-bound      na                   0.862      1.370       0.507  same
communication         alltoall_base_       0.798      1.123       0.325  same
compute               linear               1.708      1.740       0.032  same
... 21 more rows
total                                     17.569     19.954       2.385
(too narrow for of change(%), GPU before(ms), GPU after(ms))
BEFORE: means exclude step 16: the capture ends within it
AFTER: means exclude step 15: the capture ends within it
"""
SLOWER: Final = 4  # the exit code
_LIMIT: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "captures",
        metavar="CAPTURE",
        nargs="+",
        help="BEFORE and AFTER, with --baseline only AFTER: traces, or directories that contain "
        "the traces of all ranks of a run",
    )
    parser.add_argument(
        "--by",
        metavar="KEYS",
        type=_keys,
        default=DEFAULT_BY,
        help=f"keys of the rows, separated by commas: {', '.join(DIFF_KEYS)} (default: "
        f"{','.join(DEFAULT_BY)})",
    )
    add_option(parser, STEPS)
    add_option(parser, WHERE)
    judge = parser.add_argument_group("judgement")
    judge.add_argument(
        "--fail-above",
        metavar="PERCENT",
        type=share,
        help="exit code 4 if the step is slower by more than this beyond noise: the lower end of "
        "the interval is above it",
    )
    judge.add_argument(
        "--threshold",
        metavar="PERCENT",
        type=share,
        default=0.02,
        help="smaller changes are called the same (default: 2)",
    )
    judge.add_argument(
        "--runs",
        metavar="BEFORE,AFTER",
        type=_pair,
        action="append",
        default=[],
        help="a further run of each; the interval is then that of runs (repeatable)",
    )
    _add_store(parser)
    add_table(parser, _LIMIT)
    add(parser, "--output")
    parser.add_argument("--html", metavar="OUT", help="also write an HTML page to OUT")
    add(parser, "--mine", "--ops", "--graph-capture", "--trim")
    parser.epilog = columns_text(COLUMNS)


def _add_store(parser: argparse.ArgumentParser) -> None:
    """Add the options of stored captures."""
    store = parser.add_argument_group("stored captures")
    store.add_argument(
        "--baseline",
        metavar="STORE",
        help="file or directory of stored captures; the newest is in place of BEFORE",
    )
    store.add_argument(
        "--against",
        metavar="ID|KEY=VALUE",
        help="compare with this capture of --baseline, or the newest with this tag",
    )
    store.add_argument(
        "--save", action="store_true", help="add the capture to --baseline; compare nothing"
    )
    store.add_argument(
        "--tag",
        metavar="KEY=VALUE",
        type=tag,
        action="append",
        default=[],
        help="a tag of the capture that --save adds (repeatable)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 4 if the step is slower than --fail-above."""
    from fastprof.ops.user import load_file

    captures = _captures(arguments)
    _check_columns(arguments)
    for path in arguments.ops:
        load_file(path)
    if arguments.save:
        _save(arguments, captures[0])
        return 0
    result = _compared(arguments, captures)
    text = written(_with_earlier(result, arguments), arguments, _LIMIT)
    with output(arguments.output) as file:
        for part in text:
            file.write(part.encode("utf-8", "surrogateescape"))
    if arguments.html is not None:
        html = result.page().html.encode()
        with output(arguments.html) as file:
            file.write(html)
        log(f"wrote {arguments.html}")
    limit = arguments.fail_above
    if limit is None:
        return 0
    if result.confidence.low is None:
        log(f"--fail-above: not judged: {result.confidence.because}")
    return SLOWER if result.confidence.is_above(limit) else 0


def _with_earlier(found: Diff, arguments: argparse.Namespace) -> Table:
    """The table of a comparison, with the predictions of earlier ones with this baseline.

    Keeps those of this one.
    """
    from fastprof.analysis.diff.predictions import earlier_lines
    from fastprof.analysis.diff.store import BaselineError, earlier, remember

    table, directory = found.table(), arguments.baseline
    if directory is None:
        return table
    try:
        pair = found.pair()
        pairs = [
            mapping
            for mapping in earlier(directory)
            if not pair or mapping["after"] != pair["after"]
        ]
        if pair is not None:
            remember(directory, pair)
    except BaselineError as error:
        log(f"warning: {error}")
        return table
    if not pairs:
        return table
    notes = (*table.notes, *earlier_lines(pairs))
    return replace(table, notes=notes, facts={**table.facts, "earlier": pairs})


def _captures(arguments: argparse.Namespace) -> list[str]:
    """The captures to compare, or the one to store; usage errors end the program."""
    given: list[str] = arguments.captures
    if arguments.save and arguments.baseline is None:
        arguments.error("--save adds the capture to the store of --baseline STORE")
    if arguments.tag and not arguments.save:
        arguments.error("--tag needs --save, which adds the capture")
    if arguments.against is not None and (arguments.save or arguments.baseline is None):
        arguments.error("--against needs --baseline STORE, without --save")
    expected = 2 if arguments.baseline is None else 1
    if len(given) != expected:
        needed = ("AFTER with --baseline", "BEFORE and AFTER")[expected - 1]
        arguments.error(f"expected {needed}, found {' '.join(given)}")
    return given if arguments.save or arguments.baseline is None else [arguments.baseline, *given]


def _check_columns(arguments: argparse.Namespace) -> None:
    names = [arguments.sort or "", *(arguments.columns or "").split(",")]
    for name in filter(None, names):
        try:
            column_key(name.strip(), COLUMNS[1:], ["part", *arguments.by])
        except UnknownColumnError as error:
            arguments.error(str(error))


def _compared(arguments: argparse.Namespace, captures: list[str]) -> Diff:
    from fastprof.api.diff import diff

    before: Captures = _ranks(captures[0])
    if arguments.baseline is not None:
        before = _baseline(arguments)  # before AFTER is read, which may take long
    with Bar() as bar:
        return diff(
            before,
            _ranks(captures[1]),
            arguments.by,
            arguments.steps,
            arguments.where,
            runs=[(_ranks(before), _ranks(after)) for before, after in arguments.runs],
            threshold=arguments.threshold,
            opened=_opener(arguments, bar),
        )


def _baseline(arguments: argparse.Namespace) -> Side:
    """The stored capture; AFTER is then measured as it was."""
    from fastprof.analysis.diff.captures import agreed
    from fastprof.analysis.diff.store import load

    store = arguments.baseline
    baseline = load(store, arguments.against)
    arguments.trim = agreed(store, "trim", arguments.trim, baseline.trim)
    arguments.steps = agreed(store, "steps", arguments.steps, baseline.steps)
    arguments.where = agreed(store, "where", tuple(arguments.where or ()), baseline.where)
    return baseline.side


def _save(arguments: argparse.Namespace, capture: str) -> None:
    from fastprof.api.history import add_capture

    with Bar() as bar:
        path, number = add_capture(
            arguments.baseline,
            _ranks(capture),
            dict(arguments.tag),
            arguments.steps,
            arguments.where,
            trim=arguments.trim,
            opened=_opener(arguments, bar),
        )
    log(f"stored {capture} in {path} as capture {number}")


def _ranks(path: str) -> Captures:
    """The traces of a directory, or the file or store itself."""
    from fastprof.analysis.diff.store import is_store
    from fastprof.ranks.files import find

    return find(path) if is_of_ranks(path) and not is_store(path) else path


def _opener(arguments: argparse.Namespace, bar: Bar) -> Opener:
    from fastprof.api.open import open_trace
    from fastprof.api.profile import Profile

    opened = partial(
        open_trace,
        progress=bar,
        host=True,
        mine=arguments.mine,
        graph_capture=arguments.graph_capture,
    )

    def warned(path: str | os.PathLike[str]) -> Profile:
        profile = opened(path)
        for warning in profile.warnings:
            log(f"warning: {os.fspath(path)}: {warning}")
        return trimmed(profile, arguments.trim)

    return warned


def _keys(text: str) -> tuple[str, ...]:
    try:
        return diff_keys(text)
    except ReportError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def share(text: str) -> float:
    """A percentage as a share."""
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a percentage such as 3, found {text!r}")
    return value / 100


def _pair(text: str) -> tuple[str, str]:
    before, comma, after = text.partition(",")
    if not (before and comma and after) or "," in after:
        raise argparse.ArgumentTypeError(f"expected BEFORE,AFTER, found {text!r}")
    return before, after
