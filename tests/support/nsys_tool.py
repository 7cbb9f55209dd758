"""The nsys of this machine, for tests that need a real one: $FASTPROF_NSYS, else on the PATH."""

import functools
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from fastprof.readers.nsys.report import find_nsys

PATIENCE = 120.0  # seconds for one command of nsys


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


def version() -> int:
    """The year in the version."""
    match = re.search(r"version (\d{4})", nsys("--version"))
    return int(match[1]) if match else 0


def profiled(name: Path, *program: str, threads: str = "none") -> str:
    """Record a program as NAME.nsys-rep and NAME.sqlite; returns the output.

    threads : "process-tree" also records CPU samples and thread switches
    """
    options = ["--trace=nvtx,osrt", f"--sample={threads}", f"--cpuctxsw={threads}"]
    options += ["--force-overwrite=true", "--export=sqlite", f"--output={name}"]
    return nsys("profile", *options, *program)


def nsys(*words: str) -> str:
    """Run nsys and return its output.

    Raises
    ------
    subprocess.TimeoutExpired
        It hangs.
    """
    tool = find_nsys()
    assert tool is not None
    with tempfile.TemporaryFile("w+") as output:  # a pipe would wait for all processes of nsys
        subprocess.run([tool, *words], stdout=output, stderr=output, check=False, timeout=PATIENCE)
        output.seek(0)
        return output.read()
