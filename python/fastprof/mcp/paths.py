"""The files that the server may read: those below the directories that it is given."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from fastprof.errors import BadInputError

_ENDINGS: Final = (".sqlite", ".json", ".json.gz", ".nvvp", ".db", ".rpd", ".sql", ".dict")
_REPORTS: Final = (".nsys-rep", ".qdrep")
_SQLITE: Final = b"SQLite format 3\0"
_MOST_LISTED: Final = 100
_MOST_VISITED: Final = 20_000  # files, of those below the directories


class AllowedFiles:
    """Files and directories below some directories, after links are resolved.

    Parameters
    ----------
    directories : as given by the user

    Raises
    ------
    BadInputError
        One of them is no directory.
    """

    def __init__(self, directories: Sequence[str | os.PathLike[str]]) -> None:
        for directory in directories:
            if not os.path.isdir(directory):
                raise BadInputError(f"{os.fsdecode(directory)}: expected a directory of traces")
        self.directories = [Path(os.path.realpath(directory)) for directory in directories]

    def file(self, name: str) -> str:
        """The path of a trace that may be read.

        name : absolute, or relative to one of the directories

        Raises
        ------
        BadInputError
            It is not below the directories, or no regular file.
        """
        path = self._resolved(name)
        if not path.is_file():
            raise BadInputError(f"{name}: expected a file; info without a file lists the traces")
        if path.name.endswith(_REPORTS):
            raise BadInputError(
                f"{name}: expected an export, found a report of Nsight Systems, which only nsys "
                "reads: nsys export --type sqlite"
            )
        return str(path)

    def files(self, names: Sequence[str]) -> list[str]:
        """The traces of some files and directories; see `file`. Links in them must stay inside."""
        from fastprof.ranks.files import find

        paths = [self._resolved(name) for name in names]
        return [self.file(path) for path in find(paths)]

    def _resolved(self, name: str) -> Path:
        if not name or "\0" in name:
            raise BadInputError(f"expected the path of a trace, found {name!r}")
        for directory in self.directories:
            path = Path(os.path.realpath(directory / name))
            if path.is_relative_to(directory) and path.exists():
                return path
        # The same words for a path outside, whether it exists or not.
        raise BadInputError(
            f"{name}: no such file below the directories given to fastprof mcp; info without a "
            "file lists the traces"
        )

    def listing(self) -> dict[str, Any]:
        """The traces by name and size, at most some; `n_files` counts those that were found.

        Directories with very many files are not searched to the end: then `is_complete` is false.
        """
        result, n_visited = [], 0
        for path in self._below():
            n_visited += 1
            if n_visited > _MOST_VISITED:
                break
            if path.name.endswith(_ENDINGS) and _may_be_trace(path):
                result.append(path)
        rows = [{"file": str(path), "bytes": path.stat().st_size} for path in result[:_MOST_LISTED]]
        complete = n_visited <= _MOST_VISITED
        return {"files": rows, "n_files": len(result), "is_complete": complete}

    def _below(self) -> Iterator[Path]:
        for directory in self.directories:
            for folder, folders, names in os.walk(directory):
                folders.sort()
                yield from (Path(folder, name) for name in sorted(names))


def _may_be_trace(path: Path) -> bool:
    """False for texts in SQL, and for links to what may not be read."""
    if path.is_symlink() or not path.is_file():
        return False
    if path.suffix != ".sql":
        return True
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE
