"""A process that has imported fastprof, and forks for each command that it is asked to run.

A command takes a tenth of the time of a new interpreter that imports numpy and all operators. Its
forks are processes with streams, directory, environment, exit code and limit of the size of files
of their own. Tests of signals, other limits, start-up and imports run `python -m fastprof` instead.
"""

from __future__ import annotations

import atexit
import functools
import gc
import os
import resource
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

IMPORTED = (
    *("fastprof.cli", "fastprof.profile.load", "fastprof.profile.recount", "fastprof.ranks"),
    *("fastprof.writers.csv", "fastprof.writers.dict_lines", "fastprof.writers.info"),
)
IF_INSTALLED = ("pyarrow.parquet",)  # of which fastprof works without


@functools.cache
def client(program: str = __file__) -> list[str]:
    """The words that run `fastprof` by the server of this process, which they start.

    The server ends with this process. `program` is another one that calls `serve`.
    """
    folder = tempfile.mkdtemp(prefix="fastprof-server-")
    path = os.path.join(folder, "socket")
    server = subprocess.Popen(
        [sys.executable, program, path],
        stdin=subprocess.PIPE,  # the server ends when it is closed
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C ends this process, and the server by it
    )
    assert server.stdin is not None and server.stdout is not None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.communicate)  # closes its standard input, and waits
    if server.stdout.read(1) != b".":
        raise RuntimeError("the command server did not start; its error is on stderr")
    return [sys.executable, "-ISE", str(Path(__file__).with_name("command_client.py")), path]


def serve(path: str) -> list[str]:
    """Answer until standard input is closed. Each fork for a command returns its words."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        os.write(1, b".")
        while True:
            ready, _, _ = select.select([listener, 0], [], [])
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if listener not in ready:
                os._exit(0)
            connection, _ = listener.accept()
            with connection:
                if os.fork():
                    continue
                listener.close()
                return _command(connection)


def _command(connection: socket.socket) -> list[str]:
    """Fork for a command and wait for it. The fork has its streams, and returns its words."""
    header, fds, _, _ = socket.recv_fds(connection, 8, 3)
    request, left = b"", int(header)
    while len(request) < left:
        request += connection.recv(left - len(request))
    child = os.fork()
    if not child:
        connection.close()
        return _become(request.split(b"\0"), fds)
    for fd in fds:
        os.close(fd)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(BrokenPipeError):
        connection.sendall(b"%d" % code)
    os._exit(0)


def _become(texts: list[bytes], fds: list[int]) -> list[str]:
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(texts[0])
    most = int(texts[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    n_words = int(texts[2])
    words, environment = texts[3 : 3 + n_words], texts[3 + n_words :]
    os.environb.clear()
    os.environb.update(zip(environment[::2], environment[1::2], strict=True))
    sys.path[0] = os.getcwd()  # as with python -m
    sys.stdin, sys.stdout, sys.stderr = map(_reopened, (sys.stdin, sys.stdout, sys.stderr))
    return [os.fsdecode(word) for word in words]


def _reopened(stream: Any) -> Any:
    """A standard stream on its new file, as Python opens it when it starts."""
    fd = stream.fileno()
    is_line_buffered = fd == 2 or os.isatty(fd)
    return open(
        fd,
        stream.mode,
        buffering=1 if is_line_buffered else -1,
        encoding=stream.encoding,
        errors=stream.errors,
        closefd=False,
    )


def _end(code: int) -> None:
    """End this process as Python does, but leave its modules to the system.

    Each freed object would be a page of the server to copy.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            print(f"Exception ignored in: {stream!r}: {error!r}", file=sys.stderr)
            code = 120
    os._exit(code)


def _run(words: list[str]) -> int:
    from fastprof.cli import main

    sys.argv[:] = ["fastprof", *words]
    try:
        return main()
    except SystemExit as error:  # of argparse
        assert isinstance(error.code, int)
        return error.code


if __name__ == "__main__":
    for name in IMPORTED:
        __import__(name)
    for name in IF_INSTALLED:
        with suppress(ImportError):
            __import__(name)
    gc.collect()
    gc.freeze()  # a collection in a fork would write to all pages
    _end(_run(serve(sys.argv[1])))
