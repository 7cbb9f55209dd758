"""Loads the user's own formulas and reports: from a file, or from installed packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastprof.errors import BadInputError, OpError, ReportError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS: Final = "fastprof.ops"

# Group and entry point -> error message, None if it was loaded.
_loaded: dict[tuple[str, str], str | None] = {}


def load_file(path: str | os.PathLike[str]) -> None:
    """Execute a Python file that registers formulas with `fastprof.op`, or reports.

    Raises
    ------
    BadInputError
        The file does not exist.
    OpError
        The file raised an exception; the message contains it and its line number.
    """
    name = os.fsdecode(path)
    if not os.path.isfile(path):
        raise BadInputError(f"{name}: no such file; expected a Python file that calls fastprof.op")
    import runpy

    try:
        runpy.run_path(name, run_name=Path(name).stem)
    except Exception as error:
        raise OpError(f"{name}{_line(error, name)}: {_text(error)}") from error


def load_packages(group: str = ENTRY_POINTS, what: str = "costs") -> list[str]:
    """Import the entry points of a group from installed packages.

    Each is a module, or a function in a module, whose import registers formulas or reports. An
    entry point is imported once per process.

    group : name of the group
    what : what its entry points register, for messages

    Returns
    -------
    list of str
        One error message per entry point that failed to load.
    """
    for point in _entry_points(group):
        key = group, point.value
        if key in _loaded:
            continue
        try:
            point.load()
            _loaded[key] = None
        except Exception as error:
            _loaded[key] = f"{what} of {point.name} ({point.value}): {_text(error)}"
    return [problem for (of, _), problem in _loaded.items() if of == group and problem is not None]


def _entry_points(group: str) -> Collection[EntryPoint]:
    """The entry points of a group.

    importlib.metadata, which takes 20 ms to import, is used where a package may declare some.
    """
    others = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    if others == [PathFinder]:
        declared = [_declared(text, _time_of_change(text)) for text in sys.path]
        if not any(text is None or group.encode() in text for text in declared):
            return ()
    from importlib.metadata import entry_points

    return entry_points(group=group)


def _time_of_change(folder: str) -> int:
    """When an entry of a folder was added or removed, in ns; 0 for no folder."""
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


@cache
def _declared(folder: str, changed: int) -> bytes | None:
    """What packages in a folder declare as entry points, joined; None if that is not known.

    changed : the time of the folder's last change, for which the answer is kept
    """
    if folder.endswith(".egg"):
        return None
    try:
        names = os.listdir(folder or ".")
    except FileNotFoundError:
        return b""
    except OSError:  # an archive
        return None
    declared = []
    for name in names:
        if name.endswith((".dist-info", ".egg-info")):
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb", 0) as file:
                    declared.append(file.read())
            except FileNotFoundError:
                pass
            except OSError:
                return None
    return b"\n".join(declared)


def _text(error: Exception) -> str:
    return (
        str(error)
        if isinstance(error, OpError | ReportError)
        else f"{type(error).__name__}: {error}"
    )


def _line(error: Exception, name: str) -> str:
    import traceback

    # The innermost line of the file itself in the traceback.
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == name and frame.lineno
    ]
    return f", line {lines[-1]}" if lines else ""
