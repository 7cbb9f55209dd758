"""The `fastprof` command. The only room that prints; nothing is imported before it is needed."""

from __future__ import annotations

import argparse
import os
import re
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

from fastprof._version import __version__
from fastprof.cli import batch, info, nsys, parse, prof
from fastprof.cli.output import forget_stdout
from fastprof.cli.progress import tell
from fastprof.errors import CheckError, FastprofError

DONE, BAD_INPUT, USAGE, MISTAKE, INTERRUPTED = 0, 1, 2, 3, 130
# What Python, and the loader of compiled modules, make of an allocation that failed.
_NO_MEMORY = re.compile(
    "can't start new thread|failed to map segment|annot allocate memory|without exception set"
)
COMMANDS = (parse, prof, info, batch, nsys)


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    top = argparse.ArgumentParser(
        prog="fastprof",
        description="Where every GPU nanosecond of a PyTorch run went.",
        epilog="fastprof COMMAND --help says more.",
    )
    top.add_argument("--version", action="version", version=f"fastprof {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for module in COMMANDS:
        command = commands.add_parser(
            module.NAME,
            help=module.HELP,
            description=module.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run, error=command.error)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns
    -------
    int
        0 done, 1 bad input (in a batch: any of its files), 3 the report does not add up (a mistake
        of fastprof), 130 interrupted; of `nsys` also that of
        the program that it ran. A usage error exits with 2 by SystemExit, as argparse does.
    """
    arguments = parser().parse_args(argv)
    return _guarded(lambda: arguments.run(arguments))


def _guarded(run: Callable[[], int]) -> int:
    """Run, and turn what can go wrong into one line on stderr and an exit code."""
    try:
        with _Signals() as signals:
            return _answered(run, signals)
    except KeyboardInterrupt:  # just before the command began, or after it had ended
        tell("interrupted")
        return INTERRUPTED


def _answered(run: Callable[[], int], signals: _Signals) -> int:
    try:
        return run()
    except BrokenPipeError:
        forget_stdout()
        return DONE
    except (Exception, KeyboardInterrupt) as error:
        # An interruption may reach us as another error: numpy's import makes it one.
        if signals.received or isinstance(error, KeyboardInterrupt):
            tell("interrupted")
            return INTERRUPTED
        message = _message(error)
        if message is None:
            raise
        tell(message)
        return MISTAKE if isinstance(error, CheckError) else BAD_INPUT


def _message(error: BaseException) -> str | None:
    """One line for an error that is the input's or the machine's; None for a mistake of ours."""
    if isinstance(error, FastprofError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"not enough memory{f': {error}' if str(error) else ''}"
    if isinstance(error, RuntimeError | ImportError | SystemError) and _NO_MEMORY.search(
        str(error)
    ):
        return f"not enough memory: {' '.join(str(error).split())[:200]}"
    if isinstance(error, OSError):
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    return None


class _Interrupted(KeyboardInterrupt):
    """What a signal raises.

    Not KeyboardInterrupt itself: where that leaves an `exec` or `eval` of a text (dataclass and
    namedtuple use them), Python ends by SIGINT in the end, though it was caught (run_eval_code_obj
    in CPython's pythonrun.c).
    """


class _Signals:
    """Within it, SIGTERM ends the program as Ctrl-C does: what is half written is removed."""

    def __init__(self) -> None:
        self.received = False
        self._is_over = False
        self._n_received = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError):  # not in the main thread: nobody sends signals there
                self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over = True
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._n_received += 1
        if self._is_over or self._n_received == 2:
            return  # the command has ended, or what is half written is being removed
        if self._n_received > 2:  # that takes too long
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.received = True
        raise _Interrupted
