"""A report of Nsight Systems (.nsys-rep, .qdrep) to its SQLite export, made by the user's nsys.

Exports are kept in a cache directory, never next to the report: $FASTPROF_CACHE, else
$XDG_CACHE_HOME/fastprof, else ~/.cache/fastprof. Users may delete them at any time. $FASTPROF_NSYS
selects another nsys than the one on the PATH.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fastprof._system.atomic_file import lock, remove_stale
from fastprof._system.file_state import state_of
from fastprof._system.signals import deferred
from fastprof.errors import BadInputError
from fastprof.readers.sqlite.database import Progress

_VERSION = re.compile(rb"Report (\d+(?:[@.]\d+)+)")
_POLL = 0.5  # seconds


def export(
    path: str | os.PathLike[str], head: bytes, progress: Progress | None = None
) -> tuple[Path, list[str]]:
    """The path of the SQLite export of a report, and notices for the user.

    An export of the same file (path, size, modification time) in the cache is used again.

    Parameters
    ----------
    path : the report; it is not modified
    head : its first bytes
    progress : called with the command and the bytes that nsys has written so far

    Raises
    ------
    BadInputError
        nsys is missing or fails, or the cache directory is not writable.
    """
    name, state = os.fsdecode(path), state_of(path)
    cached = cache_path(path, f"{state.size}-{state.modified}")
    if cached.is_file():
        return cached, []
    tool = find_nsys()
    command = f"nsys export --type sqlite {shlex.quote(name)}"
    if tool is None:
        raise BadInputError(
            f"{name}: is a report of Nsight Systems{_version(head)}, and no nsys is on the PATH to "
            f"export it; run this where nsys is installed: {command}"
        )

    def make(made: Path) -> None:
        problem = _run(tool, os.path.abspath(path), made, f"nsys export {name}", progress)
        if problem is None and not made.is_file():
            problem = "it wrote no file"
        if problem is not None:
            raise BadInputError(
                f"{name}: nsys export failed: {problem}{_newer(head)}; to see more, run: {command}"
            )

    write_to_cache(name, cached, make, command)
    return cached, [f"{name}: exported with {tool}; the export is kept as {cached}"]


def cache_path(path: str | os.PathLike[str], state: str) -> Path:
    """The path in the cache directory of the SQLite export of a report or directory.

    state : its present state, in characters of file names
    """
    prefix = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:24]
    return cache_directory() / f"{prefix}-{state}.sqlite"


EXPORT = "nsys export --type sqlite REPORT.nsys-rep"


@contextmanager
def new_database(path: Path) -> Iterator[Any]:
    """A connection to a new SQLite file for `write_to_cache`, in one transaction."""
    import apsw

    database = apsw.Connection(os.fspath(path))
    try:
        database.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        with database:
            yield database
    finally:
        database.close()


def write_to_cache(name: str, cached: Path, make: Callable[[Path], None], otherwise: str) -> None:
    """Write an export to the cache, in place of those of earlier states.

    Parameters
    ----------
    name : what is exported
    cached : see `cache_path`
    make : writes the export to a path
    otherwise : a command that does without the cache

    Raises
    ------
    BadInputError
        The cache directory is not writable.
    """
    directory = cached.parent
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix="export-", dir=directory))
    except OSError as error:
        raise BadInputError(
            f"{name}: its export cannot be written to {directory}: {error.strerror}; set "
            f"FASTPROF_CACHE to another directory, or run: {otherwise}"
        ) from error
    descriptor = os.open(temporary, os.O_RDONLY)
    lock(descriptor)
    try:
        remove_stale([os.fspath(path) for path in directory.glob("export-*")])
        made = temporary / "export.sqlite"
        make(made)
        os.replace(made, cached)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(descriptor)
    prefix = cached.name.partition("-")[0]
    for older in directory.glob(f"{prefix}-*.sqlite"):
        if older != cached:
            with suppress(OSError):
                older.unlink()


def find_nsys() -> str | None:
    """The nsys to run: $FASTPROF_NSYS (a path or a command), else nsys on the PATH."""
    return shutil.which(os.environ.get("FASTPROF_NSYS") or "nsys")


def cache_directory() -> Path:
    """The directory of exports."""
    own = os.environ.get("FASTPROF_CACHE")
    if own:
        return Path(os.path.abspath(own))
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(os.path.abspath(base)) / "fastprof"


def _run(tool: str, report: str, made: Path, what: str, progress: Progress | None) -> str | None:
    """Run nsys; returns the error in one line, or None. An exception kills nsys."""
    words = [tool, "export", "--type", "sqlite", "--output", os.fspath(made), report]
    with tempfile.TemporaryFile() as log:
        running = None
        try:
            try:
                with deferred():
                    running = subprocess.Popen(
                        words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
                    )
            except OSError as error:
                return f"{tool} cannot be run: {error.strerror}"
            while True:
                if progress is not None:
                    progress(what, made.stat().st_size if made.exists() else 0, 0)
                with suppress(subprocess.TimeoutExpired):
                    code = running.wait(_POLL)
                    break
        except BaseException:
            if running is not None:
                running.kill()
                running.wait()
            raise
        if code == 0:
            return None
        log.seek(0)
        lines = log.read().decode("utf-8", "replace").split("\n")
    output = [line.strip() for line in lines if line.strip()]
    return f"exit code {code}" + (f", {output[-1]}" if output else "")


def _version(head: bytes) -> str:
    match = _VERSION.search(head[:200])
    return f" {match[1].decode().replace('@', '.')}" if match else ""


def _newer(head: bytes) -> str:
    version = _version(head)
    return f" (the report is of nsys{version}; an older nsys cannot read it)" if version else ""
