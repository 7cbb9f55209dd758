"""Output of a command: standard output, or a file that appears only when it is complete."""

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
    """The output cannot be written; the message gives the path and the reason."""


@contextmanager
def output(path: str | None, source: str | None) -> Iterator[BinaryIO]:
    """Open a binary file for output.

    Parameters
    ----------
    path : the output file; None for standard output
    source : the input file, which must differ from the output

    Raises
    ------
    OutputError
        The file cannot be created or written, or is the input.
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
            discard_stdout()
            raise OutputError(f"standard output: cannot be written: {error.strerror}") from error
        return
    if source is not None and os.path.exists(path) and os.path.samefile(path, source):
        raise OutputError(f"{path}: is the input; choose another name for -o")
    try:
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "wb") as file:  # a device or a pipe cannot be renamed to
                yield file
        else:
            with atomic_file(path, _LowCacheFile) as file:
                yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


class _LowCacheFile(io.FileIO):
    """A file that occupies little page cache: only its first 64 MiB and the most recent writes.

    Reports can be gigabytes. Caching all of it takes memory from other programs, and a virtual
    machine first has to request that memory from its host: writing took six times as long. Older
    pages are dropped once they are on disk; no call waits for the disk.
    """

    def __init__(self, path: str, mode: str) -> None:
        super().__init__(path, mode)
        self._written = 0

    def write(self, data: Any, /) -> int:
        count = super().write(data)
        before, self._written = self._written, self._written + count
        for end in range(before // _STEP + 1, self._written // _STEP + 1):
            self._drop(end * _STEP)
        return count

    def _drop(self, end: int) -> None:
        """Start writing the step that ends at `end` to disk, and drop the step `_LAG` before it."""
        if not hasattr(os, "posix_fadvise"):
            return
        with suppress(OSError):  # an optimization only
            for begin in (end - _STEP, end - _STEP - _LAG):
                if begin >= _KEPT:
                    os.posix_fadvise(self.fileno(), begin, _STEP, os.POSIX_FADV_DONTNEED)


# Bytes: kept in the page cache; dropped at a time; distance from the last write.
_KEPT, _STEP, _LAG = 1 << 26, 1 << 24, 1 << 25


def discard_stdout() -> None:
    """Redirect stdout to /dev/null, or Python would retry the failed write at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def flush_stdout() -> None:
    """Write out help or the version. Like argparse, ignore errors: Python would report them."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        discard_stdout()
