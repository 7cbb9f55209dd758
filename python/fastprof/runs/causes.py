"""Why `fastprof run --when` recorded, or did not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fastprof.model.quantity import quantity
from fastprof.runs.condition import parse_condition

_MOST_LINES: Final = 8


def causes_of(processes: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each recording that began since the condition held.

    Parameters
    ----------
    processes : the reports of the processes, see `collect`
    """
    lines = [
        f"{_of_rank(process)}{_measured(cause)}{_recorded(recording)}"
        for process in processes
        for recording in process["recordings"]
        if (cause := recording.get("cause"))
    ]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"and {len(lines) - _MOST_LINES} more recordings: see run.json"]
    return lines


def never_held(processes: Sequence[dict[str, Any]], when: str) -> str:
    """Why nothing is recorded: the longest step, or the fullest memory, of all processes."""
    of = parse_condition(when).of
    most = [each["most"] for each in processes if each.get("most")]
    n_steps = max(int(each["steps"]) for each in processes)
    start = f"nothing recorded: --when '{when}'"
    if not most and of == "memory":
        return f"{start} watched no GPU: torch used none on this machine"
    if not most:
        return f"{start} needs a median of at least 10 steps after the first 4; found {n_steps}"
    if of == "memory":
        cause = max(most, key=lambda each: float(each["memory"]))
        return f"{start} never held: {_measured(cause)} at most; lower the limit"
    cause = max(most, key=lambda each: int(each["ns"]))
    return f"{start} never held in {n_steps} steps: the longest, {_measured(cause)}"


def _measured(cause: dict[str, Any]) -> str:
    if "memory" in cause:
        share = f"{cause['memory']:.1%}"
        return f"torch had reserved {share} of the GPU's memory after step {cause['step']}"
    median = quantity(cause["median_ns"], "ns")
    where = " on the GPU" if cause.get("on") == "gpu" else ""
    return f"step {cause['step']} took {quantity(cause['ns'], 'ns')}{where}, median {median}"


def _recorded(recording: dict[str, Any]) -> str:
    first, n_steps = recording["first"], recording["n_steps"]
    if not n_steps:
        return ", but the program ended before a step after it was recorded"
    return f": recorded step{f's {first} to' if n_steps > 1 else ''} {first + n_steps - 1}"


def _of_rank(process: dict[str, Any]) -> str:
    return f"rank {process['rank']}: " if process["world"] > 1 else ""
