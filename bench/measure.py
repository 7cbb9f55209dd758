"""Measure one contender once, in a process of its own: time of the call, CPU, memory, bytes read.

Run by `bench.run`. The contender first does its job once off the clock, so that imports are over
and the memory that the output goes to is there (on a virtual machine, getting it from the host can
take longer than the job); then once on the clock. What is in Python and takes long is done only
once. The result goes to stdout as one line of JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import sys
import time
from collections.abc import Sized
from pathlib import Path
from typing import Any

from bench.contenders import CONTENDERS, INTERPRETER, Contender, Files

KIB, CHUNK = 1024, 1 << 24
LONG_SECONDS = 10  # of CPU, which does not depend on what else runs


def peak_memory() -> int:
    """The most memory that this process has had, in bytes.

    VmHWM is the process image's own. ru_maxrss, taken where there is no /proc, also remembers
    what the parent had when it started this process.
    """
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB


def bytes_read() -> int | None:
    """What this process has read so far by system calls, from the file cache too; None: unknown.

    What a program maps into its memory is not among it.
    """
    with contextlib.suppress(OSError), open("/proc/self/io", encoding="ascii") as counts:
        for line in counts:
            if line.startswith("rchar:"):
                return int(line.split()[1])
    return None


def lines_of(path: Path) -> int:
    """How many lines a file has."""
    with path.open("rb", buffering=0) as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(CHUNK), b""))


def measure(contender: Contender, files: Files, counts: bool) -> dict[str, Any]:
    """Seconds, CPU seconds, peak bytes and bytes read; with `counts` kernels in the result, too."""
    import apsw  # noqa: F401
    import numpy  # noqa: F401

    import fastprof  # noqa: F401

    found, result = timed(contender, files)
    found["peak_bytes"] = peak_memory()  # of one job: what a second leaves behind is not its own
    if contender.is_compiled or found["cpu_seconds"] < LONG_SECONDS:
        del result
        files.output.unlink(missing_ok=True)
        again, result = timed(contender, files)
        found |= again
    found["rows"] = None
    if counts and isinstance(result, Sized):
        found["rows"] = len(result)
    elif counts and files.output.exists():
        found["rows"] = lines_of(files.output) - contender.header
    return found


def timed(contender: Contender, files: Files) -> tuple[dict[str, Any], object]:
    """Do the job once: seconds, CPU seconds and bytes read, and what came out."""
    read_begin = bytes_read()
    begin, cpu_begin = time.perf_counter(), time.process_time()
    result = contender.run(files)
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    read_end = bytes_read()
    read = None if read_begin is None or read_end is None else read_end - read_begin
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "read_bytes": read}, result


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.measure")
    parser.add_argument("contender", choices=["interpreter", *CONTENDERS])
    parser.add_argument("--count", action="store_true", help="count the kernels of the result")
    for option in ("--export", "--dict", "--output"):
        parser.add_argument(option, type=Path, required=True)
    options = parser.parse_args()
    files = Files(options.export, options.dict, options.output)
    contender = CONTENDERS.get(options.contender, INTERPRETER)
    with contextlib.redirect_stdout(sys.stderr):
        try:
            result = measure(contender, files, options.count)
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
