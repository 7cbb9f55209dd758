"""What was run (command, versions, GPUs, commit, variables), and what to record."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastprof._system.classes import dataclass
from fastprof._version import __version__

if TYPE_CHECKING:
    from fastprof.api.profile import Profile
    from fastprof.model.table import Table


# Variables whose names begin with these; none of them holds secrets.
_VARIABLES = (
    *("TORCH", "PYTORCH", "NCCL", "CUDA", "CUDNN", "CUBLAS", "NVIDIA_", "HIP_", "ROCR_", "MIOPEN"),
    *("OMP_", "MKL_", "KINETO", "TRITON", "XFORMERS", "ACCELERATE_", "WORLD_SIZE", "LOCAL_WORLD"),
    *("MASTER_", "SLURM_JOB_ID", "SLURM_NNODES"),
)


def facts_of(command: Sequence[str], recorder: Sequence[str]) -> dict[str, Any]:
    """The facts that are known before the program starts.

    Parameters
    ----------
    command : the program with its arguments
    recorder : the command line of nsys or rocprofv3 before the program; empty for torch.profiler
    """
    return {
        "fastprof": __version__,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": list(command),
        "recorder": list(recorder) or ["torch.profiler"],
        "directory": os.getcwd(),
        "host": platform.node(),
        "platform": platform.platform(),
        "git": _git(),
        "environment": {
            name: value for name, value in sorted(os.environ.items()) if name.startswith(_VARIABLES)
        },
    }


def step_facts(profile: Profile, overview: Table) -> dict[str, Any]:
    """The facts that the first trace adds: mean step in ns and kernels of a step, or None."""
    step, kernels = (overview.facts.get(name) for name in ("step_ns", "step_kernels"))
    return {
        "step_ns": None if step is None else round(step),
        "kernels": None if kernels is None else round(kernels),
    }


def _git() -> dict[str, Any] | None:
    """The commit of the working directory, and whether files differ from it."""
    commit = _output("git", "rev-parse", "HEAD")
    if not commit:
        return None
    status = _output("git", "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "branch": _output("git", "rev-parse", "--abbrev-ref", "HEAD"),
            "is_changed": bool(status)}  # fmt: skip


def _output(*command: str) -> str | None:
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout.strip() if process.returncode == 0 else None


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
    backend : "torch" or "nvtx", see `fastprof.capture`; "ranges" for nsys without a GPU, "roctx"
        for rocprofv3
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
