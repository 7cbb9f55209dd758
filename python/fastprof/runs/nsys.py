"""Runs a program of `fastprof run` under Nsight Systems."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from fastprof._system.nvidia import has_gpu
from fastprof.errors import BadInputError
from fastprof.readers.nsys.report import find_nsys
from fastprof.runs.facts import CAPTURE_DOMAIN, CAPTURE_RANGE, PID

OPTIONS = (
    "--sample=none",
    "--cpuctxsw=none",
    "--force-overwrite=true",
    "--export=sqlite",
    "--capture-range-end=stop",
    "--wait=primary",
)
# With osrt, nsys copies the libraries of the program into the file: GBs, for those of torch.
_WITH_GPU = (
    "--trace=cuda,nvtx",
    "--cuda-graph-trace=node",
    "--capture-range=cudaProfilerApi",
)
_WITHOUT_GPU = (
    "--trace=nvtx",
    "--capture-range=nvtx",
    f"--nvtx-capture={CAPTURE_RANGE}@{CAPTURE_DOMAIN}",
)
_LOG = "nsys.log"
_OF_IMPORTER = "Importer error status: "  # before its message, in the log
_EXEC = Path(__file__).with_name("exec_program.py")


def usable_nsys() -> str | None:
    """The nsys to record with; None without one, or without an NVIDIA GPU."""
    return find_nsys() if has_gpu() else None


def nsys_command(tool: str, pytorch: str | None) -> list[str]:
    """The words before the program, without the option --output.

    Parameters
    ----------
    tool : nsys
    pytorch : value of nsys's own option --pytorch, None for fastprof's annotation alone

    Raises
    ------
    BadInputError
        This nsys has no option --pytorch, or there is no NVIDIA GPU for it.
    """
    options = [*(_WITH_GPU if has_gpu() else _WITHOUT_GPU), *OPTIONS]
    if pytorch is not None:
        if not has_gpu():
            raise BadInputError("--pytorch: needs an NVIDIA GPU, and none was found; omit it")
        if "--pytorch=" not in _output([tool, "profile", "--help"]):
            name = f"{tool} is version {version(tool) or 'unknown'}"
            raise BadInputError(f"--pytorch: {name}, without this option; omit it, or update nsys")
        options.append(f"--pytorch={pytorch}")
    return [tool, "profile", *options]


def version(tool: str) -> str:
    """The version that nsys prints; empty if it prints none."""
    return _output([tool, "--version"]).strip().removeprefix("NVIDIA Nsight Systems version ")


@contextmanager
def started(
    before: Sequence[str], command: Sequence[str], directory: Path, variables: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start nsys, which starts the program with our standard streams; nsys's own go to a log.

    Parameters
    ----------
    before, command : the words of nsys, and of the program
    directory : of the run; gets `trace.nsys-rep` and its export `trace.sqlite`
    variables : the environment

    Raises
    ------
    OSError
        nsys, or the program, cannot be started.
    BadInputError
        nsys ended without starting the program.
    """
    if shutil.which(command[0], path=variables.get("PATH")) is None:
        raise FileNotFoundError(2, os.strerror(2), command[0])
    with ExitStack() as stack:
        log = stack.enter_context(open(directory / _LOG, "wb"))
        streams = [_duplicate(number) for number in range(3)]
        for stream in streams:
            stack.callback(os.close, stream)
        pid = directory / PID
        start = [sys.executable, "-I", "-S", str(_EXEC), *map(str, streams), str(pid)]
        yield subprocess.Popen(
            [*before, f"--output={directory / 'trace'}", *start, *command],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=streams,
        )
    if directory.exists() and not pid.exists():
        raise BadInputError(f"nsys did not start the program{_last_words(directory)}")
    with suppress(OSError):
        pid.unlink()


def export_problem(directory: Path) -> str:
    """Why nsys left no export of what it recorded, and what to do."""
    log = os.path.relpath(directory / _LOG)
    if (directory / "trace.nsys-rep").exists():
        return f"nsys wrote trace.nsys-rep, but no trace.sqlite{_last_words(directory)}"
    if (directory / "trace.qdstrm").exists():
        said = [line for line in _log(directory) if "mporter" in line]
        why = f": {said[0].removeprefix(_OF_IMPORTER).rstrip('.')}" if said else ""
        return (
            f"nsys wrote trace.qdstrm, but did not import it{why}; install all of Nsight Systems "
            "(on Debian nsight-systems, not nsight-systems-target alone), or, where it is, run "
            f"QdstrmImporter -i trace.qdstrm -o trace.nsys-rep, and open that; see {log}"
        )
    return f"nsys wrote no trace{_last_words(directory)}"


def _last_words(directory: Path) -> str:
    said = _log(directory)
    return f": {said[-1] if said else 'no output'}; see {os.path.relpath(directory / _LOG)}"


def _log(directory: Path) -> list[str]:
    """The lines that nsys wrote."""
    lines = (directory / _LOG).read_text("utf-8", "replace").replace("\r", "\n").split("\n")
    return [line.strip() for line in lines if line.strip()]


def _duplicate(descriptor: int) -> int:
    """A copy of a standard stream; the null device for a closed one."""
    try:
        return os.dup(descriptor)
    except OSError:
        return os.open(os.devnull, os.O_RDWR)


def _output(command: Sequence[str]) -> str:
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout + process.stderr
