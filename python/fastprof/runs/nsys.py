"""The command line of Nsight Systems that records a program of `fastprof run`."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fastprof.readers.nsys.report import find_nsys

OPTIONS = (
    "--trace=cuda,nvtx,osrt",
    "--sample=none",
    "--cpuctxsw=none",
    "--cuda-graph-trace=node",
    "--force-overwrite=true",
    "--export=sqlite",
    "--capture-range=cudaProfilerApi",
    "--capture-range-end=stop",
)
_NVIDIA = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu")  # also WSL and Jetson
# --python-backtrace=cuda: Python call stacks of CUDA calls.
_BACKTRACE = re.compile(r"--python-backtrace=")
_PYTORCH = re.compile(r"--pytorch=")


def usable_nsys() -> str | None:
    """The nsys to record with; None without one, or without an NVIDIA GPU."""
    return find_nsys() if any(map(os.path.exists, _NVIDIA)) else None


def nsys_command(tool: str, directory: Path, pytorch: str | None) -> list[str]:
    """The words before the program.

    Parameters
    ----------
    tool : nsys
    directory : of the run; the recording is its `trace.nsys-rep`, the export `trace.sqlite`
    pytorch : value of nsys's own option --pytorch, None for fastprof's annotation alone
    """
    text = _help(tool)
    options = list(OPTIONS)
    if _BACKTRACE.search(text):
        options.append("--python-backtrace=cuda")
    if pytorch is not None and _PYTORCH.search(text):
        options.append(f"--pytorch={pytorch}")
    return [tool, "profile", *options, f"--output={directory / 'trace'}"]


def version(tool: str) -> str:
    """The version that nsys prints; empty if it prints none."""
    return _output([tool, "--version"]).strip().removeprefix("NVIDIA Nsight Systems version ")


def _help(tool: str) -> str:
    return _output([tool, "profile", "--help"])


def _output(command: Sequence[str]) -> str:
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout + found.stderr
