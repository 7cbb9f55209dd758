"""`fastprof run` on a machine that has no processes, threads or memory left.

python failing_launcher.py NUMBER ERRNO WORDS ...
python failing_launcher.py ROOM SPACE WORDS ...

The start of a process or a thread, or the mapping of memory, with this number fails; 0: none. With
SPACE, the address space is full, but for ROOM bytes, once the program has ended: each mapping that
needs more fails. WORDS are those after `fastprof`. Prints the number of calls on stderr.
"""

import errno
import mmap
import os
import resource
import subprocess
import sys
import threading

import fastprof.runs.launch as launch
from fastprof.cli import main

NUMBER, ERRNO = int(sys.argv[1]), sys.argv[2]
CALLS = [
    (subprocess, "_fork_exec"),
    (os, "posix_spawn"),
    (os, "fork"),
    (threading, "_start_new_thread"),
    (threading, "_start_joinable_thread"),
    (mmap, "mmap"),
]
n_calls = 0


def failing(owner, function):
    def call(*arguments, **options):
        global n_calls
        n_calls += 1
        if n_calls == NUMBER and ERRNO != "SPACE":
            if owner is threading:
                raise RuntimeError("can't start new thread")
            raise OSError(getattr(errno, ERRNO), os.strerror(getattr(errno, ERRNO)))
        return function(*arguments, **options)

    return call


def run_program(*arguments):
    code = run(*arguments)
    if ERRNO == "SPACE":
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * mmap.PAGESIZE
        resource.setrlimit(resource.RLIMIT_AS, (size + NUMBER, size + NUMBER))
    return code


if __name__ == "__main__":
    for owner, name in CALLS:
        if hasattr(owner, name):
            setattr(owner, name, failing(owner, getattr(owner, name)))
    run, launch.run_program = launch.run_program, run_program
    code = main(sys.argv[3:])
    os.write(2, f"calls: {n_calls}\n".encode())
    sys.exit(code)
