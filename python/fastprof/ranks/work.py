"""One path to its Summary, or to the reason why there is none: what a worker does."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fastprof.errors import BadInputError, FastprofError, OpError
from fastprof.ops.user import load_file
from fastprof.profile.load import open as open_trace
from fastprof.profile.load import traces_in
from fastprof.ranks.source import source_of
from fastprof.ranks.summary import Summary, summarise
from fastprof.readers.detect import head_of

__all__ = ["Failure", "Options", "Result", "work"]


@dataclass(frozen=True)
class Options:
    """What changes the numbers of a summary.

    Parameters
    ----------
    copies : whether memory copies and memsets count
    ops : paths of Python files that register costs
    graph_capture : paths of traces with the captures of CUDA and HIP graphs
    """

    copies: bool = False
    ops: tuple[str, ...] = ()
    graph_capture: tuple[str, ...] = ()

    def text(self) -> str:
        """The same text for the same numbers: costs by what is in their files, captures by what
        tells whether a trace has changed.

        Raises
        ------
        BadInputError
            A file of costs or of a capture cannot be read.
        """
        captures = [os.fsdecode(path) for path in traces_in(self.graph_capture)]
        sources = [source_of(path) for path in captures if head_of(path)]
        told = [f"{each.size}:{each.changed}:{each.fingerprint}" for each in sources]
        return " ".join([f"copies={int(self.copies)}", *map(_hash, self.ops), *told])


@dataclass(frozen=True)
class Failure:
    """A file without a summary.

    Parameters
    ----------
    path : the file
    error : why, one line that begins with the path
    memory : whether its worker ran out of memory
    died : whether its worker is gone
    """

    path: str
    error: str
    memory: bool = False
    died: bool = False


Result = Summary | Failure

_NO_MEMORY: Final = (
    "{} bytes need more memory than their process may have; give each process more, or run fewer"
)

_loaded: set[str] = set()  # texts of costs that this process has registered


def work(path: str, options: Options) -> Result:
    """Read and summarise a file. Whatever goes wrong with it comes back as a Failure."""
    begin = time.perf_counter()
    try:
        _load(options.ops)
        head_of(path)
        source = source_of(path)
        profile = open_trace(path, copies=options.copies, graph_capture=options.graph_capture)
        summary = summarise(profile, source, options.text())
        return replace(summary, seconds=time.perf_counter() - begin)
    except Exception as error:
        # SQLite says it in its own way.
        memory = isinstance(error, MemoryError) or str(error).endswith("out of memory")
        said = memory and not isinstance(error, FastprofError)
        text = _NO_MEMORY.format(os.path.getsize(path)) if said else _text(error)
        line = " ".join(text.removeprefix(f"{path}: ").split())
        return Failure(path, f"{path}: {line}", memory)


def _load(paths: tuple[str, ...]) -> None:
    """Register costs, once in a process; nothing else may have been, or numbers would depend on
    what a worker of a cluster did before."""
    wanted = {_hash(path): path for path in paths}
    if not _loaded <= set(wanted):
        raise OpError(
            "its process has costs of another batch; restart the workers: client.restart()"
        )
    for text, path in wanted.items():
        if text not in _loaded:
            load_file(path)
            _loaded.add(text)


def _hash(path: str) -> str:
    try:
        return hashlib.blake2b(Path(path).read_bytes(), digest_size=8).hexdigest()
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}; give Python files of costs "
                            "that call fastprof.op") from error  # fmt: skip


def _text(error: Exception) -> str:
    if isinstance(error, FastprofError):
        return str(error)
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    return f"{type(error).__name__}: {error}; a bug in fastprof: please report it"
