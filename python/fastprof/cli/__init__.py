"""The `fastprof` command line, the only package that prints. Commands import lazily."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

from fastprof._system import memory
from fastprof._system.garbage import of_command
from fastprof._system.reasons import memory_shortage
from fastprof._version import __version__
from fastprof.analysis.reports import find, names
from fastprof.cli.options import add_memory
from fastprof.cli.output import discard_stdout, flush_stdout, keeping_inputs
from fastprof.cli.progress import log
from fastprof.cli.reports import ReportCommand, load_reports, names_file
from fastprof.errors import CheckError, FastprofError
from fastprof.model.names import printable
from fastprof.runs.directory import resolved

DONE, BAD_INPUT, USAGE, MISTAKE, INTERRUPTED = 0, 1, 2, 3, 130
_RESERVE = 4 << 20  # bytes, freed to print the message when no memory is left
_OWN_MEMORY = ("run", "batch", "devices", "nsys")  # read no trace in this process
# Modules of this package, imported when they are needed; commands of reports are before them.
COMMANDS = ("run", "report", "diff", "export", "batch", "parse", "prof", "info", "devices", "nsys")


class _Parser(argparse.ArgumentParser):
    """A parser whose messages quote arguments and names of files safely."""

    def error(self, message: str) -> NoReturn:
        """As in ArgumentParser."""
        super().error(printable(message))


class _Command(_Parser):
    """The parser of a command, whose options may stand between files."""

    _is_within = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in ArgumentParser."""
        takes_rest = any(action.nargs == argparse.REMAINDER for action in self._actions)
        if takes_rest or self._is_within:  # parse_known_intermixed_args calls this method
            return super().parse_known_args(args, namespace)
        self._is_within = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_within = False


def parser(given: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line `given`, by default of any.

    If it begins with a command, the parser knows no other: importing all takes a third of the time
    of a small trace.
    """
    top = _Parser(
        prog="fastprof",
        description="Attribute GPU time of PyTorch runs to operators, layers and source lines.",
        epilog="'fastprof FILE' gives the first look at a trace, 'fastprof COMMAND --help' the "
        "options of a command.",
    )
    top.add_argument("--version", action="version", version=f"fastprof {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True, parser_class=_Command)
    known = [*names(), *COMMANDS]
    for name in given[:1] if given and given[0] in known else known:
        module: Any = (
            import_module(f"fastprof.cli.{name}") if name in COMMANDS else ReportCommand(find(name))
        )
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=module.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if given is None or name in given:
            module.add_arguments(command)
            if name not in _OWN_MEMORY:
                add_memory(command)
        command.set_defaults(run=module.run, error=command.error)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default that of the process.

    Returns
    -------
    int
        The exit code: 0 success; 1 bad input (`batch`: any unreadable file); 3 failed consistency
        check, a bug in fastprof; 4 result above --fail-above; 130 interrupted. `nsys` also returns
        the exit code of the program it runs. Usage errors raise SystemExit(2), as in argparse.
    """
    if argv is None:
        with of_command():
            return main(sys.argv[1:])
    given = list(argv)
    return _guarded(lambda: _run(_parsed(given)))


def _parsed(given: list[str]) -> argparse.Namespace:
    """The arguments of a command line; a usage error raises SystemExit."""
    load_reports(given, COMMANDS)
    if names_file(given, COMMANDS):
        given.insert(0, "overview")
    try:
        return parser(given).parse_args(given)
    finally:
        flush_stdout()


def _run(arguments: argparse.Namespace) -> int:
    """Run the command; runs of `fastprof run` that it is given become their traces."""
    if isinstance(size := getattr(arguments, "memory", None), str):  # that of batch is a number
        os.environ[memory.VARIABLE] = size
    for name, given in list(vars(arguments).items()):
        if name == "file" and given is not None:
            arguments.file, all_traces = resolved(given, one=True), resolved(given)
            if arguments.file != all_traces:
                log(f"reads {arguments.file}; for all ranks: fastprof batch {all_traces}")
        if name in ("captures", "paths"):
            setattr(arguments, name, [resolved(each) for each in given])
    with keeping_inputs(arguments):
        return int(arguments.run(arguments))


def _guarded(run: Callable[[], int]) -> int:
    """Run a command; convert expected errors to one line on stderr and an exit code."""
    try:
        with _Signals() as signals:
            return _exit_code(run, signals)
    except KeyboardInterrupt:  # outside the command itself
        log("interrupted")
        return INTERRUPTED


def _exit_code(run: Callable[[], int], signals: _Signals) -> int:
    reserve = bytearray(_RESERVE)
    try:
        return run()
    except BrokenPipeError:
        discard_stdout()
        return DONE
    except (Exception, KeyboardInterrupt) as error:
        del reserve
        # numpy's import replaces an interruption by an ImportError.
        if signals.received or isinstance(error, KeyboardInterrupt):
            log("interrupted")
            return INTERRUPTED
        message = _message(error)
        if message is None:
            raise
        log(message)
        return MISTAKE if isinstance(error, CheckError) else BAD_INPUT


def _message(error: BaseException) -> str | None:
    """The line to print for an error of the input or the machine; None for a bug."""
    if isinstance(error, FastprofError):
        return str(error)
    shortage = memory_shortage(error)
    if shortage is None and isinstance(error, OSError):
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    return shortage


class _Interrupted(KeyboardInterrupt):
    """Raised by the signal handlers.

    A subclass, because a KeyboardInterrupt that leaves `exec` or `eval` of a string (dataclass and
    namedtuple use them) makes Python exit by SIGINT even if it is caught (run_eval_code_obj in
    CPython's pythonrun.c).
    """


_SOON = 0.001  # seconds


class _Signals:
    """Context in which SIGTERM acts like Ctrl-C: the program removes partial output and exits."""

    def __init__(self) -> None:
        self.received = False
        self._is_over = False
        self._number, self._n_received = 0, 0
        self._before: dict[int, Any] = {}
        self._hook = sys.unraisablehook

    def __enter__(self) -> _Signals:
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError):  # only the main thread may set handlers
                self._before[number] = signal.signal(number, self._interrupt)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over = True
        if signal.SIGALRM in self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        sys.unraisablehook = self._hook

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if frame is not None and _is_unsafe(frame):
            self._defer(number)
            return
        self._n_received += 1
        if self._is_over or self._n_received == 2:
            return  # the command has finished, or is removing partial output
        if self._n_received > 2:  # do not wait for the removal
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.received, self._number = True, number
        raise _Interrupted

    def _unraisable(self, lost: Any) -> None:
        """Python ignores exceptions in finalizers and callbacks of weak references."""
        if isinstance(lost.exc_value, _Interrupted):
            self._n_received -= 1
            self._defer(self._number)
        else:
            self._hook(lost)

    def _defer(self, number: int) -> None:
        """Interrupt a little later, at another place of the program."""
        self._number = number
        if signal.SIGALRM not in self._before:
            self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._again)
        signal.setitimer(signal.ITIMER_REAL, _SOON)

    def _again(self, number: int, frame: FrameType | None) -> None:
        self._interrupt(self._number, frame)


def _is_unsafe(frame: FrameType) -> bool:
    """Whether an exception must not be raised here.

    In importlib, it could leave the lock of imports held, for which other threads wait. The
    handlers run within importlib, or where Python ignores exceptions.
    """
    return frame.f_code.co_filename == _IMPORTING or frame.f_code in _HANDLERS


_IMPORTING = "<frozen importlib._bootstrap>"
_HANDLERS = {
    each.__code__
    for each in (_Signals._interrupt, _Signals._unraisable, _Signals._defer, _Signals._again)
}
