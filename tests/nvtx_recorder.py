"""Runs a program with a real consumer of NVTX attached: its calls out, as an export and as ranges.

recording = record('''
    import nvtx
    with nvtx.annotate("outer"):
        nvtx.mark("here")
''')
assert recording.texts() == ["outer"] and recording.open_ranges == []
profile = fastprof.open(recording.path)

What it says of ranges is read from the file alone, by SQL; nvtx_read_back reads it with fastprof.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path

from nvtx_recording import Range, Recording
from nvtx_tool import export, logs
from nvtx_tool.library import Unavailable, core_api, library, why_not

__all__ = ["Range", "Recording", "Unavailable", "core_api", "library", "record", "why_not"]

_MEMORY = Path("/dev/shm")  # files in memory cost the program half of what those on a disk do


class ProgramFailed(Exception):
    """The program ended with another status than was expected; the text is what it printed."""


def attached(log: Path) -> dict[str, str]:
    """The variables with which a program is recorded; `log` is what its logs' names begin with."""
    return {"NVTX_INJECTION64_PATH": str(library()), "FASTPROF_NVTX_LOG": str(log)}


def record(
    program: str | Path,
    *args: str,
    env: Mapping[str, str] | None = None,
    timeout: float = 120,
    status: int = 0,
    directory: Path | None = None,
) -> Recording:
    """Run a Python program and record what it and its child processes tell NVTX.

    Parameters
    ----------
    program : str or Path
        Python source, which may be indented, or the file of a program.
    *args : str
        The program's arguments.
    env : mapping, optional
        Variables of its environment in addition to those here.
    timeout : float
        Seconds that it may take.
    status : int
        What it is expected to end with; -N for signal N.
    directory : Path, optional
        Where the export is put, to stay. By default it is deleted with the Recording.

    Raises
    ------
    Unavailable
        There is no compiler or no header to build the consumer with.
    ProgramFailed
        It ended with another status.
    """
    kept = None if directory else tempfile.TemporaryDirectory(prefix="fastprof-nvtx-")
    place = Path(kept.name if kept else tempfile.mkdtemp(prefix="nvtx-", dir=directory)).resolve()
    if isinstance(program, str):
        source, program = program, place / "program.py"
        program.write_text(textwrap.dedent(source))
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fastprof-nvtx-", dir=memory) as log_directory:
        log = Path(log_directory) / "log"
        result = subprocess.run(
            [sys.executable, str(program), *args],
            env={**os.environ, **(env or {}), **attached(log)},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if result.returncode != status:
            raise ProgramFailed(
                f"{program.name} ended with {result.returncode}, expected {status}:\n"
                f"{result.stdout}{result.stderr}"
            )
        found = logs.read(log)
    lost = sum(log.lost for log in found)
    if lost:
        raise ProgramFailed(f"{lost} calls were not recorded:\n{result.stderr}")
    path, stray = export.write(found, place / "recording.sqlite")
    return Recording(path, result.stdout, result.stderr, len(stray), kept)
