"""A report of Nsight Systems (.nsys-rep, .qdrep) -> its SQLite export, by the user's own nsys.

Exports are kept in a cache directory, never beside the report: $FASTPROF_CACHE, else
$XDG_CACHE_HOME/fastprof, else ~/.cache/fastprof. They may be deleted at any time. $FASTPROF_NSYS
names another nsys than the one on the PATH.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from fastprof._system.atomic_file import lock, remove_stale
from fastprof._system.signals import held
from fastprof.errors import BadInputError
from fastprof.readers.sqlite.database import Progress

# The first line goes on with the version that wrote it: 2026@4@1@191-264138605071v0.
MAGIC = b"NVIDIA Tegra Profiler Report"
SUFFIXES = (".nsys-rep", ".qdrep")
_VERSION = re.compile(rb"Report (\d+(?:[@.]\d+)+)")
_KNOWN_OTHERS = (b"SQLite format 3\0", b"{", b"[")
_POLL = 0.5  # seconds


def is_report(head: bytes, name: str) -> bool:
    """Whether a file that starts with `head` is a report.

    Its suffix is believed where the content is of no format that fastprof reads.
    """
    if head.startswith(MAGIC):
        return True
    return name.lower().endswith(SUFFIXES) and not head.lstrip().startswith(_KNOWN_OTHERS)


def export(
    path: str | os.PathLike[str], head: bytes, progress: Progress | None = None
) -> tuple[Path, list[str]]:
    """The SQLite export of a report, and what there is to say of it.

    One that was made before of the same file (path, size, time of change) is taken from the cache.

    Parameters
    ----------
    path : the report; it is only read
    head : its first bytes
    progress : told that nsys is at work, and the bytes that it has written

    Raises
    ------
    BadInputError
        There is no `nsys`, it fails, or the cache directory cannot be written.
    """
    name = os.fsdecode(path)
    directory = cache_directory()
    whole, of_path = _names(path)
    cached = directory / whole
    if cached.is_file():
        return cached, []
    tool = find_nsys()
    command = f"nsys export --type sqlite {shlex.quote(name)}"
    if tool is None:
        raise BadInputError(
            f"{name}: is a report of Nsight Systems{_version(head)}, and no nsys is on the PATH to "
            f"export it; run where nsys is installed: {command}"
        )
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix="export-", dir=directory))
    except OSError as error:
        raise BadInputError(
            f"{name}: its export cannot be kept in {directory}: {error.strerror}; set "
            f"FASTPROF_CACHE to another directory, or run: {command}"
        ) from error
    descriptor = os.open(beside, os.O_RDONLY)
    lock(descriptor)
    try:
        remove_stale([os.fspath(each) for each in directory.glob("export-*")])
        made = beside / "export.sqlite"
        problem = _run(tool, os.path.abspath(path), made, f"nsys export {name}", progress)
        if problem is None and not made.is_file():
            problem = "it made no file"
        if problem is not None:
            raise BadInputError(
                f"{name}: nsys export failed: {problem}{_newer(head)}; to see more, run: {command}"
            )
        os.replace(made, cached)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        os.close(descriptor)
    _forget_older(directory, of_path, cached)
    return cached, [f"{name}: exported with {tool}; the export is kept as {cached}"]


def find_nsys() -> str | None:
    """The user's nsys: what $FASTPROF_NSYS names, a path or a command, else nsys on the PATH."""
    return shutil.which(os.environ.get("FASTPROF_NSYS") or "nsys")


def cache_directory() -> Path:
    """Where exports are kept."""
    own = os.environ.get("FASTPROF_CACHE")
    if own:
        return Path(os.path.abspath(own))
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(os.path.abspath(base)) / "fastprof"


def _names(path: str | os.PathLike[str]) -> tuple[str, str]:
    """The name of the export of a file as it is now, and how those of any state of it begin."""
    full = os.fsencode(os.path.realpath(path))
    state = os.stat(path)
    of_path = hashlib.sha256(full).hexdigest()[:24]
    return f"{of_path}-{state.st_size}-{state.st_mtime_ns}.sqlite", of_path


def _run(tool: str, report: str, made: Path, what: str, progress: Progress | None) -> str | None:
    """Run nsys to its end; what went wrong, in one line. Interrupted, it is stopped, too."""
    words = [tool, "export", "--type", "sqlite", "--output", os.fspath(made), report]
    with tempfile.TemporaryFile() as log:
        running = None
        try:
            try:
                with held():
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
    said = [line.strip() for line in lines if line.strip()]
    return f"exit code {code}" + (f", {said[-1]}" if said else "")


def _forget_older(directory: Path, of_path: str, newest: Path) -> None:
    """Delete exports of what the file was before."""
    for older in directory.glob(f"{of_path}-*.sqlite"):
        if older != newest:
            with suppress(OSError):
                older.unlink()


def _version(head: bytes) -> str:
    match = _VERSION.search(head[:200])
    return f" {match[1].decode().replace('@', '.')}" if match else ""


def _newer(head: bytes) -> str:
    version = _version(head)
    return f" (the report is of nsys{version}; an older nsys cannot read it)" if version else ""
