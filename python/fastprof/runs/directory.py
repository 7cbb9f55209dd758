"""Directories of runs: `fastprof-runs/NAME-DATE/` with traces, a page and `run.json`."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

from fastprof._system.classes import dataclass
from fastprof._system.output_file import output_file
from fastprof._system.regex import regex
from fastprof.errors import BadInputError
from fastprof.readers.beside import FACTS, facts_in

HOME = "fastprof-runs"
PAGE = "report.html"
# trace-2.rank0.json.gz: the second recording of rank 0.
_TRACE = regex(r"trace(?:-(\d+))?(?:\.rank(\d+))?(\.json|\.json\.gz|\.sqlite|\.db)$")


@dataclass(frozen=True)
class RunDirectory:
    """A directory of a run, and its facts: see `facts.py`."""

    path: Path
    facts: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the directory."""
        return self.path.name

    @property
    def traces(self) -> list[Path]:
        """The first trace of each rank."""
        return traces_of(self.path)


def new_directory(name: str, home: str | os.PathLike[str] = HOME) -> Path:
    """Create a directory NAME-DATE for a run and return its absolute path.

    Raises
    ------
    BadInputError
        It cannot be created.
    """
    base = Path(home).absolute()
    stem = f"{_plain(name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in range(1, 1000):
        path = base / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise BadInputError(
                f"{path}: cannot create the directory of the run: {error.strerror}; set --runs"
            ) from error
        return path
    raise BadInputError(f"{base}: too many runs of this second")


def write_facts(path: Path, facts: dict[str, Any]) -> None:
    """Write the facts of a run."""
    import json

    with output_file(path / FACTS, is_own=True) as file:
        file.write(json.dumps(facts, indent=2).encode("utf-8", "surrogateescape"))


def traces_of(directory: str | os.PathLike[str]) -> list[Path]:
    """The first trace of each rank of a run, in order of rank; `kill -USR2` adds others."""
    results = []
    for path in Path(directory).iterdir():
        match = _TRACE.match(path.name)
        if match and match[1] is None:
            results.append((int(match[2] or 0), path))
    return [path for _, path in sorted(results)]


def is_run(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the directory of a run."""
    return os.path.isfile(os.path.join(os.fspath(path), FACTS))


def all_runs(home: str | os.PathLike[str] = HOME) -> tuple[list[RunDirectory], list[str]]:
    """The runs in a directory, the oldest first, and a line for each that cannot be read."""
    runs, problems = [], []
    for path in sorted(Path(home).glob(f"*/{FACTS}")):
        try:
            runs.append(RunDirectory(path.parent, facts_in(path.parent)))
        except OSError as error:
            problems.append(f"{path}: cannot be read: {error.strerror}")
        except ValueError as error:
            problems.append(f"{path}: {error}")
    return sorted(runs, key=lambda run: (str(run.facts.get("started")), run.name)), problems


def resolved(name: str, home: str | os.PathLike[str] = HOME, *, one: bool = False) -> str:
    """The path that a command is given for a run: its name alone finds it in `fastprof-runs`.

    A run with one trace is this trace; one with several stays a directory, or, for `one`, is its
    first trace: that of rank 0.
    """
    path = Path(name)
    if not path.exists() and is_run(Path(home) / name):
        path = Path(home) / name
    if not is_run(path):
        return name
    traces = traces_of(path)
    return str(traces[0] if len(traces) == 1 or (one and traces) else path)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+]+", "_", name).strip("._")[:60] or "program"


# Facts are from a file: values of another type than that of `facts.py` are unknown.
