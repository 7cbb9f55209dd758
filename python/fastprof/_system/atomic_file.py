"""Files that appear under their name only when they are complete, and locks on unfinished ones.

A file is written under a temporary name in the same directory, then renamed. The writing process
holds a lock on the temporary file, which the system releases when the process ends. So the next
writer can remove files that a killed process left, and keeps those that are still being written.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from fastprof._system.regex import regex

try:
    import fcntl
except ImportError:  # not POSIX: no locks, and no stale files are removed
    fcntl = None  # type: ignore[assignment]  # a missing module

_SUFFIX = regex(r"\.[0-9]+-[0-9a-f]{8}\.part\Z")
_GRACE = 10  # seconds; a newly created file may not be locked yet
_LONGEST = 200  # bytes of a name; file systems allow 255 with the suffix


@contextmanager
def atomic_file(
    target: str, opened: Callable[[str, str], io.FileIO], before: os.stat_result | None, sync: bool
) -> Iterator[BinaryIO]:
    """Yield a binary file that appears at `target` when the block ends without an exception.

    After an exception, an existing file is unchanged and no temporary file is left.

    Parameters
    ----------
    target : a path that is no link; an existing link is replaced
    opened : opens a file, given its name and mode
    before : the file to replace, whose owner and permissions the new one gets
    sync : the file is on the disk before it replaces another one

    Raises
    ------
    OSError
        The file cannot be created or written.
    """
    folder, name = os.path.split(target)
    if len(os.fsencode(name)) > _LONGEST:
        name = hashlib.blake2b(os.fsencode(name), digest_size=16).hexdigest()
    hidden = os.path.join(folder, f".{name}")  # not matched by patterns such as *.parquet
    remove_stale(path for path in glob.glob(f"{glob.escape(hidden)}.*.part") if _is_partial(path))
    temporary = f"{hidden}.{os.getpid()}-{os.urandom(4).hex()}.part"
    try:
        with io.BufferedWriter(opened(temporary, "x")) as file:
            lock(file.fileno())
            if before is not None:
                _take_over(file.fileno(), before)
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if sync:
        _sync_folder(folder)


def lock(descriptor: int) -> bool:
    """Lock a file or directory for this process. Returns False if the lock is not available."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # locked by another process, or the file system has no locks
        return False
    return True


def remove_stale(paths: Iterable[str]) -> None:
    """Remove the files and directories that are old and that no process has locked."""
    for path in paths:
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


def _is_partial(path: str) -> bool:
    """Whether a path has the form of our temporary files; a directory is never one."""
    return _SUFFIX.search(path) is not None and os.path.isfile(path)


def _take_over(descriptor: int, before: os.stat_result) -> None:
    """Give a new file the owner and permissions of the file that it replaces, as `open` would."""
    with suppress(OSError, AttributeError):  # only an administrator may change the owner
        os.fchown(descriptor, before.st_uid, before.st_gid)
    with suppress(OSError, AttributeError):
        os.fchmod(descriptor, before.st_mode & 0o777)


def _sync_folder(folder: str) -> None:
    with suppress(OSError):  # not all file systems can
        descriptor = os.open(folder or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
