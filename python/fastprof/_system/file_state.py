"""The state of a file, to detect changes: inode, size and modification time."""

from __future__ import annotations

import os

from fastprof._system.classes import NamedTuple
from fastprof.errors import BadInputError


class FileState(NamedTuple):
    """A file at one moment; `modified` is its modification time in ns."""

    inode: int
    size: int
    modified: int


def state_of(file: str | os.PathLike[str] | int) -> FileState:
    """The state of a path or an open file descriptor.

    Raises
    ------
    OSError
        The path does not exist or cannot be accessed.
    """
    status = os.stat(file)
    return FileState(status.st_ino, status.st_size, status.st_mtime_ns)


class SameFile:
    """A file that was read, and can be read again unless it has changed.

    Parameters
    ----------
    path : also valid after a change of the working directory
    name : file name in messages
    """

    def __init__(self, path: str | os.PathLike[str], name: str) -> None:
        self.path, self.name = os.path.abspath(path), name
        self._before = self._now()

    def check(self) -> None:
        """Raise BadInputError if the file has changed since this object was created."""
        if self._now() != self._before:
            raise self.changed()

    def changed(self) -> BadInputError:
        return BadInputError(f"{self.name}: was changed since it was read; read it again")

    def _now(self) -> FileState | None:
        try:
            return state_of(self.path)
        except OSError:
            return None


class ChangeGuard:
    """Detects that another program changes an open file while it is read.

    Parameters
    ----------
    descriptor : of the open file
    name : file name in messages
    header : number of leading bytes to compare, 0 for none
    """

    def __init__(self, descriptor: int, name: str, header: int = 0) -> None:
        self._descriptor, self._name, self._header = descriptor, name, header
        self._before = self._now()

    def check(self) -> None:
        """Raise BadInputError if the file has changed since this object was created."""
        if self._now() != self._before:
            raise self._changed()

    def check_path(self, path: str | os.PathLike[str]) -> None:
        """`check`, and raise BadInputError if `path` is no longer this file."""
        try:
            same = os.path.samestat(os.fstat(self._descriptor), os.stat(path))
        except OSError:
            same = False
        if not same:
            raise self._changed()
        self.check()

    def _changed(self) -> BadInputError:
        return BadInputError(
            f"{self._name}: was changed while it was read; let the program that writes it "
            "finish, then try again"
        )

    def _now(self) -> tuple[FileState, bytes]:
        header = os.pread(self._descriptor, self._header, 0) if self._header else b""
        return state_of(self._descriptor), header
