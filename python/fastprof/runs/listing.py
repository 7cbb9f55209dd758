"""The table of `fastprof run --list`."""

from __future__ import annotations

import math
import os
import shlex
from typing import Any

import numpy as np

from fastprof.model.heading import Heading
from fastprof.model.metadata import positive
from fastprof.model.table import ColumnData, Floats, Table, text_column
from fastprof.runs.directory import all_runs

_HEADINGS = (
    Heading("name", "run", about="the directory"),
    Heading("started", "started", about="local time"),
    Heading("seconds", "seconds", about="how long the program ran", decimals=1),
    Heading("exit_code", "exit", about="its exit code; negative for a signal", decimals=0),
    Heading("steps", "steps", about="recorded steps", decimals=0),
    Heading("step_ns", "step", "ns", about="median of the recorded steps"),
    Heading("kernels", "kernels", about="of a step", decimals=0),
    Heading("commit", "commit", about="of the working directory; + if files differ from it"),
    Heading("command", "command", about="the program with its arguments"),
)

_LARGEST = 1e18


def listing(home: str | os.PathLike[str]) -> Table:
    """A row for each run of a directory, the oldest first."""
    runs, problems = all_runs(home)
    facts = [run.facts for run in runs]
    columns: dict[str, ColumnData] = {
        "name": text_column([run.name for run in runs]),
        "started": text_column(
            [str(fact.get("started", ""))[:16].replace("T", " ") for fact in facts]
        ),
        "seconds": _floats([fact.get("seconds") for fact in facts]),
        "exit_code": _floats([fact.get("exit_code") for fact in facts]),
        "steps": _floats([_steps(fact) for fact in facts]),
        "step_ns": _floats([fact.get("step_ns") for fact in facts]),
        "kernels": _floats([fact.get("kernels") for fact in facts]),
        "commit": text_column([_commit(fact.get("git")) for fact in facts]),
        "command": text_column([_command(fact.get("command")) for fact in facts]),
    }
    return Table(columns, _HEADINGS, notes=tuple(problems))


def _floats(values: list[Any]) -> Floats:
    return Floats(np.array(list(map(_number, values)), np.float64))


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and abs(value) < _LARGEST  # not inf, not nan
    return float(value) if is_number else math.nan


def _steps(facts: dict[str, Any]) -> int:
    processes = _dicts(facts.get("processes"))
    return max(
        (
            sum(
                positive(mapping.get("n_steps")) or 0
                for mapping in _dicts(process.get("recordings"))
            )
            for process in processes
        ),
        default=0,
    )


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _commit(git: Any) -> str | None:
    commit = git.get("commit") if isinstance(git, dict) else None
    return commit[:10] + ("+" if git.get("is_changed") else "") if isinstance(commit, str) else None


def _command(words: Any) -> str:
    return shlex.join(map(str, words)) if isinstance(words, list) else ""
