"""Where a command writes: standard output, or a file that appears only when it is whole."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from fastprof._system.atomic_file import atomic_file
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
            with atomic_file(path, _SparingFile) as file:
                yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


class _SparingFile(io.FileIO):
    """A file of which the system keeps the first bytes in memory and no more.

    Reports of many kernels are gigabytes. Memory for all of them is memory that others lose, and on
    a virtual machine has to be fetched from the host first: writing took six times as long. So what
    lies further back is dropped from memory when it is on the disk; nothing waits for that.
    """

    def __init__(self, path: str, mode: str) -> None:
        super().__init__(path, mode)
        self._written = 0

    def write(self, data: Any, /) -> int:
        count = super().write(data)
        before, self._written = self._written, self._written + count
        for end in range(before // _STEP + 1, self._written // _STEP + 1):
            self._spare(end * _STEP)
        return count

    def _spare(self, end: int) -> None:
        """Have the step that ends there written to disk, and the one before it dropped."""
        if not hasattr(os, "posix_fadvise"):
            return
        with suppress(OSError):  # only advice
            for begin in (end - _STEP, end - _STEP - _LAG):
                if begin >= _KEPT:
                    os.posix_fadvise(self.fileno(), begin, _STEP, os.POSIX_FADV_DONTNEED)


# Bytes: kept in memory; written to disk at a time; how far behind what is dropped lies.
_KEPT, _STEP, _LAG = 1 << 26, 1 << 24, 1 << 25


def forget_stdout() -> None:
    """Keep Python from trying again to write what could not be written when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
