"""The `fastprof` command. The only room that prints; nothing is imported before it is needed."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType

from fastprof import __version__
from fastprof.cli import parse, prof
from fastprof.errors import FastprofError

DONE, BAD_INPUT, USAGE, INTERRUPTED = 0, 1, 2, 130
COMMANDS = (parse, prof)


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
        0 done, 1 bad input, 130 interrupted. A usage error exits with 2 by SystemExit, as argparse
        does.
    """
    arguments = parser().parse_args(argv)
    return _guarded(lambda: arguments.run(arguments))


def _guarded(run: Callable[[], int]) -> int:
    """Run, and turn what can go wrong into one line on stderr and an exit code."""
    with _Terminated():
        try:
            return run()
        except BrokenPipeError:
            # Nobody reads on. Python would complain when it closes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return DONE
        except KeyboardInterrupt:
            print("\nfastprof: interrupted; nothing was written", file=sys.stderr)
            return INTERRUPTED
        except FastprofError as error:
            print(f"fastprof: {error}", file=sys.stderr)
            return BAD_INPUT
        except MemoryError as error:
            print(f"fastprof: not enough memory: {error}", file=sys.stderr)
            return BAD_INPUT
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            print(f"fastprof: {where}{error.strerror or error}", file=sys.stderr)
            return BAD_INPUT


class _Terminated:
    """Within it, SIGTERM ends the program as Ctrl-C does: what is half written is removed."""

    def __enter__(self) -> None:
        try:
            self._before = signal.signal(signal.SIGTERM, self._interrupt)
        except ValueError:  # not in the main thread: nobody sends signals there
            self._before = None

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)

    @staticmethod
    def _interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt
