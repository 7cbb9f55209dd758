"""The one writer of output files: atomic, never over an input, into devices and pipes."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import BinaryIO

from fastprof._system.regex import regex
from fastprof.errors import OutputError

Path = str | os.PathLike[str]
Inputs = Iterable[Path | int]

# A descriptor of a process: /dev/fd/1, /proc/self/fd/1.
_DESCRIPTORS = regex(r"/dev/fd|/proc/([0-9]+)(?:/task/[0-9]+)?/fd")
_MOST_LINKS = 40
_LOGS = ("-wal", "-shm", "-journal")  # SQLite's, beside its file
_REPORTS = (".sqlite", ".nsys-rep", ".qdrep")  # one recording: the export and the report itself

_inputs: ContextVar[tuple[Callable[[], Inputs], ...]] = ContextVar("inputs", default=())


@contextmanager
def protected(inputs: Callable[[], Inputs]) -> Iterator[None]:
    """Until the block ends, `output_file` refuses to write over these files.

    It also refuses what belongs to them: the report beside an export, the export beside a report,
    and the logs of a database.

    inputs : returns paths and descriptors; called where a file is about to be replaced
    """
    before = _inputs.get()
    _inputs.set((*before, inputs))
    try:
        yield
    finally:
        _inputs.set(before)


def refuse_input(target: Path | int, hint: str = "choose another name for the output") -> None:
    """Check that an output is no input of the `protected` blocks around this call.

    Files are compared by device and inode, not by name.

    Parameters
    ----------
    target : path or descriptor of the output, which need not exist
    hint : the end of the message

    Raises
    ------
    OutputError
    """
    candidates = _relatives(target)
    if not candidates or not _inputs.get():
        return
    for inputs in _inputs.get():
        for input_ in inputs():
            status = _status(input_)
            if status is None or not stat.S_ISREG(status.st_mode):
                continue
            for candidate, name in candidates:
                if os.path.samestat(candidate, status):
                    what = f"belongs to the input {_shown(input_)}" if name else "is an input"
                    raise OutputError(f"{_shown(target)}: {what}; {hint}")


@contextmanager
def output_file(
    path: Path,
    opened: Callable[[str, str], io.FileIO] = io.FileIO,
    *,
    is_own: bool = False,
    sync: bool = False,
) -> Iterator[BinaryIO]:
    """Yield a binary file that appears at `path` when the block ends without an exception.

    An existing file is replaced and keeps its permissions. After an exception it is unchanged and
    no temporary file is left. A link is followed, as by `open`. A device, a pipe, or a descriptor
    such as /dev/stdout is written into.

    Parameters
    ----------
    path : the file
    opened : opens a regular file, given its name and mode
    is_own : the file is in a directory that fastprof keeps: a link is replaced, not followed
    sync : the file is on the disk when the block ends, for what cannot be made again

    Raises
    ------
    OSError
        The file cannot be created or written, or is a directory.
    OutputError
        The file is an input, see `protected`.
    """
    before = _own_status(path) if is_own else _status_or_none(path)
    if not is_own:
        refuse_input(path)
    if before is not None and stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    is_special = before is not None and not stat.S_ISREG(before.st_mode)
    descriptor = None if is_own else _descriptor(path)
    if descriptor is not None or (is_special and not is_own):
        own = -1 if descriptor is None else descriptor
        with open(path if own < 0 else os.dup(own), "wb") as file:
            yield file
        return
    target = os.path.abspath(path) if is_own else os.path.realpath(path)
    if before is not None and not is_own and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target)
    from fastprof._system.atomic_file import atomic_file

    with atomic_file(target, opened, None if is_special else before, sync) as new:
        yield new


def _status_or_none(path: Path) -> os.stat_result | None:
    """The status of a file; None if nothing is there, or a link to nothing.

    Raises
    ------
    OSError
        Something else is in the way, such as a ring of links.
    """
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _own_status(path: Path) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _status(file: Path | int) -> os.stat_result | None:
    try:
        return os.stat(file)
    except (OSError, ValueError):
        return None


def _relatives(target: Path | int) -> list[tuple[os.stat_result, str]]:
    """The files to compare with inputs: the target, "", then what it would belong to, a suffix."""
    names = [(target, "")]
    if not isinstance(target, int):
        real = os.path.realpath(target)
        names += [(real.removesuffix(log), log) for log in _LOGS if real.endswith(log)]
        stem, suffix = os.path.splitext(real)
        if suffix in _REPORTS and os.path.lexists(real):
            names += [(stem + report, report) for report in _REPORTS if report != suffix]
    known = [(_status(name), suffix) for name, suffix in names]
    return [(each, suffix) for each, suffix in known if each is not None]


def _descriptor(path: Path) -> int | None:
    """The descriptor that a path such as /dev/stdout leads to; None for other paths.

    Negative if it is of another process.
    """
    name = os.fspath(path)
    for _ in range(_MOST_LINKS):
        folder, last = os.path.split(name)
        match = _DESCRIPTORS.fullmatch(os.path.realpath(folder))
        if match is not None and last.isascii() and last.isdigit():
            return int(last) if match[1] in (None, str(os.getpid())) else -1
        try:
            name = os.path.join(folder, os.readlink(name))
        except OSError:
            return None
    return None


def _shown(file: Path | int) -> str:
    return "standard stream" if isinstance(file, int) else os.fsdecode(file)
