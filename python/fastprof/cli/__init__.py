"""The `fastprof` command line, the only package that prints. Commands import lazily."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from fastprof._system import memory
from fastprof._system.garbage import rarely_collected
from fastprof._system.reasons import memory_shortage
from fastprof._system.signals import Interruption
from fastprof._system.threads import import_numpy
from fastprof._version import __version__
from fastprof.analysis.reports import find, names
from fastprof.cli.options import add
from fastprof.cli.output import (
    discard_stdout,
    flush_stdout,
    keeping_inputs,
    log,
    terminal_columns,
)
from fastprof.cli.reports import (
    ReportCommand,
    command_first,
    first_word,
    load_reports,
    names_file,
    names_ranks,
)
from fastprof.errors import CheckError, FastprofError
from fastprof.model.heading import nearest, printable, unknown_name
from fastprof.runs.directory import resolved

DONE, BAD_INPUT, USAGE, MISTAKE, INTERRUPTED = 0, 1, 2, 3, 130
_RESERVE = 4 << 20  # bytes, freed to print the message when no memory is left
# They read no trace in this process.
_OWN_MEMORY = ("run", "batch", "ranks", "devices", "nsys", "explain", "history", "skill")
# Modules of this package, imported when they are needed; commands of reports are before them.
COMMANDS = (
    *("run", "report", "diff", "export", "batch", "ranks", "parse", "prof", "info", "explain"),
    *("devices", "nsys", "mcp", "skill", "history", "repro"),
)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, which names the nearest choices."""

    def error(self, message: str) -> NoReturn:
        """Print the message and where help is, and exit."""
        see = " See" if message.endswith("?") else "; see"
        self.exit(USAGE, f"{self.prog}: error: {printable(message)}{see} {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(action, unknown_name("value", str(value), choices))


class _Formatter(argparse.HelpFormatter):
    """The layout of help. argparse makes one for each option, to check it.

    The one of argparse imports shutil, in 2 ms, for the width of the terminal.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"width": terminal_columns() - 2, **options})


class _WithLines(_Formatter, argparse.RawDescriptionHelpFormatter):
    """The same, with the lines of the description."""


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
            result, rest = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_within = False
        if rest:
            self._refuse(rest)
        return result, rest

    def _refuse(self, rest: Sequence[str]) -> NoReturn:
        """The error of arguments that the command does not have."""
        option = next((text.partition("=")[0] for text in rest if text.startswith("-")), None)
        if option is None:
            hint = ""
            if all(map(os.path.exists, rest)):
                hint = ": fastprof diff compares two captures, fastprof ranks the ranks of a run"
            self.error(f"expected one FILE, found also {' '.join(rest)}{hint}")
        near = nearest(option, [name for action in self._actions for name in action.option_strings])
        self.error(
            f"unknown option {option}" + (f"; did you mean {' or '.join(near)}?" * bool(near))
        )


def parser(given: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line `given`, by default of any.

    If it begins with a command, the parser knows no other: importing all takes a third of the time
    of a small trace.
    """
    top = _Parser(
        prog="fastprof",
        formatter_class=_Formatter,
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
            formatter_class=_WithLines,
        )
        if given is None or name in given:
            module.add_arguments(command)
            if name not in _OWN_MEMORY:
                add(command, "--memory")
        command.set_defaults(
            run=module.run, error=command.error, reads_trace=name not in _OWN_MEMORY
        )
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
        with rarely_collected():
            return main(sys.argv[1:])
    given = list(argv)
    return _guarded(lambda: _run(_parsed(given)))


def _parsed(given: list[str]) -> argparse.Namespace:
    """The arguments of a command line; a usage error raises SystemExit."""
    if given[:1] == ["help"]:
        given = [*given[1:2], "--help"]
    load_reports(given, COMMANDS)
    given = command_first(given, COMMANDS)
    if names_file(given, COMMANDS):
        given.insert(0, "ranks" if names_ranks(given) else "overview")
    command = first_word(given)
    if not given:
        parser(given).error("no command and no FILE; fastprof FILE is the first look at a trace")
    if command and command not in (*names(), *COMMANDS):
        parser(given).error(unknown_name("command", command, [*COMMANDS, *names()]))
    try:
        return parser(given).parse_args(given)
    finally:
        flush_stdout()


def _run(arguments: argparse.Namespace) -> int:
    """Run the command; runs of `fastprof run` that it is given become their traces."""
    if isinstance(size := getattr(arguments, "memory", None), str):  # that of batch is a number
        os.environ[memory.VARIABLE] = size
    if arguments.reads_trace:
        import_numpy()
        memory.share_freed()
    for name, given in list(vars(arguments).items()):
        if name == "file" and given is not None:
            arguments.file, all_traces = resolved(given, one=True), resolved(given)
            if arguments.file != all_traces:
                log(f"reads {arguments.file}; for all ranks: fastprof ranks {all_traces}")
        if name in ("captures", "paths"):
            setattr(arguments, name, [resolved(each) for each in given])
    with keeping_inputs(arguments):
        return int(arguments.run(arguments))


def _guarded(run: Callable[[], int]) -> int:
    """Run a command; convert expected errors to one line on stderr and an exit code."""
    try:
        with Interruption() as interruption:
            return _exit_code(run, interruption)
    except KeyboardInterrupt:  # outside the command itself
        log("interrupted")
        return INTERRUPTED


def _exit_code(run: Callable[[], int], interruption: Interruption) -> int:
    reserve = bytearray(_RESERVE)
    try:
        return run()
    except BrokenPipeError:
        discard_stdout()
        return DONE
    except (Exception, KeyboardInterrupt) as error:
        del reserve
        # numpy's import replaces an interruption by an ImportError.
        if interruption.received or isinstance(error, KeyboardInterrupt):
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
