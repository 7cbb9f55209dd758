"""Runs a program of `fastprof run` under rocprofv3, AMD's profiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fastprof._system.regex import regex
from fastprof.errors import BadInputError
from fastprof.runs.problems import has_begun

TOOL: Final = "rocprofv3"
# What to record: of versions that lack one of these, the rest.
_TRACES: Final = (
    *("--kernel-trace", "--hip-runtime-trace", "--marker-trace", "--memory-copy-trace"),
    *("--memory-allocation-trace", "--rccl-trace"),
)
# Records between roctxProfilerResume and roctxProfilerPause only.
_REGIONS: Final = "--selected-regions"
_FORMATS: Final = ("rocpd", "json")  # the first that the version has
_FILES: Final = regex(r"trace\.(\d+)_results(\.db|\.json)\Z")


def find_rocprof() -> str | None:
    """The rocprofv3 to run: $FASTPROF_ROCPROF (a path or a command), else that on the PATH."""
    return shutil.which(os.environ.get("FASTPROF_ROCPROF") or TOOL)


def rocprof_command(tool: str) -> list[str]:
    """The words before the program, without the options of the output.

    Raises
    ------
    BadInputError
        This rocprofv3 cannot record a part of a program, or writes neither rocpd nor JSON.
    """
    text = _output([tool, "--help"])
    if _REGIONS not in text:
        said = "" if "--kernel-trace" in text else f": {_last_line(text)}"
        raise BadInputError(
            f"{tool}: has no option {_REGIONS}, which records some steps of a program{said}; "
            "update ROCm, or use --backend torch"
        )
    formats = [name for name in _FORMATS if name in text]
    if not formats:
        raise BadInputError(
            f"{tool}: writes neither rocpd nor JSON; update ROCm, or use --backend torch"
        )
    options = [option for option in _TRACES if option in text]
    return [tool, *options, _REGIONS, "--output-format", formats[0]]


def words_before(
    before: Sequence[str], command: Sequence[str], directory: str, variables: Mapping[str, str]
) -> list[str]:
    """The words of rocprofv3 with its output, which has a file for each process.

    Parameters
    ----------
    before : see `rocprof_command`
    command : of the program
    directory : of the run; gets `trace.PID_results.db` or `.json` of each process
    variables : the environment

    Raises
    ------
    FileNotFoundError
        There is no such program.
    """
    if shutil.which(command[0], path=variables.get("PATH")) is None:
        raise FileNotFoundError(2, os.strerror(2), command[0])
    return [*before, "--output-directory", directory, "--output-file", "trace.%pid%", "--"]


def name_traces(directory: Path, reports: Sequence[Mapping[str, Any]]) -> None:
    """Give the files of rocprofv3 the names of traces: `trace.db`, or `trace.rank1.db`.

    Processes that recorded nothing leave files too, or none.

    reports : of the processes, in order of rank, see `collect`
    """
    files = {
        int(match[1]): (path, match[2])
        for path in sorted(directory.glob("trace.*_results.*"))
        if (match := _FILES.match(path.name))
    }
    for report in reports:
        if report["pid"] in files and any(map(has_begun, report["recordings"])):
            path, suffix = files[report["pid"]]
            rank = f".rank{report['rank']}" if report["world"] > 1 else ""
            os.replace(path, directory / f"trace{rank}{suffix}")


def no_trace(directory: Path) -> str:
    """Why there is no trace of what was recorded, and what to do."""
    left = sorted(path.name for path in directory.glob("*_results*"))
    files = f"it wrote {', '.join(left[:3])}" if left else "it wrote no file"
    return (
        f"rocprofv3 wrote no trace of the recorded process ({files}); it writes when a process "
        "ends by itself, not when it is killed"
    )


def _output(command: Sequence[str]) -> str:
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return process.stdout + process.stderr


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"
