"""The table of `fastprof run --list`."""

from __future__ import annotations

import os
import shlex
from typing import Any

import numpy as np

from fastprof.model.heading import Heading
from fastprof.model.table import Cells, Floats, Table, texts
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


def listing(home: str | os.PathLike[str]) -> Table:
    """A row for each run of a directory, the oldest first."""
    runs = all_runs(home)
    facts = [run.facts for run in runs]
    columns: dict[str, Cells] = {
        "name": texts([run.name for run in runs]),
        "started": texts([str(each.get("started", ""))[:16].replace("T", " ") for each in facts]),
        "seconds": _floats([each.get("seconds") for each in facts]),
        "exit_code": _floats([each.get("exit_code") for each in facts]),
        "steps": _floats([_steps(each) for each in facts]),
        "step_ns": _floats([each.get("step_ns") for each in facts]),
        "kernels": _floats([each.get("kernels") for each in facts]),
        "commit": texts([_commit(each.get("git")) for each in facts]),
        "command": texts([shlex.join(map(str, each.get("command", ()))) for each in facts]),
    }
    return Table(columns, _HEADINGS)


def _floats(values: list[float | None]) -> Floats:
    return Floats(np.array([np.nan if each is None else each for each in values], np.float64))


def _steps(facts: dict[str, Any]) -> int:
    processes = facts.get("processes", ())
    return max(
        (sum(each["n_steps"] for each in process["recordings"]) for process in processes),
        default=0,
    )


def _commit(git: dict[str, Any] | None) -> str | None:
    return None if git is None else git["commit"][:10] + ("+" if git["is_changed"] else "")
