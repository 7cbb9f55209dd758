"""`fastprof repro`: write a script that repeats calls of a trace, to try a change on them."""

from __future__ import annotations

import argparse
from functools import partial

from fastprof.analysis.options import WHERE
from fastprof.cli.options import add, count, trimmed
from fastprof.cli.output import Bar, log, output
from fastprof.cli.reports import add_option, log_unmatched
from fastprof.errors import ReportError

NAME = "repro"
_SELECTORS = ("op", "layer", "line", "shape")
HELP = "write a script that repeats the slowest calls, with what was recorded of them"
DESCRIPTION = """\
Write a Python script that makes the inputs of recorded calls (sizes, types, strides, numbers), runs
them forward and, where the trace has it, backward, and prints time, TFLOP/s, GB/s and the share of
the roof beside the recorded ones. The script needs torch only. Calls are in the order of the time
that they lose against their ideal time, as in fastprof roofline.

  fastprof repro resnet50.json.gz -o repro.py             # the call that loses most
  fastprof repro resnet50.json.gz --top 10 -o repro.py    # ten of them
  fastprof repro resnet50.json.gz --op conv2d             # the first convolution
  fastprof repro resnet50.json.gz --idx 42                # what launched kernel 42
  fastprof repro resnet50.json.gz --op conv2d --variants  # and what advice names for it
  python repro.py                                         # on the GPU; --device cpu or meta proves
                                                          # that it runs

--variants also runs each call with what fastprof advise names for it, and compares the results:
16-bit types and TF32, padded sizes, channels_last, the backends of attention, torch.compile.

Values are random. Integers that index another argument are below its size. Calls that a script
cannot repeat are named with the reason: a list or the type of a tensor is not in the trace, another
library defines the operator (import it with --import of the script, or name its function with
fastprof.op in a file of --ops), torch.compile made it.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="trace with shapes of torch.profiler, or with ranges of fastprof.init",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--top", metavar="N", type=count, default=1, help="calls (default: 1)")
    which.add_argument("--call", metavar="N", type=count, help="only the N-th call")
    which.add_argument(
        "--idx",
        metavar="IDX",
        type=count,
        help="only the call that launched this kernel, as fastprof find, kernel and prof number it",
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="the script (default: -, stdout)")
    add_option(parser, WHERE)
    for key in _SELECTORS:
        parser.add_argument(
            f"--{key}",
            dest="where",
            metavar="PATTERN",
            action="append",
            type=partial("{}={}".format, key),
            help=f"the same as --where {key}=PATTERN",
        )
    parser.add_argument(
        "--variants", action="store_true", help="also what fastprof advise names for these calls"
    )
    add(parser, "--ops", "--graph-capture", "--trim")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fastprof.analysis.repro.script import script
    from fastprof.api.open import open_trace
    from fastprof.ops.user import load_file

    for path in arguments.ops:
        load_file(path)

    with Bar() as bar:
        profile = open_trace(arguments.file, bar, graph_capture=arguments.graph_capture)
    profile = trimmed(profile, arguments.trim)
    log_unmatched(profile, arguments.where)
    try:
        result = script(
            profile,
            arguments.where,
            arguments.call,
            arguments.top,
            arguments.variants,
            arguments.idx,
        )
    except ReportError as error:
        arguments.error(str(error))
    path = None if arguments.output == "-" else arguments.output
    with output(path) as target:
        target.write(result.text.encode())
    calls = f"{result.calls} call{'s' * (result.calls > 1)}"
    log(f"{calls}, {result.share:.1%} of the GPU time{f' in {path}' if path else ''}")
    for line in result.refused:
        log(f"not repeated: {line}")
    return 0
