"""A process that has imported fastprof, and forks for each command that it is asked to run.

A command takes a tenth of the time of a new interpreter that imports numpy and all operators. Its
forks are processes with streams, directory, environment, exit code and limit of the size of files
of their own. The workers of a forked `fastprof batch` are forks too. Tests of start-up, imports,
signals during them and other limits run `python -m fastprof` instead.
"""

import atexit
import fcntl
import functools
import gc
import importlib
import os
import pkgutil
import resource
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import IO, Any

from support import command_client

ROOMS = ("analysis", "cli", "profile", "ranks", "readers", "writers")
IF_INSTALLED = ("pyarrow.parquet", "pandas", "tqdm")  # pyarrow imports pandas on demand
PROGRAM = "program:"  # before the path of a program to run instead of fastprof
TESTS = Path(__file__).resolve().parents[1]  # whose packages the servers import
_started: list[subprocess.Popen[bytes]] = []  # its destructor would warn of one that runs
CLIENT = str(Path(__file__).with_name("command_client.py"))


@functools.cache
def socket_of(module: str = "support.command_server") -> str:
    """The path of the server's socket. The first call of a test run starts the server.

    Workers of xdist share it; it ends with the last of them. `module` is another one that calls
    `serve`.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)
    # Tests that run pytest have the variable too: their parent is another.
    folder = Path(tempfile.gettempdir(), f"fastprof-{run[:8]}-{os.getppid()}-{module}")
    folder.mkdir(mode=0o700, exist_ok=True)
    path, users = folder / "socket", folder / "users"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not users.exists():
            os.mkfifo(users)
        os.open(users, os.O_RDWR)  # until this process ends
        if not path.exists():
            with open(users, "rb") as stdin:
                _start(module, path, stdin)
    return str(path)


def _start(module: str, path: Path, stdin: IO[bytes]) -> None:
    """Start the server, which ends when nobody writes to its standard input any more."""
    server = subprocess.Popen(
        [sys.executable, "-m", module, path],
        cwd=TESTS,
        stdin=stdin,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C ends the tests, and the server by them
    )
    assert server.stdout is not None
    if server.stdout.read(1) != b".":
        raise RuntimeError("the command server did not start; its error is on stderr")
    _started.append(server)


def client(module: str = "support.command_server") -> list[str]:
    """The command line of a program that runs `fastprof` in a fork of the server."""
    return [sys.executable, "-ISE", CLIENT, socket_of(module)]


def forking(program: str, path: str) -> str:
    """A program for `python -c` that runs another one in a fork of the server on this socket."""
    file = Path(path).with_name("program.py")
    file.write_text(program)
    words = [sys.executable, "-ISE", CLIENT, path, PROGRAM, str(file)]
    return f"import os, sys; os.execv(sys.executable, {words!r})"


def serve(path: str) -> list[str]:
    """Fork per command until nobody holds standard input; each fork returns the command's words."""
    connections: dict[int, socket.socket] = {}  # by the process that runs the command
    awake, ended = os.pipe()
    os.set_blocking(ended, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler is needed to write to `ended`
    signal.set_wakeup_fd(ended)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        os.write(1, b".")
        while True:
            ready, _, _ = select.select([listener, 0, awake, *connections.values()], [], [])
            if 0 in ready:
                shutil.rmtree(os.path.dirname(path), ignore_errors=True)
                os._exit(0)
            for process, connection in connections.items():
                if connection in ready:  # the client has gone
                    os.kill(process, signal.SIGKILL)
            if awake in ready:
                os.read(awake, 4096)
                _report_ends(connections)
            if listener in ready:
                connection, _ = listener.accept()
                texts, fds = command_client.received(connection)
                child = os.fork() if texts else -1
                connections[child] = connection
                if not child:
                    break
                for fd in fds:
                    os.close(fd)
                if child < 0:  # the client has gone
                    connections.pop(child).close()
                else:
                    with suppress(BrokenPipeError):
                        command_client.start(connection, child)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.close(awake)
    os.close(ended)
    for connection in connections.values():
        connection.close()
    return _become(texts, fds)


def _report_ends(connections: dict[int, socket.socket]) -> None:
    """Send the exit codes of processes that have ended."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with connections.pop(ended[0]) as connection, suppress(BrokenPipeError):
                connection.sendall(b"%d" % os.waitstatus_to_exitcode(ended[1]))


def _become(texts: list[bytes], fds: list[int]) -> list[str]:
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(texts[0])
    most = int(texts[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    if most != resource.RLIM_INFINITY:
        sys.dont_write_bytecode = True  # Python would cut the files of modules off
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
    leave(code)


def leave(code: int) -> None:
    """End this process without freeing anything."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            print(f"Exception ignored in: {stream!r}: {error!r}", file=sys.stderr)
            code = 120
    os._exit(code)


def _run(words: list[str]) -> int:
    from fastprof.cli import main

    if words[:1] == [PROGRAM]:
        runpy.run_path(words[1], run_name="__main__")
        return 0
    sys.argv[:] = ["fastprof", *words]
    try:
        return main()
    except SystemExit as error:  # of argparse
        assert isinstance(error.code, int)
        return error.code


def _fill_caches() -> None:
    """Run commands on a small export: each fork would fill caches of regexes and of packages."""
    from fastprof.cli import main
    from support.exports import Export

    export = Export().push_pop(0, 100, "layer:net", tid=1).push_pop(5, 95, "aten::mm", tid=1)
    export.launch(10, 20, corr=1, tid=1).kernel(30, 70, corr=1)
    with tempfile.TemporaryDirectory() as folder:
        path, out = str(export.write(Path(folder, "x.sqlite"))), os.path.join(folder, "x.txt")
        with open(os.devnull, "w") as sink, redirect_stderr(sink):
            for words in (["prof"], ["parse"], ["advise"]):
                if code := main([*words, path, "-o", out]):
                    raise RuntimeError(f"fastprof {words[0]} returned {code}")


def _main(path: str) -> None:
    importlib.import_module("fastprof.analysis.advice.registry").all_rules()  # in their order
    for room in ROOMS:
        package = importlib.import_module(f"fastprof.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    importlib.import_module("numpy.ma")  # numpy imports it on demand
    for name in IF_INSTALLED:
        with suppress(ImportError):
            importlib.import_module(name)
    from fastprof.ranks import local as process

    process._PROGRAM = forking(process._PROGRAM, path)
    _fill_caches()
    gc.collect()
    gc.freeze()  # a collection in a fork would write to all pages
    _end(_run(serve(path)))


if __name__ == "__main__":
    _main(sys.argv[1])
