"""The nsys of this machine, for tests that need a real one: $FASTPROF_NSYS, else on the PATH."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from pathlib import Path

from fastprof.readers.nsys.report import find_nsys



@functools.cache
def why_not() -> str | None:
    """Why nsys cannot be used; None if it records and exports."""
    tool = find_nsys()
    if tool is None:
        return "no nsys in $FASTPROF_NSYS or on the PATH"
    with tempfile.TemporaryDirectory() as folder:
        output = profiled(Path(folder, "tried"), sys.executable, "-c", "print()")
        made = Path(folder, "tried.sqlite").exists()
    return None if made else f"{tool} does not record: {output.strip()[-200:]}"


def profiled(name: Path, *program: str, threads: str = "none") -> str:
    """Record a program as NAME.nsys-rep and NAME.sqlite; returns the output.

    threads : "process-tree" also records CPU samples and thread switches
    """
    options = ["--trace=nvtx,osrt", f"--sample={threads}", f"--cpuctxsw={threads}"]
    options += ["--force-overwrite=true", "--export=sqlite", f"--output={name}"]
    return nsys("profile", *options, *program)


def nsys(*words: str) -> str:
    """Run nsys and return its output."""
    tool = find_nsys()
    assert tool is not None
    done = subprocess.run([tool, *words], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
