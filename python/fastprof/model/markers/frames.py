"""Source lines of a call stack: the owner of each, and the lines that a report shows.

A frame is `FILE:LINE`, the executing line, or `FILE:LINE FUNCTION` from torch.profiler's Python
stacks. There the line is that of the frame when the profiler first saw it: the function's
definition, except for functions already running and for resumed generators
(PyFrame_GetLineNumber in torch/csrc/autograd/profiler_python.cpp).
"""

from __future__ import annotations

import enum
import fnmatch
import functools
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fastprof._system.regex import regex
from fastprof.model.markers import packages

_LIBRARY_FRAME = regex(
    r"/torch/nn/modules/|/torch/nn/functional\.py:|/torch/tensor\.py:|/torch/_tensor\.py:"
    r"|/torch/autograd/|/torch/_jit_internal\.py:|/torch/_utils\.py:|/torch/optim/"
    r"|/apex/optimizers/|/pyprof/nvtx/|/fastprof/annotate/|/nvmarker\.py:"
)


def is_library_frame(frame: str) -> bool:
    """Whether a frame is always omitted: torch's frames around every call, such as those of a
    module's forward, and frames of the annotator."""
    return _LIBRARY_FRAME.search("/" + frame.replace("\\", "/") + ":") is not None


class Owner(enum.Enum):
    """The owner of a source file."""

    TORCH = "torch, triton, code they generate, and Python's standard library"
    LIBRARY = "another installed package"
    MINE = "the user"


_FRAME: Final = regex(r"(.+?):(\d+)(?: (.*))?\Z", re.DOTALL)
_MOST_DIGITS: Final = 9


class Place(NamedTuple):
    """A frame's file, line and function; None where the frame does not name it."""

    file: str
    line: int | None
    function: str | None


def place_of(frame: str) -> Place:
    """The place of a frame `FILE:LINE` or `FILE:LINE FUNCTION`."""
    match = _FRAME.match(frame)
    if match is None:
        return Place(frame, None, None)
    line = int(match[2]) if len(match[2]) <= _MOST_DIGITS else None
    return Place(match[1], line, match[3] or None)


_INSTALLED: Final = regex(r"(?:^|.*/)(?:site|dist)-packages/", re.DOTALL)
_STANDARD: Final = regex(
    r"(?:^|/)lib(?:64)?/(?:python|pypy)3(?:\.\d+)?t?/|/python3\d*(?:\.zip|/lib)/", re.IGNORECASE
)
_OF_TORCH: Final = regex(
    rf"(?:^|/)torch/(?:{packages.TORCH_PARTS})(?:/|\Z)"
    rf"|(?:^|/)triton/(?:{packages.TRITON_PARTS})(?:/|\Z)"
)
# Files of torch's compiler: `ov/cov463qh...`, a hash in a folder named after its second and third
# letters, in any cache folder; and files of its debug mode.
_GENERATED: Final = regex(
    r"(?:^|/)([a-z2-7]{2})/c\1[a-z2-7]{40,}\.py\Z|/torchinductor_[^/]*/|(?:^|/)torch_compile_debug/"
    r"|/\.triton/"
)
_TYPED: Final = regex(r"<(?:stdin|console|ipython-input|input|command)\b")
_MADE: Final = regex(r"<(?:frozen |eval_with_key)")


@functools.lru_cache(maxsize=1 << 14)
def owner_of(file: str) -> Owner | None:
    """The owner of a file, by its path. None for code without a file (`<string>`), which has the
    owner of its caller."""
    path = file.replace("\\", "/")
    if path.startswith("<"):
        if _MADE.match(path):
            return Owner.TORCH
        return Owner.MINE if _TYPED.match(path) else None
    if _GENERATED.search(path) or _OF_TORCH.search(path):
        return Owner.TORCH
    installed = _INSTALLED.match(path)
    if installed is None and _STANDARD.search(path):
        return Owner.TORCH
    if installed is None and (path.startswith("/") or path[1:3] == ":/"):
        return Owner.MINE
    return _owner_by_name(path[installed.end() if installed else 0 :], installed is not None)


def _owner_by_name(path: str, is_installed: bool) -> Owner:
    """The owner of a file, by the first component of its path below a `sys.path` folder."""
    name, is_folder, _ = path.partition("/")
    name = name.removesuffix(".py")
    if is_folder and name in packages.TORCH:
        return Owner.TORCH
    if is_installed or name in (packages.PACKAGES if is_folder else packages.MODULES):
        return Owner.LIBRARY
    return Owner.TORCH if name in packages.STANDARD else Owner.MINE


def path_pattern(globs: Sequence[str]) -> re.Pattern[str]:
    """A pattern of the paths, with forward slashes, whose trailing components match a glob.

    Raises
    ------
    ValueError
        A glob is empty.
    """
    folded = [glob.replace("\\", "/").removeprefix("./").rstrip("/") for glob in globs]
    if "" in folded:
        raise ValueError(f"expected globs of files or folders, found {list(globs)!r}")
    each = "|".join(fnmatch.translate(glob)[:-2] for glob in folded)  # without \\Z
    return re.compile(rf"(?:.*/)?(?:{each})(?:/.*)?\Z", re.DOTALL)


class SourceLines:
    """Selects the source lines of a call stack that a report shows.

    Parameters
    ----------
    mine : str or sequence of str
        Globs of the user's own files and folders; all other files are then not the user's. A glob
        matches trailing path components: `train.py`, `src/*`, `transformers`. By default, files
        outside installed packages and the standard library are the user's.

    Raises
    ------
    ValueError
        A glob is empty.
    """

    def __init__(self, mine: str | Sequence[str] = ()) -> None:
        globs = [mine] if isinstance(mine, str) else list(mine)
        try:
            self._mine = path_pattern(globs) if globs else None
        except ValueError as error:
            raise ValueError(f"mine: {error}") from None
        self._owner_of: dict[str, Owner | None] = {}  # of frames: each is in many stacks

    def trace(self, frames: Sequence[str]) -> tuple[str, ...]:
        """The frames without trailing ones of torch, triton or the standard library."""
        return tuple(frames[: self._last(frames, Owner.LIBRARY, Owner.MINE) + 1])

    def library_line(self, frames: Sequence[str]) -> str | None:
        """The last frame of `trace`: the user's or a package's. None if there is none."""
        last = self._last(frames, Owner.LIBRARY, Owner.MINE)
        return frames[last] if last >= 0 else None

    def line(self, frames: Sequence[str]) -> str | None:
        """The last frame of the user's own files. None if there is none."""
        last = self._last(frames, Owner.MINE)
        return frames[last] if last >= 0 else None

    def mine(self, frames: Sequence[str]) -> list[bool]:
        """Whether each frame is in the user's own files."""
        return [owner is Owner.MINE for owner in self._owners(frames)]

    def _last(self, frames: Sequence[str], *owners: Owner) -> int:
        """Index of the last frame of these owners, -1 for none."""
        last = len(frames) - 1  # of the frames that have the owner of their caller
        for i in range(last, -1, -1):
            owner = self._owner(frames[i])
            if owner in owners:
                return last
            if owner is not None:
                last = i - 1
        return last if Owner.MINE in owners else -1

    def _owners(self, frames: Sequence[str]) -> Iterator[Owner]:
        """The owner of each frame; code without a file has the owner of its caller."""
        caller = Owner.MINE
        for frame in frames:
            caller = self._owner(frame) or caller
            yield caller

    def _owner(self, frame: str) -> Owner | None:
        if frame not in self._owner_of:
            self._owner_of[frame] = self._owner_of_file(place_of(frame).file)
        return self._owner_of[frame]

    def _owner_of_file(self, file: str) -> Owner | None:
        owner = owner_of(file)
        if self._mine is None:
            return owner
        if self._mine.match(file.replace("\\", "/")):
            return Owner.MINE
        return Owner.LIBRARY if owner is Owner.MINE else owner
