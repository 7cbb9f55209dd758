"""A directory of results, a file per trace, so that unchanged traces are read once."""

from __future__ import annotations

import hashlib
import os
import stat
from abc import ABC, abstractmethod
from pathlib import Path
from typing import BinaryIO, ClassVar, Generic, Protocol, TypeVar

from fastprof._system.output_file import output_file
from fastprof._version import __version__
from fastprof.errors import DAMAGED, FastprofError
from fastprof.ranks.files import TraceFile, source_of


class StoreError(FastprofError):
    """The directory of results cannot be used."""


class Kept(Protocol):
    """What is kept of a trace."""

    @property
    def source(self) -> TraceFile:
        """The trace."""

    @property
    def version(self) -> str:
        """The version of fastprof that read it."""

    @property
    def options(self) -> str:
        """The key of the options."""


Result = TypeVar("Result", bound=Kept)


class Directory(ABC, Generic[Result]):
    """A directory of results of one kind.

    Parameters
    ----------
    directory : created if it does not exist
    options : key of the options; results made with other options are ignored

    Raises
    ------
    StoreError
        The directory cannot be created.
    """

    SUFFIX: ClassVar[str]  # of the files

    def __init__(self, directory: str | os.PathLike[str], options: str) -> None:
        self._directory, self._options = Path(directory), options
        self._damaged: dict[str, str] = {}
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{directory}: cannot be used as a directory of results: {error.strerror}"
            ) from error

    @property
    def damage(self) -> tuple[type[Exception], ...]:
        """The errors of `read` that mean a damaged file."""
        return DAMAGED

    @abstractmethod
    def read(self, stored: Path) -> Result:
        """Read a file and check it. Invalid files raise an error of `damage`."""

    @abstractmethod
    def write(self, result: Result, file: BinaryIO) -> None:
        """Write a result."""

    @abstractmethod
    def with_source(self, result: Result, source: TraceFile) -> Result:
        """The result with the path of the trace that the user gives now."""

    def path_of(self, path: str) -> Path:
        """The file of a trace's result: its name and a hash of its path."""
        where = hashlib.blake2b(os.fsencode(os.path.abspath(path)), digest_size=4).hexdigest()
        name = os.path.basename(path).encode("utf-8", "replace").decode()
        return self._directory / f"{name}-{where}{self.SUFFIX}"

    def find(self, path: str) -> Result | None:
        """The stored result of an unchanged trace, made by this version of fastprof with the same
        options; None if there is no readable one."""
        stored = self.path_of(path)
        if not os.path.lexists(stored):
            return None
        try:
            source = source_of(path)
            if not stat.S_ISREG(os.lstat(stored).st_mode):  # a pipe would block
                raise ValueError("is not a regular file")
            result = self.read(stored)
        except self.damage:
            self._damaged[path] = f"{stored}: is damaged; {path} is read again"
            return None
        made = result.version, result.options
        if made != (__version__, self._options) or not result.source.is_same(source):
            return None
        return self.with_source(result, source)

    def problem(self, path: str) -> str:
        """What is wrong with the stored result of a trace that `find` was asked for, or ""."""
        return self._damaged.get(path, "")

    def add(self, result: Result) -> None:
        """Store a result, replacing an older one atomically; never a directory in its place.

        Raises
        ------
        StoreError
            The file cannot be written.
        """
        path = self.path_of(result.source.path)
        if path.is_dir() and not path.is_symlink():
            return  # `problem` tells
        try:
            with output_file(path, is_own=True) as file:
                self.write(result, file)
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
