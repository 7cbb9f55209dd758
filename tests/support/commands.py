"""Runs the command in its own process and compares the folder before and after."""

import hashlib
import os
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from support import command_client, command_server
from support.waiting import PATIENCE


def command(*words: str | os.PathLike[str]) -> list[str]:
    """The command line of `fastprof` with these arguments."""
    return [sys.executable, "-m", "fastprof", *map(os.fsdecode, words)]


def forked(*words: str | os.PathLike[str]) -> list[str]:
    """A command line that does the same in a fork of the command server, sooner.

    Signals reach the client only: use `Forked` to send them to the command.
    """
    return [*command_server.client(), *map(os.fsdecode, words)]


def run(
    *words: str | os.PathLike[str], stdin: bytes = b"", **others: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run it to its end: in a fork of the command server, or with options in a new interpreter.

    The options that a fork takes, too, are `cwd`, `stdout` and `file_size`, the largest that a
    file may be.
    """
    if others.keys() <= {"cwd", "stdout", "file_size"}:
        return Forked(*words, stdin=stdin, **others).ended()
    options = {"input": stdin, "capture_output": True, "timeout": PATIENCE, **others}
    return subprocess.run(command(*words), **options)


class Forked:
    """A command in a fork of the command server, without an interpreter for the client."""

    def __init__(
        self,
        *words: str | os.PathLike[str],
        stdin: bytes = b"",
        cwd: str | os.PathLike[str] | None = None,
        stdout: int | IO[bytes] | None = None,
        file_size: int | None = None,
    ) -> None:
        directory = os.getcwdb() if cwd is None else os.fsencode(os.path.abspath(cwd))
        if file_size is None:
            file_size = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        self._words, self._keeps_output = words, stdout is None
        self._out, self._err = _Output(), _Output()
        read, write = os.pipe()
        to = self._out.write if stdout is None else stdout
        streams = [read, to if isinstance(to, int) else to.fileno(), self._err.write]
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.settimeout(PATIENCE)
        self._connection.connect(command_server.socket_of())
        command_client.send(self._connection, words, directory, file_size, streams)
        for fd in (read, self._out.write, self._err.write):  # only the command holds these ends
            os.close(fd)
        outputs = [_started(each.collect) for each in (self._out, self._err)]
        self._threads = [_started(_write, write, stdin), *outputs]
        self._process = command_client.process_id(self._connection)

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self._process, number)

    def ended(self) -> subprocess.CompletedProcess[bytes]:
        """Wait for its end."""
        with self._connection:
            code = command_client.exit_code(self._connection)
        for thread in self._threads:
            thread.join(PATIENCE)
        written = self._out.content if self._keeps_output else None
        return subprocess.CompletedProcess(self._words, code, written, self._err.content)


class _Output:
    """A pipe, and what a command writes to it."""

    def __init__(self) -> None:
        self.read, self.write = os.pipe()
        self.content = b""

    def collect(self) -> None:
        """Read until the other end is closed."""
        with open(self.read, "rb") as file:
            self.content = file.read()


def _write(fd: int, content: bytes) -> None:
    with suppress(BrokenPipeError), open(fd, "wb", buffering=0) as file:
        while content:
            content = content[file.write(content) :]


def _started(function: Callable[..., None], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def state_of(folder: Path) -> dict[str, str]:
    """Every file below a folder, with its content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def one_line(done: subprocess.CompletedProcess[bytes], code: int = 1) -> str:
    """The single line of a failing command on stderr."""
    message = done.stderr.decode()
    assert done.returncode == code, message
    assert message.count("\n") == 1, message
    assert message.endswith("\n")
    assert message.startswith("fastprof: ")
    assert done.stdout == b""
    return message


def refusal(path: Path, folder: Path) -> str:
    """The error of both commands for a file; nothing in the folder may change."""
    before = state_of(folder)
    messages = {
        one_line(run("parse", path, "-o", folder / "out")),
        one_line(run("prof", "--csv", path)),
    }
    assert state_of(folder) == before
    (message,) = messages
    assert os.fsdecode(path) in message
    return message
