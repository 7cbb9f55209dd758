"""Measure one contender in its own process: wall time, processor time, memory.

`bench.run` starts it. The contender runs once untimed, to finish imports and to allocate memory for
the output (on a virtual machine, allocation on the host can take longer than the job), then once
timed. Slow Python jobs run only once. The result is one line of JSON on stdout.
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
LONG_SECONDS = 10  # of processor time


def peak_memory() -> int:
    """The peak memory of this process, in bytes.

    VmHWM belongs to the process image. ru_maxrss, the fallback without /proc, can include the
    memory of the parent at the time of the fork.
    """
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB


def lines_of(path: Path) -> int:
    """How many lines a file has."""
    with path.open("rb", buffering=0) as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(CHUNK), b""))


def measure(contender: Contender, files: Files, counts: bool) -> dict[str, Any]:
    """Seconds, processor seconds and peak bytes; with `counts` kernels in the result, too."""
    import apsw  # noqa: F401
    import numpy  # noqa: F401

    import fastprof  # noqa: F401

    found, result = timed(contender, files)
    found["peak_bytes"] = peak_memory()  # of one job only
    if contender.is_compiled or found["cpu_seconds"] < LONG_SECONDS:
        del result
        files.output.unlink(missing_ok=True)
        again, result = timed(contender, files)
        found |= again
    found["rows"] = None
    counts = counts and contender.has_kernels
    if counts and isinstance(result, Sized):
        found["rows"] = len(result)
    elif counts and files.output.exists():
        found["rows"] = lines_of(files.output) - contender.header
    return found


def timed(contender: Contender, files: Files) -> tuple[dict[str, Any], object]:
    """Do the job once: seconds, processor seconds, and its result."""
    begin, cpu_begin = time.perf_counter(), time.process_time()
    result = contender.run(files)
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    return {"seconds": seconds, "cpu_seconds": cpu_seconds}, result


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
