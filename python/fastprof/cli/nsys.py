"""`fastprof nsys`: record a program with Nsight Systems and print the report."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
from pathlib import Path

from fastprof._system.file_state import FileState, state_of
from fastprof._system.signals import deferred
from fastprof.cli import prof
from fastprof.cli.output import log, output
from fastprof.errors import BadInputError, FastprofError
from fastprof.writers.columns import DEFAULT_KEYS

NAME = "nsys"
HELP = "record a program with Nsight Systems and print the report"
DESCRIPTION = """\
Run a program under Nsight Systems with the options that fastprof needs, then print the report.
Uses $FASTPROF_NSYS if set, else nsys on the PATH.

  fastprof nsys -w 150 -- python train.py --epochs 1
  fastprof nsys --captured -o net --report net.csv --csv -- python train.py

Writes NAME.nsys-rep, for Nsight Systems, and NAME.sqlite, for `fastprof prof` and `fastprof info`.
If the program fails, the exit code is the program's.
"""
GET = "https://developer.nvidia.com/nsight-systems"

_OPTIONS = (
    "--trace=cuda,nvtx",
    "--sample=none",
    "--cpuctxsw=none",
    "--cuda-graph-trace=node",
    "--force-overwrite=true",
    "--export=sqlite",
)
_CAPTURED = ("--capture-range=cudaProfilerApi", "--capture-range-end=stop")
_SUFFIXES = (".sqlite", ".nsys-rep", ".qdrep")
_TERMINATE_TIMEOUT = 10  # seconds that nsys has to exit after SIGTERM


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.usage = "fastprof nsys [options] [--] PROGRAM [ARGUMENT ...]"
    parser.add_argument(
        "program",
        metavar="PROGRAM",
        nargs=argparse.REMAINDER,
        help="program to run, with its arguments",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="NAME",
        default="fastprof",
        help="name of the recording, without suffix; existing files are replaced "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--captured",
        action="store_true",
        help="record only what fastprof.capture or cudaProfilerStart selects",
    )
    parser.add_argument(
        "-n", "--print", action="store_true", help="print the commands without running them"
    )
    prof.add_style(parser)
    parser.add_argument("--report", metavar="OUT", help="write the report to OUT instead of stdout")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fastprof.readers.nsys.report import find_nsys

    program = arguments.program[arguments.program[:1] == ["--"] :]
    if not program or program[0].startswith("-"):
        arguments.error("no PROGRAM given; example: fastprof nsys -w 150 -- python train.py")
    name = _name(arguments)
    prof.chosen_columns(arguments)
    tool = find_nsys()
    options = (*_OPTIONS, *(_CAPTURED if arguments.captured else ()))
    command = [tool or "nsys", "profile", *options, f"--output={name}", *program]
    if arguments.print or tool is None:
        lines = (
            shlex.join(members) + "\n" for members in (command, _report_command(arguments, name))
        )
        with output(None) as file:
            file.write(os.fsencode("".join(lines)))
        if arguments.print:
            return 0
        where = os.environ.get("FASTPROF_NSYS")
        asked = f"{where} ($FASTPROF_NSYS)" if where else "nsys"
        log(f"{asked} not found; run the commands above where it is, or install it from {GET}")
        return 1
    before = _states(name)
    code = _run(command)
    if code:
        log(f"{shlex.join(program)}: exit code {code}")
    try:
        return _report(arguments, _made(arguments, name, before, code)) or code
    except FastprofError as error:
        if not code:
            raise
        log(str(error))
        return code


def _name(arguments: argparse.Namespace) -> str:
    """The name of the recording, the common stem of its files."""
    name: str = arguments.output
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    if "%" in name or not os.path.basename(name):
        arguments.error(f"-o {arguments.output}: expected a file name without %")
    return name


def _run(command: list[str]) -> int:
    """Run nsys with inherited stdin, stdout and stderr; return the exit code as a shell reports it.

    An interruption terminates nsys, which terminates the program.
    """
    running = None
    try:
        with deferred():
            running = subprocess.Popen(command)
        code = running.wait()
    except OSError as error:
        raise BadInputError(f"{command[0]} cannot be run: {error.strerror}") from error
    except BaseException:
        if running is None:
            raise
        running.terminate()
        try:
            running.wait(_TERMINATE_TIMEOUT)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
        raise
    return code if code >= 0 else 128 - code


def _made(arguments: argparse.Namespace, name: str, before: _States, code: int) -> Path:
    """The new recording: the export if nsys wrote one, else the report, which fastprof exports."""
    after = _states(name)
    for path, state in after.items():
        if state is not None and state != before[path]:
            return path
    export = Path(f"{name}.sqlite")
    ended = f" and ended with exit code {code}" if code else ""
    stale = " (the existing file is from an earlier run)" if after[export] else ""
    hint = "see its output above"
    if arguments.captured:
        hint = (
            "--captured starts at cudaProfilerStart: check that the loop reaches the iterations "
            "that fastprof.capture selects"
        )
    raise BadInputError(f"{export}: nsys recorded nothing{ended}{stale}; {hint}")


_States = dict[Path, FileState | None]


def _states(name: str) -> _States:
    """The state of each file of the recording; None if it does not exist."""
    states: _States = {}
    for suffix in _SUFFIXES:
        path = Path(name + suffix)
        try:
            states[path] = state_of(path)
        except FileNotFoundError:
            states[path] = None
    return states


def _report(arguments: argparse.Namespace, path: Path) -> int:
    """Print the report by running `fastprof prof`."""
    others = {"file": str(path), "all": False, "unknown": False, "check": False, "ops": []}
    others["graph_capture"] = []
    return prof.run(argparse.Namespace(**{**vars(arguments), **others, "output": arguments.report}))


def _report_command(arguments: argparse.Namespace, name: str) -> list[str]:
    """The command line that prints the report."""
    words = ["fastprof", "prof"]
    words += ["-c", arguments.columns] if arguments.columns != DEFAULT_KEYS else []
    words += [f"--{style}" for style in ("csv", "json") if getattr(arguments, style)]
    words += [word for glob in arguments.mine for word in ("--mine", glob)]
    words += ["-w", str(arguments.width)] if arguments.width is not None else []
    words += ["-o", arguments.report] if arguments.report is not None else []
    return [*words, f"{name}.sqlite"]
