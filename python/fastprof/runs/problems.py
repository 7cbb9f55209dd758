"""Why a run recorded nothing, or less than asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastprof.runs.condition import causes_of, never_held
from fastprof.runs.facts import TRAINING_CALLS, Settings

EMPTY_TRACE = (
    "the trace has no ranges and no kernels: the program ended before the profiler received them; "
    "record "
    "steps that are not the last, with --steps"
)


def problems_of(processes: Sequence[dict[str, Any]], settings: Settings) -> list[str]:
    """What to tell the user, a line each.

    Parameters
    ----------
    processes : the reports of the processes that imported torch, see `collect`
    settings : what was to be recorded
    """
    problems = [
        f"process {process['pid']}: recording failed: {process['problem']}"
        for process in processes
        if process["problem"]
    ]
    problems += [
        f"process {process['pid']}: {note}"
        for process in processes
        for note in process.get("notes", ())
    ]
    recorded = [process for process in processes if any(map(has_begun, process["recordings"]))]
    if recorded:
        return problems + [line for mapping in recorded for line in _incomplete(mapping, settings)]
    if not processes:
        return [
            "nothing recorded: no Python of the program imported torch, or it ignores PYTHONPATH "
            "or sitecustomize (python -I, -E or -S), or it replaced itself by exec without them"
        ]
    most = max(processes, key=lambda process: int(process["steps"]))
    if causes_of(processes):
        return problems
    if settings.when is not None and most["is_over"] and most["steps"]:
        return problems or [never_held(processes, settings.when)]
    return problems or [_never(most, settings)]


def has_begun(recording: dict[str, Any]) -> bool:
    """Whether anything is recorded; a program may end in the step that warms the profiler up."""
    return bool(recording["n_steps"] or recording.get("path") or recording.get("has_begun"))


def _never(process: dict[str, Any], settings: Settings) -> str:
    n_steps = process["steps"]
    if not process.get("is_over", True):
        return (
            f"nothing recorded: process {process['pid']} imported torch and then was killed, left "
            "by os._exit, or replaced itself by another program (os.exec), before "
            f"{_begin(settings)}, or run the other program"
        )
    if not n_steps:
        return _without_steps(process)
    if settings.after is not None:
        return f"nothing recorded: the program ended before {settings.after:g} s; lower --after"
    middle = max(1, n_steps // 2)
    return (
        f"nothing recorded: the program ended after {n_steps} steps, and recording begins at step "
        f"{settings.first}; use --steps {middle}:{middle + 1}"
    )


def _begin(settings: Settings) -> str:
    if settings.when is not None:
        return f"--when '{settings.when}' held: lower the limit"
    return f"step {settings.first}: record earlier steps with --steps"


def _without_steps(process: dict[str, Any]) -> str:
    n_calls = process.get("training_calls", 0)
    if not n_calls:
        return (
            "nothing recorded: the program called no Optimizer.step and no module; record by time "
            "with --after SECONDS"
        )
    middle = max(1, n_calls // 2)
    return (
        f"nothing recorded: the program called modules in training mode {n_calls} times, but no "
        f"Optimizer.step; such calls are steps only after {TRAINING_CALLS} of them, since an "
        "optimizer may follow; to count them from the first: "
        f"--step-by call --steps {middle}:{middle + 1}"
    )


def _incomplete(process: dict[str, Any], settings: Settings) -> list[str]:
    asked = settings.last - settings.first
    if settings.seconds is not None or process["by"] is None:
        return []
    return [
        f"recorded {recording['n_steps']} of {asked} steps: the program ended in step "
        f"{recording['first'] + recording['n_steps']}"
        for recording in process["recordings"]
        if recording["n_steps"] < asked and not recording.get("is_stopped")
    ]
