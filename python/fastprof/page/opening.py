"""Opens a trace for the page, with as much of it as fits in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from fastprof._system import memory
from fastprof._system.memory import format_size
from fastprof.profile.data import ProfileData
from fastprof.readers.detect import FileFormat, InputFile, contents_of, detect_trace
from fastprof.readers.sqlite.database import Database, Progress

Opened = TypeVar("Opened", bound=ProfileData)


def open_for_page(
    path: str | os.PathLike[str],
    opened: Callable[..., Opened],
    progress: Progress | None = None,
    **options: Any,
) -> Opened:
    """Open a trace; without the host's side if the page would not fit in memory with it.

    `profile.source.host_omitted` says so.

    opened : `fastprof.profile.load.load`, or what makes a Profile with the same options
    """
    if not os.path.isfile(path):
        return opened(path, progress, host=True, **options)
    file, notices = detect_trace(path).exported(progress)
    needed, (limit, source) = memory_of_page(file), memory.available()
    profile = opened(path, progress, host=needed <= limit, **options)
    if needed > limit:
        profile.source.omit_host(
            f"API calls and the times of ranges are left out: with them, the page takes about "
            f"{format_size(needed)} of memory, but {source} {format_size(limit)}; use a larger "
            "machine, or record less (nsys --duration, --capture-range)",
        )
    profile.warnings[:0] = notices
    return profile


def memory_of_page(file: InputFile) -> float:
    """Bytes that the page of a trace takes, of which the host's side is about half.

    0 if not known: other formats than SQLite.

    Raises
    ------
    BadInputError
        The file cannot be read or is damaged.
    """
    if file.format is not FileFormat.SQLITE:
        return 0.0
    with Database(file.path) as database:
        work, ranges, calls = contents_of(database)
    return (
        memory.OF_PAGE
        + work * memory.OF_KERNEL_ON_PAGE
        + ranges * memory.OF_RANGE_ON_PAGE
        + calls * memory.OF_CALL_ON_PAGE
    )
