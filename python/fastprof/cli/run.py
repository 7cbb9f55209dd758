"""`fastprof run`: run a program unchanged, record a few of its steps and print the answer."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastprof._system.memory import EXPECTED, parse_size
from fastprof._system.reasons import memory_shortage, reason
from fastprof._system.regex import regex
from fastprof.analysis.reports import report_of
from fastprof.cli.options import wants_colours
from fastprof.cli.output import log, output
from fastprof.errors import BadInputError, FastprofError
from fastprof.model.terminal import Colours

if TYPE_CHECKING:
    from fastprof.runs.facts import Settings

NAME = "run"
HELP = "run a program unchanged, record a few of its steps and print the answer"
DESCRIPTION = """\
Run a PyTorch program unchanged, record a few of its steps and print where their time goes.

  fastprof run train.py --epochs 1
  fastprof run --steps 100:105 -- torchrun --nproc-per-node 8 train.py
  fastprof run --after 60 --for 5 -- python -m server
  fastprof run --when 'step > 1.2 * median' --times 2 train.py
  kill -USR2 PID            record now; PID is that of `fastprof run`
  fastprof run --list

A step ends with Optimizer.step; without an optimizer, with the call of the outermost module, or of
`generate`. All modules have layer ranges with their qualified names. The program keeps its exit
code, signals, standard streams and tracebacks; messages and the answer go to stderr.

Traces, a page and what was run are kept in fastprof-runs/NAME-DATE. Other commands take this
directory, or its name: fastprof diff BEFORE AFTER.
"""
_STEPS = regex(r"(\d+):(\d+)")
_DEFAULT = (10, 13)
_MANY = 500  # steps
_LONG = (
    "{} steps: torch.profiler keeps all that it records in memory; the recording stops when the "
    "program has grown by --max-memory (default: 4G, or a quarter of the free memory)"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    from fastprof.runs.directory import HOME

    parser.add_argument(
        "-m",
        dest="module",
        metavar="MODULE",
        nargs=argparse.REMAINDER,
        help="run a module with this Python, with the arguments that follow",
    )
    parser.usage = "fastprof run [options] [--] PROGRAM [ARGUMENT ...]"
    parser.add_argument(
        "program",
        metavar="PROGRAM",
        nargs=argparse.REMAINDER,
        help="program with its arguments; a script.py runs with this Python",
    )
    _add_steps_arguments(parser)
    parser.add_argument(
        "--max-memory",
        metavar="SIZE",
        type=_size,
        help="stop recording when the program has grown by this much since its begin, such as 8G "
        "(default: 4G, or a quarter of the free memory); the recorded steps are kept",
    )
    parser.add_argument(
        "--step-by",
        choices=("auto", "optimizer", "call"),
        default="auto",
        help="what ends a step: Optimizer.step or the call of the outermost module",
    )
    _add_recorder_arguments(parser)
    parser.add_argument(
        "-o", "--runs", metavar="DIR", default=HOME, help="directory of runs (default: %(default)s)"
    )
    parser.add_argument("--name", help="name of the run (default: that of the program)")
    parser.add_argument("--list", action="store_true", help="list the runs and exit")


def _add_steps_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--steps",
        metavar="A:B",
        type=_steps,
        help="record steps A up to, not including, B; the first of a program, 0, has no begin that "
        "can be seen, so A is 1 or more (default: 10:13)",
    )
    parser.add_argument(
        "--after",
        metavar="SECONDS",
        type=_seconds,
        help="record after this time since the import of torch, instead of counting steps",
    )
    parser.add_argument(
        "--for", metavar="SECONDS", type=_seconds, dest="seconds", help="record for this time"
    )
    parser.add_argument(
        "--when",
        metavar="CONDITION",
        type=_condition,
        help="watch all steps, and record 3 after one for which this holds: 'step > 1.2 * median', "
        "of the steps before; 'step > 200ms'; or 'memory > 0.95', the share of the GPU's memory "
        "that torch has reserved, with torch's memory snapshot",
    )
    parser.add_argument(
        "--times",
        metavar="N",
        type=_count,
        help="with --when: record up to N times (default: 1)",
    )


def _add_recorder_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend",
        choices=("auto", "torch", "nsys", "rocprof"),
        default="auto",
        help="torch.profiler, Nsight Systems, or rocprofv3 on AMD GPUs (default: nsys if it and "
        "an NVIDIA GPU are there, else torch)",
    )
    parser.add_argument(
        "--pytorch",
        metavar="VALUE",
        help="nsys's own option --pytorch=VALUE, if its version has it; slows all steps",
    )
    parser.add_argument(
        "--functions", action="store_true", help="also record function names of the call stacks"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: that of the program."""
    from fastprof.runs.directory import new_directory, write_facts
    from fastprof.runs.facts import facts_of
    from fastprof.runs.launch import end_like, program_name, python_command, run_program

    if arguments.list:
        return _list(arguments.runs)
    words = arguments.program[arguments.program[:1] == ["--"] :]
    if arguments.module:
        words = ["-m", *arguments.module]
    if not words:
        arguments.error("no PROGRAM given; example: fastprof run train.py")
    _check_when(arguments)
    command = python_command(words)
    before = _recorder_words(arguments)
    directory = new_directory(arguments.name or program_name(command), arguments.runs)
    settings = _settings(arguments, directory, bool(before))
    facts = facts_of(command, before)
    _attempt("run.json is lost", lambda: write_facts(directory, facts))
    if settings.last - settings.first > _MANY and settings.seconds is None:
        log(_LONG.format(settings.last - settings.first))
    began = time.monotonic()
    code = run_program(command, settings, before)
    facts |= {"seconds": round(time.monotonic() - began, 3), "exit_code": code, "processes": []}
    if _attempt("the run is lost", lambda: _keep(directory, facts)):
        _attempt("the answer failed", lambda: _answer(directory, facts, settings))
    return end_like(code)


def _keep(directory: Path, facts: dict[str, Any]) -> None:
    """Keep what the program's processes have written."""
    from fastprof.runs.collect import collect
    from fastprof.runs.condition import causes_of
    from fastprof.runs.directory import write_facts

    if not directory.is_dir():
        raise BadInputError(f"{directory}: the directory of the run was removed")
    facts["processes"] = collect(directory)
    facts["causes"] = causes_of(facts["processes"])
    _attempt("run.json is lost", lambda: write_facts(directory, facts))


def _check_when(arguments: argparse.Namespace) -> None:
    """Refuse options that contradict each other."""
    others = {"--steps": "steps", "--after": "after", "--for": "seconds"}
    given = [name for name, other in others.items() if getattr(arguments, other) is not None]
    if arguments.when is not None and given:
        arguments.error(
            f"--when and {given[0]}: expected one of them; --when records the 3 steps after one "
            "for which the condition holds"
        )
    if arguments.when is None and arguments.times is not None:
        arguments.error("--times: expected with --when, such as --when 'step > 1.2 * median'")


def _recorder_words(arguments: argparse.Namespace) -> list[str]:
    """The words of the profiler that starts the program; none for torch.profiler."""
    from fastprof.runs.nsys import nsys_command
    from fastprof.runs.rocprof import find_rocprof, rocprof_command

    if arguments.backend != "rocprof":
        tool = _tool(arguments)
        return [] if tool is None else nsys_command(tool, arguments.pytorch)
    if (arguments.times or 1) > 1:
        arguments.error("--times: rocprofv3 writes one file; use --backend torch")
    if arguments.pytorch is not None:
        arguments.error("--pytorch: an option of nsys; omit it")
    rocprof = find_rocprof()
    if rocprof is None:
        arguments.error(
            "--backend rocprof: no rocprofv3 on the PATH or in $FASTPROF_ROCPROF; it is a part of "
            "ROCm, in /opt/rocm/bin"
        )
    return rocprof_command(str(rocprof))


def _tool(arguments: argparse.Namespace) -> str | None:
    """The nsys to record with, None for torch.profiler."""
    from fastprof.readers.nsys.report import find_nsys
    from fastprof.runs.nsys import usable_nsys

    is_repeated = (arguments.times or 1) > 1
    if arguments.backend == "torch" or (is_repeated and arguments.backend == "auto"):
        return None
    if is_repeated:
        arguments.error("--times: Nsight Systems records once; use --backend torch")
    tool = usable_nsys() if arguments.backend == "auto" else find_nsys()
    if tool is None and arguments.backend == "nsys":
        arguments.error("--backend nsys: no nsys on the PATH or in $FASTPROF_NSYS")
    return tool


def _backend(arguments: argparse.Namespace, has_tool: bool) -> str:
    """See `Settings`."""
    from fastprof._system.nvidia import has_gpu

    if arguments.backend == "rocprof":
        return "roctx"
    return ("nvtx" if has_gpu() else "ranges") if has_tool else "torch"


def _settings(arguments: argparse.Namespace, directory: Path, has_tool: bool) -> Settings:
    from fastprof.runs.facts import Settings

    first, last = arguments.steps or _DEFAULT
    return Settings(
        directory=str(directory),
        first=first,
        last=last,
        after=arguments.after,
        seconds=arguments.seconds,
        backend=_backend(arguments, has_tool),
        functions=arguments.functions,
        step=arguments.step_by,
        max_memory=arguments.max_memory,
        when=arguments.when,
        times=arguments.times or 1,
    )


def _answer(directory: Path, facts: dict[str, Any], settings: Settings) -> None:
    """Print what was recorded, the answer, and where the files are."""
    from fastprof.api.open import open_trace
    from fastprof.runs.collect import write_page
    from fastprof.runs.directory import traces_of, write_facts
    from fastprof.runs.facts import step_facts
    from fastprof.runs.nsys import export_problem
    from fastprof.runs.problems import EMPTY_TRACE, has_begun, problems_of
    from fastprof.runs.rocprof import no_trace

    for line in (*problems_of(facts["processes"], settings), *facts["causes"]):
        log(line)
    traces = traces_of(directory)
    recordings = [
        recording for process in facts["processes"] for recording in process["recordings"]
    ]
    if settings.backend != "torch" and any(map(has_begun, recordings)) and not traces:
        log(no_trace(directory) if settings.backend == "roctx" else export_problem(directory))
    if not traces:
        return
    profile = open_trace(os.path.relpath(traces[0]), copies=True)
    if settings.backend != "torch" and not len(profile) and not len(profile.ranges):
        log(EMPTY_TRACE)
    overview = report_of(profile, "overview")
    write_facts(directory, facts | step_facts(profile, overview))
    if sys.stderr is not None:
        width = shutil.get_terminal_size((110, 24)).columns
        with suppress(OSError):
            colours = Colours(sys.stderr.isatty() and wants_colours())
            sys.stderr.write(f"\n{overview.text(width=width, colours=colours)}\n")
    _attempt("the page failed", lambda: write_page(directory, traces, profile))
    log(_kept(directory, len(traces)))


def _attempt(failure: str, action: Callable[[], Any]) -> bool:
    """Run an action; a failure is logged, since the program's exit code matters more."""
    try:
        action()
    except (FastprofError, OSError, MemoryError) as error:
        log(f"{failure}: {reason(error)}")
        return False
    except Exception as error:
        shortage = memory_shortage(error)
        if shortage is not None:
            log(f"{failure}: {shortage}")
        else:
            log(f"{failure} by a bug in fastprof:\n{traceback.format_exc()}")
        return False
    return True


def _kept(directory: Path, n_traces: int) -> str:
    """The last line: where the files are."""
    from fastprof.runs.directory import PAGE

    page = directory / PAGE
    path = os.path.relpath(page if page.exists() else directory)
    more = f"; {n_traces} ranks: fastprof ranks {os.path.relpath(directory)}"
    return f"kept in {path}{more if n_traces > 1 else ''}"


def _list(home: str) -> int:
    """Print the runs of a directory."""
    from fastprof.runs.listing import listing

    with output(None) as file:
        file.write(listing(home).text().encode("utf-8", "surrogateescape"))
    return 0


def _steps(text: str) -> tuple[int, int]:
    match = _STEPS.fullmatch(text)
    first, last = (int(match[1]), int(match[2])) if match else (0, 0)
    if match and first == 0 < last:
        raise argparse.ArgumentTypeError(
            f"{text!r}: step 0 has no begin: a step begins where the one before ends; use "
            f"--steps 1:{max(2, last)}, or --after 0 --for SECONDS, which records from the start"
        )
    if not first < last:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected A:B, two numbers of steps with 0 < A < B, such as 10:13"
        )
    return first, last


def _condition(text: str) -> str:
    from fastprof.runs.condition import parse_condition

    try:
        parse_condition(text)
    except BadInputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _count(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 1000):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 1 to 1000")
    return int(text)


def _size(text: str) -> int:
    size = parse_size(text)
    if size is None:
        raise argparse.ArgumentTypeError(f"{text!r}: {EXPECTED}")
    return size


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of seconds")
    return value
