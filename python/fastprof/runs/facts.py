"""What was run: command, versions, GPUs, commit and the variables that change how torch runs."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
    recorder : the command line of nsys before the program; empty for torch.profiler
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
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() if found.returncode == 0 else None
