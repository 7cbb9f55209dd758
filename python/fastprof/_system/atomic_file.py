"""Files that appear under their name only when they are complete.

A file is written under a temporary name in the same directory, then renamed. The writing process
holds a lock on the temporary file, which the system releases when the process ends. So the next
writer can remove files that a killed process left, and keeps those that are still being written.
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
except ImportError:  # not POSIX: no locks, and no stale files are removed
    fcntl = None  # type: ignore[assignment]  # a missing module

_SUFFIX = re.compile(r"\.[0-9]+-[0-9a-f]{8}\.part\Z")
_GRACE = 10  # seconds; a newly created file may not be locked yet


@contextmanager
def atomic_file(
    path: str | os.PathLike[str], opened: Callable[[str, str], io.FileIO] = io.FileIO
) -> Iterator[BinaryIO]:
    """Yield a binary file that appears at `path` when the block ends without an exception.

    An existing file is replaced. After an exception it is unchanged and no temporary file is left.

    opened : opens a file, given its name and mode

    Raises
    ------
    OSError
        The file cannot be created or written.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    hidden = os.path.join(folder, f".{name}")  # not matched by patterns such as *.parquet
    remove_stale(glob.glob(f"{glob.escape(hidden)}.*.part"))
    temporary = f"{hidden}.{os.getpid()}-{os.urandom(4).hex()}.part"
    try:
        with io.BufferedWriter(opened(temporary, "x")) as file:
            lock(file.fileno())
            yield file
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def lock(descriptor: int) -> bool:
    """Lock a file or directory for this process. Returns False if the lock is not available."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # locked by another process, or the file system has no locks
        return False
    return True


def remove_stale(paths: list[str]) -> None:
    """Remove the unfinished files and directories among `paths` that no process has locked."""
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
