"""Why the system refused something, in the words of the user."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import Final

from fastprof._system.regex import regex

# Messages of Python and of the dynamic loader after a failed allocation.
_NO_MEMORY = regex(
    "can't start new thread|failed to map segment|annot allocate memory|without exception set"
)
_WORDS: Final = {
    errno.ENOMEM: "not enough memory",
    errno.ENOSPC: "no space left on the disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file is larger than the limit (ulimit -f)",
    errno.EROFS: "the file system is read-only",
}


def reason(error: BaseException) -> str:
    """One line: what went wrong, and with which file."""
    shortage = memory_shortage(error)
    if shortage is not None:
        return shortage
    if isinstance(error, OSError):
        name = error.filename
        where = f"{os.fsdecode(name)}: " if isinstance(name, str | bytes | os.PathLike) else ""
        return where + words_of(error)
    return " ".join(str(error).split()) or type(error).__name__


def words_of(error: OSError) -> str:
    """What went wrong, without the name of the file."""
    return _WORDS.get(error.errno or 0) or error.strerror or str(error)


def memory_shortage(error: BaseException) -> str | None:
    """One line for an error that a failed allocation caused, in Python or while importing."""
    if isinstance(error, MemoryError):
        return f"not enough memory{f': {error}' if str(error) else ''}"
    if isinstance(error, RuntimeError | ImportError | SystemError):
        # numpy's import replaces the error of the loader by another one.
        texts = [" ".join(str(cause).split()) for cause in _causes(error)]
        text = next(filter(_NO_MEMORY.search, texts), None)
        return None if text is None else f"not enough memory: {text[:200]}"
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that it was raised from or after."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
