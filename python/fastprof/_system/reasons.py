"""Why the system refused something, in the words of the user."""

from __future__ import annotations

import errno
import os
from typing import Final

_WORDS: Final = {
    errno.ENOSPC: "no space left on the disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file is larger than the limit (ulimit -f)",
    errno.EROFS: "the file system is read-only",
}


def reason(error: BaseException) -> str:
    """One line: what went wrong, and with which file."""
    if isinstance(error, MemoryError):
        return f"not enough memory{f': {error}' if str(error) else ''}"
    if isinstance(error, OSError):
        name = error.filename
        where = f"{os.fsdecode(name)}: " if isinstance(name, str | bytes | os.PathLike) else ""
        return where + words_of(error)
    return " ".join(str(error).split()) or type(error).__name__


def words_of(error: OSError) -> str:
    """What went wrong, without the name of the file."""
    return _WORDS.get(error.errno or 0) or error.strerror or str(error)
