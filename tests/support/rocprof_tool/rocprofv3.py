"""A stand-in for rocprofv3: runs a program with a library of roctx, and writes what that recorded.

Each process with ranges gets a rocpd database of its own, as with the real one. The program runs
without a GPU: a kernel and the call that launched it stand for the work of each range.
"""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from support.rocpd_files import Rocpd

HELP = """usage: rocprofv3 [-h] [-s] [-r] [--kernel-trace] [--hip-runtime-trace] [--marker-trace]
  [--memory-copy-trace] [--memory-allocation-trace] [--rccl-trace] [--selected-regions]
  [--output-format {csv,json,pftrace,otf2,rocpd} ...] [-d OUTPUT_DIRECTORY] [-o OUTPUT_FILE]
"""
CALL_NS, KERNEL_NS = 1_000, 50_000


def database_of(pid: int, lines: list[list[str]]) -> Rocpd | None:
    """What the process recorded between resume and pause; None if nothing."""
    run, is_on, n = Rocpd(pid=pid, suffix=f"_{pid:08x}"), False, 0
    opened: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for _, tid, time, what, text in lines:
        thread, now = int(tid), int(time)
        if what in ("resume", "pause"):
            is_on = what == "resume"
        elif what == "push" and is_on:
            opened[thread].append((now, text.rstrip("\n")))
        elif what == "pop" and opened[thread]:
            start, name = opened[thread].pop()
            n += 1
            run.range(start, now, name, 1000 + n, tid=thread)
            call = min(start + (now - start) // 2, now - CALL_NS)
            run.call(call, call + CALL_NS, n, tid=thread)
            run.kernel(now + n, now + n + KERNEL_NS, n, "at::native::mine(float*)")
    return run if n else None


def main(words: list[str]) -> int:
    if "--help" in words:
        print(os.environ.get("STAND_IN_HELP", HELP))
        return 0
    place = words.index("--")
    options, program = words[:place], words[place + 1 :]
    directory = Path(options[options.index("--output-directory") + 1])
    name = options[options.index("--output-file") + 1]
    variables = {**os.environ, "LD_PRELOAD": os.environ["STAND_IN_LIBRARY"]}
    log = directory / "stand_in.log"
    code = subprocess.run(program, env={**variables, "STAND_IN_LOG": str(log)}).returncode
    by_process = defaultdict(list)
    for line in log.read_text().splitlines() if log.exists() else []:
        parts = line.split(" ", 4)
        by_process[int(parts[0])].append(parts)
    for pid, lines in by_process.items():
        if (run := database_of(pid, lines)) is not None:
            run.write(directory / f"{name.replace('%pid%', str(pid))}_results.db")
    log.unlink(missing_ok=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
