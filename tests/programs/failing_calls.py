"""Trains under `fastprof run` while a call of fastprof to the system fails.

python failing_calls.py NUMBER ERRNO

The call with this number fails, of those that fastprof makes; 0: none. Prints the sum of the
weights, and at exit, on stderr, the number of calls.
"""

import builtins
import errno
import io
import json
import os
import signal
import sys
import threading

NUMBER, ERRNO = int(sys.argv[1]), sys.argv[2]
MARK = os.sep + os.path.join("python", "fastprof") + os.sep
CALLS = [
    *((os, name) for name in ("open", "replace", "rename", "unlink", "remove", "stat", "access")),
    *((os, name) for name in ("mkdir", "write", "sysconf", "register_at_fork")),
    (builtins, "open"), (io, "open"), (io, "FileIO"), (json, "dumps"),
    (threading.Thread, "start"), (signal, "signal"),
]  # fmt: skip
n_calls = 0


def is_ours():
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != __file__:
        if MARK in frame.f_code.co_filename:
            return frame.f_code.co_name not in ("begin", "keep", "release", "install", "end")
        frame = frame.f_back
    return False


def failing(function):
    def call(*arguments, **options):
        global n_calls
        if is_ours():
            n_calls += 1
            if n_calls == NUMBER:
                if ERRNO == "MEMORY":
                    raise MemoryError
                number = getattr(errno, ERRNO)
                raise OSError(number, os.strerror(number), "injected")
        return function(*arguments, **options)

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

        for owner, name in CALLS:
            setattr(owner, name, failing(getattr(owner, name)))
        begin()
    net = train()
    print(sum(each.double().sum().item() for each in net.parameters()))
    sys.exit(5)
