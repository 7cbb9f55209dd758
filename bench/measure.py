"""Measure one contender once, in a process of its own: time of the call, CPU time, peak memory.

Run by `bench.run`. The contender first does its job once untimed, so that imports are over and the
memory that the output goes to is there (on a virtual machine, getting it from the host can take
longer than the job); then once on the clock. The result goes to stdout as one line of JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from bench.contenders import CONTENDERS, INTERPRETER, Files, interpreter

KIB = 1024


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


def measure(name: str, files: Files) -> dict[str, Any]:
    """Seconds, CPU seconds and peak bytes of one contender, or its error."""
    import apsw  # noqa: F401
    import numpy  # noqa: F401

    import fastprof  # noqa: F401

    contender = interpreter if name == INTERPRETER else CONTENDERS[name]
    contender(files)
    peak_bytes = peak_memory()  # of one job: what a second leaves in the allocator is not its own
    files.output.unlink(missing_ok=True)
    begin, cpu_begin = time.perf_counter(), time.process_time()
    result = contender(files)
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    del result
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_bytes": peak_bytes}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.measure")
    parser.add_argument("contender", choices=[INTERPRETER, *CONTENDERS])
    for option in ("--export", "--dict", "--output"):
        parser.add_argument(option, type=Path, required=True)
    options = parser.parse_args()
    files = Files(options.export, options.dict, options.output)
    with contextlib.redirect_stdout(sys.stderr):
        try:
            result = measure(options.contender, files)
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
