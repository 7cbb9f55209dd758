"""Source lines of a call stack: whose each is, and which of them a report shows.

A frame is `FILE:LINE`, the line that ran, or `FILE:LINE FUNCTION`, as torch.profiler tells Python's
stack: the line of a frame when the profiler first met it. That is where the function is defined,
but for functions that ran before the profiler did, and for generators that go on
(PyFrame_GetLineNumber in torch/csrc/autograd/profiler_python.cpp).
"""

from __future__ import annotations

import enum
import fnmatch
import functools
import re
from collections.abc import Sequence
from typing import Final

from fastprof.model.markers import packages

_LIBRARY_FRAME = re.compile(
    r"/torch/nn/modules/|/torch/nn/functional\.py:|/torch/tensor\.py:|/torch/_tensor\.py:"
    r"|/torch/autograd/|/torch/_jit_internal\.py:|/torch/_utils\.py:|/torch/optim/"
    r"|/apex/optimizers/|/pyprof/nvtx/|/fastprof/annotate/|/nvmarker\.py:"
)


def is_library_frame(frame: str) -> bool:
    """Whether a frame is left out wherever it stands: torch's own around every call, as of a
    module's forward, and those of the annotator."""
    return _LIBRARY_FRAME.search("/" + frame.replace("\\", "/") + ":") is not None


class Owner(enum.Enum):
    """Whose a source file is."""

    TORCH = "torch, triton, what they generate, and Python's own library"
    LIBRARY = "another installed package"
    MINE = "the user"


_FRAME: Final = re.compile(r"(.+?):\d+(?: .*)?\Z", re.DOTALL)

_INSTALLED: Final = re.compile(r"(?:^|.*/)(?:site|dist)-packages/", re.DOTALL)
_STANDARD: Final = re.compile(
    r"(?:^|/)lib(?:64)?/(?:python|pypy)3(?:\.\d+)?t?/|/python3\d*(?:\.zip|/lib)/", re.IGNORECASE
)
_OF_TORCH: Final = re.compile(
    rf"(?:^|/)torch/(?:{packages.TORCH_PARTS})(?:/|\Z)"
    rf"|(?:^|/)triton/(?:{packages.TRITON_PARTS})(?:/|\Z)"
)
# Files of torch's compiler: `ov/cov463qh...`, a hash in the folder of its second and third letters
# whatever the cache is called, and those of its debug mode.
_GENERATED: Final = re.compile(
    r"(?:^|/)([a-z2-7]{2})/c\1[a-z2-7]{40,}\.py\Z|/torchinductor_[^/]*/|(?:^|/)torch_compile_debug/"
    r"|/\.triton/"
)
_TYPED: Final = re.compile(r"<(?:stdin|console|ipython-input|input|command)\b")
_MADE: Final = re.compile(r"<(?:frozen |eval_with_key)")


@functools.lru_cache(maxsize=1 << 14)
def owner_of(file: str) -> Owner | None:
    """Whose a file is, by its path; None for code without a file (`<string>`), which belongs to
    whoever called it."""
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
    """Whose a file is, by the first name of its path below a folder of `sys.path`."""
    name, is_folder, _ = path.partition("/")
    name = name.removesuffix(".py")
    if is_folder and name in packages.TORCH:
        return Owner.TORCH
    if is_installed or name in (packages.PACKAGES if is_folder else packages.MODULES):
        return Owner.LIBRARY
    return Owner.TORCH if name in packages.STANDARD else Owner.MINE


class SourceLines:
    """What a report shows of call stacks.

    Parameters
    ----------
    mine : str or sequence of str
        Globs of the files and folders that are the user's own; then no other is. Each is compared
        with the end of a path, whole names of it: `train.py`, `src/*`, `transformers`. Without
        any, a file is the user's that neither a package nor the interpreter brings along.

    Raises
    ------
    ValueError
        A glob is empty.
    """

    def __init__(self, mine: str | Sequence[str] = ()) -> None:
        globs = [mine] if isinstance(mine, str) else list(mine)
        folded = [glob.replace("\\", "/").removeprefix("./").rstrip("/") for glob in globs]
        if "" in folded:
            raise ValueError(f"mine: expected globs of files or folders, found {globs!r}")
        each = "|".join(fnmatch.translate(glob)[:-2] for glob in folded)  # without its \\Z
        self._mine = re.compile(rf"(?:.*/)?(?:{each})(?:/.*)?\Z", re.DOTALL) if globs else None

    def trace(self, frames: Sequence[str]) -> tuple[str, ...]:
        """The frames without those at the end that are torch's, triton's or Python's own."""
        return tuple(frames[: self._last(frames, Owner.LIBRARY, Owner.MINE) + 1])

    def library_line(self, frames: Sequence[str]) -> str | None:
        """The last frame that is the user's or a package's, but not torch's: the end of `trace`."""
        last = self._last(frames, Owner.LIBRARY, Owner.MINE)
        return frames[last] if last >= 0 else None

    def line(self, frames: Sequence[str]) -> str | None:
        """The last frame that is the user's own."""
        last = self._last(frames, Owner.MINE)
        return frames[last] if last >= 0 else None

    def _last(self, frames: Sequence[str], *owners: Owner) -> int:
        """Index of the last frame of these owners, -1 for none."""
        last = -1
        caller = Owner.MINE
        for i, frame in enumerate(frames):
            caller = self._owner(frame) or caller
            if caller in owners:
                last = i
        return last

    def _owner(self, frame: str) -> Owner | None:
        match = _FRAME.match(frame)
        file = match[1] if match else frame
        owner = owner_of(file)
        if self._mine is None:
            return owner
        if self._mine.match(file.replace("\\", "/")):
            return Owner.MINE
        return Owner.LIBRARY if owner is Owner.MINE else owner
