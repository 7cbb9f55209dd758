"""Where a command writes: standard output, or a file that appears only when it is whole."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from fastprof.errors import FastprofError


class OutputError(FastprofError):
    """The output cannot be written; the text says where and why."""


@contextmanager
def output(path: str | None, source: str | None) -> Iterator[BinaryIO]:
    """A binary file to write to.

    Parameters
    ----------
    path : where to write; None for standard output
    source : the input, which must not be the output

    Raises
    ------
    OutputError
        The file cannot be made or written, or is the input.
    """
    if path is None:
        if sys.stdout is None:
            raise OutputError("standard output is closed; write to a file with -o")
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            forget_stdout()
            raise OutputError(f"standard output: cannot be written: {error.strerror}") from error
        return
    if source is not None and os.path.exists(path) and os.path.samefile(path, source):
        raise OutputError(f"{path}: is the input; choose another name for -o")
    try:
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "wb") as file:  # a device or a pipe cannot be renamed to
                yield file
        else:
            with _whole(path) as file:
                yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def _whole(path: str) -> Iterator[BinaryIO]:
    """Write beside the file, and rename when all is written; remove what was begun otherwise."""
    beside = f"{os.path.realpath(path)}.{os.getpid()}.part"
    try:
        with open(beside, "xb") as file:
            yield file
        os.replace(beside, os.path.realpath(path))
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def forget_stdout() -> None:
    """Keep Python from trying again to write what could not be written when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
