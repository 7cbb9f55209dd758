"""A file or folder that is written beside its place and moved there when it is whole.

What is being written is locked by whoever writes it, and the lock ends with the process, however
that ends. So what a killed process left is known from what others still write, and is removed by
the next that writes there.
"""

from __future__ import annotations

import glob
import io
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # no POSIX: nothing is locked, and nothing of others is removed
    fcntl = None  # type: ignore[assignment]  # a module that is not there

_SUFFIX = re.compile(r"\.[0-9]+-[0-9a-f]{8}\.part\Z")
_GRACE = 10  # seconds: who has just begun may not have locked yet


@contextmanager
def whole_file(
    path: str | os.PathLike[str], opened: Callable[[str, str], io.FileIO] = io.FileIO
) -> Iterator[BinaryIO]:
    """A binary file to write to: at `path` it appears, or replaces an older one, when all is done.

    opened : makes the file of its name and mode

    Raises
    ------
    OSError
        It cannot be made or written; then nothing of it is left.
    """
    place = os.path.realpath(path)
    folder, name = os.path.split(place)
    hidden = os.path.join(folder, f".{name}")  # from who reads all files of a folder
    remove_stale(glob.glob(f"{glob.escape(hidden)}.*.part"))
    beside = f"{hidden}.{os.getpid()}-{os.urandom(4).hex()}.part"
    try:
        with io.BufferedWriter(opened(beside, "x")) as file:
            lock(file.fileno())
            yield file
        os.replace(beside, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def lock(descriptor: int) -> bool:
    """Say that this process is at work on a file or folder; whether no other is."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another does, or the file system has no locks
        return False
    return True


def remove_stale(paths: list[str]) -> None:
    """Remove those of the unfinished files and folders that nobody is at work on."""
    for path in paths:
        if not (_SUFFIX.search(path) or os.path.isdir(path)):
            continue
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if time.time() - os.fstat(descriptor).st_mtime > _GRACE and lock(descriptor):
                    if os.path.isdir(path):
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        os.unlink(path)
            finally:
                os.close(descriptor)
