"""Runs a program with a real consumer of NVTX, which records an export and ranges.

recording = record('''
    import nvtx
    with nvtx.annotate("outer"):
        nvtx.mark("here")
''')
assert recording.texts() == ["outer"] and recording.open_ranges == []
profile = fastprof.open(recording.path)

The ranges are read from the file by SQL; nvtx_read_back reads them with fastprof.
"""

import os
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path

from support import processes, torch_server
from support.nvtx_recording import Range, Recording
from support.nvtx_tool import export, logs
from support.nvtx_tool.library import Unavailable, core_api, library, why_not

__all__ = ["Range", "Recording", "Unavailable", "core_api", "library", "record", "why_not"]

_MEMORY = Path("/dev/shm")  # files in memory take half the time of files on disk


class ProgramFailed(Exception):
    """The program ended with an unexpected status; the message is its output."""


def attached(log: Path) -> dict[str, str]:
    """The environment of a recorded program; `log` is the prefix of its logs."""
    return {"NVTX_INJECTION64_PATH": str(library()), "FASTPROF_NVTX_LOG": str(log)}


def record(
    program: str | Path,
    *args: str,
    env: Mapping[str, str] | None = None,
    timeout: float = 120,
    status: int = 0,
    directory: Path | None = None,
    with_torch: bool = False,
) -> Recording:
    """Run a Python program and record the NVTX calls of it and its child processes.

    Parameters
    ----------
    program : str or Path
        Python source, which may be indented, or the file of a program.
    *args : str
        The program's arguments.
    env : mapping, optional
        Environment variables in addition to the current ones.
    timeout : float
        Timeout in seconds.
    status : int
        The expected exit status; -N for signal N.
    directory : Path, optional
        Where to keep the export. By default it is deleted with the Recording.
    with_torch : bool
        Run it in a fork of a process that has imported torch (torch_server), not in a new one.

    Raises
    ------
    Unavailable
        A compiler or the headers for the consumer are missing.
    ProgramFailed
        The program ended with another status.
    """
    kept = None if directory else tempfile.TemporaryDirectory(prefix="fastprof-nvtx-")
    place = Path(kept.name if kept else tempfile.mkdtemp(prefix="nvtx-", dir=directory)).resolve()
    if isinstance(program, str):
        source, program = program, place / "program.py"
        program.write_text(textwrap.dedent(source))
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fastprof-nvtx-", dir=memory) as log_directory:
        log = Path(log_directory) / "log"
        words = [str(program), *args]
        result = processes.ran(
            torch_server.command(*words) if with_torch else [sys.executable, *words],
            env={**os.environ, **(env or {}), **attached(log)},
            timeout=timeout,
        )
        if result.returncode != status:
            raise ProgramFailed(
                f"{program.name} ended with {result.returncode}, expected {status}:\n"
                f"{result.stdout}{result.stderr}"
            )
        actual = logs.read(log)
    lost = sum(log.lost for log in actual)
    if lost:
        raise ProgramFailed(f"{lost} calls were not recorded:\n{result.stderr}")
    path, stray = export.write(actual, place / "recording.sqlite")
    return Recording(path, result.stdout, result.stderr, len(stray), kept)
