"""What to record: passed from `fastprof run` to the program in an environment variable."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from fastprof._system.classes import dataclass

VARIABLE = "FASTPROF_RUN"
NOW = "record-now"  # a file of this name in the directory asks for a recording
PID = "pid"  # a file of this name in the directory has the process id of the program under nsys
# The NVTX range, and its domain, that nsys records without CUDA.
CAPTURE_RANGE, CAPTURE_DOMAIN = "fastprof.recording", "fastprof"
# Calls of modules in training mode, before they count as steps of a program without optimizer.
TRAINING_CALLS = 100
STATUS = "status"  # names of files with what a process reports begin with it


@dataclass(frozen=True)
class Settings:
    """What to record.

    Parameters
    ----------
    directory : absolute path of the run's directory
    first, last : the steps to record, from 0: `first` up to, not including, `last`
    after : s to wait before recording, None to count steps
    seconds : s to record, None to count steps
    backend : "torch" or "nvtx", see `fastprof.capture`; "ranges" for nsys without a GPU
    functions : also record function names, see `fastprof.init`
    step : what ends a step: "auto", "optimizer" or "call"
    max_memory : bytes that the process may grow by while it is recorded; None: see `Recording`
    when : record after steps for which this condition holds, see `parse_condition`; None without
    times : recordings for `when`, at most
    """

    directory: str
    first: int
    last: int
    after: float | None = None
    seconds: float | None = None
    backend: str = "torch"
    functions: bool = False
    step: str = "auto"
    max_memory: int | None = None
    when: str | None = None
    times: int = 1

    def to_environment(self) -> str:
        """The value of the variable."""
        return json.dumps(asdict(self))


def from_environment() -> Settings | None:
    """The settings of this process; None if `fastprof run` did not start it."""
    text = os.environ.get(VARIABLE)
    return Settings(**json.loads(text)) if text else None


def trace_name(number: int) -> str:
    """The name of a trace of this process: the recording's number from 0."""
    return f"trace-{os.getpid()}{f'-{number + 1}' if number else ''}.json"


def snapshot_of(trace: Path) -> Path:
    """The path of the memory snapshot beside a trace: `memory.rank0.pickle`."""
    name = trace.name.partition(".json")[0].replace("trace", "memory", 1)
    return trace.with_name(f"{name}.pickle")
