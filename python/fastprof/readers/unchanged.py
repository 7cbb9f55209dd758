"""An open file to whether it still is what it was: nothing is locked while it is read."""

from __future__ import annotations

import os
from pathlib import Path

from fastprof.errors import BadInputError

# What SQLite keeps beside a file while rows of it are not in the file itself, or not for good.
_LOGS = ("-wal", "-journal")


class Unchanged:
    """A file as it was when this was made.

    Parameters
    ----------
    descriptor : of the open file
    name : what messages call it
    header : how many of its first bytes change with every writer
    """

    def __init__(self, descriptor: int, name: str, header: int = 0) -> None:
        self._descriptor, self._name, self._header = descriptor, name, header
        self._state = self._state_now()

    def check(self) -> None:
        """Refuse what was read if the file is no longer what it was.

        Raises
        ------
        BadInputError
        """
        if self._state_now() != self._state:
            raise BadInputError(
                f"{self._name}: was changed while it was read; let the program that writes it "
                "finish, then try again"
            )

    def check_path(self, path: str | os.PathLike[str]) -> None:
        """The same, and that the path still leads to this file."""
        own = os.fstat(self._descriptor)
        try:
            same = os.path.samestat(own, os.stat(path))
        except OSError:
            same = False
        if not same:
            self._state = ()
        self.check()

    def _state_now(self) -> tuple[object, ...]:
        told = os.fstat(self._descriptor)
        header = os.pread(self._descriptor, self._header, 0) if self._header else b""
        return told.st_size, told.st_mtime_ns, header


def refuse_logs(name: str) -> None:
    """Refuse an SQLite file that lacks rows, or has some that never were, for those in its log.

    A log lies beside the file itself, wherever links to it lie. SQLite would need to write, or to
    lock, to read both together.

    Raises
    ------
    BadInputError
    """
    for path in dict.fromkeys([os.path.abspath(name), os.path.realpath(name)]):
        for suffix in _LOGS:
            beside = Path(path + suffix)
            if beside.exists() and beside.stat().st_size:
                raise BadInputError(
                    f"{name}: {beside.name} lies beside it: another program is writing the "
                    "file, or was stopped while it did; let it finish, or export again"
                )
