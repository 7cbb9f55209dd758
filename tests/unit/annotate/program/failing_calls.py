"""Trains under `fastprof run` while a call of fastprof to the system fails.

python failing_calls.py NUMBER ERRNO

The call with this number fails, of those that fastprof makes; 0: none. With SPACE as ERRNO, the
address space is full during the part of fastprof with this number: no memory can be mapped, and no
thread started. Prints the sum of the weights, and at exit, on stderr, the number of calls or parts.
"""

import builtins
import errno
import io
import json
import mmap
import os
import resource
import signal
import subprocess
import sys
import threading

NUMBER, ERRNO = int(sys.argv[1]), sys.argv[2]
MARK = os.sep + os.path.join("python", "fastprof") + os.sep
CALLS = [
    *((os, name) for name in ("open", "replace", "rename", "unlink", "remove", "stat", "access")),
    *((os, name) for name in ("mkdir", "write", "sysconf", "register_at_fork")),
    (builtins, "open"), (io, "open"), (io, "FileIO"), (json, "dumps"),
    (threading.Thread, "start"), (signal, "signal"), (os, "fork"), (os, "posix_spawn"),
    (subprocess, "_fork_exec"), (mmap, "mmap"),
]  # fmt: skip
n_calls = 0


def is_ours():
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != __file__:
        if MARK in frame.f_code.co_filename:
            return frame.f_code.co_name not in ("begin", "keep", "release", "install", "end")
        frame = frame.f_back
    return False


def failing(owner, function):
    def call(*arguments, **options):
        global n_calls
        if is_ours():
            n_calls += 1
            if n_calls == NUMBER:
                if ERRNO == "MEMORY":
                    raise MemoryError
                if owner is threading.Thread:
                    raise RuntimeError("can't start new thread")
                number = getattr(errno, ERRNO)
                raise OSError(number, os.strerror(number), "injected")
        return function(*arguments, **options)

    return call


def without_space(function):
    """Our part of a call of the program, which can map no memory if it has the number."""

    def call(*arguments):
        global n_calls
        n_calls += 1
        before = resource.getrlimit(resource.RLIMIT_AS)
        if n_calls == NUMBER:
            with open("/proc/self/statm") as file:
                size = int(file.read().split()[0]) * mmap.PAGESIZE
            resource.setrlimit(resource.RLIMIT_AS, (size, before[1]))
        try:
            return function(*arguments)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)

    return call


def train():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(8):
        optimizer.zero_grad()
        net(torch.randn(4, 8)).sum().backward()
        optimizer.step()
    return net


def count():
    os.write(2, f"calls: {n_calls}\n".encode())


if __name__ == "__main__":
    import atexit

    import torch

    if "FASTPROF_RUN" in os.environ:
        atexit.register(count)
        from fastprof.annotate.program.begin import begin

        if ERRNO == "SPACE":
            from fastprof.annotate.program.signals import Guard

            Guard.__call__ = without_space(Guard.__call__)
        else:
            for owner, name in CALLS:
                setattr(owner, name, failing(owner, getattr(owner, name)))
        begin()
    net = train()
    print(sum(parameter.double().sum().item() for parameter in net.parameters()))
    sys.exit(5)
