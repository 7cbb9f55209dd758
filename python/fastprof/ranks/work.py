"""The task of a worker, one trace to its Summary or Failure, and the program of its process.

The program reads options and paths from stdin and writes results to stdout: pickles between
fastprof's own processes.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from fastprof._system.classes import dataclass
from fastprof.errors import BadInputError, FastprofError, OpError
from fastprof.ops.user import load_file
from fastprof.profile.data import ProfileData
from fastprof.profile.load import load, traces_in
from fastprof.ranks.files import source_of
from fastprof.ranks.run.record import RecordedFile
from fastprof.ranks.summary import Summary, summarise
from fastprof.readers.detect import read_head


@dataclass(frozen=True)
class Options:
    """The options that affect a summary.

    Parameters
    ----------
    copies : include memory copies and memsets
    ops : paths of Python files that register operator costs
    graph_capture : paths of traces with captures of CUDA and HIP graphs
    trim : the part of each trace that counts, see `Profile.trim`; None for all
    ranks : the ranks of a run, `RecordedFile`, instead of a summary
    steps : what marks their steps, see `Profile.find_steps`
    """

    copies: bool = True
    ops: tuple[str, ...] = ()
    graph_capture: tuple[str, ...] = ()
    trim: str | None = None
    ranks: bool = False
    steps: str | None = None

    def text(self) -> str:
        """A key: equal for equal options, contents of cost files and states of capture files.

        Raises
        ------
        BadInputError
            A cost file or capture file cannot be read.
        """
        captures = [os.fsdecode(path) for path in traces_in(self.graph_capture)]
        for path in captures:
            read_head(path)  # raises the error that `open` would raise
        sources = [source_of(path) for path in captures]
        states = [f"{source.size}:{source.changed}:{source.fingerprint}" for source in sources]
        part = [] if self.trim is None else [f"trim={self.trim}"]
        part += [f"ranks steps={self.steps}"] if self.ranks else []
        return " ".join([f"copies={int(self.copies)}", *map(_hash, self.ops), *states, *part])


@dataclass(frozen=True)
class Failure:
    """A file that could not be summarised.

    Parameters
    ----------
    path : the file
    error : one line that begins with the path
    memory : the worker ran out of memory
    died : the worker process ended
    """

    path: str
    error: str
    memory: bool = False
    died: bool = False


Result = Summary | RecordedFile | Failure

_NO_MEMORY: Final = (
    "a file of {} bytes needs more memory than its process may use; raise the memory limit or use "
    "fewer jobs"
)

_loaded: set[str] = set()  # hashes of the cost files that this process has registered


def work(path: str, options: Options) -> Result:
    """Read and summarise a file. Any error is returned as a Failure."""
    begin = time.perf_counter()
    try:
        _load(options.ops)
        read_head(path)  # a better error message than that of source_of
        source = source_of(path)
        profile = load(
            ProfileData,
            path,
            copies=options.copies,
            graph_capture=options.graph_capture,
            host=options.ranks,
        )
        if options.trim is not None:
            profile = profile.trim(options.trim)
        if options.ranks:
            from fastprof.ranks.run.timeline import records_of

            ranks = records_of(profile, source, options.steps)
            seconds = time.perf_counter() - begin
            return RecordedFile(source, ranks, options.text(), seconds)
        summary = summarise(profile, source, options.text())
        return replace(summary, seconds=time.perf_counter() - begin)
    except Exception as error:
        # SQLite raises its own error type.
        memory = isinstance(error, MemoryError) or str(error).endswith("out of memory")
        is_raw = memory and not isinstance(error, FastprofError)
        text = _NO_MEMORY.format(os.path.getsize(path)) if is_raw else _text(error)
        line = " ".join(text.removeprefix(f"{path}: ").split())
        return Failure(path, f"{path}: {line}", memory)


def _load(paths: tuple[str, ...]) -> None:
    """Register operator costs once per process.

    Other costs must not be registered: results would depend on earlier tasks of the worker.
    """
    wanted = {_hash(path): path for path in paths}
    if not _loaded <= set(wanted):
        raise OpError(
            "the worker process has costs of another batch; restart the workers: client.restart()"
        )
    for digest, path in wanted.items():
        if digest not in _loaded:
            load_file(path)
            _loaded.add(digest)


def _hash(path: str) -> str:
    try:
        return hashlib.blake2b(Path(path).read_bytes(), digest_size=8).hexdigest()
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}; give Python files "
                            "that register costs with fastprof.op") from error  # fmt: skip


def _text(error: Exception) -> str:
    if isinstance(error, FastprofError):
        return str(error)
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    return f"{type(error).__name__}: {error}; a bug in fastprof: please report it"


def main() -> None:
    """Process paths until stdin ends. Exit after running out of memory, which may be fragmented."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of user code must not mix with results
    with suppress(EOFError, BrokenPipeError):
        options, memory = pickle.load(sys.stdin.buffer)
        if memory is not None:
            _limit_memory(memory)
        while True:
            result = work(pickle.load(sys.stdin.buffer), options)
            pickle.dump(result, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
            if isinstance(result, Failure) and result.memory:
                return


def _limit_memory(memory: int) -> None:
    """Limit the private memory of this process (Linux). Exceeding it raises MemoryError."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard != resource.RLIM_INFINITY:
        memory = min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, hard))
