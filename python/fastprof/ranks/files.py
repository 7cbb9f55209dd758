"""Files and directories to a list of distinct traces, with their identities."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator
from typing import Final

from fastprof._system.classes import dataclass
from fastprof._system.file_state import state_of
from fastprof.errors import BadInputError
from fastprof.readers.nsys.schema import is_export_directory

# Suffixes of traces. Files that differ only by suffixes of one row are the same capture; the first
# suffix is preferred.
_ENDINGS: Final = (
    (".sqlite", ".nsys-rep", ".qdrep"),
    (".json", ".json.gz"),
    (".nvvp",),
    (".db",),
    (".rpd",),
)

_FACTS: Final = "run.json"  # what `fastprof run` knows about the run


def find(
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str], pattern: str | None = None
) -> list[str]:
    """Find traces in files and directories.

    Parameters
    ----------
    paths : path, or paths
        Files with any name, and directories, which are searched recursively.
    pattern : str, optional
        Glob pattern of file names in directories: `*.pt.trace.json.gz`. By default names end in
        .sqlite, .nsys-rep, .qdrep, .json, .json.gz, .nvvp, .db or .rpd, and an export is preferred
        to the report next to it.

    Returns
    -------
    list of str
        Distinct files (links are resolved), sorted by name with numbers in numeric order.

    Raises
    ------
    BadInputError
        A directory contains no trace, or there are no paths.
    """
    given = [paths] if isinstance(paths, str | bytes | os.PathLike) else list(paths)
    result: dict[str, str] = {}
    for path in map(os.fsdecode, given):
        is_many = os.path.isdir(path) and not is_export_directory(path)
        inside = sorted(_below(path, pattern), key=natural) if is_many else [path]
        if not inside:
            expected = pattern or ", ".join(f"*{end}" for row in _ENDINGS for end in row)
            raise BadInputError(
                f"{path}: no traces in this directory; expected files named {expected}. "
                "Give the files, or a pattern for their names"
            )
        for text in inside:
            result.setdefault(os.path.realpath(text), text)
    if not result:
        raise BadInputError("no traces: give files or directories")
    return sorted(result.values(), key=natural)


def all_below(directory: str, pattern: str | None = None) -> Iterator[str]:
    """The files of a directory that `find` may read: all forms of each capture."""
    endings = tuple(end for row in _ENDINGS for end in row)
    for folder, _, names in os.walk(directory):
        for name in names:
            if name.endswith(endings) or (pattern and fnmatch.fnmatch(name, pattern)):
                yield os.path.join(folder, name)


def natural(text: str) -> list[tuple[int, int, str]]:
    """A key that sorts `rank2` before `rank10`."""
    parts = re.split(r"([0-9]+)", text)
    return [(1, int(p), p) if p.isdigit() else (0, 0, p) for p in parts if p]


def _below(directory: str, pattern: str | None) -> Iterator[str]:
    for folder, _, names in os.walk(directory):
        chosen = fnmatch.filter(names, pattern) if pattern else _traces(names)
        yield from (os.path.join(folder, name) for name in chosen)


def _traces(names: list[str]) -> Iterator[str]:
    """The names of traces, one per capture."""
    present = set(names)
    for row in _ENDINGS:
        for place, ending in enumerate(row):
            for name in present - {_FACTS}:
                stem = name.removesuffix(ending)
                if stem != name and not any(stem + other in present for other in row[:place]):
                    yield name


_SAMPLE_SIZE: Final = 1 << 16
_N_SAMPLES: Final = 16


@dataclass(frozen=True)
class TraceFile:
    """A trace file at the time of reading.

    Parameters
    ----------
    path : as given by the user
    size : bytes
    changed : modification time, ns
    fingerprint : BLAKE2 of 16 samples of 64 kB, spread evenly over the file
    """

    path: str
    size: int
    changed: int
    fingerprint: str

    def is_same(self, other: TraceFile) -> bool:
        """Whether the content is the same. Paths may differ.

        False for a file that was written or touched, since samples do not prove equality.
        """
        own = self.size, self.changed, self.fingerprint
        return own == (other.size, other.changed, other.fingerprint)


def source_of(path: str) -> TraceFile:
    """The identity of a file. Reads at most 1 MB.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    import hashlib  # the first screen imports this module, and has no use for it

    with open(path, "rb", buffering=0) as file:
        state = state_of(file.fileno())
        digest = hashlib.blake2b(digest_size=16)
        step = max(_SAMPLE_SIZE, -(-(state.size - _SAMPLE_SIZE) // (_N_SAMPLES - 1)))
        for start in range(0, state.size, step):
            file.seek(min(start, max(0, state.size - _SAMPLE_SIZE)))
            digest.update(file.read(_SAMPLE_SIZE))
    return TraceFile(path, state.size, state.modified, digest.hexdigest())
